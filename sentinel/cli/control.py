"""`sentinel retry | pause | resume | stop`: what the room commands do, from the terminal. Source: spec 09."""

import asyncio
from typing import Annotated, Any

import typer

from sentinel.cli.output import tell
from sentinel.core.errors import ConfigError
from sentinel.home.locate import find

app = typer.Typer(add_completion=False)

_Name = Annotated[str, typer.Argument(metavar="NAME", help="The persona, whose sentinel runs.")]


@app.command(epilog="Example: sentinel retry gode m-93ab")
def retry(
    name: _Name,
    message_id: Annotated[
        str | None, typer.Argument(metavar="[MESSAGE-ID]", help="Only this message.")
    ] = None,
) -> None:
    """Try messages again that were put aside: all, or one."""
    tell(f"trying again: {_ask(name, 'retry', message_id=message_id)['retried']}")


@app.command(epilog="Example: sentinel pause gode")
def pause(name: _Name) -> None:
    """Take no new turns; messages are kept."""
    _ask(name, "pause")
    tell("paused; `sentinel resume` lets it go on")


@app.command(epilog="Example: sentinel resume gode")
def resume(name: _Name) -> None:
    """Take turns again."""
    _ask(name, "resume")
    tell("takes turns again")


@app.command(epilog="Example: sentinel stop gode")
def stop(name: _Name) -> None:
    """Stop the running turn: its messages are put aside until `retry`."""
    tell("stopping" if _ask(name, "stop")["stopped"] else "nothing is running")


def _ask(name: str, verb: str, **fields: object) -> Any:
    from sentinel.daemon.control import ask

    home = find(name)
    if not home.is_dir():
        raise ConfigError(f"{home} does not exist", mend="name a persona; `sentinel persona list` shows them")
    return asyncio.run(ask(home, verb, **fields))
