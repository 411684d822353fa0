"""What a human tells the program, not the model: the first line of a message. Pure.

This module reads text only to find *which* command it is; *whose* command counts is decided by `core/triage.py` from
the sender that the server names (law 8). The form is strict on purpose, so that talk about a command is none:

- it stands on the first line, after leading mentions; a later line, a quote, a list, code or a fence never is one;
- the word is lower-case, as written here, and ends with white space or with the line;
- `/approve`, `/deny` and `/task` without an argument are ordinary text.

Source: spec 02 section 3 "Commands".
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from sentinel.core.mentions import strip_leading_mentions
from sentinel.core.model import Member


class CommandKind(StrEnum):
    """The closed list. The value is the word after the slash."""

    STOP = "stop"
    STATUS = "status"
    NEW = "new"
    RETRY = "retry"
    PAUSE = "pause"
    RESUME = "resume"
    APPROVE = "approve"
    DENY = "deny"
    TASK = "task"


@dataclass(frozen=True, slots=True)
class Command:
    """One command. `argument` has no white space around it and is empty when there was none.

    A code for `approve` and `deny` (one word); the whole rest of the message, later lines too, for `task`; the rest
    of the first line for the others.
    """

    kind: CommandKind
    argument: str = ""


NEEDS_ARGUMENT: Final = frozenset({CommandKind.APPROVE, CommandKind.DENY, CommandKind.TASK})
_TAKES_CODE: Final = frozenset({CommandKind.APPROVE, CommandKind.DENY})

_LINE_END: Final = re.compile("\r\n|[\n\v\f\r\x1c-\x1e\x85\u2028\u2029]")  # whatever is shown as a new line
_INDENTED_CODE: Final = re.compile(r" {0,3}\t| {4}")
_COMMAND: Final = re.compile(rf"/({'|'.join(CommandKind)})(?!\S)")


def parse(text: str, members: Sequence[Member]) -> Command | None:
    """Return the command on the first line of `text`, or None.

    `members` are those of the conversation: only their names are mentions that may stand before the command.
    """
    first, *later = _LINE_END.split(text, maxsplit=1)
    if _COMMAND.search(first) is None or _INDENTED_CODE.match(first):
        return None
    line = strip_leading_mentions(first, members)
    found = _COMMAND.match(line)
    if found is None:
        return None
    kind = CommandKind(found[1])
    argument = _argument(kind, line[found.end() :].strip(), later)
    if kind in NEEDS_ARGUMENT and not argument:
        return None
    return Command(kind, argument)


def _argument(kind: CommandKind, rest: str, later: Sequence[str]) -> str:
    if kind in _TAKES_CODE:  # "/approve K7Q2 @Gode" is how some clients order it: the code is the first word
        return rest.split(maxsplit=1)[0] if rest else ""
    if kind is CommandKind.TASK:
        return "\n".join([rest, *later]).strip()
    return rest
