"""Batches, and waits between retries (spec 02 sections 3 and 7)."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.core.persona import Limits
from sentinel.core.turns import Queued, after_batch_failure, backoff_s, next_batch, next_wake

LIMITS = Limits()
draws = st.floats(min_value=0.0, max_value=1.0, exclude_max=True)
attempts = st.integers(min_value=1, max_value=2_000)


def trigger(seq, cid="c1", *, queued_at=None, ready_at=0.0, alone=False, failures=0):
    at = float(seq) if queued_at is None else queued_at
    return Queued(cid, f"{cid}-m{seq}", seq, at, ready_at, alone, failures)


def ids(batch):
    return [one.message_id for one in batch or ()]


# Waits


@given(draw=draws)
def test_the_first_wait_is_at_least_five_seconds(draw):
    assert 5.0 <= backoff_s(1, draw=draw) < 6.0


@given(attempt=attempts, first=draws, second=draws)
def test_each_next_wait_is_at_least_double_until_the_cap(attempt, first, second):
    """Whatever is drawn: "each next at least double, up to 10 min"."""
    wait, following = backoff_s(attempt, draw=first), backoff_s(attempt + 1, draw=second)

    assert following >= 2 * wait * (1 - 1e-12) or following == 600.0


@given(attempt=attempts, draw=draws)
def test_jitter_only_lengthens_and_never_past_the_cap(attempt, draw):
    assert backoff_s(attempt, draw=0.0) <= backoff_s(attempt, draw=draw) <= 600.0


def test_jitter_does_spread():
    assert backoff_s(1, draw=0.0) < backoff_s(1, draw=0.9)


def test_a_service_that_is_away_all_day_is_asked_every_ten_minutes():
    assert backoff_s(100_000, draw=0.5) == 600.0


def test_attempts_count_from_one():
    with pytest.raises(ValueError, match="counts from 1, got 0"):
        backoff_s(0, draw=0.0)


# What next


def test_an_empty_queue_has_no_turn_and_no_time():
    assert next_batch((), now=0.0) is None
    assert next_wake((), now=0.0) is None


def test_the_conversation_of_the_oldest_ready_trigger_comes_first():
    queue = [
        trigger(9, "c1", queued_at=3.0),
        trigger(2, "c2", queued_at=1.0),
        trigger(3, "c2", queued_at=9.0),
    ]

    assert ids(next_batch(queue, now=10.0)) == ["c2-m2", "c2-m3"]


def test_a_trigger_that_backs_off_holds_up_nobody():
    queue = [trigger(1, ready_at=100.0), trigger(2), trigger(5, "c2", queued_at=3.0)]

    assert ids(next_batch(queue, now=10.0)) == ["c1-m2"]


def test_a_batch_is_in_the_order_of_the_room():
    queue = [trigger(3, queued_at=1.0), trigger(1, queued_at=2.0), trigger(2, queued_at=3.0)]

    assert ids(next_batch(queue, now=10.0)) == ["c1-m1", "c1-m2", "c1-m3"]


def test_nothing_ready_says_when_to_look_again():
    queue = [trigger(1, ready_at=100.0), trigger(2, ready_at=50.0)]

    assert next_batch(queue, now=10.0) is None
    assert next_wake(queue, now=10.0) == 50.0


def test_something_ready_says_now():
    assert next_wake([trigger(1, ready_at=3.0)], now=10.0) == 10.0


def test_a_trigger_is_ready_at_its_very_time():
    assert ids(next_batch([trigger(1, ready_at=10.0)], now=10.0)) == ["c1-m1"]


def test_one_that_must_run_alone_does():
    queue = [trigger(1, alone=True), trigger(2, alone=True), trigger(3)]

    assert ids(next_batch(queue, now=10.0)) == ["c1-m1"]


def test_one_that_must_run_alone_joins_no_batch():
    queue = [trigger(1), trigger(2, alone=True), trigger(3)]

    assert ids(next_batch(queue, now=10.0)) == ["c1-m1", "c1-m3"]


# After a failure


def test_a_batch_of_several_that_fails_counts_for_nobody():
    batch = (trigger(1, failures=2), trigger(2))

    again = after_batch_failure(batch, now=10.0, draw=0.0, limits=LIMITS)

    assert [one.failures for one in again] == [2, 0]
    assert all(one.alone for one in again)


def test_its_triggers_then_run_alone_oldest_first():
    queue = list(after_batch_failure((trigger(2), trigger(1)), now=10.0, draw=0.0, limits=LIMITS))

    assert ids(next_batch(queue, now=10.0)) == ["c1-m1"]
    assert ids(next_batch(queue[1:], now=10.0)) == ["c1-m2"]


def test_a_trigger_that_fails_alone_is_counted_and_backs_off():
    (again,) = after_batch_failure((trigger(1, alone=True, failures=1),), now=10.0, draw=0.0, limits=LIMITS)

    assert again.failures == 2
    assert again.ready_at == 10.0 + backoff_s(2, draw=0.0)
    assert again.alone


def test_the_waits_are_the_personas():
    limits = Limits(backoff_first_s=7.0, backoff_cap_s=8.0)

    (first,) = after_batch_failure((trigger(1),), now=0.0, draw=0.0, limits=limits)
    (second,) = after_batch_failure((first,), now=0.0, draw=0.0, limits=limits)

    assert (first.ready_at, second.ready_at) == (7.0, 8.0)


queues = st.lists(
    st.builds(
        trigger,
        st.integers(min_value=1, max_value=50),
        st.sampled_from(["c1", "c2", "c3"]),
        queued_at=st.floats(min_value=0, max_value=100),
        ready_at=st.floats(min_value=0, max_value=100),
        alone=st.booleans(),
    ),
    unique_by=lambda one: one.message_id,
    max_size=12,
)


@given(queue=queues, now=st.floats(min_value=0, max_value=100))
def test_a_batch_is_of_one_conversation_ready_and_holds_the_oldest_or_stands_aside(queue, now):
    batch = next_batch(queue, now=now)
    ready = [one for one in queue if one.ready_at <= now]

    if batch is None:
        assert not ready
        return
    assert set(batch) <= set(ready)
    assert len({one.cid for one in batch}) == 1
    assert len(batch) == 1 or not any(one.alone for one in batch)
    assert [one.seq for one in batch] == sorted(one.seq for one in batch)
    assert min(one.queued_at for one in ready) == min(
        one.queued_at for one in ready if one.cid == batch[0].cid
    )


@given(queue=queues)
def test_every_trigger_gets_its_turn(queue):
    """Nothing is lost: taking batches off the queue empties it."""
    left = [replace(one, ready_at=0.0) for one in queue]
    turns = 0

    while batch := next_batch(left, now=0.0):
        left = [one for one in left if one not in batch]
        turns += 1

    assert not left
    assert turns <= len(queue)
