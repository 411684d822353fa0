"""The table of spec 02 section 7: what a failure means."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.core.obituary import (
    Counted,
    Dead,
    EndsVisibly,
    Hold,
    Outage,
    Quiet,
    RetryInNewThread,
    judge,
    judge_refusal,
    probe_at,
)
from sentinel.core.outcome import Failure, FailureClass
from sentinel.core.persona import Limits

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
LATER = NOW + timedelta(hours=3)


def verdict(kind, *, failures=0, rates=0, threads=0, retry_at=None, limits=None):
    return judge(
        Failure(kind, "evidence", retry_at),
        failures_before=failures,
        rates_before=rates,
        thread_failures=threads,
        now=NOW,
        limits=limits or Limits(),
    )


FIRST = Counted(1, notice=False, park=False)

TABLE = {
    FailureClass.AUTH: Dead(FailureClass.AUTH),
    FailureClass.QUOTA: Dead(FailureClass.QUOTA),
    FailureClass.CONFIG: Dead(FailureClass.CONFIG),
    FailureClass.MISSING: Dead(FailureClass.MISSING),
    FailureClass.RATE: Hold(NOW + timedelta(seconds=5)),
    FailureClass.UNAVAILABLE: Outage(),
    FailureClass.BUSY: Outage(),
    FailureClass.ROOM_UNAVAILABLE: Outage(),
    FailureClass.THREAD_LOST: RetryInNewThread(),
    FailureClass.CONTEXT_FULL: RetryInNewThread(),
    FailureClass.EMPTY: FIRST,
    FailureClass.CRASH: FIRST,
    FailureClass.TIMEOUT: FIRST,
    FailureClass.TRUNCATED: FIRST,
    FailureClass.REFUSED: FIRST,
    FailureClass.INPUT_REJECTED: FIRST,
    FailureClass.BUG: FIRST,
    FailureClass.LEAK: EndsVisibly(),
    FailureClass.REJECTED: EndsVisibly(),
    FailureClass.INTERRUPTED: Quiet(),
    FailureClass.STOPPED: Quiet(),
}
COUNTED = [kind for kind, first in TABLE.items() if isinstance(first, Counted)]


@pytest.mark.parametrize("kind", FailureClass)
def test_the_table(kind):
    assert verdict(kind) == TABLE[kind]


def test_an_obituary_carries_the_reset_time_if_it_was_told():
    assert verdict(FailureClass.QUOTA, retry_at=LATER) == Dead(FailureClass.QUOTA, LATER)


@pytest.mark.parametrize("kind", COUNTED)
@pytest.mark.parametrize(
    ("before", "expected"),
    [
        (1, Counted(2, notice=False, park=False)),
        (2, Counted(3, notice=True, park=False)),
        (3, Counted(4, notice=False, park=False)),
        (10, Counted(11, notice=False, park=False)),
        (11, Counted(12, notice=False, park=True)),
        (12, Counted(13, notice=False, park=True)),
    ],
)
def test_one_notice_at_the_third_failure_and_parked_at_the_twelfth(kind, before, expected):
    assert verdict(kind, failures=before) == expected


def test_the_two_numbers_are_the_personas():
    limits = Limits(fail_notice_after=1, park_after=2)

    assert verdict(FailureClass.CRASH, limits=limits) == Counted(1, notice=True, park=False)
    assert verdict(FailureClass.CRASH, failures=1, limits=limits) == Counted(2, notice=False, park=True)


@pytest.mark.parametrize("kind", [FailureClass.THREAD_LOST, FailureClass.CONTEXT_FULL])
def test_a_second_loss_of_the_thread_in_one_attempt_is_a_failure_of_the_message(kind):
    assert verdict(kind, threads=1, failures=2) == Counted(3, notice=True, park=False)


@pytest.mark.parametrize(
    ("rates", "retry_at", "expected"),
    [
        pytest.param(0, LATER, Hold(LATER), id="until-the-told-time"),
        pytest.param(1, LATER, Hold(LATER), id="twice-is-no-wall"),
        pytest.param(0, None, Hold(NOW + timedelta(seconds=5)), id="nothing-told"),
        pytest.param(1, None, Hold(NOW + timedelta(seconds=11)), id="nothing-told-twice"),
        pytest.param(0, NOW - timedelta(hours=1), Hold(NOW + timedelta(seconds=5)), id="told-a-time-gone-by"),
        pytest.param(2, LATER, Dead(FailureClass.RATE, LATER), id="third-in-a-row"),
        pytest.param(7, None, Dead(FailureClass.RATE), id="still-a-wall"),
    ],
)
def test_rate(rates, retry_at, expected):
    assert verdict(FailureClass.RATE, rates=rates, retry_at=retry_at) == expected


@pytest.mark.parametrize(
    ("first_seen", "expected"),
    [
        pytest.param(None, Hold(NOW + timedelta(seconds=5)), id="first-sight"),
        pytest.param(NOW - timedelta(seconds=2), Hold(NOW + timedelta(seconds=3)), id="too-soon"),
        pytest.param(NOW - timedelta(seconds=5), Dead(FailureClass.MISSING), id="seen-twice"),
        pytest.param(NOW + timedelta(hours=1), Hold(NOW + timedelta(seconds=5)), id="clock-was-set-back"),
    ],
)
def test_a_gate_refusal_is_seen_twice_before_it_is_death(first_seen, expected):
    assert judge_refusal(first_seen, NOW) == expected


@pytest.mark.parametrize(
    ("reset_at", "expected"),
    [
        pytest.param(None, NOW + timedelta(minutes=15), id="nothing-told"),
        pytest.param(LATER, LATER, id="told"),
        pytest.param(NOW, NOW + timedelta(minutes=15), id="the-reset-did-not-help"),
    ],
)
def test_when_a_dead_persona_tries_again(reset_at, expected):
    assert probe_at(reset_at, now=NOW) == expected


@given(
    kind=st.sampled_from(FailureClass),
    failures=st.integers(min_value=0, max_value=50),
    rates=st.integers(min_value=0, max_value=5),
    threads=st.integers(min_value=0, max_value=3),
    retry_at=st.none() | st.datetimes(timezones=st.just(UTC)),
)
def test_a_hold_is_never_in_the_past_and_death_is_never_counted(kind, failures, rates, threads, retry_at):
    decided = verdict(kind, failures=failures, rates=rates, threads=threads, retry_at=retry_at)

    if isinstance(decided, Hold):
        assert decided.until >= NOW + timedelta(seconds=5)
    if isinstance(decided, Counted):
        assert decided.failures == failures + 1
    if isinstance(decided, Dead):
        assert decided.cause is kind
