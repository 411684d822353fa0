"""Judge a path by its text alone: which components beneath a root it means, or why it means none. Pure.

This is the first of two walls. Nothing outside a root is even looked at for a path that fails here, so no answer tells
whether something exists out there. Paths are compared component by component, never as string prefixes.
Source: spec 03 section 1 "Paths"; security facts, section B.
"""

import re
from collections.abc import Iterable
from typing import TypeAlias

from sentinel.whitelist.refusal import PathRefused, Rule

PATH_CAP_BYTES = 4096
COMPONENT_CAP_BYTES = 255

Parts: TypeAlias = tuple[str, ...]
"""Names of one level each, from the root downwards; empty for the root itself."""

_CONTROL = re.compile(r"[\x01-\x1f\x7f-\x9f\u2028\u2029]")


def split(path: str) -> Parts:
    """Return the components of a path; empty ones and `.` mean nothing and fall away."""
    return tuple(part for part in path.split("/") if part not in {"", "."})


def beneath(path: object, roots: Iterable[Parts]) -> Parts:
    """Return the components of a caller's `path` beneath the root, or raise `PathRefused`.

    Args:
        path: what the caller sent: relative to the root, or absolute and then inside one of `roots`.
        roots: the spellings of the one root (as configured, and with its links followed), split.

    """
    text = _text(path)
    parts = split(text)
    _check(parts, path)
    return _without(parts, roots, path) if text.startswith("/") else parts


def resolved(real: str, root: Parts, *, path: object) -> Parts:
    """Return the components beneath `root` of `real`: what `path` is once all its links are followed.

    The same rules hold for where the links led, or raise `PathRefused`.
    """
    parts = _without(split(real), (root,), path)
    for part in parts:
        _characters(part, path)
    _check(parts, path)
    return parts


def _text(path: object) -> str:
    if not isinstance(path, str):
        raise PathRefused(Rule.NOT_TEXT, "it is not text", path=path)
    if not path:
        raise PathRefused(Rule.EMPTY, "it is empty", path=path)
    if len(path) > PATH_CAP_BYTES:  # before anything looks at each character
        raise PathRefused(Rule.TOO_LONG, f"it is longer than {PATH_CAP_BYTES} bytes", path=path)
    _characters(path, path)
    if len(path.encode()) > PATH_CAP_BYTES:
        raise PathRefused(Rule.TOO_LONG, f"it is longer than {PATH_CAP_BYTES} bytes", path=path)
    return path


def _characters(text: str, path: object) -> None:
    if "\0" in text:
        raise PathRefused(Rule.NUL, "it holds a NUL character", path=path)
    if _CONTROL.search(text):
        raise PathRefused(Rule.CONTROL, "it holds a control character", path=path)
    try:
        text.encode()
    except UnicodeEncodeError:  # lone surrogates: how Python spells bytes that are no text
        raise PathRefused(Rule.NOT_UTF8, "its name is not UTF-8", path=path) from None


def _check(parts: Parts, path: object) -> None:
    for part in parts:
        if part == "..":
            raise PathRefused(
                Rule.OUTSIDE, "it may lead out of the root: it holds the component ..", path=path
            )
        if part.startswith(".."):  # macOS: FILE/..namedfork/rsrc is one more name of a file's content
            raise PathRefused(Rule.DOTS, "a component begins with two dots", path=path)
        if len(part.encode()) > COMPONENT_CAP_BYTES:
            raise PathRefused(
                Rule.TOO_LONG, f"a component is longer than {COMPONENT_CAP_BYTES} bytes", path=path
            )


def _without(parts: Parts, roots: Iterable[Parts], path: object) -> Parts:
    for root in roots:
        if parts[: len(root)] == root:
            return parts[len(root) :]
    raise PathRefused(Rule.OUTSIDE, "it leads out of the root", path=path)
