"""Opening a path beneath a root: what is read, what is refused, and that nothing blocks, leaks or follows a way out."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from sentinel.core.errors import Exit
from sentinel.whitelist import opened, step
from sentinel.whitelist.beneath import Root
from sentinel.whitelist.opened import Kind
from sentinel.whitelist.refusal import PathRefused, Rule

NOBODY = 65534
TEBIBYTE = 1 << 40


@pytest.fixture
def ground(tmp_path):
    """A root with a few files, and a file beside it that nobody may read."""
    (tmp_path / "secret").write_text("outside")
    root = tmp_path / "root"
    (root / "sub" / "deep").mkdir(parents=True)
    (root / "a.txt").write_text("0123456789")
    (root / "sub" / "b.txt").write_text("inside")
    return root


@pytest.fixture
def root(ground):
    with Root.open(ground) as made:
        yield made


def rule_of(act, *args, **kwargs):
    with pytest.raises(PathRefused) as refusal:
        act(*args, **kwargs)
    assert refusal.value.mend
    assert refusal.value.reason
    return refusal.value.rule


def test_a_file_is_read_with_what_fstat_says_of_it(root, ground):
    content = root.read("a.txt", 64)

    status = (ground / "a.txt").stat()
    assert (content.data, content.start_bytes, content.is_cut) == (b"0123456789", 0, False)
    assert (content.facts.device, content.facts.inode) == (status.st_dev, status.st_ino)
    assert (content.facts.size_bytes, content.facts.mode) == (10, status.st_mode & 0o7777)
    assert (content.facts.owner, content.facts.mtime_ns) == (os.geteuid(), status.st_mtime_ns)


@pytest.mark.parametrize(
    ("cap", "data", "is_cut"), [(0, b"", True), (9, b"012345678", True), (10, b"0123456789", False)]
)
def test_reading_stops_at_the_cap_and_says_so(root, cap, data, is_cut):
    content = root.read("a.txt", cap)

    assert (content.data, content.is_cut) == (data, is_cut)


@pytest.mark.parametrize(
    ("cap", "data", "start"), [(0, b"", 10), (3, b"789", 7), (10, b"0123456789", 0), (99, b"0123456789", 0)]
)
def test_a_tail_is_the_end_of_the_file(root, cap, data, start):
    content = root.tail("a.txt", cap)

    assert (content.data, content.start_bytes, content.is_cut) == (data, start, start > 0)


def test_a_file_longer_than_a_chunk_is_read_whole(root, ground):
    data = os.urandom(opened.CHUNK_BYTES * 2 + 7)
    (ground / "long").write_bytes(data)

    assert root.read("long", len(data)).data == data
    assert root.tail("long", len(data) - 1).data == data[1:]


def test_absolute_paths_may_be_spelled_from_either_name_of_the_root(tmp_path, ground):
    (tmp_path / "alias").symlink_to(ground)

    with Root.open(tmp_path / "alias") as root:
        assert root.read(f"{tmp_path}/alias/sub/b.txt", 64).data == b"inside"
        assert root.read(f"{ground}/sub/b.txt", 64).data == b"inside"
        assert root.read("sub//./b.txt", 64).data == b"inside"


@pytest.mark.parametrize("path", ["/etc/passwd", "../secret", "sub/../../secret", "sub/../a.txt"])
def test_a_path_out_of_the_root_is_refused(root, path):
    assert rule_of(root.read, path, 64) is Rule.OUTSIDE


def test_a_root_whose_name_begins_like_another_is_another(tmp_path, ground, root):
    (tmp_path / "root-of-bob").mkdir()
    (tmp_path / "root-of-bob" / "f").write_text("outside")

    assert rule_of(root.read, f"{tmp_path}/root-of-bob/f", 64) is Rule.OUTSIDE


def test_links_inside_the_root_keep_working(root, ground):
    (ground / "to-file").symlink_to("sub/b.txt")
    (ground / "to-folder").symlink_to(ground / "sub")
    (ground / "sub" / "up").symlink_to("..")
    (ground / "chain").symlink_to("to-folder/up/to-file")

    for path in ("to-file", "to-folder/b.txt", "sub/up/sub/b.txt", "chain"):
        assert root.read(path, 64).data == b"inside"
    with root.open_file("chain") as file:
        assert file.parts == ("sub", "b.txt")


@pytest.mark.parametrize("target", ["../secret", "/etc/passwd", "/", "..", "sub/../../secret", "/no/such"])
@pytest.mark.parametrize("path", ["out", "out/x"])
def test_a_link_out_of_the_root_is_refused_whether_its_target_exists_or_not(root, ground, target, path):
    (ground / "out").symlink_to(target)

    assert rule_of(root.read, path, 64) is Rule.OUTSIDE
    assert rule_of(root.list, path, 9) is Rule.OUTSIDE


def _loop(ground):
    (ground / "one").symlink_to("other")
    (ground / "other").symlink_to("one")
    return "one"


def _loop_above(ground):
    (ground / "one").symlink_to("one")
    return "one/f"


def _dangling(ground):
    (ground / "link").symlink_to("nowhere")
    return "link"


def _chain(ground):
    for number in range(1000):
        (ground / f"l{number}").symlink_to(f"l{number + 1}")
    return "l0"


@pytest.mark.parametrize(
    ("make", "rules"),
    [
        (_loop, {Rule.LINK_LOOP}),
        (_loop_above, {Rule.LINK_LOOP}),
        (_dangling, {Rule.ABSENT}),
        (_chain, {Rule.LINK_LOOP, Rule.ABSENT}),  # newer Pythons resolve a chain of any length
    ],
)
def test_a_link_that_leads_nowhere_says_so(root, ground, make, rules):
    assert rule_of(root.read, make(ground), 64) in rules


def test_without_following_every_link_is_refused(root, ground):
    (ground / "to-file").symlink_to("a.txt")
    (ground / "to-folder").symlink_to("sub")

    assert root.read("sub/b.txt", 64, follow=False).data == b"inside"
    assert rule_of(root.read, "to-file", 64, follow=False) is Rule.LINK
    assert rule_of(root.read, "to-folder/b.txt", 64, follow=False) is Rule.LINK


def _fifo(path):
    os.mkfifo(path)


def _socket(path):
    with socket.socket(socket.AF_UNIX) as one:
        os.chdir(path.parent)
        one.bind(path.name)


def _folder(path):
    path.mkdir()


@pytest.mark.parametrize("make", [_fifo, _socket, _folder])
@pytest.mark.parametrize("follow", [True, False])
def test_what_is_no_regular_file_is_refused_without_blocking(root, ground, make, follow, monkeypatch):
    monkeypatch.chdir(ground)
    make(ground / "odd")

    assert rule_of(root.read, "odd", 64, follow=follow) is Rule.NOT_REGULAR
    assert rule_of(root.tail, "odd", 64) is Rule.NOT_REGULAR


def test_a_fifo_is_not_even_opened(root, ground, monkeypatch):
    """A writer that waits for a reader would be let in, and then killed by SIGPIPE."""
    os.mkfifo(ground / "fifo")
    names, real = [], os.open
    monkeypatch.setattr(
        step.os, "open", lambda name, *args, **kwargs: names.append(name) or real(name, *args, **kwargs)
    )

    rule_of(root.read, "fifo", 64)
    root.read("a.txt", 64)

    assert "fifo" not in names
    assert "a.txt" in names


@pytest.mark.parametrize("path", ["zero", "null", "tty", "random"])
def test_devices_are_refused(path):
    with Root.open("/dev") as root:
        assert rule_of(root.read, path, 64) is Rule.NOT_REGULAR


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
@pytest.mark.parametrize(
    "path", ["self/root/etc/passwd", "self/root", "self/cwd", "self/exe", "thread-self/root/etc"]
)
def test_magic_links_lead_out(path):
    with Root.open("/proc") as root:
        assert rule_of(root.read, path, 64) is Rule.OUTSIDE
        assert rule_of(root.read, path, 64, follow=False) is Rule.LINK


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_open_descriptors_are_no_way_out(ground):
    secret = os.open(ground.parent / "secret", os.O_RDONLY)
    reading, writing = os.pipe()
    try:
        with Root.open("/proc") as root:
            assert rule_of(root.read, f"self/fd/{secret}", 64) is Rule.OUTSIDE
            assert rule_of(root.read, f"self/fd/{reading}", 64) is Rule.ABSENT  # "pipe:[…]" is no name
    finally:
        for one in (secret, reading, writing):
            os.close(one)


def test_a_file_in_the_middle_of_a_path_is_no_directory(root):
    assert rule_of(root.read, "a.txt/x", 64) is Rule.NOT_DIRECTORY
    assert rule_of(root.list, "a.txt", 9) is Rule.NOT_DIRECTORY


@pytest.mark.parametrize("path", ["none", "none/deeper", "sub/none"])
def test_what_is_not_there_is_absent(root, path):
    assert rule_of(root.read, path, 64) is Rule.ABSENT


def test_names_at_the_limits(root, ground):
    longest = "n" * 255
    (ground / longest).write_text("inside")

    assert root.read(longest, 64).data == b"inside"
    assert rule_of(root.read, longest + "n", 64) is Rule.TOO_LONG
    assert rule_of(root.read, "日" * 86, 64) is Rule.TOO_LONG


def test_a_path_longer_than_the_system_takes_at_once_is_walked(root, ground):
    """4 KiB beneath the root, so more than PATH_MAX from the top: each step is one name."""
    parts = ["d" * 200] * 20
    here = os.open(ground, os.O_RDONLY)
    for part in parts:
        os.mkdir(part, dir_fd=here)
        deeper = os.open(part, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = deeper
    with os.fdopen(os.open("f", os.O_WRONLY | os.O_CREAT, dir_fd=here), "w") as file:
        file.write("inside")
    os.close(here)

    assert root.read("/".join([*parts, "f"]), 64).data == b"inside"
    assert rule_of(root.read, "/".join([*parts, "f" * 77]), 64) is Rule.TOO_LONG


def test_a_name_that_is_no_utf8_is_listed_losslessly_and_not_opened(root, ground):
    raw = b"caf\xe9 %41"
    Path(os.fsdecode(os.fsencode(ground) + b"/" + raw)).write_text("inside")

    entry = next(one for one in root.list(".", 99).entries if one.encoding == "percent")

    assert entry.name == "caf%E9%20%2541"
    assert json.loads(json.dumps(entry.name, ensure_ascii=False)).encode().decode() == entry.name
    assert rule_of(root.read, os.fsdecode(raw), 64) is Rule.NOT_UTF8
    assert rule_of(root.read, entry.name, 64) is Rule.ABSENT


def test_a_link_to_a_name_that_is_no_utf8_is_refused(root, ground):
    os.symlink(b"\xff", os.fsencode(ground) + b"/link")

    assert rule_of(root.read, "link", 64) is Rule.NOT_UTF8


@pytest.mark.parametrize("path", ["a\0b", "a\nb", "a\udcff", "", None, b"a.txt", 3])
def test_what_is_no_path_is_refused_by_every_verb(root, path):
    rules = {
        rule_of(root.read, path, 9),
        rule_of(root.tail, path, 9),
        rule_of(root.list, path, 9),
        rule_of(root.open_place(path).__enter__),
    }

    assert len(rules) == 1
    assert rules <= {Rule.NUL, Rule.CONTROL, Rule.NOT_UTF8, Rule.EMPTY, Rule.NOT_TEXT}


def test_a_sparse_tebibyte_costs_its_cap(root, ground, monkeypatch):
    with (ground / "sparse").open("wb") as file:
        file.truncate(TEBIBYTE)
        file.seek(TEBIBYTE - 3)
        file.write(b"end")
    read = []
    pread = os.pread
    monkeypatch.setattr(opened.os, "pread", lambda *args: read.append(len(got := pread(*args))) or got)

    tail, head = root.tail("sparse", 1000), root.read("sparse", 1000)

    assert tail.data == bytes(997) + b"end"
    assert (tail.start_bytes, tail.is_cut) == (TEBIBYTE - 1000, True)
    assert (head.data, head.is_cut, head.facts.size_bytes) == (bytes(1000), True, TEBIBYTE)
    assert sum(read) == 2001


def test_a_root_put_in_the_first_ones_place_is_not_read(root, ground, tmp_path):
    ground.rename(tmp_path / "moved")
    ground.mkdir()
    (ground / "a.txt").write_text("outside")
    (ground / "new").write_text("outside")

    assert root.read("a.txt", 64).data == b"0123456789"
    assert rule_of(root.read, "new", 64) is Rule.ABSENT
    assert [one.name for one in root.list(".", 9).entries] == ["a.txt", "sub"]


def test_a_root_replaced_by_a_link_is_not_followed(root, ground, tmp_path):
    ground.rename(tmp_path / "moved")
    (tmp_path / "bait" / "sub").mkdir(parents=True)
    (tmp_path / "bait" / "a.txt").write_text("outside")
    ground.symlink_to(tmp_path / "bait")

    assert rule_of(root.read, "a.txt", 64) is Rule.OUTSIDE


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (lambda base: base / "none", Rule.ABSENT),
        (lambda base: base / "secret", Rule.NOT_DIRECTORY),
        (lambda base: "root", Rule.OUTSIDE),
        (lambda base: f"{base}/ro\0ot", Rule.NUL),
        (lambda base: (base / "loop").symlink_to("loop") or base / "loop", Rule.LINK_LOOP),
    ],
)
def test_what_is_no_root_is_refused(ground, tmp_path, make, rule):
    assert rule_of(Root.open, make(tmp_path)) is rule


def test_a_closed_root_opens_nothing_more(ground):
    root = Root.open(ground)
    root.close()
    root.close()

    assert rule_of(root.read, "a.txt", 64) is Rule.FAULT


CLOSED_TO_ME = """
import os, sys
from sentinel.whitelist.beneath import Root
from sentinel.whitelist.refusal import PathRefused
with Root.open(sys.argv[1]) as root:
    os.setgroups([]) if os.geteuid() == 0 else None
    os.setuid(int(sys.argv[2])) if os.geteuid() == 0 else None
    for path in ("closed/f", "closed", "mine"):
        try:
            (root.list if path == "closed" else root.read)(path, 9)
            print(path, "read")
        except PathRefused as refusal:
            print(path, refusal.rule)
