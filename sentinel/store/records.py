"""What the journal holds, as values: turns, their posts, the counters of triggers; and reading them back."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from sqlite3 import Row

from pydantic import TypeAdapter

from sentinel.core.errors import Damaged
from sentinel.core.journal import DELIVERING, UNFINISHED, State, Unfinished
from sentinel.core.model import Outgoing
from sentinel.store.database import Database

OUTGOING = TypeAdapter(Outgoing)


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """One attempt to answer a batch, or one notice of the program's own (`kind` "notice")."""

    id: str
    kind: str
    cid: str
    key_id: str
    generation: int
    batch: tuple[str, ...]
    state: State
    attempt: int
    snapshot: int
    pid: int | None
    started: int | None
    thread: str | None
    ready_at: float


@dataclass(frozen=True, slots=True)
class PartRecord:
    """One post of a turn: its exact content, and how far it came."""

    turn_id: str
    part: int
    outgoing: Outgoing
    state: State
    attempt: int
    anchor: int
    server_id: str | None


@dataclass(frozen=True, slots=True)
class TriggerChange:
    """What a failed turn means for one trigger. `None` leaves a field as it is."""

    message_id: str
    state: State
    ready_at: float | None = None
    alone: bool | None = None
    failures: int | None = None
    rates: int | None = None
    cut_thread: str | None = None
    cuts: int | None = None


@dataclass(frozen=True, slots=True)
class TriggerRecord:
    """The counters of one trigger."""

    message_id: str
    cid: str
    seq: int
    state: State
    by_persona: bool
    alone: bool
    failures: int
    rates: int
    generation: int
    cut_thread: str | None
    cuts: int
    queued_at: float


_TURN_COLUMNS = (
    "id, kind, cid, key_id, generation, batch, state, attempt, snapshot, pid, started, thread, ready_at"
)
_PART_COLUMNS = "turn_id, part, outgoing, state, attempt, anchor, server_id"
_TRIGGER_COLUMNS = (
    "message_id, cid, seq, state, by_persona, alone, failures, rates, generation, cut_thread, cuts, queued_at"
)


class Records:
    """The reading half of the journal."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def get(self, turn_id: str) -> TurnRecord:
        """Return one turn."""
        row = self._db.row(f"SELECT {_TURN_COLUMNS} FROM turns WHERE id = ?", (turn_id,))  # constant columns
        if row is None:
            raise Damaged(f"turn {turn_id} is not in the journal")
        return _turn(row)

    def parts(self, turn_id: str) -> tuple[PartRecord, ...]:
        """Return the posts of a turn, in order."""
        rows = self._db.rows(
            f"SELECT {_PART_COLUMNS} FROM parts WHERE turn_id = ? ORDER BY part", (turn_id,)
        )  # constant columns
        return tuple(
            PartRecord(r[0], r[1], OUTGOING.validate_json(r[2]), State(r[3]), r[4], r[5], r[6]) for r in rows
        )

    def triggers(self, message_ids: Sequence[str]) -> tuple[TriggerRecord, ...]:
        """Return the counters of these triggers, by seq."""
        marks = ",".join("?" * len(message_ids))
        rows = self._db.rows(
            f"SELECT {_TRIGGER_COLUMNS} FROM triggers WHERE message_id IN ({marks}) ORDER BY seq",  # only question marks are joined
            tuple(message_ids),
        )
        return tuple(_trigger(row) for row in rows)

    def in_state(self, state: State, cid: str | None = None) -> tuple[TriggerRecord, ...]:
        """Return the triggers in one state, oldest first."""
        where = "state = ?" if cid is None else "state = ? AND cid = ?"
        parameters = (state,) if cid is None else (state, cid)
        rows = self._db.rows(
            f"SELECT {_TRIGGER_COLUMNS} FROM triggers WHERE {where} ORDER BY queued_at", parameters
        )  # constant columns
        return tuple(_trigger(row) for row in rows)

    def notice_was_sent(self, key_id: str) -> bool:
        """Return whether a notice with this key was read back from the room."""
        row = self._db.row(
            "SELECT 1 FROM turns WHERE kind = 'notice' AND key_id = ? AND state = ?", (key_id, State.VERIFIED)
        )
        return row is not None

    def newest_notice(self, prefix: str) -> float | None:
        """Return when the newest notice whose key begins with `prefix` was drafted, or None."""
        row = self._db.row(
            "SELECT max(started_at) FROM turns WHERE kind = 'notice' AND key_id >= ? AND key_id < ?",
            (prefix, f"{prefix}\U0010ffff"),
        )
        return row[0] if row else None

    def unfinished(self) -> tuple[Unfinished, ...]:
        """Return the turns that are between `running` and `verified`, oldest first."""
        marks = ",".join("?" * len(UNFINISHED))
        rows = self._db.rows(
            f"SELECT id, state FROM turns WHERE state IN ({marks}) ORDER BY started_at",  # only question marks are joined
            tuple(UNFINISHED),
        )
        return tuple(Unfinished(row[0], State(row[1])) for row in rows)

    def running_with(self, message_ids: Sequence[str]) -> str | None:
        """Return the id of the `running` turn that holds one of these triggers, or None."""
        for one in self.unfinished():
            record = self.get(one.turn_id)
            if record.state is State.RUNNING and not set(message_ids).isdisjoint(record.batch):
                return record.id
        return None

    def last_spawned(self) -> TurnRecord | None:
        """Return the turn whose executor was started last: the only one of an earlier process that may still live."""
        row = self._db.row(
            f"SELECT {_TURN_COLUMNS} FROM turns WHERE pid IS NOT NULL ORDER BY spawned_at DESC LIMIT 1"
        )  # constant columns
        return _turn(row) if row else None

    def deliveries(self) -> tuple[TurnRecord, ...]:
        """Return the turns whose bytes stand and are not yet verified, the one that may be tried first in front."""
        marks = ",".join("?" * len(DELIVERING))
        rows = self._db.rows(
            f"SELECT {_TURN_COLUMNS} FROM turns WHERE state IN ({marks}) ORDER BY ready_at, started_at",  # constant columns
            tuple(DELIVERING),
        )
        return tuple(_turn(row) for row in rows)


def _turn(row: Row) -> TurnRecord:
    return TurnRecord(
        id=row["id"],
        kind=row["kind"],
        cid=row["cid"],
        key_id=row["key_id"],
        generation=row["generation"],
        batch=tuple(json.loads(row["batch"])),
        state=State(row["state"]),
        attempt=row["attempt"],
        snapshot=row["snapshot"],
        pid=row["pid"],
        started=row["started"],
        thread=row["thread"],
        ready_at=row["ready_at"],
    )


def _trigger(row: Row) -> TriggerRecord:
    return TriggerRecord(
        message_id=row["message_id"],
        cid=row["cid"],
        seq=row["seq"],
        state=State(row["state"]),
        by_persona=bool(row["by_persona"]),
        alone=bool(row["alone"]),
        failures=row["failures"],
        rates=row["rates"],
        generation=row["generation"],
        cut_thread=row["cut_thread"],
        cuts=row["cuts"],
        queued_at=row["queued_at"],
    )
