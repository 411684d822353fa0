"""Evidence: short, one line, no payload, no secret."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.core.evidence import EVIDENCE_CHARS, evidence_of, is_blank, masked, without_controls


@given(st.text(max_size=2000))
def test_any_text_becomes_one_short_printable_line(text):
    line = evidence_of(text)

    assert len(line) <= EVIDENCE_CHARS
    assert "\n" not in line
    assert "\x1b" not in line


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain words", "plain words"),
        ('{"error": {"message": "Invalid request", "type": "x"}}', "Invalid request"),
        ('API Error: 400 {"detail":"not supported"} more', "API Error: 400 not supported more"),
        ("{not json at all}", "{…}"),
        ("see https://ann:pw@example.org/a/b?key=abc#x now", "see https://example.org/a/b now"),
        ("Authorization: Bearer abc.def", "Authorization: Bearer ***"),
        ("Incorrect API key provided: test-key.", "Incorrect API key provided: ***"),
        ("api_key=abc, token: def", "api_key=***, token: ***"),
        ("sent sk-abcdefgh12345678 away", "sent *** away"),
        ("\x1b[31mred\x1b[0m\tand\r\nmore", "red and more"),
    ],
)
def test_evidence_table(text, expected):
    assert evidence_of(text) == expected


def test_hostile_input_takes_no_long_time():
    """Each of these would take minutes if a pattern went back and forth."""
    for text in ("{" * 10**6, "a-" * 10**6, "://" * 10**6, "key=" * 10**6, "\x1b[" * 10**6):
        evidence_of(text)


@given(st.lists(st.text(min_size=1), max_size=5), st.text())
def test_no_secret_stands_in_a_masked_text(secrets, text):
    whole = masked(text + "".join(secrets), secrets)

    assert not any(
        secret in whole.replace("***", "") for secret in secrets if "*" not in secret and len(secret) > 3
    )


def test_a_secret_inside_of_another_does_not_uncover_it():
    assert masked("abcdef", ["abc", "abcdef"]) == "***"


@pytest.mark.parametrize(
    "text", ["", " \n\t", "\u200b", "\ufeff\u2060", "\x00\x07", "\u3164\u115f", "\u00a0\u3000", "\ufe0f"]
)
def test_nothing_to_see_is_blank(text):
    assert is_blank(text)


@pytest.mark.parametrize("text", ["a", "\u200bx", "你", "🚀", "-", "\u200d👩"])
def test_something_to_see_is_not(text):
    assert not is_blank(text)


def test_kept_controls_stay():
    assert without_controls("a\nb\x00c", keep="\n") == "a\nb c"
