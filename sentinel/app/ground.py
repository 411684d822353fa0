"""From a home to everything that a sentinel stands on: gate, room, identity, lock, state. In that order.

Source: spec 02 sections 2 and 3 (points 1 and 2).
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from sentinel.app.clock import SystemClock
from sentinel.app.imports import take_imports
from sentinel.core.errors import ConfigError, Unauthorized
from sentinel.core.gate import GateRefused
from sentinel.core.persona import Persona
from sentinel.daemon.lock import AccountLock
from sentinel.daemon.log import Log
from sentinel.daemon.sentinel import Ground, must_be
from sentinel.home.examine import examine
from sentinel.rooms.open import open_room
from sentinel.store.store import open_store


def passed(home: Path, *, guarded: bool | None) -> Persona:
    """Return the persona that the gate lets through, or raise its refusal (78) with every line of it."""
    verdict = examine(home, guarded=guarded)
    if isinstance(verdict, GateRefused):
        first, *others = [check.line() for check in verdict.failed]
        raise ConfigError("\n".join([first, *others]))
    return verdict.persona


@asynccontextmanager
async def standing(home: Path, log: Log, *, guarded: bool | None) -> AsyncGenerator[Ground]:
    """Open all of it, and close it again. Raises `ConfigError` (78), `AlreadyRunning` (75) or a `RoomError` (69)."""
    persona = passed(home, guarded=guarded)
    clock = SystemClock()
    room = open_room(persona.server, persona.token)
    try:
        try:
            me = await room.who_am_i()
        except Unauthorized as no:
            raise ConfigError(
                "gate: identity: the server does not accept the token", mend="put a good token into the home"
            ) from no
        must_be(persona, me)
        lock = AccountLock(persona.server, me.uid)
        lock.acquire()
        try:
            store = open_store(home)
            try:
                store.bind(persona.server, me.uid)
                take_imports(home, store)
                yield Ground(home, persona, room, me, store, clock, log)
            finally:
                store.close()
        finally:
            lock.release()
    finally:
        await room.aclose()
