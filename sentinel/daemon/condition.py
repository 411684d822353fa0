"""How the persona is, as a whole: dead, held by an outage, paused. Durable, so that a restart does not forget it.

Source: spec 02 section 7.
"""

from dataclasses import dataclass, replace

from pydantic import TypeAdapter

from sentinel.core.outcome import FailureClass
from sentinel.store.store import Store


@dataclass(frozen=True, slots=True)
class Death:
    """It cannot work until a human acts or `probe_at` shows that it can again. Times: epoch seconds."""

    cause: FailureClass
    since: float
    probe_at: float
    reset_at: float | None = None

    @property
    def key(self) -> str:
        """What the keys of its obituaries begin with: one each for a cause and a conversation."""
        return f"obituary:{self.cause.value}:{self.since:.0f}"


@dataclass(frozen=True, slots=True)
class Ended:
    """The sentinel ended for good: the same `error` of our own again and again at `place`, since `since` (epoch seconds)."""

    error: str
    place: str
    since: float

    @property
    def key(self) -> str:
        """What the keys of its obituaries begin with."""
        return f"ends:{self.since:.0f}:{self.place}"


@dataclass(frozen=True, slots=True)
class Hold:
    """A service is away: the queue waits until `until`. `attempts` counts the tries in a row that met it."""

    cause: FailureClass
    since: float
    until: float
    attempts: int


@dataclass(frozen=True, slots=True)
class Condition:
    """All of it. Healthy is `Condition()`."""

    death: Death | None = None
    hold: Hold | None = None
    paused: bool = False
    refused_since: float | None = None
    ended: Ended | None = None
    """What an earlier process ended of; over with the first success."""


_CONDITION = TypeAdapter(Condition)
_KEY = "condition"


class Conditions:
    """The condition of one persona, kept in its state."""

    def __init__(self, store: Store) -> None:
        self._store = store
        kept = store.meta(_KEY)
        self.now = _CONDITION.validate_json(kept) if kept else Condition()

    def change(self, **fields: object) -> None:
        """Change some of it; written only when something changed."""
        new = replace(self.now, **fields)
        if new != self.now:
            self._store.keep(_KEY, _CONDITION.dump_json(new).decode())
            self.now = new

    def probe_now(self, now: float) -> None:
        """Let a dead or held persona try at `now` (epoch seconds) instead of at its next time."""
        death, hold = self.now.death, self.now.hold
        self.change(
            death=replace(death, probe_at=min(death.probe_at, now)) if death else None,
            hold=replace(hold, until=min(hold.until, now)) if hold else None,
        )


def read_condition(store: Store) -> Condition:
    """Return the kept condition, for commands that only look."""
    kept = store.meta(_KEY)
    return _CONDITION.validate_json(kept) if kept else Condition()
