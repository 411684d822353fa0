"""Who is there, and how they say they are.

An account is `offline` until a socket opens, and again `offline_after_s` after its last socket closed (or after it
stated a presence without ever having one). In between it is what it last stated, which is kept over restarts, so that a
dead persona is not called idle because the *server* was restarted. Source: spec 01 section 2.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sentinel.core.model import PresenceState

Announce = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Shown:
    """What members see of an account."""

    state: PresenceState
    detail: str | None = None


_OFFLINE = Shown(PresenceState.OFFLINE)
_UNSTATED = Shown(PresenceState.IDLE)


class Presence:
    """The presence of every account; `announce(uid)` is called whenever what is shown of one changed."""

    def __init__(self, stated: Mapping[str, Shown], *, offline_after_s: float, announce: Announce) -> None:
        self._stated = dict(stated)
        self._offline_after_s = offline_after_s
        self._announce = announce
        self._sockets: dict[str, int] = {}
        self._leaving: dict[str, asyncio.TimerHandle] = {}

    def shown(self, uid: str) -> Shown:
        """Return what members see of this account now."""
        if uid in self._sockets or uid in self._leaving:
            return self._stated.get(uid, _UNSTATED)
        return _OFFLINE

    def state(self, uid: str, shown: Shown) -> None:
        """Take in what an account says of itself."""
        before = self.shown(uid)
        self._stated[uid] = shown
        if uid not in self._sockets:
            self._leave_later(uid)
        self._tell(uid, before)

    def opened(self, uid: str) -> None:
        """Note that a socket of this account opened."""
        before = self.shown(uid)
        self._stay(uid)
        self._sockets[uid] = self._sockets.get(uid, 0) + 1
        self._tell(uid, before)

    def closed(self, uid: str) -> None:
        """Note that a socket of this account closed."""
        self._sockets[uid] -= 1
        if self._sockets[uid] == 0:
            del self._sockets[uid]
            self._leave_later(uid)

    def stop(self) -> None:
        """Forget the timers; the server goes down."""
        for uid in list(self._leaving):
            self._stay(uid)

    def _leave_later(self, uid: str) -> None:
        self._stay(uid)
        loop = asyncio.get_running_loop()
        self._leaving[uid] = loop.call_later(self._offline_after_s, self._leave, uid)

    def _stay(self, uid: str) -> None:
        if (timer := self._leaving.pop(uid, None)) is not None:
            timer.cancel()

    def _leave(self, uid: str) -> None:
        before = self.shown(uid)
        self._leaving.pop(uid, None)
        self._tell(uid, before)

    def _tell(self, uid: str, before: Shown) -> None:
        if self.shown(uid) != before:
            self._announce(uid)
