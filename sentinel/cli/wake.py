"""`sentinel wake`. Source: spec 09."""

import asyncio
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from sentinel.cli.output import print_json, print_line
from sentinel.core.errors import ConfigError, UsageError
from sentinel.core.model import Kind
from sentinel.core.persona import Secret
from sentinel.home.locate import find

app = typer.Typer(add_completion=False)


@app.command(epilog="Example: sentinel wake gode c-4f1d --token-file ann.token")
def wake(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The persona.")],
    cid: Annotated[str, typer.Argument(metavar="CID", help="The conversation.")],
    *,
    token_file: Annotated[Path | None, typer.Option(help="A file with a human's token.")] = None,
    data: Annotated[Path | None, typer.Option(help="The data folder of a local server instead.")] = None,
    timeout_s: Annotated[
        float, typer.Option("--timeout", min=0.1, help="Seconds to wait for the answer.")
    ] = 120.0,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print {message_id, answer_id, legs: [{leg, at_ms}]}.")
    ] = False,
) -> None:
    """Send a test mention as a human and report each leg: stored … read back, with times."""
    from sentinel.app.wake import NotWoken
    from sentinel.app.wake import wake as wake_it

    home = find(name)
    woken = asyncio.run(wake_it(home, cid, _token(home, cid, token_file, data), timeout_s=timeout_s))
    if as_json:
        print_json(asdict(woken))
    else:
        for one in woken.legs:
            print_line(f"{one.leg:>10}  {'-' if one.at_ms is None else f'{one.at_ms:8.1f} ms'}")
    if woken.missing:
        raise NotWoken(f"{woken.message_id} was not answered in {timeout_s:g} s", mend=woken.missing)


def _token(home: Path, cid: str, token_file: Path | None, data: Path | None) -> Secret:
    if (token_file is None) == (data is None):
        raise UsageError(
            "give either --token-file or --data", mend="a human's token, or the local server's folder"
        )
    if token_file is not None:
        try:
            return Secret(token_file.read_text(encoding="utf-8").strip())
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(
                f"{token_file} cannot be read", mend="name a file that holds one token"
            ) from error
    from sentinel.app.ground import passed
    from sentinel.app.wake import log_in
    from sentinel.server.admin import directory

    server = passed(home, guarded=None).server
    with directory(data or Path()) as accounts:
        here = [room for room in accounts.rooms() if room.conversation.cid == cid]
        humans = [one for room in here for one in room.members if one.kind is Kind.HUMAN]
        if not humans:
            raise ConfigError(f"there is no human in {cid}", mend="invite one: `sentinel hoop room invite`")
        code = accounts.code(humans[0].name)
    return asyncio.run(log_in(server, humans[0].name, code))
