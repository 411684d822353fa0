"""`sentinel persona …`: make, take over, change, show and move the homes of personas. Source: spec 09; spec 02 section 1."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from sentinel.cli.check import report
from sentinel.cli.output import print_json, print_line, tell
from sentinel.cli.persona_launcher import app as launcher
from sentinel.cli.persona_new import Json, Name, NewName, TokenFile, adopt, must_be_terminal, new, token_from
from sentinel.cli.persona_wall import wall
from sentinel.core.errors import AlreadyRunning, ConfigError, Exit, UsageError
from sentinel.core.facts import is_secret, unknown_files
from sentinel.core.gate import Passed
from sentinel.home import shim
from sentinel.home.examine import NOT_ASKED, examine
from sentinel.home.facts import read
from sentinel.home.locate import find, home_of_new, hoop_home

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="Homes of personas: one directory of one-value files each.",
    epilog="Example: sentinel persona show gode",
)

app.add_typer(launcher, name="launcher")

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]

app.command(
    epilog="Example: sentinel persona new gode --server http://127.0.0.1:8790 --account Gode --token-file t "
    "--adapter echo --model echo-1"
)(new)
app.command(
    epilog="Example: sentinel persona adopt gode --server http://127.0.0.1:8790 --account Gode --cid c1"
)(adopt)
app.command(epilog="Example: sentinel persona wall godemini01 /home/ann/work /home/ann/.hoop")(wall)


@app.command("set", epilog="Example: sentinel persona set gode model gpt-5-codex")
def set_(
    name: Name,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="The file, e.g. model; launch rewrites the shim.")
    ],
    value: Annotated[str | None, typer.Argument(metavar="VALUE", help="Its new value.")] = None,
    *,
    from_file: Annotated[
        Path | None, typer.Option(help="Take the content from a file (secrets always).")
    ] = None,
    unset: Annotated[
        bool, typer.Option("--unset", help="Remove the file: its default counts again.")
    ] = False,
) -> None:
    """Change one file of a home; what the gate would refuse is not written (78)."""
    from sentinel.home import build, change

    home = find(name)
    if file == shim.NAME and value is None and from_file is None and not unset:
        _must_be_home(home)
        shim.write(home, sys.executable)
        return
    change.must_be_known(file)
    if [value is not None, from_file is not None, unset].count(True) != 1:
        raise UsageError("one of VALUE, --from-file and --unset is needed", mend="give exactly one")
    if value is not None and is_secret(file):
        raise UsageError(f"{file} is secret and never stands on a command line", mend="use --from-file")
    data = None if value is None else build.line_of(value)
    if from_file is not None:
        data = build.read_source(from_file, what=file).data
    worse = change.change(home, file, data)
    for check in worse:
        tell(check.line())
    if worse:
        tell(f"{home}/{file} was not changed")
        raise typer.Exit(Exit.CONFIG)


@app.command(epilog="Example: sentinel persona show gode")
def show(name: Name, *, as_json: Json = False) -> None:
    """Show each value, the file it came from, and what the last run really used. Secrets stay hidden."""
    from sentinel.home.show import last_run, settings

    home = find(name)
    _must_be_home(home)
    facts = read(home)
    shown, ran = settings(facts), last_run(home)
    if as_json:
        entries = [{"file": one.file, "value": one.value, "path": one.path} for one in shown]
        unknown = list(unknown_files(facts))
        print_json(
            {"name": facts.name, "home": facts.home, "settings": entries, "last_run": ran, "unknown": unknown}
        )
        return
    for one in shown:
        first, _, rest = one.value.partition("\n")
        print_line(f"{one.file} = {first}{' …' if rest else ''}  ({one.path or 'default'})")
    print_line(f"last run: {ran if ran is not None else 'none recorded'}")


@app.command("list", epilog="Example: sentinel persona list --json")
def list_(*, as_json: Json = False) -> None:
    """List the personas of HOOP_HOME and whether the gate lets them run."""
    rows = [_row(home) for home in _homes()]
    if as_json:
        print_json(rows)
        return
    for row in rows:
        state = "ok" if row["ok"] else f"refused: {', '.join(row['failed'])}"
        print_line(f"{row['name']}  {row['adapter'] or '?'}  {row['server'] or '?'}  {state}")


@app.command(epilog="Example: sentinel persona remove gode --yes")
def remove(name: Name, *, yes: Yes = False) -> None:
    """Remove a home and everything in it, its state too. Stop its sentinel first."""
    from sentinel.home.remove import remove as take_away

    home = find(name)
    _must_be_home(home)
    if not yes:
        must_be_terminal(f"removing {home} needs a yes", "--yes")
        typer.confirm(f"Remove {home} with its token and its state for good?", abort=True, err=True)
    _must_be_stopped(home)
    take_away(home)
    tell(f"{home} is removed")


@app.command(epilog="Example: sentinel persona export gode gode.tar")
def export(
    name: Name,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The tar file to write; it must not exist.")],
    *,
    with_secrets: Annotated[
        bool, typer.Option("--with-secrets", help="Put the token and *_env in too.")
    ] = False,
    move: Annotated[
        bool, typer.Option("--move", help="Mark this home as moved: it never runs here again.")
    ] = False,
) -> None:
    """Write a home into one private tar file, without its secrets unless told. Stop its sentinel first."""
    from sentinel.app.clock import SystemClock
    from sentinel.home import archive

    home = find(name)
    if move:
        _must_be_stopped(home)
    names = archive.export(
        home, file.absolute(), with_secrets=with_secrets, move=move, now=SystemClock().now()
    )
    tell(f"{file} holds {', '.join(names)}")


@app.command("import", epilog="Example: sentinel persona import gode.tar gode --token-file t")
def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file of sentinel persona export.")],
    name: NewName,
    *,
    token_file: TokenFile = None,
    as_json: Json = False,
) -> None:
    """Make a home from an exported one; the gate's lines say what this machine still lacks (0 all the same)."""
    from sentinel.home import archive, build

    home = home_of_new(name)
    build.must_be_free(home)
    files = archive.unpack(file)
    if token_file is not None:
        files["token"] = token_from(token_file)
    report(build.place(home, files, interpreter=sys.executable, must_pass=False), as_json=as_json)
    tell(f"{home} is imported")


