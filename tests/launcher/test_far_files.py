"""Files of a turn come and go whole, by names that lead nowhere else: docs/launcher.md, `--put` and `--get`."""

import hashlib
import json
import os
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.launcher.far_program import load

NAMES = ["雪 花.png", "outbox/b", "'\"$(id);&", "x" * 255]
BAD = [
    "",
    ".",
    "..",
    ".hidden",
    "a/b",
    "/a",
    "outbox/",
    "outbox/.x",
    "outbox/a/b",
    "../a",
    "a\nb",
    "a\x7f",
    "x" * 256,
    "\udc80",
    "雪" * 86,
]

program = load()


@pytest.mark.parametrize("name", NAMES)
def test_a_file_is_kept_and_handed_out_byte_for_byte(far, name):
    data = os.urandom(200_000)

    code, out, _ = far.put(name, data)
    path = far.folder / name

    assert code == 0
    assert json.loads(out) == {
        "path": str(path),
        "size_bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
    }
    assert path.read_bytes() == data
    line, _, rest = far.get(name)[1].partition(b"\n")
    assert (json.loads(line), rest) == ({"size_bytes": len(data)}, data)


def test_an_empty_file_is_a_file(far):
    assert far.put("empty", b"")[0] == 0
    assert far.get("empty")[1] == b'{"size_bytes": 0}\n'


def test_everything_is_private(far):
    far.put("a", b"x")

    modes = {
        one: stat.S_IMODE(os.lstat(one).st_mode) for one in (far.turns, far.folder, far.folder / "outbox")
    }

    assert set(modes.values()) == {0o700}
    assert stat.S_IMODE((far.folder / "a").stat().st_mode) == 0o600


@pytest.mark.parametrize("name", BAD, ids=ascii)
def test_a_name_that_is_none_is_refused(name):
    with pytest.raises(program.Refusal) as refusal:
        program.place_of(name)

    assert refusal.value.code == 64


def test_both_verbs_ask_for_a_name(far):
    assert far.put("../a", b"x")[0] == 64
    assert far.get("../a")[0] == 64


@given(st.text())
def test_no_name_leads_out_of_the_folder(name):
    try:
        folders, last = program.place_of(name)
    except program.Refusal:
        return
    assert folders in ([], ["outbox"])
    assert last not in {"", ".", ".."}
    assert not set(last) & {"/", "\0", "\n"}


@pytest.mark.parametrize("taken", ["a", "outbox"])
def test_what_exists_is_never_replaced(far, taken):
    far.put("a", b"first")

    assert far.put(taken, b"second")[0] == 64

    assert (far.folder / "a").read_bytes() == b"first"


def test_a_file_cut_short_is_not_kept(far):
    code, out, err = far.put("a", b"half", size_bytes=8)

    assert (code, out) == (65, b"")
    assert "4 of 8 bytes did not come" in err
    assert [one.name for one in far.folder.iterdir()] == ["outbox"]


def test_what_follows_a_file_is_not_taken_into_it(far):
    assert far.put("a", b"whole and more", size_bytes=5)[0] == 0
    assert (far.folder / "a").read_bytes() == b"whole"


def test_links_are_never_followed(far, tmp_path):
    (tmp_path / "secret").write_text("secret")
    far.put("a", b"x")
    (far.folder / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(far.folder / "fifo")

    assert far.get("link")[0] == 66
    assert far.get("fifo")[0] == 66
    assert far.get("absent")[0] == 66
    assert far.put("link", b"x")[0] == 64
    assert (tmp_path / "secret").read_text() == "secret"


def test_an_outbox_that_is_a_link_is_not_entered(far, tmp_path):
    far.put("a", b"x")
    (far.folder / "outbox").rmdir()
    (far.folder / "outbox").symlink_to(tmp_path)

    assert far.get("outbox")[0] == 66
    assert far.put("outbox/b", b"x")[0] == 78
    assert not (tmp_path / "b").exists()


def test_the_outbox_tells_the_names_that_can_be_asked_for(far):
    far.run(f"cd {far.folder}/outbox && touch 'b c' 雪 .hidden 'new\nline' && mkdir d && ln -s b l")

    code, out, _ = far.get("outbox")

    assert (code, json.loads(out)) == (0, {"names": ["b c", "雪"]})


def test_a_folder_that_others_can_read_is_refused(far):
    far.turns.mkdir(mode=0o755)
    far.turns.chmod(0o755)

    code, _, err = far.put("a", b"x")

    assert (code, "not private" in err) == (78, True)
