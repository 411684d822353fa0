"""Protected files stay closed under every name: other cases, other normal forms, links, hard links, another directory."""

import os
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.whitelist.beneath import Root
from sentinel.whitelist.protected import Protected, folded
from sentinel.whitelist.refusal import PathRefused, Rule


@pytest.fixture
def ground(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "token").write_text("secret")
    (tmp_path / "open.txt").write_text("open")
    return tmp_path


def is_refused(ground, path, protected):
    """Whether the path is refused as protected, to be read and to be written; anything else passes."""
    with Root.open(ground, protected=protected) as root:
        reading = writing = None
        try:
            root.read(path, 64)
        except PathRefused as refusal:
            reading = refusal.rule
        try:
            with root.open_place(path):
                pass
        except PathRefused as refusal:
            writing = refusal.rule
    assert (reading is Rule.PROTECTED) == (writing is Rule.PROTECTED)
    return reading is Rule.PROTECTED


@pytest.mark.parametrize(
    "path",
    [
        ".env",
        ".ENV",
        ".Env",
        "sub/.env",
        ".env/x",
        ".e\u200cnv",
        "server.pem",
        "SERVER.PEM",
        "straße.key",
        "STRASSE.KEY",
    ],
)
def test_a_protected_name_is_refused_in_every_spelling_whether_it_exists_or_not(ground, path):
    assert is_refused(ground, path, Protected(names=(".env", "*.pem", "Straße.KEY")))


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize("pattern_form", ["NFC", "NFD"])
def test_normal_forms_are_one_name(ground, form, pattern_form):
    pattern = unicodedata.normalize(pattern_form, "schlüssel")

    assert is_refused(ground, unicodedata.normalize(form, "SCHLÜSSEL"), Protected(names=(pattern,)))


@pytest.mark.parametrize("path", ["open.txt", ".envrc", "a.pem.txt", "env"])
def test_other_names_stay_open(ground, path):
    (ground / path).touch()

    assert not is_refused(ground, path, Protected(names=(".env", "*.pem")))


def test_a_link_to_a_protected_name_is_refused(ground):
    (ground / ".env").write_text("secret")
    (ground / "harmless").symlink_to(".env")
    with (
        Root.open(ground, protected=Protected(names=(".env",))) as root,
        pytest.raises(PathRefused) as refusal,
    ):
        root.read("harmless", 64)

    assert refusal.value.rule is Rule.PROTECTED


def test_a_link_with_a_protected_name_is_refused_wherever_it_leads(ground):
    (ground / ".env").symlink_to("open.txt")

    assert is_refused(ground, ".env", Protected(names=(".env",)))


def test_a_hard_link_to_a_protected_file_is_refused(ground):
    os.link(ground / "token", ground / "sub" / "harmless")

    assert is_refused(ground, "sub/harmless", Protected(files=(str(ground / "token"),)))
    assert is_refused(ground, "token", Protected(files=(str(ground / "token"),)))
    assert not is_refused(ground, "open.txt", Protected(files=(str(ground / "token"),)))


def test_a_protected_file_that_was_replaced_is_known_again(ground):
    protected = Protected(files=(str(ground / "token"),))
    with Root.open(ground, protected=protected) as root:
        (ground / "new").write_text("secret 2")
        (ground / "new").rename(ground / "token")
        os.link(ground / "token", ground / "harmless")

        with pytest.raises(PathRefused) as refusal:
            root.read("harmless", 64)

    assert refusal.value.rule is Rule.PROTECTED


def test_a_protected_directory_closes_what_is_in_it(ground):
    (ground / "sub" / "f").touch()
    (ground / "way").symlink_to("sub")
    protected = Protected(files=(str(ground / "sub"),))

    with Root.open(ground, protected=protected) as root:
        for act in (
            lambda: root.read("sub/f", 9),
            lambda: root.read("way/f", 9),
            lambda: root.list("sub", 9),
        ):
            with pytest.raises(PathRefused) as refusal:
                act()
            assert refusal.value.rule is Rule.PROTECTED


def test_a_protected_file_need_not_exist(ground):
    assert not is_refused(
        ground, "open.txt", Protected(files=(str(ground / "none"), str(ground / "token" / "x")))
    )


def test_what_cannot_be_compared_is_not_read(ground):
    (ground / "loop").symlink_to("loop")

    assert is_refused(ground, "open.txt", Protected(files=(str(ground / "loop"),)))


@given(st.text("abcXYZ.-äÖüßéжЩ日", max_size=12))
def test_spellings_of_one_name_fold_to_one(name):
    assert {folded(name.upper()), folded(name.swapcase()), folded(name.lower())} == {folded(name)}


@given(st.text(max_size=12))
def test_normal_forms_of_one_name_fold_to_one(name):
    assert folded(unicodedata.normalize("NFD", name)) == folded(unicodedata.normalize("NFC", name))
