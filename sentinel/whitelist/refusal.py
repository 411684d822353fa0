"""Why a path was refused: a rule, a reason, a way to mend it. Pure.

The rule is the word in the receipt, in the log and in docs/paths.md. Source: spec 03 section 1 "Paths".
"""

from enum import StrEnum
from typing import ClassVar

from sentinel.core.errors import Exit, SentinelError

SHOWN_CHARACTERS = 120


class Rule(StrEnum):
    """What a path broke."""

    NOT_TEXT = "not-text"
    EMPTY = "empty"
    NUL = "nul"
    CONTROL = "control"
    NOT_UTF8 = "not-utf8"
    TOO_LONG = "too-long"
    DOTS = "dots"
    OUTSIDE = "outside"
    LINK = "link"
    LINK_RACE = "link-race"
    LINK_LOOP = "link-loop"
    NOT_REGULAR = "not-regular"
    NOT_DIRECTORY = "not-directory"
    ABSENT = "absent"
    DENIED = "denied"
    PROTECTED = "protected"
    FAULT = "fault"


MENDS = {
    Rule.NOT_TEXT: "give the path as a string",
    Rule.EMPTY: "name a file; the root itself is .",
    Rule.NUL: "leave the NUL character out",
    Rule.CONTROL: "leave control characters and line ends out",
    Rule.NOT_UTF8: "rename it to a name that is UTF-8 text",
    Rule.TOO_LONG: "use a shorter path",
    Rule.DOTS: "use a name that does not begin with two dots",
    Rule.OUTSIDE: "name a path beneath a root",
    Rule.LINK: "put the file itself in the link's place",
    Rule.LINK_RACE: "ask again when nobody changes the path",
    Rule.LINK_LOOP: "mend the link",
    Rule.NOT_REGULAR: "name a regular file",
    Rule.NOT_DIRECTORY: "name a directory",
    Rule.ABSENT: "name something that exists",
    Rule.DENIED: "ask the owner for the right to read it",
    Rule.PROTECTED: "leave it alone: the operator protects it",
    Rule.FAULT: "look at the disk and at the system's limits, then ask again",
}


class PathRefused(SentinelError):
    """A path that is not opened.

    `rule` is the word to sort by; `reason` is a clause about the path ("it leads out of the root"); `what` names the path
    too, quoted and cut, so that it can be printed whatever it holds.
    """

    exit_code: ClassVar[Exit] = Exit.NOT_PERMITTED

    def __init__(self, rule: Rule, reason: str, *, path: object) -> None:
        super().__init__(f"path {shown(path)}: {reason}", mend=MENDS[rule])
        self.rule = rule
        self.reason = reason


def shown(path: object) -> str:
    """Return `path` quoted on one line, without controls or lone surrogates, cut to `SHOWN_CHARACTERS`."""
    if not isinstance(path, str):
        return f"of type {type(path).__name__}"
    return repr(path) if len(path) <= SHOWN_CHARACTERS else f"{path[:SHOWN_CHARACTERS]!r}…"
