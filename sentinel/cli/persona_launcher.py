"""`sentinel persona launcher …`: the programs that reach another user, for a persona whose executor is walled in.

Source: docs/launcher.md; spec 09.
"""

from pathlib import Path
from typing import Annotated

import typer

from sentinel.cli.output import print_line, tell
from sentinel.home import launcher

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="Launchers: how an executor runs as another user of the operating system.",
    epilog="Example: sentinel persona launcher sudo --user hoop --to ~/.hoop/sudo-hoop",
)

User = Annotated[str, typer.Option(help="The other user: whom the executor runs as.")]
Far = Annotated[str, typer.Option(help="Where the far side is installed.")]
To = Annotated[
    Path | None, typer.Option(help="The file to write; it must not exist. Standard output by default.")
]


@app.command(epilog="Example: sentinel persona launcher sudo --user hoop --to ~/.hoop/sudo-hoop")
def sudo(user: User, *, far: Far = launcher.FAR, to: To = None) -> None:
    """Write a launcher over sudo, and say what an administrator does once for it."""
    _write(launcher.Sudo(user, far), to)


@app.command(epilog="Example: sentinel persona launcher ssh --user hoop --host mini --to ~/.hoop/ssh-hoop")
def ssh(
    user: User,
    *,
    host: Annotated[str, typer.Option(help="The machine that ssh reaches.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Its port of ssh.")] = 22,
    identity: Annotated[Path | None, typer.Option(help="The private key (~/.ssh/hoop_USER).")] = None,
    known_hosts: Annotated[Path | None, typer.Option(help="The hosts' keys (~/.ssh/known_hosts).")] = None,
    far: Far = launcher.FAR,
    to: To = None,
) -> None:
    """Write a launcher over ssh, and say what an administrator does once for it."""
    folder = Path.home() / ".ssh"
    key = (identity or folder / f"hoop_{user}").absolute()
    hosts = (known_hosts or folder / "known_hosts").absolute()
    _write(launcher.Ssh(user, host, port, str(key), str(hosts), far), to)


@app.command(epilog="Example: sentinel persona launcher far --to hoop-executor")
def far(to: Annotated[Path, typer.Option(help="The file to write; it must not exist.")]) -> None:
    """Write the far side: one program, to be installed where the other user is."""
    launcher.write_new(to, launcher.far_program(), launcher.FAR_MODE)
    tell(f"{to} is the far side; install it as root, mode 0755")


def _write(way: launcher.Way, to: Path | None) -> None:
    text, once = launcher.near(way), launcher.once(way)
    if to is None:
        print_line(text.decode().removesuffix("\n"))
    else:
        launcher.write_new(to, text, launcher.NEAR_MODE)
    tell(once.removesuffix("\n"))
