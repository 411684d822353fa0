"""What members see of the persona, told in the background: the newest state wins, a failure loses nothing.

Source: spec 01 section 2 (`PUT /v1/presence`), spec 02 section 7 "Presence tells the truth".
"""

import asyncio

from sentinel.core.errors import RateLimited, RoomError, Unauthorized
from sentinel.core.model import PresenceState
from sentinel.core.ports import Clock, Room
from sentinel.daemon.log import Log

_AGAIN_S = 5.0


class Presence:
    """Sends the newest presence and typing; never waited for by a turn."""

    def __init__(self, room: Room, clock: Clock, log: Log) -> None:
        self._room, self._clock, self._log = room, clock, log
        self._wanted: tuple[PresenceState, str | None] = (PresenceState.IDLE, None)
        self._typing: dict[str, bool] = {}
        self._changed = asyncio.Event()

    def show(self, state: PresenceState, detail: str | None = None) -> None:
        """Show this from now on."""
        if (state, detail) != self._wanted:
            self._wanted = (state, detail)
            self._changed.set()

    def typing(self, cid: str, *, on: bool) -> None:
        """Show or hide "is typing" in one conversation."""
        self._typing[cid] = on
        self._changed.set()

    def again(self) -> None:
        """Tell once more what is so (after a reconnection)."""
        self._changed.set()

    async def run(self) -> None:
        """Tell the room, for ever; raises `Unauthorized`."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            state, detail = self._wanted
            typing, self._typing = self._typing, {}
            try:
                for cid, on in typing.items():
                    await self._room.typing(cid, on=on)
                await self._room.presence(state, detail)
            except Unauthorized:
                raise
            except RoomError as away:
                self._log.warning("presence not told", why=str(away))
                told_s = away.retry_after_s if isinstance(away, RateLimited) else 0.0
                await self._clock.sleep(max(_AGAIN_S, told_s))
                self._changed.set()