def _must_be_home(home: Path) -> None:
    if not _is_home(home):
        raise ConfigError(f"{home} is no persona's home", mend="sentinel persona list shows which there are")


def _must_be_stopped(home: Path) -> None:
    """Raise `AlreadyRunning` while a sentinel holds the account's lock: what it writes next would be lost."""
    from sentinel.app.clock import SystemClock
    from sentinel.app.status import status

    if status(home, now=SystemClock().now().timestamp()).running:
        raise AlreadyRunning(f"a sentinel runs for {home.name}", mend="stop it first")


def _is_home(home: Path) -> bool:
    return (home / "adapter").is_file() or (home / shim.NAME).is_file()


def _homes() -> list[Path]:
    folder = hoop_home()
    found = folder.iterdir() if folder.is_dir() else ()
    return sorted(home for home in found if not home.name.startswith(".") and _is_home(home))


def _row(home: Path) -> dict[str, Any]:
    from sentinel.home.show import settings

    verdict = examine(home, guarded=None, far=NOT_ASKED)  # a list asks no other machine
    told = {one.file: one.value for one in settings(read(home)) if one.path}
    faults = () if isinstance(verdict, Passed) else verdict.failed
    failed = [check.check for check in faults if not check.is_passing]
    keys = ("adapter", "model", "server", "account")
    return {
        "name": home.name,
        "home": str(home),
        **{key: told.get(key) for key in keys},
        "ok": not failed,
        "failed": failed,
    }
