"""Which loops hang."""

from hypothesis import given
from hypothesis import strategies as st

from sentinel.core.liveness import feed_every_s, hung, step_limit_s
from sentinel.rooms.timing import Timing


def test_a_step_that_got_on_in_time_does_not_hang():
    assert hung({"turns": 10.0, "deliveries": 11.0}, now_s=20.0, limit_s=10.0) == ()


def test_every_step_that_did_not_is_named():
    assert hung({"b": 0.0, "a": 1.0, "c": 15.0}, now_s=20.0, limit_s=10.0) == ("a", "b")


@given(period_s=st.floats(min_value=0.1, max_value=1e6))
def test_two_feeds_may_be_lost_before_the_watchdog_bites(period_s):
    assert feed_every_s(period_s) * 2 < period_s


def test_a_step_may_take_as_long_as_the_longest_call_of_a_room():
    from sentinel.ops.systemd import WATCHDOG_S

    assert step_limit_s(WATCHDOG_S) > Timing().transfer_s + Timing().call_s
