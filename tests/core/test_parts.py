"""Spec 02 section 4 "reply": parts, nonces, readback, leaks."""

import base64
import json
import re
from datetime import UTC, datetime
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from sentinel.core.evidence import is_blank
from sentinel.core.model import Account, Kind, Media, Message, MessageType, Outgoing, Resolution
from sentinel.core.parts import AsFile, Parts, leaks, matches, nonce, plan, posts, secret_values
from sentinel.core.persona import Secret
from sentinel.core.splitting import split

IDENTITY = {
    "account": "u1",
    "persona": "gode",
    "cid": "c1",
    "trigger_id": "m1",
    "generation": 0,
    "part": 0,
}


def test_a_nonce_is_128_bits_and_never_changes():
    """The value is part of the protocol: another one would post an answer of a running journal twice."""
    assert nonce(**IDENTITY) == nonce(**IDENTITY) == "6c7126056c0fd424f34c157deaa76bda"


@pytest.mark.parametrize(
    "change",
    [
        {"account": "u2"},
        {"persona": "gode2"},
        {"cid": "c2"},
        {"trigger_id": "m2"},
        {"generation": 1},
        {"part": 1},
        {"account": "u1gode", "persona": ""},
        {"account": 'u1", "gode'},
        {"cid": "\ud800"},
    ],
)
def test_whatever_differs_gives_another_nonce(change):
    assert nonce(**{**IDENTITY, **change}) != nonce(**IDENTITY)


@pytest.mark.parametrize("text", ["", " \n\t", "\u200b\ufeff\u2060", "\x00\x1b"])
def test_a_blank_text_has_no_parts(text):
    assert split(text, limit=10) == ()


def test_a_text_within_the_limit_is_returned_as_it_is():
    text = "  two lines \n\n```\ncode\n```\n"

    assert split(text, limit=len(text)) == (text,)


def test_paragraph_borders_come_before_line_ends_and_words():
    assert split("one two\nthree\n\nfour five six", limit=18) == ("one two\nthree", "four five six")


def test_line_ends_come_before_words():
    assert split("one two\nthree four five", limit=16) == ("one two", "three four five")


def test_words_come_before_anything_else():
    assert split("one two three", limit=8) == ("one two", "three")


def test_a_long_word_is_cut_hard():
    assert split("x" * 25, limit=10) == ("x" * 10, "x" * 10, "x" * 5)


@pytest.mark.parametrize("cluster", ["e\u0301", "👍🏽", "👩\u200d👩", "\ud83d\udc4d", "❤\ufe0f"])
def test_a_combining_sequence_is_not_cut(cluster):
    parts = split("x" * 9 + cluster + "y" * 9, limit=10)

    assert parts[0] == "x" * 9
    assert parts[1].startswith(cluster)


def test_a_fence_that_fits_a_part_is_kept_whole():
    fence = "```python\na = 1\n\nb = 2\n```"

    assert split(f"Some words first.\n{fence}\nThe end.", limit=30) == (
        "Some words first.",
        fence,
        "The end.",
    )


def test_a_fence_that_is_too_long_is_closed_and_reopened_with_its_info_string():
    parts = split("~~~sh -x\none 1\ntwo 2\nthree 3\n~~~\nend", limit=24)

    assert parts == ("~~~sh -x\none 1\n~~~", "~~~sh -x\ntwo 2\n~~~", "~~~sh -x\nthree 3\n~~~\nend")


def test_a_fence_in_a_quote_is_reopened_in_a_quote():
    parts = split("> ```\n> one one\n> two two\n> ```", limit=24)

    assert parts == ("> ```\n> one one\n> ```", "> ```\n> two two\n> ```")


def test_a_fence_that_only_its_list_item_closes_swallows_nothing_after_it():
    parts = split("- ```\n  one one one one one one\n  two two two\n\nprose prose", limit=38)

    assert parts == (
        "- ```\n  one one one one one one\n  ```",
        "  ```\n  two two two\n\n  ```",
        "prose prose",
    )


