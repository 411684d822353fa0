"""One step down: open a name in an open directory, never through a link, and say what stood in the way.

Source: spec 03 section 1 "Paths"; security facts, section B.
"""

import errno
import os
from types import TracebackType

from sentinel.whitelist.opened import Kind, kind_of
from sentinel.whitelist.refusal import PathRefused, Rule

RACE = "a link stands where a moment ago there was none"

# macOS: refuse a link anywhere in the path. Beside O_NOFOLLOW, not instead of it: an older kernel ignores the bit.
_NO_LINKS = os.O_NOFOLLOW | getattr(os, "O_NOFOLLOW_ANY", 0)
_DIRECTORY = os.O_RDONLY | _NO_LINKS | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_RDONLY | _NO_LINKS | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

_FAULTS = {
    errno.ENOENT: (Rule.ABSENT, "it does not exist"),
    errno.EACCES: (Rule.DENIED, "permission denied"),
    errno.EPERM: (Rule.DENIED, "permission denied"),
    errno.ELOOP: (Rule.LINK_LOOP, "it is a link that loops"),
    errno.ENOTDIR: (Rule.NOT_DIRECTORY, "not a directory"),
    errno.ENXIO: (Rule.NOT_REGULAR, "it is a socket or a device"),
    errno.ENODEV: (Rule.NOT_REGULAR, "it is a socket or a device"),
    errno.ENAMETOOLONG: (Rule.TOO_LONG, "a name in it is too long for the file system"),
    errno.EILSEQ: (Rule.NOT_UTF8, "its name is not UTF-8"),
}


def directory_in(above: int, name: str, path: str, *, follow: bool) -> int:
    """Return a descriptor of the directory `name` in the directory `above`, to be closed.

    `path` and `follow` are the caller's, for the refusal's words alone: a link is never followed here.
    """
    with Refusing(path):
        try:
            return os.open(name, _DIRECTORY, dir_fd=above)
        except OSError as fault:
            if fault.errno not in {
                errno.ENOTDIR,
                errno.ELOOP,
            }:  # of a link Linux says the one, macOS the other
                raise
        kind = kind_of(look(above, name))
    if kind in {Kind.LINK, Kind.DIRECTORY}:  # a directory by now, which it was not a moment ago
        raise _met_link(above, name, path, follow=follow)
    raise PathRefused(Rule.NOT_DIRECTORY, f"not a directory but a {kind}", path=path)


def file_in(above: int, name: str, path: str, *, follow: bool) -> int:
    """Return a descriptor of `name` in the directory `above`, to be closed: a file when it was looked at, so ask fstat."""
    with Refusing(path):
        kind = kind_of(look(above, name))
        if kind is Kind.LINK:
            raise _met_link(above, name, path, follow=follow)
        if kind is not Kind.FILE:  # not opened at all: opening a device or a FIFO does something to it
            raise not_regular(kind, path)
        try:
            return os.open(name, _FILE, dir_fd=above)
        except OSError as fault:
            if fault.errno != errno.ELOOP:
                raise
    raise _met_link(above, name, path, follow=follow)


def look(above: int, name: str) -> os.stat_result:
    """Return the status of a name in a directory, its link not followed."""
    return os.stat(name, dir_fd=above, follow_symlinks=False)


def not_regular(kind: Kind, path: str) -> PathRefused:
    """Return the refusal of what is no regular file."""
    return PathRefused(Rule.NOT_REGULAR, f"it is not a regular file but a {kind}", path=path)


def _met_link(above: int, name: str, path: str, *, follow: bool) -> PathRefused:
    """Return which refusal it is; the path is refused in any case."""
    if not follow:
        return PathRefused(Rule.LINK, "it is a symbolic link", path=path)
    try:
        os.stat(name, dir_fd=above)
    except OSError as fault:
        if fault.errno == errno.ELOOP:
            return PathRefused(Rule.LINK_LOOP, "it is a link that loops", path=path)
    return PathRefused(Rule.LINK_RACE, RACE, path=path)


class Refusing:
    """Turns what the system says in its block into a refusal."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(fault, OSError):
            unnamed = (Rule.FAULT, (fault.strerror or "unknown fault").lower())
            rule, reason = _FAULTS.get(fault.errno or 0, unnamed)
            raise PathRefused(rule, reason, path=self._path) from fault
