"""The token bucket, as a function of time."""

from hypothesis import given
from hypothesis import strategies as st

from sentinel.server.ratelimit import Limiter


def test_a_burst_then_a_rate():
    limiter = Limiter(2.0, 3)

    burst = [limiter.take("a", now_s=0.0) for _ in range(4)]
    later = [limiter.take("a", now_s=0.5), limiter.take("a", now_s=0.5)]

    assert burst == [0, 0, 0, 0.5]
    assert later == [0, 0.5]


def test_keys_do_not_share():
    limiter = Limiter(1.0, 1)

    assert [limiter.take(key, now_s=0.0) for key in "aba"] == [0, 0, 1.0]


def test_strangers_cost_no_memory_for_long():
    limiter = Limiter(1.0, 1)

    for n in range(30_000):
        limiter.take(str(n), now_s=float(n))

    assert len(limiter._buckets) <= 10_002


@given(st.lists(st.floats(0, 3), max_size=200), st.floats(0.5, 20), st.integers(1, 20))
def test_never_more_than_burst_plus_rate(waits, per_s, burst):
    limiter, now, taken = Limiter(per_s, burst), 0.0, 0
    for wait in waits:
        now += wait
        taken += limiter.take("a", now_s=now) == 0

    assert taken <= burst + per_s * now + 1e-6


@given(st.floats(0.5, 20), st.integers(1, 5))
def test_the_wait_that_is_told_is_enough(per_s, burst):
    limiter = Limiter(per_s, burst)
    for _ in range(burst):
        assert limiter.take("a", now_s=0.0) == 0

    wait_s = limiter.take("a", now_s=0.0)

    assert limiter.take("a", now_s=wait_s + 1e-6) == 0
