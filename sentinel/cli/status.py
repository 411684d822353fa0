"""`sentinel status`. Source: spec 09; spec 06 "Status"."""

import time
from dataclasses import asdict
from typing import Annotated

import typer

from sentinel.cli.output import print_json, print_line
from sentinel.core.errors import ConfigError
from sentinel.home.locate import find, hoop_home

app = typer.Typer(add_completion=False)


@app.command(epilog="Example: sentinel status --watch")
def status(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="One persona; all by default.")] = None,
    *,
    watch: Annotated[bool, typer.Option("--watch", help="Look again every second until Ctrl-C.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a list of personas as JSON.")] = False,
) -> None:
    """Say what each persona is doing now. It reads state and lock, so it works when a sentinel is dead too."""
    while True:
        _once(name, as_json=as_json)
        if not watch:
            return
        time.sleep(1.0)  # the rhythm of --watch


def _once(name: str | None, *, as_json: bool) -> None:
    from sentinel.app.clock import SystemClock
    from sentinel.app.status import status as read_status

    now = SystemClock().now().timestamp()
    folder = hoop_home()
    homes = (
        [find(name)]
        if name is not None
        else sorted(one for one in folder.iterdir() if one.is_dir())
        if folder.is_dir()
        else []
    )
    if name is not None and not homes[0].is_dir():
        raise ConfigError(f"{homes[0]} does not exist", mend="make it with `sentinel persona new`")
    found = [read_status(home, now=now) for home in homes]
    if as_json:
        print_json([asdict(one) for one in found])
        return
    for one in found:
        turn = (
            f", turn {one.turn[:8]} for {one.turn_age_s:.0f} s"
            if one.turn and one.turn_age_s is not None
            else ""
        )
        cause = f" ({one.cause})" if one.cause else ""
        print_line(
            f"{one.name}: {one.state}{cause}: waiting {one.waiting}, put aside {one.put_aside}{turn},"
            f" tokens today {one.tokens_today}"
        )
