"""Which triggers make the next turn, and when a failed one comes back. Pure.

Turns of one persona are serial. A turn serves one conversation: the one with the oldest trigger that is *ready*, so a
trigger that is backing off holds up nobody. All its ready triggers are answered in one batch; when a batch of several
fails nobody knows whose fault it was, so it counts for none of them and each runs alone next.
Source: spec 02 section 3 "Batch", section 7 "Retries".
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sentinel.core.persona import Limits

_JITTER: Final = 0.1
_GROWTH: Final = 2 * (1 + _JITTER)
_MAX_DOUBLINGS: Final = 256  # past any cap, and far from the largest float


def backoff_s(attempt: int, *, draw: float, first_s: float = 5.0, cap_s: float = 600.0) -> float:
    """Return the wait before retry number `attempt`, in seconds.

    - `attempt`: 1 for the first retry.
    - `draw`: uniform in [0, 1), drawn by the caller.
    - `first_s`: wait before the first retry, without jitter.
    - `cap_s`: upper bound of the wait, jitter included.

    Jitter lengthens a wait by up to a tenth. The nominal wait grows by 2.2, so that whatever is drawn a wait is at
    least double the one before it, until the cap. Source: spec 02 section 7.
    """
    if attempt < 1:
        raise ValueError(f"attempt counts from 1, got {attempt}")
    nominal = first_s * _GROWTH ** min(attempt - 1, _MAX_DOUBLINGS)
    return min(cap_s, nominal * (1 + _JITTER * draw))


@dataclass(frozen=True, slots=True)
class Queued:
    """A trigger that waits for its turn. Times are seconds on one clock of the caller's.

    `queued_at` never changes; `ready_at` moves when it backs off. `alone`: it was in a batch of several that failed.
    `failures` are the counted ones of this trigger.
    """

    cid: str
    message_id: str
    seq: int
    queued_at: float
    ready_at: float
    alone: bool = False
    failures: int = 0


def next_batch(queue: Sequence[Queued], *, now: float) -> tuple[Queued, ...] | None:
    """Return the triggers of the next turn, all of one conversation, in `seq` order; None when nothing is ready."""
    ready = [one for one in queue if one.ready_at <= now]
    if not ready:
        return None
    cid = min(ready, key=lambda one: (one.queued_at, one.seq, one.cid)).cid
    here = _in_order(one for one in ready if one.cid == cid)
    if here[0].alone:
        return (here[0],)
    return tuple(one for one in here if not one.alone)


def next_wake(queue: Sequence[Queued], *, now: float) -> float | None:
    """Return when to look at the queue again: `now` if something is ready, None if nothing waits."""
    return max(now, min(one.ready_at for one in queue)) if queue else None


def after_batch_failure(
    batch: Sequence[Queued], *, now: float, draw: float, limits: Limits
) -> tuple[Queued, ...]:
    """Return the triggers as they go back into the queue after a failure that counts (`obituary.Counted`).

    One trigger: its count rises and it backs off. Several: nobody's count rises, and each is ready to run alone.
    """
    if len(batch) > 1:
        return tuple(replace(one, alone=True, ready_at=now) for one in _in_order(batch))
    return tuple(_backed_off(one, now=now, draw=draw, limits=limits) for one in batch)


def _backed_off(one: Queued, *, now: float, draw: float, limits: Limits) -> Queued:
    failures = one.failures + 1
    wait_s = backoff_s(failures, draw=draw, first_s=limits.backoff_first_s, cap_s=limits.backoff_cap_s)
    return replace(one, failures=failures, ready_at=now + wait_s)


def _in_order(triggers: Iterable[Queued]) -> list[Queued]:
    return sorted(triggers, key=lambda one: one.seq)