def test_an_info_string_longer_than_a_part_loses_nothing():
    text = "```" + "i" * 40 + "\ncode\n```"

    assert _squeezed("".join(split(text, limit=20))) == _squeezed(text)


def test_a_limit_below_one_is_refused():
    with pytest.raises(ValueError, match="at least 1"):
        split("x", limit=0)


def _squeezed(text):
    return re.sub(r"\s+", "", text)


def _code_of(parts):
    parse = MarkdownIt("commonmark").parse
    return _squeezed(
        "".join(token.content for part in parts for token in parse(part) if token.type == "fence")
    )


@given(
    st.text(st.sampled_from("ab é\u0301\u200d\n \t.好👍"), min_size=1, max_size=200),
    st.integers(min_value=1, max_value=40),
)
def test_parts_of_prose_lose_only_white_space_and_what_nobody_sees(text, limit):
    parts = split(text, limit=limit)

    assert all(0 < len(part) <= limit and not is_blank(part) for part in parts)
    assert _visible("".join(parts)) == _visible(text)


def _visible(text):
    return "".join(one for one in text if not is_blank(one))


LINE = st.text(st.sampled_from("abc好 "), max_size=30)
PROSE = st.lists(LINE, max_size=4).map("\n".join)


@st.composite
def fences(draw):
    indent, body_indent = draw(
        st.sampled_from([("", ""), ("  ", "  "), ("> ", "> "), ("- ", "  "), ("1. ", "   ")])
    )
    mark = draw(st.sampled_from(["```", "~~~~"]))
    info = draw(st.sampled_from(["", "python", "sh -x"]))
    body = [f"{body_indent}{line}" for line in draw(st.lists(LINE, max_size=8))]
    return "\n".join([f"{indent}{mark}{info}", *body, f"{body_indent}{mark}"])


@given(st.lists(st.one_of(PROSE, fences()), min_size=1, max_size=5), st.integers(min_value=32, max_value=120))
def test_parts_hold_the_same_code_and_the_same_prose(blocks, limit):
    text = "\n\n".join(blocks)

    parts = split(text, limit=limit)

    assert all(len(part) <= limit and not is_blank(part) for part in parts)
    assert _code_of(parts) == _code_of([text])
    assert _without_fences(parts) == _without_fences([text])


def _without_fences(parts):
    """The words outside of fences: list and quote marks before an opening line belong to it."""
    words = []
    for part in parts:
        lines = part.splitlines()
        for token in MarkdownIt("commonmark").parse(part):
            if token.type == "fence":
                lines[token.map[0] : token.map[1]] = [""] * (token.map[1] - token.map[0])
        words.extend(lines)
    return _squeezed("".join(words))


def test_a_huge_answer_is_split_in_linear_time():
    text = "```\n" + "a line of code\n" * 20_000 + "```"

    parts = split(text, limit=4_000)

    assert max(map(len, parts)) <= 4_000


def test_an_answer_within_the_parts_stays_text():
    assert plan("one\n\ntwo", limit=5, max_parts=2) == Parts(("one", "two"))


def test_an_answer_of_too_many_parts_becomes_a_file_with_an_introduction():
    text = "First paragraph.\n\n" + "word " * 2_000

    planned = plan(text, limit=1_000, max_parts=2, note="(See the file.)")

    assert isinstance(planned, AsFile)
    assert planned.file_text == text
    assert planned.intro == "First paragraph.\n\n(See the file.)"


@given(st.integers(min_value=1, max_value=120))
def test_an_introduction_keeps_the_limit(limit):
    planned = plan("word " * 200, limit=limit, max_parts=1)

    assert isinstance(planned, AsFile)
    assert 0 < len(planned.intro) <= limit


CALLED = Resolution(("u9",), broadcast=True)


def test_mentions_and_broadcast_ride_on_the_last_part():
    first, last = posts(
        Parts(("one", "two")), nonces=["n0", "n1"], resolution=CALLED, answers=("m1",), reply_to="m1", hops=2
    )

    assert first == Outgoing("one", "n0", reply_to="m1", answers=("m1",), hops=2)
    assert last == Outgoing(
        "two", "n1", mentions=("u9",), broadcast=True, reply_to="m1", answers=("m1",), hops=2
    )


