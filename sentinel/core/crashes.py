"""Errors of our own that come again and again: which they are, what makes two of them the same, how many are a loop. Pure.

One is a failure of its message, like any other. The same one five times at the same place proves that no restart and no
retry heals it. Being killed never counts: a kill raises nothing. Source: spec 02 section 7 ("crash loop").
"""

from typing import Final

from sentinel.core.errors import Exit, SentinelError

A_LOOP: Final = 5


def is_ours(fault: BaseException) -> bool:
    """Return whether nobody but us can mend this fault: not the operator, not the room, not the disk."""
    if not isinstance(fault, Exception):
        return False
    return not isinstance(fault, SentinelError) or fault.exit_code in {Exit.BUG, Exit.DAMAGED}


def error_of(fault: BaseException) -> str:
    """Return what makes two faults the same error: its type and where it was raised; its text may differ each time."""
    trace, where = fault.__traceback__, ""
    while trace is not None:
        code = trace.tb_frame.f_code
        where = f" in {code.co_filename.rpartition('/')[2]}:{code.co_name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return type(fault).__name__ + where


def is_loop(times: int) -> bool:
    """Return whether the same error, met for the `times`th time at the same place, ends the sentinel for good."""
    return times >= A_LOOP
