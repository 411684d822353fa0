"""Files that nobody reads through the whitelist, whatever name they are reached by.

A name is compared as case-insensitive and normalising file systems would (APFS): NFC and case folded, and without the
invisible characters that HFS+ skips. A file is compared by identity (device, inode), so that a hard link, another spelling
or a bind mount is the same file. Identities are taken anew at each check, because files are replaced by renaming; an old
version that somebody linked elsewhere before that is known by its name only.
Source: spec 03 section 1 "Paths"; security facts, section B.
"""

import fnmatch
import os
import re
import unicodedata
from collections.abc import Iterable
from typing import TypeAlias

from sentinel.whitelist.refusal import PathRefused, Rule

Identity: TypeAlias = tuple[int, int]
"""Device and inode: equal for two names of one file, on every file system."""


def folded(name: str) -> str:
    """Return the form in which two names are one for a case-insensitive, normalising file system."""
    visible = "".join(one for one in name if unicodedata.category(one) != "Cf")
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", visible).casefold())


class Protected:
    """Names and files to keep closed.

    Args:
        names: patterns (`.env`, `*.pem`) for any component of a path: a protected directory closes what is in it.
        files: absolute paths of files or directories, links followed; they need not exist.

    """

    def __init__(self, names: Iterable[str] = (), files: Iterable[str] = ()) -> None:
        patterns = [fnmatch.translate(folded(name)) for name in names]
        self._pattern = re.compile("|".join(patterns)) if patterns else None
        self._files = tuple(files)

    def check_names(self, parts: Iterable[str], *, path: object) -> None:
        """Raise `PathRefused` when a component of `path` matches a protected name."""
        if self._pattern is not None and any(self._pattern.match(folded(part)) for part in parts):
            raise PathRefused(Rule.PROTECTED, "its name is protected", path=path)

    def check_file(self, status: os.stat_result, *, path: object) -> None:
        """Raise `PathRefused` when what was opened (`os.fstat`) is a protected file, under whatever name."""
        if self._files and (status.st_dev, status.st_ino) in self._identities(path):
            raise PathRefused(Rule.PROTECTED, "it is a protected file, under this or another name", path=path)

    def _identities(self, path: object) -> set[Identity]:
        found: set[Identity] = set()
        for file in self._files:
            try:
                status = os.stat(file)  # noqa: PTH116  # once per opened file: no Path is made for it
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as fault:  # what cannot be compared is not known to be open
                reason = "a protected file cannot be compared with it"
                raise PathRefused(Rule.PROTECTED, reason, path=path) from fault
            found.add((status.st_dev, status.st_ino))
        return found