def test_a_file_is_the_last_part_of_its_answer():
    intro, file = posts(
        AsFile("see", "all"), nonces=["n0", "n1"], resolution=CALLED, answers=("m1",), media_id="f1"
    )

    assert (intro.mentions, intro.broadcast) == ((), False)
    assert file == Outgoing(
        None, "n1", MessageType.FILE, ("u9",), broadcast=True, media_id="f1", answers=("m1",)
    )


@pytest.mark.parametrize(
    ("planned", "nonces"), [(Parts(("a", "b")), ["n0"]), (AsFile("a", "b"), ["n0", "n1"])]
)
def test_a_post_without_a_nonce_or_a_file_without_its_upload_is_refused(planned, nonces):
    with pytest.raises(ValueError, match="need"):
        posts(planned, nonces=nonces, resolution=CALLED, answers=())


SENT = Outgoing("hello", "n1", answers=("m1",))
READ = Message(
    "m2",
    "c1",
    2,
    Account("u1", "Gode", Kind.PERSONA),
    datetime(2026, 1, 1, tzinfo=UTC),
    text="hello",
    nonce="n1",
)


def _read(**changes):
    kept = {
        name: getattr(READ, name)
        for name in ("id", "cid", "seq", "sender", "sent_at", "type", "text", "nonce", "media")
    }
    return Message(**{**kept, **changes})


def test_what_was_posted_is_what_was_read():
    assert matches(SENT, READ, uid="u1")


@pytest.mark.parametrize(
    "changes",
    [
        {"text": "hello!"},
        {"text": None},
        {"nonce": "n2"},
        {"nonce": None},
        {"sender": Account("u2", "Gode", Kind.PERSONA)},
        {"type": MessageType.FILE},
        {"media": Media("f1", "/f1", "text/plain", 3)},
    ],
)
def test_whatever_was_changed_is_not_what_was_posted(changes):
    assert not matches(SENT, _read(**changes), uid="u1")


SECRET = 'sk_live-0123/abc+DEF="x'
HIDDEN = [
    SECRET,
    f"it is {SECRET}!",
    "\n".join(SECRET),
    "\u200b".join(SECRET),
    " ".join(SECRET),
    quote(SECRET, safe=""),
    quote(SECRET).lower().replace("def", "DEF"),
    json.dumps(SECRET),
    "".join(f"\\u{ord(one):04x}" for one in SECRET),
    SECRET.replace("_", r"\_").replace("-", r"\-"),
]


@pytest.mark.parametrize("text", HIDDEN)
def test_a_secret_is_found_in_every_plain_disguise(text):
    assert leaks(text, ["another-secret", SECRET])


def test_a_secret_with_spaces_is_found_without_them():
    assert leaks("open\u200b sesame\n42", ["open sesame 42"])


@pytest.mark.parametrize(
    ("text", "secrets"),
    [
        ("nothing here", [SECRET]),
        (SECRET[:-1], [SECRET]),
        ("short1", ["short1"]),
        ("a b c d", ["a\tb\tc\td\t"]),
        ("", [SECRET]),
        (SECRET, []),
        (base64.b64encode(SECRET.encode()).decode(), [SECRET]),
    ],
)
def test_what_is_no_plain_disguise_of_a_secret_is_let_through(text, secrets):
    """Base64 is among them: an honest limit, said here so that nobody relies on more."""
    assert not leaks(text, secrets)


@pytest.mark.parametrize(
    "key", ["API_KEY", "api_key", "GH_TOKEN", "MY_SECRET", "DB_PASSWORD", "AUTHORIZATION", "CREDENTIALS"]
)
def test_a_value_is_secret_when_its_key_says_so(key):
    assert secret_values({key: Secret("12345678"), "LANG": Secret("C.UTF-8.long")}) == ("12345678",)


def test_a_short_value_is_not_searched():
    assert secret_values({"API_KEY": Secret("1234567")}) == ()
