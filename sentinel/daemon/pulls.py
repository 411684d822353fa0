"""When a conversation is pulled: at most one pull in flight each, one more for whatever rang meanwhile, soon for the rest.

Source: spec 02 section 3 point 4.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from sentinel.core.errors import NotFound, RoomError, Unauthorized
from sentinel.core.ports import Clock
from sentinel.core.turns import backoff_s
from sentinel.daemon.log import Log

SOON_S = 0.5


class Pulls:
    """Schedules pulls. `fault` is set when one meets what no waiting heals."""

    def __init__(
        self, pull: Callable[[str, float | None], Awaitable[None]], *, clock: Clock, log: Log
    ) -> None:
        """`pull(cid, rang_at)` does one; `rang_at` None: the overlap is read again too."""
        self._pull, self._clock, self._log = pull, clock, log
        self._rung: dict[str, float | None] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._later: dict[str, asyncio.Task[None]] = {}
        self._back = asyncio.Event()
        self.fault: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def back(self) -> None:
        """The line is up again: so is the room, and nobody need wait any longer."""
        self._back.set()

    def ring_soon(self, cid: str) -> None:
        """Have `cid` pulled soon: a busy room that talks to others costs one pull for many messages."""
        if cid not in self._later:
            self._later[cid] = asyncio.create_task(self._ring_after_a_while(cid), name=f"ring {cid}")

    def ring(self, cid: str, *, overlap: bool) -> None:
        """Have `cid` pulled: now, or once more after the pull that is in flight."""
        if later := self._later.pop(cid, None):
            later.cancel()
        now = self._clock.now().timestamp()
        self._rung[cid] = None if overlap else self._rung.get(cid, now)
        if cid not in self._tasks:
            task = asyncio.create_task(self._until_quiet(cid), name=f"pull {cid}")
            self._tasks[cid] = task
            task.add_done_callback(lambda done: self._pulled(cid, done))

    def cancel(self) -> None:
        """Pull no more."""
        for task in (*self._tasks.values(), *self._later.values()):
            task.cancel()

    async def _ring_after_a_while(self, cid: str) -> None:
        await self._clock.sleep(SOON_S)
        del self._later[cid]
        self.ring(cid, overlap=False)

    def _pulled(self, cid: str, done: asyncio.Task[None]) -> None:
        self._tasks.pop(cid, None)
        if done.cancelled():
            return
        if (fault := done.exception()) and not self.fault.done():
            self.fault.set_exception(fault)
        elif cid in self._rung:
            self.ring(cid, overlap=self._rung[cid] is None)  # it rang between the last look and the end

    async def _until_quiet(self, cid: str) -> None:
        attempt = 0
        while cid in self._rung:
            rang_at = self._rung.pop(cid)
            try:
                await self._pull(cid, rang_at)
                attempt = 0
            except Unauthorized:
                raise
            except NotFound as gone:  # no longer a member; a ring, a reconnection or the fallback looks again
                self._log.warning("not in this conversation", cid=cid, why=str(gone))
            except RoomError as away:
                attempt += 1
                wait_s = backoff_s(attempt, draw=self._clock.draw(), first_s=1.0, cap_s=60.0)
                self._log.warning("not pulled", cid=cid, why=str(away), retry_in_s=round(wait_s, 1))
                self._rung.setdefault(cid, rang_at)
                self._back.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(wait_s):
                        await self._back.wait()
