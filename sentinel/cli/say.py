"""`sentinel say`. Source: spec 09."""

import asyncio
from typing import Annotated

import typer

from sentinel.cli.output import must_be_text, print_json, print_line, read_text, tell
from sentinel.home.locate import find

app = typer.Typer(add_completion=False)


@app.command(epilog='Example: sentinel say gode c-4f1d "@ann the build is green"')
def say(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The persona.")],
    cid: Annotated[str, typer.Argument(metavar="CID", help="The conversation.")],
    text: Annotated[str, typer.Argument(metavar="TEXT|-", help="What to say; - reads standard input.")],
    *,
    nonce: Annotated[str | None, typer.Option(help="The same nonce again says nothing twice.")] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print {message_ids, mentions, broadcast, ambiguous, nonce}.")
    ] = False,
) -> None:
    """Post as a persona, mentions resolved, read back from the server."""
    from sentinel.app.say import say as say_it

    words = read_text() if text == "-" else must_be_text(text, "TEXT")
    said = asyncio.run(say_it(find(name), must_be_text(cid, "CID"), words, nonce=nonce))
    if said["ambiguous"]:
        tell(f"these names fit several members and called nobody: {', '.join(said['ambiguous'])}")
    if as_json:
        print_json(dict(said))
    else:
        print_line(" ".join(said["message_ids"]))
