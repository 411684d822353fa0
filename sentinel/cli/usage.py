"""`sentinel usage`. Source: spec 09."""

import re
from dataclasses import asdict
from typing import Annotated

import typer

from sentinel.cli.output import print_json, print_line
from sentinel.core.errors import UsageError
from sentinel.home.locate import find, hoop_home
from sentinel.store.store import FILE, look_at_store

app = typer.Typer(add_completion=False)

_UNITS_S = {"m": 60.0, "h": 3_600.0, "d": 86_400.0}


@app.command(epilog="Example: sentinel usage gode --since 7d")
def usage(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="One persona; all by default.")] = None,
    *,
    since: Annotated[str, typer.Option(metavar="D", help="How far back: 30m, 12h, 7d.")] = "1d",
    as_json: Annotated[bool, typer.Option("--json", help="Print a list as JSON.")] = False,
) -> None:
    """Say how many turns and tokens each persona has used."""
    from sentinel.app.clock import SystemClock

    told = re.fullmatch(r"([0-9]{1,6})([mhd])", since)
    if told is None:
        raise UsageError(f"--since {since!r} is no time", mend="write it like 30m, 12h or 7d")
    begin = SystemClock().now().timestamp() - int(told[1]) * _UNITS_S[told[2]]
    folder = hoop_home()
    homes = [find(name)] if name is not None else sorted(folder.iterdir()) if folder.is_dir() else []
    rows = [
        {"name": home.name, **asdict(look_at_store(home).threads.usage(since=begin))}
        for home in homes
        if name is not None or (home / FILE).exists()
    ]
    if as_json:
        print_json(rows)
        return
    for row in rows:
        print_line(
            f"{row['name']}: {row['turns']} turns, {row['input_tokens']} in ({row['cached_tokens']} cached),"
            f" {row['output_tokens']} out ({row['reasoning_tokens']} reasoning), {row['cost_usd']:.4f} USD told"
        )
