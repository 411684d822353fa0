"""What a persona is doing, read from its state and its lock: it also works when its sentinel is dead.

Source: spec 06 "Status".
"""

from dataclasses import dataclass
from pathlib import Path

from sentinel.core.gate import Passed
from sentinel.core.journal import State
from sentinel.daemon.condition import read_condition
from sentinel.daemon.lock import is_held
from sentinel.home.examine import NOT_ASKED, examine
from sentinel.store.store import FILE, Store, look_at_store

_DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class Guarded:
    """One conversation."""

    cid: str
    cursor: int
    answered: int


@dataclass(frozen=True, slots=True)
class Status:
    """One persona now. Times: epoch seconds; None where there is none."""

    name: str
    state: str
    running: bool
    cause: str | None
    conversations: tuple[Guarded, ...]
    waiting: int
    put_aside: int
    turn: str | None
    turn_age_s: float | None
    last_delivered_at: float | None
    heartbeat_at: float | None
    failures: int
    tokens_today: int


def status(home: Path, *, now: float) -> Status:
    """Read the status of one home."""
    if not (home / FILE).exists():
        return _never_ran(home)
    store = look_at_store(home)
    try:
        return _read(home, store, now)
    finally:
        store.close()


def _never_ran(home: Path) -> Status:
    verdict = examine(home, guarded=None, far=NOT_ASKED)  # a status asks no other machine
    state = "never-run" if isinstance(verdict, Passed) or verdict.is_passing else "refused"
    return Status(home.name, state, False, None, (), 0, 0, None, None, None, None, 0, 0)


def _read(home: Path, store: Store, now: float) -> Status:
    db, condition = store.database, read_condition(store)
    alive = is_held(store.meta("server") or "", store.meta("uid") or "")
    turn = db.row(
        "SELECT id, started_at FROM turns WHERE state = ? ORDER BY started_at DESC", (State.RUNNING,)
    )
    last = db.row("SELECT max(ended_at) FROM turns WHERE kind = 'answer' AND state = ?", (State.VERIFIED,))
    failures = db.row("SELECT count(*) FROM triggers WHERE failures > 0 AND state = ?", (State.SEEN,))
    heartbeat = store.meta("heartbeat")
    usage = store.threads.usage(since=now - _DAY_S)
    cause = condition.death.cause if condition.death else condition.hold.cause if condition.hold else None
    ended = "crash-loop" if condition.ended else None
    aside = (State.PARKED, State.REJECTED, State.NEEDS_HUMAN)
    if not alive:
        state = "offline"
    elif condition.death:
        state = "dead"
    elif condition.paused:
        state = "paused"
    elif condition.hold:
        state = "failing"
    else:
        state = "working" if turn else "idle"
    return Status(
        name=home.name,
        state=state,
        running=alive,
        cause=cause.value if cause else ended,
        conversations=tuple(
            Guarded(one.cid, one.cursor, one.answered) for one in store.inbox.conversations()
        ),
        waiting=len(store.inbox.queue()),
        put_aside=sum(len(store.turns.in_state(one)) for one in aside),
        turn=turn[0] if turn else None,
        turn_age_s=round(now - turn[1], 3) if turn else None,
        last_delivered_at=last[0] if last else None,
        heartbeat_at=float(heartbeat) if heartbeat else None,
        failures=int(failures[0]) if failures else 0,
        tokens_today=usage.input_tokens + usage.output_tokens,
    )
