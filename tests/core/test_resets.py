"""Told times, out of sentences for human eyes."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.core.resets import from_epoch, told_reset

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def at(*parts):
    return datetime(*parts, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("or try again at Jan 1st, 2030 12:00 AM.", at(2030, 1, 1)),
        ("try again at Dec 2nd, 2026 3:45 PM", at(2026, 12, 2, 15, 45)),
        ("try again at 3:45 PM.", at(2026, 11, 30, 15, 45)),
        ("try again at 9:00 AM.", at(2026, 12, 1, 9)),
        ("You've hit your session limit · resets 3pm", at(2026, 11, 30, 15)),
        ("limit · resets Jan 5, 3:30pm", at(2027, 1, 5, 15, 30)),
        ("limit · resets Dec 5 at 12am (UTC)", at(2026, 12, 5)),
        ("usage limit reached|1893456000", at(2030, 1, 1)),
        ("Please try again in 1.5s.", NOW + timedelta(seconds=1.5)),
        ("try again in 350ms", NOW + timedelta(seconds=0.35)),
        ("Try again in 2 days 5 hours 20 minutes.", NOW + timedelta(days=2, hours=5, minutes=20)),
        ("try again at Feb 31st, 2030 1:00 AM", None),
        ("try again at 13:99 PM", None),
        ("usage limit reached|1000000000", None),
        ("try again later", None),
        ("", None),
    ],
)
def test_told_reset_table(text, expected):
    assert told_reset(text, now=NOW) == expected


def test_a_clock_time_is_read_in_the_zone_of_now():
    now = NOW.astimezone(timezone(timedelta(hours=8)))

    assert told_reset("try again at Jan 1st, 2030 8:00 AM", now=now) == at(2030, 1, 1)


@given(st.text(max_size=200) | st.from_regex(r"(try again|resets) (at|in) [0-9a-z :,.]{0,30}"))
def test_no_text_breaks_it_and_a_reset_is_in_the_future(text):
    moment = told_reset(text, now=NOW)

    assert moment is None or (moment > NOW and moment.tzinfo is UTC)


@pytest.mark.parametrize("seconds", [0, -1, 10**20])
def test_what_is_no_time_is_none(seconds):
    assert from_epoch(seconds) is None
