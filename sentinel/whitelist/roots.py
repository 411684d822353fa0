"""Several roots as one opener. Source: spec 03 section 1 "Paths"."""

import contextlib
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TypeVar

from sentinel.whitelist.beneath import Opener, Root
from sentinel.whitelist.lexical import split
from sentinel.whitelist.opened import OpenDirectory, OpenFile
from sentinel.whitelist.refusal import PathRefused, Rule

_Opened = TypeVar("_Opened", OpenFile, OpenDirectory)


class Roots(Opener):
    """An absolute path belongs to the deepest root that holds it, a relative one to the first root that has it.

    Links from one root into another are refused like all that leave their root. No roots allow nothing. The roots stay
    their opener's to close.
    """

    def __init__(self, roots: Sequence[Root]) -> None:
        self._roots = tuple(roots)

    @contextmanager
    def open_file(self, path: str, *, follow: bool = True) -> Generator[OpenFile]:
        """Return the regular file at `path`, open for the block. `follow=False` refuses links inside the root as well."""
        with self._first(path, lambda root: root.open_file(path, follow=follow)) as file:
            yield file

    @contextmanager
    def open_directory(self, path: str) -> Generator[OpenDirectory]:
        """Return the directory at `path`, open for the block; `.` is the first root."""
        with self._first(path, lambda root: root.open_directory(path)) as directory:
            yield directory

    @contextmanager
    def _first(
        self, path: str, opening: Callable[[Root], AbstractContextManager[_Opened]]
    ) -> Generator[_Opened]:
        with contextlib.ExitStack() as stack:
            yield self._opened(path, lambda root: stack.enter_context(opening(root)))

    def _opened(self, path: str, enter: Callable[[Root], _Opened]) -> _Opened:
        refusal = PathRefused(Rule.OUTSIDE, "it leads out of the roots", path=path)
        for root in self._holding(path):
            try:
                return enter(root)
            except PathRefused as refused:
                refusal = refused
                if refused.rule is not Rule.ABSENT:
                    break
        raise refusal

    def _holding(self, path: object) -> tuple[Root, ...]:
        """Return the roots to ask, by the text of the path alone; what is no text any root may refuse."""
        if not isinstance(path, str) or not path.startswith("/"):
            return self._roots
        parts = split(path)
        depths = {
            root: len(spelling)
            for root in self._roots
            for spelling in root.spellings
            if parts[: len(spelling)] == spelling
        }
        return (max(depths, key=lambda root: depths[root]),) if depths else ()
