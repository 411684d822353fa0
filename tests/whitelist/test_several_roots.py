"""Several roots: which of them a path belongs to."""

import pytest

from sentinel.whitelist.beneath import Root
from sentinel.whitelist.refusal import PathRefused, Rule
from sentinel.whitelist.roots import Roots


@pytest.fixture
def ground(tmp_path):
    for folder in ("one", "other", "one/inner"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "f").write_text(folder)
    (tmp_path / "other" / "only").write_text("only")
    return tmp_path


@pytest.fixture
def roots(ground):
    with Root.open(ground / "one") as one, Root.open(ground / "other") as other:
        yield Roots((one, other))


def rule_of(act, *args):
    with pytest.raises(PathRefused) as refusal:
        act(*args)
    return refusal.value.rule


def test_an_absolute_path_belongs_to_the_root_that_holds_it(roots, ground):
    assert roots.read(f"{ground}/one/f", 9).data == b"one"
    assert roots.read(f"{ground}/other/f", 9).data == b"other"
    assert [one.name for one in roots.list(f"{ground}/other", 9).entries] == ["f", "only"]


def test_a_relative_path_belongs_to_the_first_root_that_has_it(roots):
    assert roots.read("f", 9).data == b"one"
    assert roots.tail("only", 2).data == b"ly"
    assert rule_of(roots.read, "none", 9) is Rule.ABSENT


def test_a_refusal_of_one_root_is_not_asked_of_the_next(roots, ground):
    (ground / "one" / "only").symlink_to("/etc/passwd")

    assert rule_of(roots.read, "only", 9) is Rule.OUTSIDE


def test_a_link_from_one_root_into_the_other_is_refused(roots, ground):
    (ground / "one" / "link").symlink_to(ground / "other" / "f")

    assert rule_of(roots.read, "link", 9) is Rule.OUTSIDE


@pytest.mark.parametrize("path", ["/etc/passwd", "/", "../f"])
def test_what_no_root_holds_is_outside(roots, path):
    assert rule_of(roots.read, path, 9) is Rule.OUTSIDE


@pytest.mark.parametrize("path", [None, 5, b"f"])
def test_what_is_no_text_is_refused_as_such(roots, path):
    assert rule_of(roots.read, path, 9) is Rule.NOT_TEXT


@pytest.mark.parametrize("deepest_first", [True, False])
def test_the_deepest_of_nested_roots_decides(ground, deepest_first):
    """What is protected in the inner root is not read by way of the outer one."""
    with Root.open(ground / "one") as outer, Root.open(ground / "one" / "inner") as inner:
        roots = Roots((inner, outer) if deepest_first else (outer, inner))

        with roots.open_file(f"{ground}/one/inner/f") as file:
            assert file.parts == ("f",)


@pytest.mark.parametrize("path", ["f", "/etc/passwd"])
def test_no_roots_allow_nothing(path):
    assert rule_of(Roots(()).read, path, 9) is Rule.OUTSIDE
