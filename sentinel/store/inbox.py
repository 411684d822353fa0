"""What came in: cursors, seen ids, triggers and decisions. A page is stored whole, in one transaction, or not at all.

Source: spec 02 section 3 point 5 ("in one transaction per page"), section 4 (overlap).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from sqlite3 import Connection

from pydantic import TypeAdapter

from sentinel.core.journal import State
from sentinel.core.model import Message
from sentinel.core.turns import Queued
from sentinel.store.database import Database

_MESSAGE = TypeAdapter(Message)
_DECISIONS_KEPT_S = 30 * 86_400.0


@dataclass(frozen=True, slots=True)
class ConversationState:
    """What is known of one guarded conversation. `answered` is the seq of the newest trigger that was answered."""

    cid: str
    first_mark: int
    cursor: int
    answered: int
    guard_reset_at: float


@dataclass(frozen=True, slots=True)
class Taken:
    """One new message of a page with what was decided on it. `keep` says that the decision is worth looking up."""

    message: Message
    decision: str
    reason: str
    wakes: bool
    resets_guard: bool
    keep: bool


@dataclass(frozen=True, slots=True)
class KeptDecision:
    """What `sentinel why` shows."""

    message_id: str
    cid: str
    seq: int
    decision: str
    reason: str
    at: float


class Inbox:
    """The intake's side of `state.db`."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def conversation(self, cid: str) -> ConversationState | None:
        """Return what is known of a conversation, or None before its first start."""
        row = self._db.row(
            "SELECT cid, first_mark, cursor, answered, guard_reset_at FROM conversations WHERE cid = ?",
            (cid,),
        )
        return ConversationState(*row) if row else None

    def conversations(self) -> tuple[ConversationState, ...]:
        """Return every conversation that was ever guarded."""
        rows = self._db.rows(
            "SELECT cid, first_mark, cursor, answered, guard_reset_at FROM conversations ORDER BY cid"
        )
        return tuple(ConversationState(*row) for row in rows)

    def unseen(self, cid: str, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Return those of a page that were never taken in."""
        if not messages:
            return ()
        low, high = messages[0].seq, messages[-1].seq
        rows = self._db.rows(
            "SELECT message_id FROM seen WHERE cid = ? AND seq BETWEEN ? AND ?", (cid, low, high)
        )
        known = {row[0] for row in rows}
        return tuple(one for one in messages if one.id not in known)

    def take(
        self,
        cid: str,
        taken: Sequence[Taken],
        *,
        cursor: int,
        keep_seen_from: int,
        now: float,
        rang_at: float | None = None,
        first_mark: int | None = None,
    ) -> None:
        """Store triggers, seen ids, decisions and the cursor of one page, in one transaction.

        `first_mark` is given once per conversation, with the page of its first start: mark, cursor and the triggers
        of the last hour are there together or not at all. A page needs no sync of its own: whatever is done about it
        (a turn, a notice, a command noted as obeyed) is synced first, and that syncs the page too; a page that a power
        cut takes back takes its cursor back with it, and is pulled again. Only the mark is synced at once: a second first
        start would look back no further than an hour.
        """
        with self._db.transaction() if first_mark is not None else self._db.unsynced() as write:
            if first_mark is not None:
                write.execute(
                    "INSERT OR IGNORE INTO conversations (cid, first_mark, cursor) VALUES (?, ?, ?)",
                    (cid, first_mark, first_mark),
                )
            write.executemany(
                "INSERT OR IGNORE INTO seen (cid, message_id, seq) VALUES (?, ?, ?)",
                [(cid, one.message.id, one.message.seq) for one in taken],
            )
            write.executemany(
                "INSERT OR IGNORE INTO decisions (message_id, cid, seq, decision, reason, at) VALUES (?, ?, ?, ?, ?, ?)",
                [
                    (one.message.id, cid, one.message.seq, one.decision, one.reason, now)
                    for one in taken
                    if one.keep
                ],
            )
            _queue(write, cid, [one.message for one in taken if one.wakes], now=now, rang_at=rang_at)
            if any(one.resets_guard for one in taken):
                write.execute("UPDATE conversations SET guard_reset_at = ? WHERE cid = ?", (now, cid))
            write.execute("UPDATE conversations SET cursor = max(cursor, ?) WHERE cid = ?", (cursor, cid))
            write.execute("DELETE FROM seen WHERE cid = ? AND seq < ?", (cid, keep_seen_from))
            write.execute("DELETE FROM decisions WHERE at < ?", (now - _DECISIONS_KEPT_S,))

    def queue(self) -> tuple[Queued, ...]:
        """Return every trigger that waits for a turn, oldest first."""
        rows = self._db.rows(
            "SELECT cid, message_id, seq, queued_at, ready_at, alone, failures FROM triggers"
            " WHERE state = ? ORDER BY queued_at, seq",
            (State.SEEN,),
        )
        return tuple(Queued(r[0], r[1], r[2], r[3], r[4], bool(r[5]), r[6]) for r in rows)

    def messages(self, ids: Sequence[str]) -> tuple[Message, ...]:
        """Return the kept triggers with these ids, by seq."""
        marks = ",".join("?" * len(ids))
        rows = self._db.rows(
            f"SELECT message FROM triggers WHERE message_id IN ({marks}) ORDER BY seq", tuple(ids)
        )  # only question marks are joined
        return tuple(_MESSAGE.validate_json(row[0]) for row in rows)

    def persona_turns(self, cid: str, *, since: float) -> int:
        """Return how many persona-triggered turns of a conversation began after `since` and after the last reset."""
        row = self._db.row(
            "SELECT count(*) FROM turns JOIN conversations USING (cid) WHERE cid = ? AND by_persona = 1"
            " AND kind = 'answer' AND started_at > ? AND started_at > guard_reset_at",
            (cid, since),
        )
        return int(row[0]) if row else 0

    def why(self, message_id: str) -> KeptDecision | None:
        """Return the decision that was kept on a message, or None."""
        row = self._db.row(
            "SELECT message_id, cid, seq, decision, reason, at FROM decisions WHERE message_id = ?",
            (message_id,),
        )
        return KeptDecision(*row) if row else None

    def rewind(self, cid: str, newest: int) -> None:
        """The server's history ends at `newest`, before our cursor: it was restored from a back-up. Go on from there.

        Ids that were seen stay seen: what the restored history still holds is not taken twice.
        """
        with self._db.transaction() as write:
            write.execute(
                "UPDATE conversations SET cursor = min(cursor, ?), first_mark = min(first_mark, ?),"
                " answered = min(answered, ?) WHERE cid = ?",
                (newest, newest, newest, cid),
            )

    def obeyed(self, message_id: str, *, now: float) -> None:
        """Note, after the deed, that the command in this message was carried out."""
        with self._db.transaction() as write:
            write.execute("INSERT OR IGNORE INTO commands (message_id, at) VALUES (?, ?)", (message_id, now))
            write.execute("DELETE FROM commands WHERE at < ?", (now - _DECISIONS_KEPT_S,))

    def owed_commands(self) -> tuple[KeptDecision, ...]:
        """Return commands that were taken in, but not carried out before the process ended; oldest first."""
        rows = self._db.rows(
            "SELECT message_id, cid, seq, decision, reason, at FROM decisions WHERE decision = 'obey'"
            " AND message_id NOT IN (SELECT message_id FROM commands) ORDER BY at, seq"
        )
        return tuple(KeptDecision(*row) for row in rows)


def _queue(
    write: Connection, cid: str, messages: Sequence[Message], *, now: float, rang_at: float | None
) -> None:
    """Keep triggers, whole, to wait for their turn."""
    write.executemany(
        "INSERT OR IGNORE INTO triggers (message_id, cid, seq, message, state, by_persona, queued_at,"
        " ready_at, rang_at, pulled_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                one.id,
                cid,
                one.seq,
                _MESSAGE.dump_json(one).decode(),
                State.SEEN,
                one.sender.kind == "persona",
                now,
                now,
                rang_at,
                now,
            )
            for one in messages
        ],
    )
