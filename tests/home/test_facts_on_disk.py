"""Reading a home: whatever is on the disk, it neither raises nor blocks nor follows."""

import os
import socket
import stat
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from sentinel.core.facts import (
    Absent,
    DirectoryFacts,
    EnteredFacts,
    Present,
    ProgramFacts,
    Unreadable,
    Unresolved,
)
from sentinel.home import launcher
from sentinel.home.facts import TASK_CAP_BYTES, VALUE_CAP_BYTES, read
from tests.fakes.persona_homes import make_home

SOMEBODY = 65534


@pytest.fixture
def home(tmp_path, monkeypatch):
    made = make_home(tmp_path)
    monkeypatch.setenv("HOOP_HOME", str(made.folder))
    return made


def test_what_is_there_is_read_with_its_owner_and_mode(home):
    facts = read(home.path)

    assert facts.directory == DirectoryFacts(0o700, os.geteuid())
    assert facts.files["model"] == Present(b"m-1\n", 0o600, os.geteuid())
    assert facts.files["owners"] == Absent()
    assert (facts.name, facts.hoop_home) == ("gode", str(home.folder.resolve()))
    assert isinstance(facts.program, ProgramFacts)
    assert facts.cwd == EnteredFacts(str(home.cwd.resolve()))


def test_no_content_shows_in_a_representation(home):
    assert "very-secret" not in repr(read(home.path))


def test_a_missing_home_and_a_file_in_its_place_are_told_apart(tmp_path):
    (tmp_path / "file").touch()

    assert read(tmp_path / "none").directory == Absent()
    assert isinstance(read(tmp_path / "file").directory, Unreadable)
    assert isinstance(read(tmp_path / "file" / "deeper").directory, Unreadable)


def _fifo(path):
    os.mkfifo(path)


def _socket(path):
    with socket.socket(socket.AF_UNIX) as one:
        os.chdir(path.parent)
        one.bind(path.name)


def _link(path):
    (path.parent / "elsewhere").write_text("m-2\n")
    path.symlink_to("elsewhere")


def _loop(path):
    path.symlink_to(path)


def _folder(path):
    path.mkdir()


@pytest.mark.parametrize("make", [_fifo, _socket, _link, _loop, _folder])
@pytest.mark.parametrize("file", ["model", "token", "task.md", "codex_bin"])
def test_what_is_no_plain_file_is_unreadable_and_blocks_nobody(home, file, make, monkeypatch):
    monkeypatch.chdir(home.path)
    home.remove(file)
    make(home.path / file)

    assert isinstance(read(home.path).files[file], Unreadable)


@pytest.mark.parametrize(("file", "cap"), [("model", VALUE_CAP_BYTES), ("task.md", TASK_CAP_BYTES)])
def test_an_absurd_file_is_unreadable(home, file, cap):
    home.write(file, b"x" * cap)
    assert isinstance(read(home.path).files[file], Present)

    home.write(file, b"x" * (cap + 1))
    assert isinstance(read(home.path).files[file], Unreadable)


def _dangling(home):
    target = home.path.parent / "link"
    target.symlink_to("nowhere")
    return target


def _looping(home):
    target = home.path.parent / "link"
    target.symlink_to(target)
    return target


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (lambda home: home.cwd / "none", "does not exist"),
        (_dangling, "leads nowhere"),
        (_looping, "loops"),
        (lambda home: home.binary / "deeper", "cannot be reached: not a directory"),
        (lambda home: f"{home.binary}/", "cannot be reached: not a directory"),
    ],
    ids=["absent", "dangling", "looping", "beneath-a-file", "file-with-a-slash"],
)
def test_a_program_that_cannot_be_reached_says_where_it_ended(home, target, words):
    home.write("codex_bin", f"{target(home)}\n")

    assert read(home.path).program == Unresolved(words) or words in read(home.path).program.why


def test_a_link_to_a_program_is_followed_to_it(home):
    link = home.cwd / "codex"
    link.symlink_to(home.binary)
    home.write("codex_bin", f"{link}\n")

    program = read(home.path).program

    assert (program.path, program.is_regular, program.is_executable) == (str(home.binary), True, True)
    assert program.mode == stat.S_IMODE(home.binary.stat().st_mode)


@pytest.mark.parametrize(("target", "words"), [("none", "does not exist"), ("file", "is not a directory")])
def test_a_directory_that_cannot_be_entered_says_why(home, target, words):
    (home.cwd / "file").touch()
    home.write("codex_cwd", f"{home.cwd / target}\n")

    assert read(home.path).cwd == Unresolved(words)


@contextmanager
def _as_somebody(base):
    """Let the block run as a user to whom a directory can be closed: root becomes somebody else for it."""
    if os.geteuid() != 0:
        yield
        return
    for one in (base, *base.rglob("*")):
        os.chown(one, SOMEBODY, -1)
    os.seteuid(SOMEBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_closed_directory_cannot_be_entered():
    with tempfile.TemporaryDirectory() as base:
        home = make_home(Path(base))
        home.cwd.chmod(0o600)

        with _as_somebody(Path(base)):
            facts = read(home.path)

    assert facts.cwd == Unresolved("cannot be entered: permission denied")


def test_an_unreadable_but_open_directory_can_be_entered(home):
    """Reading is not the question: only entering is (macOS grants reading to the executor's own binary)."""
    home.cwd.chmod(0o311)

    assert isinstance(read(home.path).cwd, EnteredFacts)


def test_content_can_be_judged_before_it_is_written(home):
    facts = read(home.path, instead={"model": b"m-2\n", "codex_sandbox": None})

    assert facts.files["model"] == Present(b"m-2\n", 0o600, os.geteuid())
    assert facts.files["codex_sandbox"] == Absent()
    assert (home.path / "model").read_text() == "m-1\n"


def test_a_name_that_is_no_text_is_only_an_unknown_file(home):
    (home.path / os.fsdecode(b"\xff\xfe")).touch()

    assert os.fsdecode(b"\xff\xfe") in read(home.path).names


@pytest.mark.parametrize("name", [b"\xff_bin", b"a\nb_cwd"])
def test_a_name_that_no_path_may_have_is_not_opened(home, name):
    (home.path / os.fsdecode(name)).touch()

    facts = read(home.path)

    assert os.fsdecode(name) in facts.names
    assert os.fsdecode(name) not in facts.files


def test_reading_a_full_home_takes_little_of_a_turn(home):
    best = min(_timed(home) for _ in range(20))

    assert best < 0.02, f"{best * 1000:.1f} ms"


def _timed(home):
    start = time.perf_counter()
    read(home.path)
    return time.perf_counter() - start


@pytest.mark.parametrize(
    "way", [launcher.Sudo("box"), launcher.Ssh("box", "127.0.0.1", 22, "/home/ann/k", "/home/ann/h")]
)
def test_a_shipped_launcher_is_known_by_what_it_says_of_itself(tmp_path, way):
    home = make_home(tmp_path)
    home.binary.write_bytes(launcher.near(way))

    assert read(home.path).program.is_launcher
    home.binary.write_text("#!/bin/sh\n# Launcher: reaches nobody\n")
    assert not read(home.path).program.is_launcher
