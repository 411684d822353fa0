"""How a turn ended: an answer, or a failure of a named class. Pure.

Source: spec 02 section 5 "Outcome". A good exit code is no evidence (law 3): only a sentence for a human is.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias


class FailureClass(StrEnum):
    """The closed list. The value is the word in the journal, the log, `sentinel status` and the runbooks."""

    EMPTY = "empty"
    AUTH = "auth"
    QUOTA = "quota"
    RATE = "rate"
    CONFIG = "config"
    MISSING = "missing"
    INPUT_REJECTED = "input_rejected"
    CONTEXT_FULL = "context_full"
    TRUNCATED = "truncated"
    REFUSED = "refused"
    BUSY = "busy"
    UNAVAILABLE = "unavailable"
    TIMEOUT = "timeout"
    CRASH = "crash"
    THREAD_LOST = "thread_lost"
    LEAK = "leak"
    INTERRUPTED = "interrupted"
    STOPPED = "stopped"
    BUG = "bug"
    ROOM_UNAVAILABLE = "room_unavailable"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one turn, as differences (never running totals). `cost_usd` only where the executor told it."""

    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class Counter:
    """A running total that an executor reports per thread; the store turns it into a `Usage` by subtraction."""

    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """A sentence for a human. `usage` is per turn; `total` is a per-thread running total, where only that is told."""

    text: str
    thread: str | None = None
    usage: Usage | None = None
    total: Counter | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """Why there is none. `evidence` is for operators (redacted, at most a few hundred characters), never for the room."""

    kind: FailureClass
    evidence: str
    retry_at: datetime | None = None
    thread: str | None = None


Outcome: TypeAlias = Answer | Failure
