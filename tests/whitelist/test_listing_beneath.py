"""Listing a directory beneath a root: what is told of an entry, and that a cap bounds the work, not the answer."""

import os
import socket
import tracemalloc

import pytest

from sentinel.whitelist import opened
from sentinel.whitelist.beneath import Root
from sentinel.whitelist.opened import Kind

MANY = 20_000
LINKS_TO_ONE = 50_000
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


def test_two_who_list_a_directory_at_once_both_get_everything(tmp_path):
    for name in "abc":
        (tmp_path / name).touch()

    with Root.open(tmp_path) as root, root.open_directory(".") as one, root.open_directory(".") as other:
        first = os.scandir(one.descriptor)
        begun = next(first).name
        second = [entry.name for entry in os.scandir(other.descriptor)]
        ended = [entry.name for entry in first]

    assert sorted(second) == ["a", "b", "c"]
    assert sorted([begun, *ended]) == ["a", "b", "c"]


def fill(folder, number):
    """Put so many names into a folder: links to a few files, which is quicker than so many files."""
    folder.mkdir()
    above = os.open(folder, os.O_RDONLY)
    try:
        for one in range(number):
            file = f"entry-{one - one % LINKS_TO_ONE:07}"
            if one % LINKS_TO_ONE:
                os.link(file, f"entry-{one:07}", src_dir_fd=above, dst_dir_fd=above)
            else:
                os.close(os.open(file, os.O_CREAT | os.O_WRONLY, dir_fd=above))
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
