"""`sentinel bridge fetch | reply`: the one-shot forms, for scripts.

Exit codes (spec 02 section 4): fetch 0, 69, 77, 78; reply 0 read back, 65 blank, 78 gate, everything else 66.
"""

import asyncio
from typing import Annotated, Any

import typer

from sentinel.cli.output import must_be_text, print_json, print_line, read_text, tell
from sentinel.core.errors import ConfigError, Exit, Rejected, SentinelError
from sentinel.core.model import Message
from sentinel.home.locate import find

app = typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode=None)

_Home = Annotated[str, typer.Argument(metavar="HOME", help="A persona's name, or the path of its home.")]
_Cid = Annotated[str, typer.Argument(metavar="CID", help="The conversation.")]


@app.callback(epilog="Example: sentinel bridge fetch gode c-4f1d")
def bridge() -> None:
    """Fetch what waits for a persona, and reply as it, in single steps."""


@app.command(epilog="Example: sentinel bridge fetch gode c-4f1d")
def fetch(home: _Home, cid: _Cid) -> None:
    """Print what was said since the persona's last answer: one JSON message a line, oldest first."""
    from sentinel.app.say import unanswered

    try:
        messages = asyncio.run(unanswered(find(home), must_be_text(cid, "CID")))
    except Rejected as no:
        tell(f"sentinel: {no}")
        raise typer.Exit(Exit.NOT_PERMITTED) from no
    for message in messages:
        print_json(_shown(message))


@app.command(epilog="Example: sentinel bridge reply gode c-4f1d < answer.md")
def reply(
    home: _Home,
    cid: _Cid,
    *,
    nonce: Annotated[str | None, typer.Option(help="The same nonce again says nothing twice.")] = None,
) -> None:
    """Post standard input as the persona and read it back."""
    from sentinel.app.say import say

    try:
        said = asyncio.run(say(find(home), must_be_text(cid, "CID"), read_text(), nonce=nonce))
    except ConfigError:
        raise
    except SentinelError as fault:
        tell(f"sentinel: {fault}")
        code = Exit.NO_ANSWER if fault.exit_code is Exit.NO_ANSWER else Exit.NOT_DELIVERED
        raise typer.Exit(code) from fault
    print_line(" ".join(said["message_ids"]))


def _shown(message: Message) -> dict[str, Any]:
    return {
        "cid": message.cid,
        "id": message.id,
        "seq": message.seq,
        "sender": {"uid": message.sender.uid, "name": message.sender.name, "kind": message.sender.kind.value},
        "sent_at": message.sent_at.isoformat(timespec="milliseconds"),
        "type": message.type.value,
        "text": message.text,
        "mentions": list(message.mentions),
        "broadcast": message.broadcast,
        "reply_to": message.reply_to,
    }
