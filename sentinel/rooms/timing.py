"""Every number of seconds that the HOOP client keeps, in one place. Pure.

Source: the rooms fact sheet, section 5 (websockets and httpx); spec 01 section 1 ("every request has a time limit").
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timing:
    """Time limits and waits. Tests shrink them; nobody else needs to."""

    # One attempt of an HTTP call.
    connect_s: float = 5.0
    read_s: float = 10.0
    write_s: float = 10.0
    pool_s: float = 5.0
    keepalive_s: float = 4.0
    """Idle connections are dropped before the server drops them (5 s there): a post should not meet a dead one."""

    # One HTTP call as a whole, repeats included: a server that drips bytes keeps every single read in time.
    call_s: float = 30.0
    transfer_s: float = 300.0
    tries: int = 3
    retry_first_s: float = 0.1
    retry_after_cap_s: float = 2.0
    """A longer `Retry-After` is the caller's business: it gets `RateLimited`."""

    # The live line.
    open_s: float = 5.0
    hello_s: float = 5.0
    ping_every_s: float = 10.0
    ping_answer_s: float = 5.0
    """With `ping_every_s` the longest deafness: 25 s at these values, well inside the 60 s of spec 02 section 7."""
    close_s: float = 2.0
    typing_s: float = 1.0
    backoff_first_s: float = 1.0
    backoff_cap_s: float = 30.0
    steady_s: float = 60.0
    """A line that was up this long was a good one, even if nothing was said on it: the backoff starts again."""

    def backoff_s(self, failures: int, *, draw: float) -> float:
        """Return the wait before connecting again after `failures` (1 or more) in a row; `draw` is in [0, 1)."""
        doublings = min(failures - 1, 16)  # enough for any cap, and no overflow after a week of failures
        return min(self.backoff_cap_s, self.backoff_first_s * 2.0**doublings) * (0.5 + draw / 2)

    def retry_s(self, attempt: int, *, draw: float) -> float:
        """Return the wait after failed attempt number `attempt` (from 1) of a call that may be repeated."""
        return self.retry_first_s * 4.0 ** (attempt - 1) * (0.5 + draw)
