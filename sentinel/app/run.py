"""`sentinel run`: one persona's sentinel, from the gate to the last goodbye."""

import asyncio
import gc
import os
import signal
from contextlib import suppress
from pathlib import Path

from sentinel.app.clock import SystemClock
from sentinel.app.ground import IdentityRefused, standing
from sentinel.app.logs import open_log
from sentinel.core.errors import ConfigError, Exit, RateLimited, Unavailable
from sentinel.core.gate import Check
from sentinel.core.turns import backoff_s
from sentinel.daemon.ground import Ground
from sentinel.daemon.log import Log
from sentinel.daemon.sentinel import Sentinel
from sentinel.daemon.watchdog import Notifier
from sentinel.home import refusal

_START_S = 120.0
"""What a service manager grants a start beside the waiting: identity, recovery, first connection."""


async def run(home: Path, cids: frozenset[str] | None) -> Exit:
    """Run the sentinel of `home` until TERM or INT. `cids` None: every conversation of the account.

    Raises `ConfigError` (78; a refused identity is kept in `refusal.json` too) and `AlreadyRunning` (75).
    """
    notifier = Notifier.of(os.environ, pid=os.getpid())
    log, clock = open_log(home, name=home.name), SystemClock()
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    attempt = 0
    while not stopping.is_set():
        try:
            return await _stand(home, cids, log, stopping, notifier)
        except IdentityRefused as refused:
            refusal.record(home, (Check("home", ok=True, what=""), refused.check), now=clock.now())
            raise
        except (Unavailable, RateLimited) as away:
            # The room or the executor's side is away before the first word: that heals by itself, so wait for it (spec 02 section 7).
            attempt += 1
            wait_s = backoff_s(attempt, draw=clock.draw(), first_s=1.0, cap_s=60.0)
            log.warning("waits for what is away", why=str(away), retry_in_s=round(wait_s, 1))
            notifier.tell(STATUS="waits for what is away", EXTEND_TIMEOUT_USEC=int((wait_s + _START_S) * 1e6))
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await stopping.wait()
    return Exit.DONE


async def _stand(
    home: Path, cids: frozenset[str] | None, log: Log, stopping: asyncio.Event, notifier: Notifier
) -> Exit:
    async with standing(home, log, guarded=True) as ground:
        await _must_be_in(ground, cids)
        sentinel = Sentinel(ground, guarded=cids, notifier=notifier)
        ender = asyncio.create_task(_end_on(stopping, sentinel))
        try:
            return await sentinel.run(on_ready=lambda: _ready(log, notifier))
        finally:
            ender.cancel()


def _ready(log: Log, notifier: Notifier) -> None:
    # What stands now stands until the end: the collector need not look at it again, and a wake meets no long pause.
    gc.freeze()
    log.info("ready")
    notifier.tell(READY=1, STATUS="ready")


async def _end_on(stopping: asyncio.Event, sentinel: Sentinel) -> None:
    await stopping.wait()
    await sentinel.end()


async def _must_be_in(ground: Ground, cids: frozenset[str] | None) -> None:
    """Refuse to guard a conversation that the account is not in: it would sit deaf."""
    if cids is None:
        return
    mine = {one.cid for one in await ground.room.conversations()}
    missing = sorted(cids - mine)
    if missing:
        raise ConfigError(
            f"gate: voice: this account is in no conversation {', '.join(missing)}",
            mend="add it to the room, or name another conversation",
        )
