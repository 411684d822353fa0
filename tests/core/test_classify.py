"""The table of an executor's own error texts, and how an end without a result is judged."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.core.classify import (
    classify_status,
    classify_text,
    ended_by_us,
    ended_without_result,
    failure,
    told_to_wait,
)
from sentinel.core.codec import EndedBy, ExitStatus
from sentinel.core.outcome import Failure, FailureClass

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("You\u2019ve hit your usage limit.", FailureClass.QUOTA),
        ("You've hit your session limit · resets 3pm", FailureClass.QUOTA),
        ("You've hit your limit", FailureClass.QUOTA),
        ("5-hour limit reached", FailureClass.QUOTA),
        ("This request would exceed your account's rate limit", FailureClass.RATE),
        ("Rate limit reached for gpt", FailureClass.RATE),
        ("unexpected status 401 Unauthorized", FailureClass.AUTH),
        ("Not logged in · Please run /login", FailureClass.AUTH),
        ("/bin/launcher: codex: command not found", FailureClass.MISSING),
        ("API Error: 503", FailureClass.UNAVAILABLE),
        ("status 404", FailureClass.CONFIG),
        ("listening on port 4011 of 127.0.0.1", None),
        ("exit 401", None),
        ("hello", None),
    ],
)
def test_text_table(text, kind):
    assert classify_text(text) is kind


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (200, None),
        (400, "input_rejected"),
        (401, "auth"),
        (422, "input_rejected"),
        (429, "rate"),
        (529, "unavailable"),
    ],
)
def test_status_table(status, kind):
    assert classify_status(status) == kind


@given(minutes=st.integers(1, 10_000))
def test_a_reset_farther_than_a_quarter_of_an_hour_makes_a_rate_a_quota(minutes):
    """Spec 02 section 5: `quota` is a limit reached, or a told reset more than 15 min away."""
    retry_at = NOW + timedelta(minutes=minutes)

    made = told_to_wait(Failure(FailureClass.RATE, "x"), retry_at, now=NOW)

    assert made == Failure(FailureClass.QUOTA if minutes > 15 else FailureClass.RATE, "x", retry_at)


@pytest.mark.parametrize("retry_at", [None, NOW, NOW - timedelta(days=1)])
def test_a_reset_that_is_past_says_nothing(retry_at):
    made = Failure(FailureClass.RATE, "x")

    assert told_to_wait(made, retry_at, now=NOW) == made


def test_only_limits_have_a_reset():
    assert failure(FailureClass.AUTH, "try again in 3 hours", now=NOW).retry_at is None


def test_a_timeout_in_an_outage_is_the_outage_and_a_stop_is_a_stop():
    def ended(by):
        return ended_by_us(ExitStatus(-9, by), trouble="Connection refused", stderr="", now=NOW).kind

    assert ended(EndedBy.SILENCE) is FailureClass.UNAVAILABLE
    assert ended(EndedBy.TOTAL) is FailureClass.UNAVAILABLE
    assert ended(EndedBy.STOP) is FailureClass.STOPPED
    assert ended(EndedBy.TERM) is FailureClass.INTERRUPTED
    assert ended_by_us(ExitStatus(0), trouble="x", stderr="", now=NOW) is None


def test_what_never_started_shows_why():
    made = ended_by_us(ExitStatus(None, EndedBy.SPAWN), trouble="", stderr="/opt/x: no such file", now=NOW)

    assert made == Failure(FailureClass.MISSING, "/opt/x: no such file")


@pytest.mark.parametrize(
    ("code", "stderr", "began", "kind"),
    [
        (78, "gate: user", False, FailureClass.MISSING),
        (127, "sh: codex: not found", False, FailureClass.MISSING),
        (1, "Error: 401 unauthorized", False, FailureClass.AUTH),
        (1, "Error: 401 unauthorized", True, FailureClass.CRASH),
        (1, "error: unexpected argument '-s' found", False, FailureClass.BUG),
        (1, "WARNING: proceeding\nError loading config.toml: x", False, FailureClass.CONFIG),
        (1, "Error: x\nwarning: 401 unauthorized", False, FailureClass.CRASH),
        (-9, "Error: 401 unauthorized", False, FailureClass.CRASH),
        (0, "", False, FailureClass.CRASH),
        (None, "", False, FailureClass.CRASH),
    ],
)
def test_an_end_without_a_result(code, stderr, began, kind):
    made = ended_without_result(ExitStatus(code), stderr=stderr, began=began, now=NOW, thread="t")

    assert (made.kind, made.thread) == (kind, "t")
    assert made.evidence
