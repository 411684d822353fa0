"""`sentinel service`: a persona's sentinel as a LaunchAgent or a systemd user unit. Source: spec 09; spec 06 "Services"."""

from pathlib import Path
from typing import Annotated

import typer

from sentinel.cli.output import must_be_text, print_json, print_line, tell
from sentinel.core.errors import Exit, UsageError
from sentinel.home import refusal
from sentinel.home.locate import find
from sentinel.ops.service import Condition, UnitFile

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="A persona's sentinel as a service of this user: started at log-in, and again when it fails.",
    epilog="Example: sentinel service install gode --cid c-4f1d",
)

Name = Annotated[str, typer.Argument(metavar="NAME|HOME", help="A persona's name, or the path of its home.")]
Cids = Annotated[
    list[str] | None,
    typer.Option(
        "--cid",
        metavar="CID",
        help="A conversation to guard; may be repeated. Without: all of the account's.",
    ),
]
ManagerWord = Annotated[
    str | None,
    typer.Option(
        "--manager", metavar="launchd|systemd", help="The service manager; this system's by default."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
_OTHERS = {"limb": "the limb", "hoop": "the embedded server"}


@app.command(epilog="Example: sentinel service install gode --cid c-4f1d --print")
def install(
    name: Name,
    *,
    cid: Cids = None,
    manager: ManagerWord = None,
    print_only: Annotated[bool, typer.Option("--print", help="Print the unit and change nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Write the unit and start it. 78 when the gate refuses the home; 75 when another sentinel of it runs."""
    from sentinel.app import service as services
    from sentinel.app.clock import SystemClock

    home, chosen = _home(name), services.manager_of(manager)
    cids = tuple(must_be_text(one, "--cid") for one in cid or ["all"])
    _must_pass(home)
    service = services.service_of(home, cids)
    if print_only:
        _print_files(chosen.files(service), as_json=as_json)
        return
    began = services.install(chosen, service, now=SystemClock().now().timestamp())
    condition = chosen.condition(service.name)
    if as_json:
        print_json({"name": service.name, "manager": chosen.word, "began": began, **_as_json(condition)})
        return
    tell(f"{service.name}: {'installed' if began else 'is installed and runs already'}: {_said(condition)}")


@app.command(epilog="Example: sentinel service uninstall gode")
def uninstall(name: Name, *, manager: ManagerWord = None) -> None:
    """Stop the service and remove its files. The persona's home stays as it is."""
    from sentinel.app import service as services

    home = _home(name)
    existed = services.uninstall(services.manager_of(manager), home.name)
    tell(f"{home.name}: {'uninstalled' if existed else 'there was no service'}")


@app.command(epilog="Example: sentinel service restart gode")
def restart(name: Name, *, manager: ManagerWord = None) -> None:
    """End the running sentinel and start it again. 78 when the gate refuses: then the running one goes on."""
    from sentinel.app import service as services

    home, chosen = _home(name), services.manager_of(manager)
    _must_pass(home)
    services.restart(chosen, home.name)
    tell(f"{home.name}: restarted: {_said(chosen.condition(home.name))}")


@app.command(epilog="Example: sentinel service status gode --json")
def status(name: Name, *, manager: ManagerWord = None, as_json: Json = False) -> None:
    """Say whether the service is installed, whether it runs, how it last ended, and why it was refused."""
    from sentinel.app import service as services

    home, chosen = _home(name), services.manager_of(manager)
    found = services.look(chosen, home.name)
    why = refusal.last(home)
    if as_json:
        print_json(
            {
                "name": home.name,
                "manager": chosen.word,
                "installed": found.installed,
                **_as_json(found.condition),
                "refused": list(why),
                "files": [str(one) for one in found.paths],
            }
        )
        return
    print_line(
        f"{home.name}: {'installed' if found.installed else 'not installed'}: {_said(found.condition)}"
    )
    for line in why:
        print_line(f"{home.name}: last refused: {line}")


def _home(name: str) -> Path:
    if name in _OTHERS:
        raise UsageError(
            f"{_OTHERS[name]} has no service unit in this build",
            mend="name a persona, or the path of its home",
        )
    return find(must_be_text(name, "the name"))


def _must_pass(home: Path) -> None:
    from sentinel.app import service as services

    failed = services.refused(home)
    for check in failed:
        tell(check.line())
    if failed:
        raise typer.Exit(Exit.CONFIG)


def _print_files(files: tuple[UnitFile, ...], *, as_json: bool) -> None:
    """Print the unit itself as it is; what belongs to it follows as comments, so that the output *is* the unit."""
    if as_json:
        print_json([{"path": str(one.path), "content": one.data.decode()} for one in files])
        return
    first, *others = files
    print_line(first.data.decode().rstrip("\n"))
    for one in others:
        print_line(f"\n# And beside it {one.path.name}:\n#")
        for line in one.data.decode().splitlines():
            print_line(f"# {line}".rstrip())


def _as_json(condition: Condition) -> dict[str, object]:
    return {
        "loaded": condition.loaded,
        "running": condition.running,
        "detail": condition.detail,
        "pid": condition.pid,
        "last_exit": condition.last_exit,
    }


def _said(condition: Condition) -> str:
    pid = f", pid {condition.pid}" if condition.pid else ""
    last = f", last exit {condition.last_exit}" if condition.last_exit is not None else ""
    return f"{condition.detail}{pid}{last}"
