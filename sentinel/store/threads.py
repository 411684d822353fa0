"""An executor's resumable sessions, one per conversation, and what each turn cost. Source: spec 02 section 5."""

from dataclasses import dataclass
from sqlite3 import Connection

from pydantic import TypeAdapter

from sentinel.core.outcome import Counter, FailureClass, Usage
from sentinel.core.threads import is_quarantined
from sentinel.store.database import Database

_COUNTER = TypeAdapter(Counter)


@dataclass(frozen=True, slots=True)
class Thread:
    """The thread of a conversation. `input_tokens` is what its last turn read; `task_hash` what it was told."""

    id: str | None
    input_tokens: int
    task_hash: str | None
    total: Counter | None


@dataclass(frozen=True, slots=True)
class Completed:
    """What a completed turn leaves behind in its conversation. `beside` was spent on a hand-over, in the thread before."""

    thread: str | None
    usage: Usage | None
    total: Counter | None
    task_hash: str
    beside: Usage | None = None

    @property
    def spent(self) -> Usage:
        """All that the turn cost."""
        return add(self.usage or Usage(), self.beside or Usage())


@dataclass(frozen=True, slots=True)
class UsageSum:
    """Tokens and turns of a persona over a time."""

    turns: int
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    reasoning_tokens: int
    cost_usd: float


class Threads:
    """The threads' side of `state.db`."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def get(self, cid: str) -> Thread:
        """Return the thread of a conversation (without an id before its first completed turn)."""
        row = self._db.row(
            "SELECT thread, thread_input, task_hash, total FROM conversations WHERE cid = ?",
            (cid,),
        )
        if row is None:
            return Thread(None, 0, None, None)
        return Thread(row[0], row[1], row[2], _COUNTER.validate_json(row[3]) if row[3] else None)

    def drop(self, cid: str) -> None:
        """Forget the thread: the next turn begins a new one."""
        with self._db.transaction() as write:
            write.execute(
                "UPDATE conversations SET thread = NULL, thread_input = 0, task_hash = NULL, total = NULL"
                " WHERE cid = ?",
                (cid,),
            )

    def failed(self, thread: str, kind: FailureClass) -> int:
        """Count a failure of a run that went on in `thread`; return how many equal ones there are in a row."""
        with self._db.transaction() as write:
            row = write.execute(
                "SELECT failures FROM thread_failures WHERE thread = ? AND class = ?", (thread, kind)
            ).fetchone()
            failures = 1 + (row[0] if row else 0)
            write.execute(
                "INSERT OR REPLACE INTO thread_failures (thread, class, failures) VALUES (?, ?, ?)",
                (thread, kind, failures),
            )
        return failures

    def quarantined(self, thread: str) -> FailureClass | None:
        """Return the class of the equal failures for which a thread is not gone on in, or None."""
        row = self._db.row("SELECT class, failures FROM thread_failures WHERE thread = ?", (thread,))
        return FailureClass(row[0]) if row and is_quarantined(row[1]) else None

    def adopt(self, cid: str, thread: str) -> None:
        """Take over a thread that an older home kept, where none is known yet (`persona adopt`)."""
        with self._db.transaction() as write:
            write.execute(
                "UPDATE conversations SET thread = ? WHERE cid = ? AND thread IS NULL", (thread, cid)
            )

    def usage(self, *, since: float) -> UsageSum:
        """Return the sum over the turns that began at `since` or later."""
        row = self._db.row(
            "SELECT count(*), coalesce(sum(input_tokens), 0), coalesce(sum(cached_tokens), 0),"
            " coalesce(sum(output_tokens), 0), coalesce(sum(reasoning_tokens), 0), coalesce(sum(cost_usd), 0.0)"
            " FROM turns WHERE kind = 'answer' AND started_at >= ?",
            (since,),
        )
        return UsageSum(*row) if row else UsageSum(0, 0, 0, 0, 0, 0.0)


def complete(write: Connection, cid: str, done: Completed) -> None:
    """A turn completed in `done.thread`: it is the conversation's thread now. Part of the draft's transaction."""
    write.execute("DELETE FROM thread_failures WHERE thread = ?", (done.thread,))
    write.execute(
        "UPDATE conversations SET thread = ?, thread_input = ?, task_hash = ?, total = ? WHERE cid = ?",
        (
            done.thread,
            done.usage.input_tokens if done.usage else 0,
            done.task_hash,
            _COUNTER.dump_json(done.total).decode() if done.total else None,
            cid,
        ),
    )


def add(one: Usage, other: Usage) -> Usage:
    """Return the sum of two usages; the cost is None where neither told one."""
    costs = [cost for cost in (one.cost_usd, other.cost_usd) if cost is not None]
    return Usage(
        one.input_tokens + other.input_tokens,
        one.cached_tokens + other.cached_tokens,
        one.output_tokens + other.output_tokens,
        one.reasoning_tokens + other.reasoning_tokens,
        sum(costs) if costs else None,
    )


def difference(now: Counter | None, before: Counter | None, *, same_thread: bool) -> Usage | None:
    """Turn a thread's running total into this turn's usage; a total that fell began anew."""
    if now is None:
        return None
    base = before if same_thread and before and before.input_tokens <= now.input_tokens else Counter()
    cost = None if now.cost_usd is None else max(0.0, now.cost_usd - (base.cost_usd or 0.0))
    return Usage(
        now.input_tokens - base.input_tokens,
        now.cached_tokens - base.cached_tokens,
        now.output_tokens - base.output_tokens,
        now.reasoning_tokens - base.reasoning_tokens,
        cost,
    )
