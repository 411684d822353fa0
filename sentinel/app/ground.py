"""From a home to everything that a sentinel stands on: gate, room, identity, lock, state. In that order.

Source: spec 02 sections 2 and 3 (points 1 and 2).
"""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from sentinel.app.clock import SystemClock
from sentinel.app.imports import take_imports
from sentinel.core.errors import ConfigError, Unauthorized, Unavailable
from sentinel.core.gate import Check, GateRefused, confirm_identity
from sentinel.core.model import Account
from sentinel.core.persona import Persona
from sentinel.core.ports import Room
from sentinel.daemon.ground import Ground
from sentinel.daemon.lock import AccountLock
from sentinel.daemon.log import Log
from sentinel.home.examine import examine
from sentinel.rooms.open import open_room
from sentinel.store.store import open_store


def passed(home: Path, *, guarded: bool | None) -> Persona:
    """Return the persona that the gate lets through, or raise its refusal (78) with every line of it.

    Raises `Unavailable` where nothing is wrong but that the other user's side is out of reach.
    """
    verdict = examine(home, guarded=guarded)
    if isinstance(verdict, GateRefused):
        if verdict.is_passing:
            raise Unavailable(verdict.failed[0].what, mend=verdict.failed[0].mend)
        first, *others = [check.line() for check in verdict.failed]
        raise ConfigError("\n".join([first, *others]))
    return verdict.persona


class IdentityRefused(ConfigError):
    """Check 2 of the gate, once connected: the server does not know this token as this persona."""

    def __init__(self, check: Check) -> None:
        super().__init__(f"gate: {check.check}: {check.what}", mend=check.mend)
        self.check = check


@asynccontextmanager
async def standing(home: Path, log: Log, *, guarded: bool | None) -> AsyncGenerator[Ground]:
    """Open all of it, and close it again. Raises `ConfigError` (78), `AlreadyRunning` (75) or a `RoomError` (69)."""
    persona = passed(home, guarded=guarded)
    async with AsyncExitStack() as stack:
        room = open_room(persona.server, persona.token)
        stack.push_async_callback(room.aclose)
        me = await identity(persona, room)
        lock = AccountLock(persona.server, me.uid)
        lock.acquire()
        stack.callback(lock.release)
        store = open_store(home)
        stack.callback(store.close)
        store.bind(persona.server, me.uid)
        take_imports(home, store)
        yield Ground(home, persona, room, me, store, SystemClock(), log)


async def identity(persona: Persona, room: Room) -> Account:
    """Return who the server says we are; refuse to speak with somebody else's account."""
    try:
        me = await room.who_am_i()
    except Unauthorized as no:
        what, mend = "the server does not accept the token", "put a good token into the home"
        raise IdentityRefused(Check("identity", ok=False, what=what, mend=mend, file="token")) from no
    wrong = confirm_identity(persona, me)
    if wrong is not None:
        raise IdentityRefused(wrong)
    return me
