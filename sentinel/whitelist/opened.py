"""What was opened beneath a root, and reading from that descriptor alone: no path is looked up again.

All caps bound what is read, not what is returned: a sparse terabyte or a million entries cost no more than their cap.
Named tuples here, where dataclasses stand elsewhere: the gate loads this at each start, and they are made faster.
Source: spec 03 section 1 "Paths"; security facts, section B.
"""

import os
import stat
import string
from enum import StrEnum
from itertools import islice
from typing import Literal, NamedTuple, Self

CHUNK_BYTES = 256 * 1024

_PLAIN = frozenset((string.ascii_letters + string.digits + "._-").encode())


class Kind(StrEnum):
    """What a name stands for, its links not followed."""

    FILE = "file"
    DIRECTORY = "directory"
    LINK = "link"
    FIFO = "fifo"
    SOCKET = "socket"
    DEVICE = "device"
    SPECIAL = "special"


_KINDS = {
    stat.S_IFREG: Kind.FILE,
    stat.S_IFDIR: Kind.DIRECTORY,
    stat.S_IFLNK: Kind.LINK,
    stat.S_IFIFO: Kind.FIFO,
    stat.S_IFSOCK: Kind.SOCKET,
    stat.S_IFCHR: Kind.DEVICE,
    stat.S_IFBLK: Kind.DEVICE,
}


def kind_of(status: os.stat_result) -> Kind:
    """Return the kind that a status tells."""
    return _KINDS.get(stat.S_IFMT(status.st_mode), Kind.SPECIAL)


class Facts(NamedTuple):
    """What fstat said of an open descriptor. `mode` holds the permission bits, `owner` the numeric user."""

    device: int
    inode: int
    size_bytes: int
    mtime_ns: int
    mode: int
    owner: int

    @classmethod
    def of(cls, status: os.stat_result) -> Self:
        """Return the facts that a status holds."""
        mode = stat.S_IMODE(status.st_mode)
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, mode, status.st_uid)


class Content(NamedTuple):
    """Bytes of a file: `data` from `start_bytes` on. `is_cut` when there is more before or after it."""

    data: bytes
    facts: Facts
    start_bytes: int
    is_cut: bool

    def __repr__(self) -> str:
        """Return how much was read, not what: this may end in a log."""
        return f"Content(<{len(self.data)} bytes from {self.start_bytes}>, is_cut={self.is_cut})"


class Entry(NamedTuple):
    """One entry of a directory. Its name is always fit for JSON and for UTF-8, and loses nothing.

    `encoding` is `percent` for a name that is not UTF-8: `%` and each byte but ASCII letters, digits, `.`, `_` and `-` are
    written as `%XX`. Such a name can be listed, not opened.
    """

    name: str
    encoding: Literal["utf-8", "percent"]
    kind: Kind
    size_bytes: int
    mtime_ns: int


class Listing(NamedTuple):
    """Entries of a directory, sorted by name. `is_cut` when there are more: which ones are here is then up to the disk."""

    entries: tuple[Entry, ...]
    is_cut: bool


class OpenFile(NamedTuple):
    """A regular file beneath a root: the proof that it may be read. `parts` is where it is, all links followed."""

    descriptor: int
    facts: Facts
    parts: tuple[str, ...]

    def read(self, cap_bytes: int) -> Content:
        """Return the first `cap_bytes` bytes. A file that grows meanwhile is never read past one byte more."""
        data = self._from(0, cap_bytes + 1)
        return Content(data[:cap_bytes], self.facts, 0, is_cut=len(data) > cap_bytes)

    def tail(self, cap_bytes: int) -> Content:
        """Return the last `cap_bytes` bytes, as of the size when the file was opened."""
        start = max(0, self.facts.size_bytes - cap_bytes)
        return Content(self._from(start, cap_bytes), self.facts, start, is_cut=start > 0)

    def _from(self, start: int, most: int) -> bytes:
        data = bytearray()
        while (left := most - len(data)) > 0:
            more = os.pread(self.descriptor, min(left, CHUNK_BYTES), start + len(data))
            if not more:
                break
            data += more
        return bytes(data)


class OpenDirectory(NamedTuple):
    """A directory beneath a root: the proof that it may be listed, and the `dir_fd` of what is done in it."""

    descriptor: int
    facts: Facts
    parts: tuple[str, ...]

    def list(self, cap_entries: int) -> Listing:
        """Return at most `cap_entries` entries, having taken at most one more from the directory."""
        with os.scandir(self.descriptor) as scan:
            taken = list(islice(scan, cap_entries + 1))
            found = [_entry(one) for one in taken[:cap_entries]]
        entries = sorted((one for one in found if one is not None), key=lambda one: one.name)
        return Listing(tuple(entries), is_cut=len(taken) > cap_entries)


class Place(NamedTuple):
    """Where a write may happen: an entry `name`, checked and not looked up, of an open directory."""

    directory: OpenDirectory
    name: str


def _entry(one: os.DirEntry[str]) -> Entry | None:
    """Return what an entry is, or None when it has gone since it was listed."""
    try:
        status = one.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None
    try:
        one.name.encode()
    except UnicodeEncodeError:
        name, encoding = _percent(os.fsencode(one.name)), "percent"
    else:
        name, encoding = one.name, "utf-8"
    return Entry(name, encoding, kind_of(status), status.st_size, status.st_mtime_ns)


def _percent(name: bytes) -> str:
    return "".join(chr(one) if one in _PLAIN else f"%{one:02X}" for one in name)
