"""`sentinel demo`. Source: spec 09."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from sentinel.cli.output import print_line, tell
from sentinel.core.errors import ConfigError

app = typer.Typer(add_completion=False)

_NEEDED = "pip install 'hoop-sentinel[server]'"


@app.command(epilog="Example: sentinel demo --port 8700")
def demo(
    *,
    data: Annotated[
        Path | None, typer.Option(help="Where its state lives; the user's data folder by default.")
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65_535, help="0 takes any free one.")] = 8700,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Do not open a browser.")] = False,
) -> None:
    """Serve a room with a human and a persona that answers, until Ctrl-C; print its address and a log-in code."""
    from platformdirs import user_data_path

    try:
        from sentinel.app.demo import demo as run_demo
    except ModuleNotFoundError as missing:
        raise ConfigError(f"the demo needs {missing.name}", mend=_NEEDED) from missing
    folder = (data or user_data_path("hoop-sentinel") / "demo").absolute()
    asyncio.run(run_demo(folder, port=port, open_browser=not no_browser, tell=print_line, warn=tell))
