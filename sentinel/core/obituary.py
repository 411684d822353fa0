"""Evidence and counters -> is the persona dead, must it wait, or did only this message fail. Pure.

"This turn failed" is not "I am dead" (law 6): only the four classes that prove it (and a rate limit met three times in
a row by the same message) are death; counters belong to one trigger message, never to the persona. The table of spec
02 section 7 is `judge`; each class stands in it, and a new one turns the type check red until it does.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, TypeAlias, assert_never

from sentinel.core.outcome import Failure, FailureClass
from sentinel.core.persona import Limits
from sentinel.core.turns import backoff_s

REFUSAL_RECHECK: Final = timedelta(seconds=5)
PROBE_EVERY: Final = timedelta(minutes=15)
RATES_ARE_A_WALL: Final = 3


@dataclass(frozen=True, slots=True)
class Dead:
    """The persona cannot work until `reset_at`, or until a human acts: one obituary per cause, stay connected."""

    cause: FailureClass
    reset_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Hold:
    """Try again at `until` (aware). Nothing is counted, nothing is said."""

    until: datetime


@dataclass(frozen=True, slots=True)
class Outage:
    """A service is away: the whole queue waits, nobody is counted, one notice per conversation once it lasts."""


@dataclass(frozen=True, slots=True)
class Counted:
    """The message failed, for the `failures`th time. `notice`: say so now. `park`: stop trying by itself."""

    failures: int
    notice: bool
    park: bool


@dataclass(frozen=True, slots=True)
class EndsVisibly:
    """The message is over: the owners are told once, the body is kept."""


@dataclass(frozen=True, slots=True)
class Quiet:
    """We ended the turn ourselves: no failure, no word beyond the one line that confirms a `/stop`."""


@dataclass(frozen=True, slots=True)
class RetryInNewThread:
    """The executor's thread is gone or full: once more in a new one, within the same attempt."""


Verdict: TypeAlias = Dead | Hold | Outage | Counted | EndsVisibly | Quiet | RetryInNewThread


def judge(
    failure: Failure,
    *,
    failures_before: int,
    rates_before: int,
    thread_failures: int,
    now: datetime,
    limits: Limits,
) -> Verdict:
    """Return what a failed turn means: the table of spec 02 section 7.

    - `failure`: of a turn whose batch is one trigger. (Of a batch of several, only `Counted` means something else:
      see `turns.after_batch_failure`.)
    - `failures_before`: counted failures of this very trigger so far.
    - `rates_before`: `rate` failures of this very trigger in a row until now; any other outcome sets it to 0.
    - `thread_failures`: `thread_lost` and `context_full` met so far within this attempt.
    - `now`: aware.
    """
    match failure.kind:
        case FailureClass.AUTH | FailureClass.QUOTA | FailureClass.CONFIG | FailureClass.MISSING:
            return Dead(failure.kind, failure.retry_at)
        case FailureClass.RATE:
            return _judge_rate(failure, rates_before=rates_before, now=now, limits=limits)
        case FailureClass.UNAVAILABLE | FailureClass.BUSY | FailureClass.ROOM_UNAVAILABLE:
            return Outage()
        case FailureClass.THREAD_LOST | FailureClass.CONTEXT_FULL:
            return RetryInNewThread() if thread_failures == 0 else _counted(failures_before, limits)
        case (
            FailureClass.EMPTY
            | FailureClass.CRASH
            | FailureClass.TIMEOUT
            | FailureClass.TRUNCATED
            | FailureClass.REFUSED
            | FailureClass.INPUT_REJECTED
            | FailureClass.BUG
        ):
            return _counted(failures_before, limits)
        case FailureClass.LEAK | FailureClass.REJECTED:
            return EndsVisibly()
        case FailureClass.INTERRUPTED | FailureClass.STOPPED:
            return Quiet()
        case _:
            assert_never(failure.kind)


def _judge_rate(failure: Failure, *, rates_before: int, now: datetime, limits: Limits) -> Dead | Hold:
    if rates_before + 1 >= RATES_ARE_A_WALL:
        return Dead(FailureClass.RATE, failure.retry_at)
    wait_s = backoff_s(rates_before + 1, draw=0.0, first_s=limits.backoff_first_s, cap_s=limits.backoff_cap_s)
    told = failure.retry_at or now
    return Hold(max(told, now + timedelta(seconds=wait_s)))


def _counted(failures_before: int, limits: Limits) -> Counted:
    failures = failures_before + 1
    return Counted(failures, notice=failures == limits.fail_notice_after, park=failures >= limits.park_after)


def judge_refusal(first_seen: datetime | None, now: datetime) -> Dead | Hold:
    """Return what a gate refusal at a turn means: death only if it is still there 5 s after it was first seen.

    A file that is being replaced is absent for a moment. `first_seen` is that of the refusals in a row; None for the
    first one.
    """
    since = now if first_seen is None else min(first_seen, now)  # a clock set back must not prolong the wait
    if now - since >= REFUSAL_RECHECK:
        return Dead(FailureClass.MISSING)
    return Hold(since + REFUSAL_RECHECK)


def probe_at(reset_at: datetime | None, *, now: datetime) -> datetime:
    """Return when a dead persona tries its oldest trigger again: at a told reset time, else every 15 min."""
    return reset_at if reset_at is not None and reset_at > now else now + PROBE_EVERY
