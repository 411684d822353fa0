"""What a sentinel stands on: everything that was opened before it begins."""

from dataclasses import dataclass
from pathlib import Path

from sentinel.core.model import Account
from sentinel.core.persona import Persona
from sentinel.core.ports import Clock, Room
from sentinel.daemon.log import Log
from sentinel.store.store import Store


@dataclass(frozen=True, slots=True)
class Ground:
    """The home, the persona as the gate passed it, its room and account, its state; clock and log."""

    home: Path
    persona: Persona
    room: Room
    me: Account
    store: Store
    clock: Clock
    log: Log