"""


def test_what_the_user_may_not_read_is_denied(root, ground):
    """In a process of another user where this one is root, to whom nothing is closed."""
    (ground / "closed").mkdir()
    (ground / "closed" / "f").touch()
    (ground / "mine").touch()
    for one in ("closed", "mine"):
        (ground / one).chmod(0)

    said = subprocess.run(
        [sys.executable, "-c", CLOSED_TO_ME, str(ground), str(NOBODY)],
        capture_output=True,
        text=True,
        check=True,
    )

    assert said.stdout.splitlines() == ["closed/f denied", "closed denied", "mine denied"]


def test_a_place_to_write_is_a_directory_and_a_name(root, ground):
    (ground / "to-folder").symlink_to("sub")
    (ground / "sub" / "odd").symlink_to("/etc/passwd")

    with root.open_place("to-folder/new") as place:
        assert (place.directory.parts, place.name) == (("sub",), "new")
        os.close(os.open(place.name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, dir_fd=place.directory.descriptor))
    with root.open_place("sub/odd") as place:
        assert place.name == "odd"

    assert (ground / "sub" / "new").exists()


@pytest.mark.parametrize(
    ("path", "rule"),
    [(".", Rule.NOT_REGULAR), ("../x", Rule.OUTSIDE), ("out/x", Rule.OUTSIDE), ("none/x", Rule.ABSENT)],
)
def test_no_place_is_outside(root, ground, path, rule):
    (ground / "out").symlink_to("..")

    assert rule_of(root.open_place(path).__enter__) is rule


def test_a_thousand_refusals_leave_no_descriptor_open(root, ground):
    (ground / "out").symlink_to("/etc")
    (ground / "loop").symlink_to("loop")
    os.mkfifo(ground / "sub" / "fifo")
    paths = (
        "none",
        "sub/none",
        "out/passwd",
        "loop",
        "sub/fifo",
        "sub",
        "a.txt/x",
        "sub/deep/n/o",
        "../x",
        "a\0",
    )
    before = len(os.listdir("/dev/fd"))

    for number in range(1000):
        rule_of(root.read, paths[number % len(paths)], 64)
        rule_of(root.read, paths[number % len(paths)], 64, follow=False)

    assert len(os.listdir("/dev/fd")) == before


def test_descriptors_are_not_inherited(root):
    with root.open_file("a.txt") as file, root.open_directory("sub") as directory:
        for descriptor in (root.descriptor, file.descriptor, directory.descriptor):
            assert not os.get_inheritable(descriptor)


def test_a_refusal_is_a_fault_of_the_callers_rights(root):
    with pytest.raises(PathRefused) as refusal:
        root.read("../secret", 64)

    assert refusal.value.exit_code is Exit.NOT_PERMITTED
    assert str(refusal.value) == (
        "path '../secret': it may lead out of the root: it holds the component ..: name a path beneath a root"
    )


def test_the_root_itself_is_listed_but_no_file(root):
    assert [one.kind for one in root.list(".", 9).entries] == [Kind.FILE, Kind.DIRECTORY]
    assert rule_of(root.read, ".", 64) is Rule.NOT_REGULAR


def test_no_content_shows_in_a_representation(root):
    assert "0123" not in repr(root.read("a.txt", 64))
