"""The race for a path: a process swaps a directory for a link while another reads through it. Nothing outside is ever read.

The naive ways to open lose the same race, beside the same racer: a race that nobody can lose proves nothing.
"""

import os
import stat
from collections import Counter
from itertools import count

import pytest

from sentinel.whitelist.beneath import Root
from sentinel.whitelist.refusal import PathRefused, Rule
from tests.whitelist.path_racer import racer

READS = 100_000
SOME_READS = 20_000
FEW_READS = 5_000
NAIVE_TRIES = 300_000
INSIDE, OUTSIDE = b"inside", b"outside"


@pytest.fixture
def ground(tmp_path):
    """A root whose `d` changes places with a link out of it, and its `f` with one; both hold a file of that name."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    for folder, content in ((root / "d", INSIDE), (root, INSIDE), (outside, OUTSIDE)):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "f").write_bytes(content)
    (root / "d.out").symlink_to(outside)
    (root / "f.out").symlink_to(outside / "f")
    os.mkfifo(root / "fifo")
    return root


def outcomes(read, reads):
    """Return how often each content and each rule came of it."""
    seen = Counter()
    for _ in range(reads):
        try:
            seen[read()] += 1
        except PathRefused as refusal:
            seen[refusal.rule] += 1
    return seen


@pytest.mark.parametrize(
    ("path", "swapped", "reads"),
    [
        pytest.param("d/f", "d", SOME_READS, id="directory"),
        pytest.param("f", "f", FEW_READS, id="file"),
        pytest.param("d/f", "d", READS, id="full", marks=[pytest.mark.real, pytest.mark.timeout(300)]),
    ],
)
def test_nothing_outside_is_read_while_a_name_is_swapped_for_a_link(ground, path, swapped, reads):
    with Root.open(ground) as root, racer(ground / swapped, ground / f"{swapped}.out"):
        seen = outcomes(lambda: root.read(path, 64).data, reads)

    assert seen[OUTSIDE] == 0
    assert seen[INSIDE] > 0
    assert seen[Rule.LINK_RACE] > 0, seen
    assert seen[Rule.OUTSIDE] > 0, seen
    assert set(seen) <= {INSIDE, Rule.LINK_RACE, Rule.OUTSIDE, Rule.ABSENT}


def _resolve_then_open(ground):
    real = os.path.realpath(ground / "d" / "f")
    if os.path.commonpath([real, ground]) != str(ground):
        return None
    return os.open(real, os.O_RDONLY | os.O_CLOEXEC)


def _resolve_then_open_no_link(ground):
    real = os.path.realpath(ground / "d" / "f")
    if os.path.commonpath([real, ground]) != str(ground):
        return None
    return os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)


@pytest.mark.parametrize("opening", [_resolve_then_open, _resolve_then_open_no_link])
def test_resolving_and_then_opening_reads_outside(ground, opening):
    """The race is real: what everybody writes first loses it, also with O_NOFOLLOW."""
    with racer(ground / "d", ground / "d.out"):
        tries = next(number for number in count() if number > NAIVE_TRIES or _leaked(opening, ground))

    assert tries <= NAIVE_TRIES


def _leaked(opening, ground):
    try:
        descriptor = opening(ground)
    except OSError:
        return False
    if descriptor is None:
        return False
    try:
        return os.read(descriptor, 64) == OUTSIDE
    finally:
        os.close(descriptor)


def test_nothing_but_a_regular_file_is_handed_out_while_it_is_swapped_for_a_fifo(ground):
    def kind():
        with root.open_file("f") as file:
            return stat.S_IFMT(os.fstat(file.descriptor).st_mode)

    with Root.open(ground) as root, racer(ground / "f", ground / "fifo"):
        seen = outcomes(kind, FEW_READS)

    assert set(seen) <= {stat.S_IFREG, Rule.NOT_REGULAR, Rule.ABSENT}
    assert seen[stat.S_IFREG] > 0
    assert seen[Rule.NOT_REGULAR] > 0


def test_no_listing_leaves_the_root_while_it_is_swapped(ground):
    (ground / "d" / "mine").touch()

    def names():
        return tuple(entry.name for entry in root.list("d", 10).entries)

    with Root.open(ground) as root, racer(ground / "d", ground / "d.out"):
        seen = outcomes(names, FEW_READS)

    assert set(seen) <= {("f", "mine"), Rule.LINK_RACE, Rule.OUTSIDE, Rule.ABSENT}
    assert seen["f", "mine"] > 0


def test_a_race_leaves_no_descriptor_open(ground):
    with Root.open(ground) as root:
        before = len(os.listdir("/dev/fd"))

        with racer(ground / "d", ground / "d.out"):
            outcomes(lambda: root.read("d/f", 64).data, FEW_READS // 5)

        assert len(os.listdir("/dev/fd")) == before
