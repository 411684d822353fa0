"""Listing a directory beneath a root: what is told of an entry, and that a cap bounds the work, not the answer."""

import os
import socket
import tracemalloc

import pytest

from sentinel.whitelist import opened
from sentinel.whitelist.beneath import Root
from sentinel.whitelist.opened import Kind

MANY = 20_000
MILLION = 1_000_000


def test_each_kind_of_entry_is_told(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("12345")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as one:
        one.bind("socket")

    with Root.open(tmp_path) as root:
        listing = root.list(".", 9)

    assert {one.name: one.kind for one in listing.entries} == {
        "file": Kind.FILE,
        "folder": Kind.DIRECTORY,
        "link": Kind.LINK,
        "pipe": Kind.FIFO,
        "socket": Kind.SOCKET,
    }
    file = listing.entries[0]
    assert (file.size_bytes, file.mtime_ns) == (5, (tmp_path / "file").stat().st_mtime_ns)
    assert not listing.is_cut


@pytest.mark.parametrize(
    ("cap", "told", "is_cut"), [(0, 0, True), (2, 2, True), (3, 3, False), (4, 3, False)]
)
def test_a_listing_says_whether_it_was_cut(tmp_path, cap, told, is_cut):
    for name in "abc":
        (tmp_path / name).touch()

    with Root.open(tmp_path) as root:
        listing = root.list(".", cap)

    assert (len(listing.entries), listing.is_cut) == (told, is_cut)


def test_listing_twice_at_once_gives_both_everything(tmp_path):
    for name in "abc":
        (tmp_path / name).touch()

    with Root.open(tmp_path) as root, root.open_directory(".") as one, root.open_directory(".") as other:
        listings = [one.list(9), other.list(9), root.list(".", 9)]

    assert [[entry.name for entry in listing.entries] for listing in listings] == [["a", "b", "c"]] * 3


def fill(folder, number):
    """Put many names into a folder: links to one file are the quickest to make."""
    folder.mkdir()
    above = os.open(folder, os.O_RDONLY)
    try:
        for one in range(number):
            os.symlink("x", f"entry-{one:07}", dir_fd=above)
    finally:
        os.close(above)


def test_no_more_than_one_entry_beyond_the_cap_is_taken(tmp_path, monkeypatch):
    fill(tmp_path / "many", MANY)
    taken = []
    scandir = os.scandir

    class Counting:
        def __init__(self, descriptor):
            self._scan = scandir(descriptor)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self._scan.close()

        def __iter__(self):
            for one in self._scan:
                taken.append(one.name)
                yield one

    monkeypatch.setattr(opened.os, "scandir", Counting)

    with Root.open(tmp_path) as root:
        listing = root.list("many", 1000)

    assert (len(listing.entries), listing.is_cut) == (1000, True)
    assert len(taken) == 1001


@pytest.mark.real
@pytest.mark.timeout(300)
def test_a_million_entries_cost_no_more_than_the_cap(tmp_path):
    fill(tmp_path / "many", MILLION)

    with Root.open(tmp_path) as root:
        tracemalloc.start()
        listing = root.list("many", 1000)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()

    assert (len(listing.entries), listing.is_cut) == (1000, True)
    assert peak < 4 * 1024 * 1024
