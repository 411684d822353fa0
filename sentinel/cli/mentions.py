"""`sentinel mentions resolve`: whom a text calls, by the one resolver that every sender uses (spec 09, spec 02 section 6)."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from sentinel.cli.output import print_json
from sentinel.core.errors import UsageError
from sentinel.core.mentions import resolve as resolve_mentions
from sentinel.core.model import Kind, Member, Resolution

app = typer.Typer(
    help="Resolve @names of a text against a list of members.",
    add_completion=False,
    rich_markup_mode=None,
    epilog="Example: sentinel mentions resolve --members members.json '@Gode what broke?'",
)

_KINDS = frozenset(kind.value for kind in Kind)
_SHAPE = 'it must be [{"uid": "…", "name": "…", "kind": "human" or "persona"}]'
_LINE_SHAPE = 'each line must be {"text": "…"}'


@app.callback()
def _mentions() -> None:
    """Resolve @names of a text against a list of members."""


@app.command(epilog="Example: sentinel mentions resolve --members members.json '@Gode what broke?'")
def resolve(
    text: Annotated[
        str | None, typer.Argument(metavar="TEXT", help="The text; from standard input when left out.")
    ] = None,
    *,
    members: Annotated[
        Path, typer.Option("--members", metavar="FILE", help="JSON: [{uid, name, kind}] of the conversation.")
    ],
    jsonl: Annotated[
        bool, typer.Option("--jsonl", help='Read one {"text": …} per line, print one result per line.')
    ] = False,
) -> None:
    """Print {"mentions": [uid], "broadcast": bool, "ambiguous": [name]} of a text, as JSON."""
    if jsonl and text is not None:
        raise UsageError("TEXT and --jsonl exclude each other", mend="give the texts on standard input")
    known = _members(members)
    if jsonl:
        for number, line in enumerate(sys.stdin.buffer, start=1):
            print_json(_shown(resolve_mentions(_text_of(line, number), known)))
        return
    print_json(_shown(resolve_mentions(_whole_input() if text is None else text, known)))


def _shown(resolution: Resolution) -> dict[str, Any]:
    return {
        "mentions": list(resolution.mentions),
        "broadcast": resolution.broadcast,
        "ambiguous": list(resolution.ambiguous),
    }


def _whole_input() -> str:
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as fault:
        raise UsageError("standard input is not UTF-8", mend=f"look at byte {fault.start}") from fault


def _text_of(line: bytes, number: int) -> str:
    try:
        value: Any = json.loads(line.decode())
    except (ValueError, RecursionError) as fault:
        raise UsageError(f"standard input, line {number}: not JSON in UTF-8", mend=_LINE_SHAPE) from fault
    text = _field(value, "text")
    if not isinstance(text, str):
        raise UsageError(f"standard input, line {number}: no object with a text", mend=_LINE_SHAPE)
    return text


def _members(file: Path) -> list[Member]:
    try:
        listed: Any = json.loads(file.read_bytes().decode())
    except OSError as fault:
        raise UsageError(f"{file}: {fault.strerror}", mend="give a file that can be read") from fault
    except (ValueError, RecursionError) as fault:
        raise UsageError(f"{file}: not JSON in UTF-8 ({fault})", mend=_SHAPE) from fault
    if not isinstance(listed, list):
        raise UsageError(f"{file}: not a list", mend=_SHAPE)
    members: dict[str, Member] = {}
    for number, value in enumerate(cast("list[Any]", listed), start=1):
        member = _member(value, f"{file}: member {number}")
        if member.uid in members:
            raise UsageError(f"{file}: member {number}: uid {member.uid!r} stands twice", mend="list it once")
        members[member.uid] = member
    return list(members.values())


def _member(value: Any, where: str) -> Member:
    """Return one member; fields beside uid, name and kind are ignored, so that a server's own list can be used."""
    uid, name, kind = _field(value, "uid"), _field(value, "name"), _field(value, "kind")
    if not isinstance(uid, str) or not uid.strip() or not isinstance(name, str) or not name.strip():
        raise UsageError(f"{where}: uid and name must be texts that are not empty", mend=_SHAPE)
    if not isinstance(kind, str) or kind not in _KINDS:
        raise UsageError(f"{where}: kind {kind!r} is neither human nor persona", mend=_SHAPE)
    return Member(uid, name, Kind(kind))


def _field(value: Any, name: str) -> object:
    """Return a field of what should be an object; None when it is not one, or has no such field."""
    return cast("dict[str, object]", value).get(name) if isinstance(value, dict) else None
