"""The text of a path alone: what it may hold, and that no component ever leads up or out."""

import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.whitelist.lexical import COMPONENT_CAP_BYTES, PATH_CAP_BYTES, beneath, resolved, split
from sentinel.whitelist.refusal import MENDS, PathRefused, Rule, shown

DOC = (Path(__file__).parents[2] / "docs" / "paths.md").read_text()
ROOT = ("srv", "notes")
REAL = ("private", "srv", "notes")

pieces = st.one_of(
    st.sampled_from(
        ["..", ".", "", "...", "..x", "....", "srv", "notes", "private", "a", "日记", "-x", "~", "\\"]
    ),
    st.text(min_size=1, max_size=12),
)
paths = st.one_of(
    st.text(st.characters(), max_size=40),
    st.lists(pieces, max_size=8).map("/".join),
    st.lists(pieces, max_size=8).map(lambda parts: "/srv/notes/" + "/".join(parts)),
)


def rule_of(path):
    with pytest.raises(PathRefused) as refusal:
        beneath(path, (ROOT, REAL))
    return refusal.value.rule


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("a/b.txt", ("a", "b.txt")),
        ("./a//b/.", ("a", "b")),
        (".", ()),
        ("/srv/notes", ()),
        ("/srv/notes/a", ("a",)),
        ("//srv/./notes//a/", ("a",)),
        ("/private/srv/notes/a", ("a",)),
        ("日记/第一天 (a+b) ~^@{}*?#%.md", ("日记", "第一天 (a+b) ~^@{}*?#%.md")),
        ("-rf", ("-rf",)),
        (".hidden/a..b", (".hidden", "a..b")),
        ("n" * COMPONENT_CAP_BYTES, ("n" * COMPONENT_CAP_BYTES,)),
    ],
)
def test_what_a_path_means(path, parts):
    assert beneath(path, (ROOT, REAL)) == parts


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        (None, Rule.NOT_TEXT),
        (b"a", Rule.NOT_TEXT),
        (7, Rule.NOT_TEXT),
        (["a"], Rule.NOT_TEXT),
        ("", Rule.EMPTY),
        ("a\0b", Rule.NUL),
        ("a\nb", Rule.CONTROL),
        ("a\rb", Rule.CONTROL),
        ("a\x1b[2J", Rule.CONTROL),
        ("a\x7f", Rule.CONTROL),
        ("a\x85", Rule.CONTROL),
        ("a\u2028b", Rule.CONTROL),
        ("a\udcff", Rule.NOT_UTF8),
        ("\ud800/b", Rule.NOT_UTF8),
        ("..", Rule.OUTSIDE),
        ("../etc/passwd", Rule.OUTSIDE),
        ("a/../../etc", Rule.OUTSIDE),
        ("a/..", Rule.OUTSIDE),
        ("/srv/notes/../x", Rule.OUTSIDE),
        ("....", Rule.DOTS),
        ("a/..namedfork/rsrc", Rule.DOTS),
        ("..a", Rule.DOTS),
        ("/etc/passwd", Rule.OUTSIDE),
        ("/", Rule.OUTSIDE),
        ("/srv", Rule.OUTSIDE),
        ("/srv/notes-of-bob/a", Rule.OUTSIDE),
        ("/srv/note", Rule.OUTSIDE),
        ("/SRV/notes/a", Rule.OUTSIDE),
        ("/.vol/1/2", Rule.OUTSIDE),
        ("a/" * 2048 + "b", Rule.TOO_LONG),
        ("日/" * 1024 + "b", Rule.TOO_LONG),
        ("n" * (COMPONENT_CAP_BYTES + 1), Rule.TOO_LONG),
        ("日" * 86, Rule.TOO_LONG),
    ],
)
def test_what_no_path_may_be(path, rule):
    assert rule_of(path) is rule


def test_a_path_of_just_the_longest_length_passes():
    path = ("a/" * (PATH_CAP_BYTES // 2))[:-1] + "b"

    assert len(path) == PATH_CAP_BYTES
    assert len(beneath(path, (ROOT,))) == PATH_CAP_BYTES // 2


@given(paths)
def test_no_component_leads_up_or_out(path):
    """What passes is names of one level each, printable and encodable, and the same again when they are joined."""
    try:
        parts = beneath(path, (ROOT, REAL))
    except PathRefused:
        return

    assert all(parts)
    assert not any(part.startswith("..") or part == "." or "/" in part for part in parts)
    assert not any(unicodedata.category(one) in {"Cc", "Cs"} for part in parts for one in part)
    assert beneath("/".join(parts) or ".", (ROOT,)) == parts
    if path.startswith("/"):
        assert split(path) in {ROOT + parts, REAL + parts}


@given(paths)
def test_a_path_inside_is_the_same_from_the_root_and_from_the_top(path):
    try:
        parts = beneath(path, (ROOT,))
    except PathRefused:
        return

    assert beneath("/" + "/".join((*ROOT, *parts)), (ROOT,)) == parts


@given(st.lists(pieces, max_size=6).map(lambda parts: "/" + "/".join(parts)))
def test_where_a_link_led_is_judged_like_a_path(real):
    try:
        parts = resolved(real, ROOT, path="link")
    except PathRefused:
        return

    assert split(real) == ROOT + parts
    assert not any(part.startswith("..") for part in parts)


@pytest.mark.parametrize(
    ("real", "rule"),
    [
        ("/etc/passwd", Rule.OUTSIDE),
        ("/srv/notes-of-bob", Rule.OUTSIDE),
        ("/srv/notes/f/..namedfork", Rule.DOTS),
        ("/srv/notes/\udcff", Rule.NOT_UTF8),
        ("/srv/notes/a\nb", Rule.CONTROL),
    ],
)
def test_a_link_may_not_lead_to_what_no_path_may_name(real, rule):
    with pytest.raises(PathRefused) as refusal:
        resolved(real, ROOT, path="link")

    assert refusal.value.rule is rule


def test_each_rule_says_how_to_mend_it():
    assert set(MENDS) == set(Rule)
    assert all(MENDS.values())


def test_each_rule_has_its_row_in_the_docs():
    rows = [line.split("`")[1] for line in DOC.splitlines() if line.startswith("| `")]

    assert [row for row in rows if row in set(Rule)] == list(Rule)


@given(st.one_of(st.text(max_size=400), st.none(), st.binary()))
def test_a_refusal_can_be_printed_whatever_the_path_holds(path):
    said = str(PathRefused(Rule.OUTSIDE, "it leads out of the root", path=path))

    assert said.isprintable()
    assert said.encode()
    assert len(shown(path)) < 2000
