"""`sentinel logs`. Source: spec 09; spec 06 "Logs"."""

import os
import time
from pathlib import Path
from typing import Annotated

import typer

from sentinel.cli.output import print_line
from sentinel.core.errors import ConfigError
from sentinel.home.locate import find

app = typer.Typer(add_completion=False)

_TAIL_BYTES = 256 * 1024


@app.command(epilog="Example: sentinel logs gode -f")
def logs(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The persona.")],
    *,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on until Ctrl-C.")] = False,
) -> None:
    """Print a persona's decisions, one JSON line each."""
    path = find(name) / "log" / "sentinel.jsonl"
    if not path.exists():
        raise ConfigError(f"{path} does not exist", mend="start the persona once with `sentinel run`")
    at = max(0, path.stat().st_size - _TAIL_BYTES)
    inode = path.stat().st_ino
    while True:
        at = _print_from(path, at)
        if not follow:
            return
        time.sleep(0.3)  # how often --follow looks for new lines
        now = os.stat(path)  # noqa: PTH116  # one look at size and identity: a rotated log begins anew
        if now.st_ino != inode or now.st_size < at:
            at, inode = 0, now.st_ino


def _print_from(path: Path, at: int) -> int:
    """Print the whole lines from byte `at` on and return where they end."""
    with path.open("rb") as log:
        log.seek(at)
        data = log.read()
    whole, newline, _ = data.rpartition(b"\n")
    if newline:
        for line in whole.decode("utf-8", "replace").split("\n"):
            print_line(line)
    return at + len(whole) + len(newline)
