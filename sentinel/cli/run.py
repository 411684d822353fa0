"""`sentinel run`. Source: spec 09; spec 02 section 3."""

import asyncio
from typing import Annotated

import typer

from sentinel.cli.output import tell
from sentinel.core.errors import Exit
from sentinel.core.gate import GateRefused, Passed
from sentinel.home import refusal
from sentinel.home.examine import examine
from sentinel.home.locate import find

app = typer.Typer(add_completion=False)


@app.command(epilog="Example: sentinel run gode c-4f1d")
def run(
    name: Annotated[
        str, typer.Argument(metavar="NAME|HOME", help="A persona's name, or the path of its home.")
    ],
    cids: Annotated[
        list[str] | None, typer.Argument(metavar="CID … | all", help="Conversations to guard, or `all`.")
    ] = None,
) -> None:
    """Run a persona's sentinel in the foreground until TERM or Ctrl-C. The gate is asked first (78)."""
    home = find(name)
    guarded = bool(cids) and all(cid.strip() for cid in cids or ())
    verdict = examine(home, guarded=guarded)
    from sentinel.app.clock import SystemClock

    if isinstance(verdict, Passed) or not verdict.is_passing:  # what is only out of reach is waited for
        refusal.keep(home, verdict, now=SystemClock().now())
    if isinstance(verdict, GateRefused) and not verdict.is_passing:
        for check in verdict.failed:
            tell(check.line())
        raise typer.Exit(Exit.CONFIG)
    from sentinel.app.run import run as run_sentinel

    wanted = None if cids == ["all"] else frozenset(cids or ())
    raise typer.Exit(asyncio.run(run_sentinel(home, wanted)))
