"""Open a caller's path beneath a root, without a race: what is opened is what was checked.

Resolving a path and then opening it is a race, which a process that swaps a directory for a link wins in a quarter of all
tries (docs/paths.md). So links are resolved first, by path, only to learn which components are meant; then these are opened
one by one, each relative to the descriptor of the one above and none through a link, from a root that was opened once.
A link met on that walk was put there meanwhile, and is refused. Whatever happens to the names, every descriptor here was
reached from the root's own by steps that only go down.

The last component is looked at before it is opened, because opening a device or a FIFO does something to it; what decides
is fstat on the open descriptor, and protected files are told by that too. What is mounted beneath a root belongs to it.
Source: spec 03 section 1 "Paths"; security facts, section B.
"""

import contextlib
import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Self

from sentinel.whitelist.lexical import Parts, beneath, resolved, split
from sentinel.whitelist.opened import Content, Facts, Kind, Listing, OpenDirectory, OpenFile, Place, kind_of
from sentinel.whitelist.protected import Protected
from sentinel.whitelist.refusal import PathRefused, Rule
from sentinel.whitelist.step import RACE, Refusing, directory_in, file_in, look, not_regular

_ROOT = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class Opener(ABC):
    """Opens paths beneath what it guards. Whatever the path and whatever the disk says, the answer no is `PathRefused`."""

    @abstractmethod
    def open_file(self, path: str, *, follow: bool = True) -> AbstractContextManager[OpenFile]:
        """Return the regular file at `path`, open for the block. `follow=False` refuses links inside the root as well."""

    @abstractmethod
    def open_directory(self, path: str) -> AbstractContextManager[OpenDirectory]:
        """Return the directory at `path`, open for the block; `.` is the root."""

    def read(self, path: str, cap_bytes: int, *, follow: bool = True) -> Content:
        """Return the first `cap_bytes` bytes of the file at `path`."""
        with self.open_file(path, follow=follow) as file, Refusing(path):
            return file.read(cap_bytes)

    def tail(self, path: str, cap_bytes: int) -> Content:
        """Return the last `cap_bytes` bytes of the file at `path`."""
        with self.open_file(path) as file, Refusing(path):
            return file.tail(cap_bytes)

    def list(self, path: str, cap_entries: int) -> Listing:
        """Return at most `cap_entries` entries of the directory at `path`."""
        with self.open_directory(path) as directory, Refusing(path):
            return directory.list(cap_entries)


class Root(Opener):
    """A directory, opened once: whatever is put in its place later, this is the one that is read."""

    def __init__(self, path: str, real: str, descriptor: int, protected: Protected) -> None:
        self.path = path
        self.real = real
        self.descriptor = descriptor
        self.facts = Facts.of(os.fstat(descriptor))
        self.spellings = (split(real), split(path))
        self._protected = protected

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, protected: Protected | None = None) -> Self:
        """Return the root at an absolute `path`, which may be a link: that is the operator's word. Close it, or use `with`."""
        name = os.fspath(path)
        if not name.startswith("/"):
            raise PathRefused(Rule.OUTSIDE, "a root needs an absolute path", path=name)
        if "\0" in name:
            raise PathRefused(Rule.NUL, "it holds a NUL character", path=name)
        with Refusing(name):
            descriptor = os.open(name, _ROOT)
            root = cls(name, os.path.realpath(name), descriptor, protected or Protected())
            try:
                is_the_same = os.path.samestat(os.stat(root.real), os.fstat(descriptor))  # noqa: PTH116  # beside fstat
            except OSError:
                root.close()
                raise
        if not is_the_same:
            root.close()
            raise PathRefused(Rule.LINK_RACE, RACE, path=name)
        return root

    def close(self) -> None:
        """Give the descriptor back; a second time does nothing."""
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextmanager
    def open_file(self, path: str, *, follow: bool = True) -> Generator[OpenFile]:
        """Return the regular file at `path`, open for the block. `follow=False` refuses links inside the root as well."""
        parts = self._parts(path, follow=follow)
        if not parts:
            raise not_regular(Kind.DIRECTORY, path)
        directory = self._descend(parts[:-1], path, follow=follow)
        try:
            descriptor = file_in(directory, parts[-1], path, follow=follow)
        finally:
            os.close(directory)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):  # swapped since it was looked at
                raise not_regular(kind_of(status), path)
            self._protected.check_file(status, path=path)
            yield OpenFile(descriptor, Facts.of(status), parts)
        finally:
            os.close(descriptor)

    @contextmanager
    def open_directory(self, path: str) -> Generator[OpenDirectory]:
        """Return the directory at `path`, open for the block; `.` is the root."""
        parts = self._parts(path, follow=True)
        descriptor = self._descend(parts, path, follow=True)
        try:
            yield OpenDirectory(descriptor, Facts.of(os.fstat(descriptor)), parts)
        finally:
            os.close(descriptor)

    @contextmanager
    def open_place(self, path: str) -> Generator[Place]:
        """Return where a write may happen: the directory of the entry `path`, open for the block, and the entry's name.

        The name is not resolved and need not exist: a writer makes a file beside it and renames. A name that is
        protected, or stands for a protected file, is refused.
        """
        parts = beneath(path, self.spellings)
        if not parts:
            raise not_regular(Kind.DIRECTORY, path)
        self._protected.check_names(parts, path=path)
        with self.open_directory("/".join(parts[:-1]) or ".") as directory:
            with Refusing(path), contextlib.suppress(FileNotFoundError):
                self._protected.check_file(look(directory.descriptor, parts[-1]), path=path)
            yield Place(directory, parts[-1])

    def _parts(self, path: str, *, follow: bool) -> Parts:
        """Return the components that `path` means once its links are followed: names to be opened, not yet trusted."""
        parts = beneath(path, self.spellings)
        self._protected.check_names(parts, path=path)
        if not follow or not parts:
            return parts
        try:  # not strict: that would tell whether the target of a link that leads out exists
            real = os.path.realpath("/".join((self.real, *parts)))
        except RecursionError as fault:
            raise PathRefused(Rule.LINK_LOOP, "it goes through too many links", path=path) from fault
        except OSError as fault:  # what was a link when it was looked at, and no more when it was read
            raise PathRefused(Rule.LINK_RACE, RACE, path=path) from fault
        parts = resolved(real, self.spellings[0], path=path)
        self._protected.check_names(parts, path=path)
        return parts

    def _descend(self, parts: Parts, path: str, *, follow: bool) -> int:
        """Go down from the root, one component at a time, and return the last directory's descriptor, to be closed."""
        with Refusing(path):
            here = os.open(".", _ROOT, dir_fd=self.descriptor)  # with an offset of its own, for listings
        try:
            for part in parts:
                deeper = directory_in(here, part, path, follow=follow)
                os.close(here)
                here = deeper
                self._protected.check_file(os.fstat(here), path=path)
        except BaseException:
            os.close(here)
            raise
        return here
