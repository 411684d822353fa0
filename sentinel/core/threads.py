"""When an executor's thread is left for a new one, and what is taken along. Pure.

A thread that has grown past the limit is left with a hand-over that it writes itself; one that failed three times in the same
way is left as it is. What the hand-over says is the executor's word, not ours: it stands in the next prompt as foreign text.
Source: spec 02 section 5 "Threads".
"""

from collections.abc import Sequence
from typing import Final

from sentinel.core.outcome import FailureClass
from sentinel.core.persona import Limits

QUARANTINE_AFTER: Final = 3
HANDOVER_CHARS: Final = 8_000

_BLAMED: Final = frozenset(
    {
        FailureClass.EMPTY,
        FailureClass.CRASH,
        FailureClass.TIMEOUT,
        FailureClass.TRUNCATED,
        FailureClass.REFUSED,
        FailureClass.INPUT_REJECTED,
        FailureClass.CONTEXT_FULL,
        FailureClass.THREAD_LOST,
    }
)
_OF_THE_THREAD: Final = frozenset({FailureClass.CONTEXT_FULL, FailureClass.THREAD_LOST})

ASK_FOR_HANDOVER: Final = """\
This is a turn of the program that carries your messages; nobody in the room sees what you answer now.
This thread has grown long and ends here. The next message is answered in a new thread, which knows nothing of this one.
Write a hand-over for it, in at most 600 words: who is in the room and what they want, what was found out and decided, what is
open, what was promised and to whom, and which files and places matter. Facts only, no greeting, no keys and no passwords.
Use no tool, change nothing, and answer nobody.
"""
_HANDOVER_NOTE: Final = "your earlier thread had grown long and this is a new one; as its last act it wrote down for you: {handover}"
_RENEWED_NOTE: Final = "your earlier thread could not be continued ({why}); what was said in it is gone, this block is what there is"


def is_past_limit(input_tokens: int, limits: Limits) -> bool:
    """Return whether a thread is too long to go on in, by what its last turn read."""
    return input_tokens > limits.thread_tokens


def is_blamed(kind: FailureClass) -> bool:
    """Return whether a failure may be the thread's own fault, so that it counts against it."""
    return kind in _BLAMED


def is_of_the_thread(kind: FailureClass) -> bool:
    """Return whether a failure says that the thread itself cannot go on: once more in a new one, within the attempt."""
    return kind in _OF_THE_THREAD


def is_quarantined(equal_failures: int) -> bool:
    """Return whether a thread is left after so many equal failures in a row."""
    return equal_failures >= QUARANTINE_AFTER


def ends_turn(handover_failed: FailureClass) -> bool:
    """Return whether a failed hand-over ends its turn too: what has no fault of the thread would fail the answer as well.

    An outage, a wall or a `/stop` then costs a try, and not the memory of the thread.
    """
    return not is_blamed(handover_failed)


def notes(*, handover: str | None, why_new: FailureClass | None) -> Sequence[str]:
    """Return what the first prompt of a new thread says about the old one."""
    if handover is not None:
        return (_HANDOVER_NOTE.format(handover=handover[:HANDOVER_CHARS]),)
    return (_RENEWED_NOTE.format(why=why_new.value),) if why_new else ()
