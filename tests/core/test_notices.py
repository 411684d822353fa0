"""What the program says itself: both languages, nobody called, nothing leaked."""

from datetime import UTC, datetime, timedelta, timezone
from string import Formatter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.core import notices
from sentinel.core.notices import Notice, fields_of, obituary, text
from sentinel.core.outcome import FailureClass

LOCALES = ["en", "zh"]
RESET = datetime(2026, 11, 30, 18, 0, tzinfo=UTC)
SAMPLES = {
    "cause": "timeout",
    "reset_at": RESET,
    "failures": 3,
    "minutes": 10,
    "turns": 6,
    "hops": 3,
    "count": 4,
    "names": "ann, bob",
    "parked": 1,
    "waiting": 2,
    "command": "task",
    "seconds": 12.4,
}
DEATHS = [
    FailureClass.AUTH,
    FailureClass.QUOTA,
    FailureClass.RATE,
    FailureClass.CONFIG,
    FailureClass.MISSING,
]


def said(notice, locale, **changes):
    fields = {name: SAMPLES[name] for name in fields_of(notice)}
    return text(notice, locale, **fields | changes)


@pytest.mark.parametrize("locale", LOCALES)
@pytest.mark.parametrize("notice", Notice)
def test_every_notice_exists_in_every_locale_with_the_same_fields(notice, locale):
    template = notices._TEXTS[locale][notice]

    assert {name for _, name, _, _ in Formatter().parse(template) if name} == fields_of(notice)
    assert said(notice, locale).strip()
    assert "{" not in said(notice, locale)


@pytest.mark.parametrize("locale", LOCALES)
@pytest.mark.parametrize("notice", Notice)
def test_a_notice_calls_nobody_and_is_one_short_line(notice, locale):
    words = said(notice, locale)

    assert not any(sign in words for sign in "@＠﹫")
    assert not words.startswith("/")
    assert "\n" not in words
    assert len(words) < 500


@pytest.mark.parametrize("notice", Notice)
def test_chinese_is_chinese_and_english_is_english(notice):
    assert any("\u4e00" <= one <= "\u9fff" for one in said(notice, "zh"))
    assert said(notice, "en").isascii()


@pytest.mark.parametrize("locale", LOCALES)
@pytest.mark.parametrize("notice", Notice)
def test_every_field_is_shown(notice, locale):
    words = said(notice, locale)

    for name in fields_of(notice) - {"reset_at", "seconds"}:
        assert str(SAMPLES[name]) in words


@pytest.mark.parametrize("locale", LOCALES)
@pytest.mark.parametrize("cause", DEATHS)
def test_an_obituary_names_its_class_and_the_reset_time(cause, locale):
    words = obituary(cause, RESET, locale)

    assert cause.value in words
    assert "2026-11-30 18:00 UTC" in words
    assert "18:00" not in obituary(cause, None, locale)


@pytest.mark.parametrize("cause", [kind for kind in FailureClass if kind not in DEATHS])
def test_there_is_no_obituary_for_what_is_no_death(cause):
    with pytest.raises(ValueError, match="is no cause of death"):
        obituary(cause, None, "en")


def test_times_are_told_in_utc():
    shanghai = datetime(2026, 12, 1, 2, 0, tzinfo=timezone(timedelta(hours=8)))

    assert said(Notice.RESETS, "en", reset_at=shanghai) == said(Notice.RESETS, "en")


def test_seconds_are_whole():
    assert "for 12 s" in said(Notice.STATUS_WORKING, "en")


def test_the_failing_notice_says_that_the_persona_lives_and_the_message_is_kept():
    words = said(Notice.FAILING, "en")

    assert "still online" in words
    assert "keeps failing" in words
    assert "is kept" in words


@pytest.mark.parametrize("fields", [{}, {"waiting": 1, "more": 2}, {"other": 1}])
def test_a_field_too_few_or_too_many_is_a_bug(fields):
    with pytest.raises(ValueError, match="needs the fields"):
        text(Notice.BACK, "en", **fields)


@given(st.text())
def test_no_field_can_make_a_notice_call_somebody(value):
    words = said(Notice.AMBIGUOUS, "en", names=value)

    assert not any(sign in words for sign in "@＠﹫")
    assert "\n" not in words
    assert len(words) < 300


def test_a_field_cannot_reach_into_the_template():
    assert "{cause.__class__}" in said(Notice.AMBIGUOUS, "en", names="{cause.__class__}")


def test_invisible_characters_are_dropped():
    assert said(Notice.AMBIGUOUS, "en", names="a\u200bnn\u202e\x1b") == said(
        Notice.AMBIGUOUS, "en", names="ann"
    )


@pytest.mark.parametrize("border", ["\n", "\r\n", "\u2028", "  "])
def test_a_field_of_several_lines_becomes_one(border):
    assert said(Notice.AMBIGUOUS, "en", names=f"ann{border}bob") == said(
        Notice.AMBIGUOUS, "en", names="ann bob"
    )


def test_a_long_field_is_cut():
    assert said(Notice.AMBIGUOUS, "en", names="n" * 5_000).count("n" * 120) == 1
    assert len(said(Notice.AMBIGUOUS, "en", names="n" * 5_000)) < 300
