"""Framing: bytes in any chunks, the same lines out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.core.lines import (
    Absurd,
    LineSplitter,
    count_at,
    object_at,
    objects_at,
    parse_object,
    text_at,
    well_formed,
)


@given(data=st.binary(max_size=200), sizes=st.lists(st.integers(1, 9), max_size=60))
def test_any_split_gives_the_same_lines(data, sizes):
    splitter, lines, at = LineSplitter(), [], 0
    for size in [*sizes, len(data) + 1]:
        lines += splitter.feed(data[at : at + size])
        at += size
    rest = splitter.close()

    *whole, last = data.split(b"\n")
    assert lines == whole
    assert rest == (last or None)


def test_only_a_line_feed_ends_a_line():
    line = "a\u2028b\x85c\rd\x0be".encode()

    assert LineSplitter().feed(line + b"\n") == [line]


@given(size=st.integers(1, 40), step=st.integers(1, 12))
def test_a_line_over_the_limit_is_reported_by_its_size_and_the_next_one_is_whole(size, step):
    splitter, lines = LineSplitter(limit_bytes=20), []
    data = b"x" * size + b"\nnext\n"
    for at in range(0, len(data), step):
        lines += splitter.feed(data[at : at + step])

    assert lines == [Absurd(size) if size > 20 else b"x" * size, b"next"]


def test_an_absurd_line_is_not_held_in_memory():
    splitter = LineSplitter(limit_bytes=1000)
    for _ in range(100):
        splitter.feed(b"x" * 1000)

    assert sum(map(len, splitter._parts)) <= 1000
    assert splitter.close() == Absurd(100_000)


@pytest.mark.parametrize(
    "line", [b"", b"x", b"[1]", b"1", b"null", b'{"a":', b"[" * 100_000, b'{"a":' + b"1" * 5000 + b"}"]
)
def test_what_is_no_object_is_none(line):
    assert parse_object(line) is None


def test_broken_utf8_is_replaced_and_of_two_keys_the_last_counts():
    assert parse_object(b'{"a":"\xff","id":1,"id":2}') == {"a": "\ufffd", "id": 2}


def test_accessors_give_the_type_or_nothing():
    event = {"t": "x", "n": 3, "b": True, "o": {"k": 1}, "l": [{"k": 2}, 5, "x"]}

    assert (text_at(event, "t"), text_at(event, "n"), text_at(event, "no")) == ("x", "", "")
    assert (count_at(event, "n"), count_at(event, "b"), count_at(event, "t")) == (3, 0, 0)
    assert (object_at(event, "o"), object_at(event, "l")) == ({"k": 1}, {})
    assert (objects_at(event, "l"), objects_at(event, "o")) == ([{"k": 2}], [])


@given(st.text(alphabet=st.characters(categories=["Cs", "Lu", "So", "Cf"])))
def test_every_text_can_be_sent_on(text):
    well_formed(text).encode()


@given(st.text())
def test_a_text_without_surrogates_stays_as_it_is(text):
    assert well_formed(text) == text
