"""`sentinel persona new` and `adopt`: a home from flags, from a template, or from an older one. Source: spec 09."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from sentinel.cli.check import report
from sentinel.cli.output import tell
from sentinel.core.errors import ConfigError, Exit, UsageError
from sentinel.core.facts import DirectoryFacts, HomeFacts, Present, adapter_word
from sentinel.home import adopt as older
from sentinel.home import build, templates
from sentinel.home.executors import ADAPTERS
from sentinel.home.facts import read
from sentinel.home.locate import find, home_of_new

Name = Annotated[str, typer.Argument(metavar="NAME|HOME", help="A persona's name, or the path of its home.")]
NewName = Annotated[str, typer.Argument(metavar="NAME", help="The new persona's name.")]
Server = Annotated[str | None, typer.Option(help="Base URL of the room backend.")]
AccountName = Annotated[str | None, typer.Option("--account", help="The account's name or id on it.")]
TokenFile = Annotated[Path | None, typer.Option(help="A file that holds the account's token.")]
AdapterWord = Annotated[str | None, typer.Option("--adapter", help="codex, claude or echo.")]
Model = Annotated[str | None, typer.Option(help="The model's name, as the executor knows it.")]
Binary = Annotated[str | None, typer.Option("--bin", help="Absolute path of the executor (not for echo).")]
Cwd = Annotated[str | None, typer.Option(help="Absolute working directory of the executor.")]
SandboxWord = Annotated[
    str | None, typer.Option("--sandbox", help="read-only, workspace-write or danger-full-access.")
]
Network = Annotated[str | None, typer.Option(help="on or off.")]
User = Annotated[str | None, typer.Option(help="The user that the executor runs as (the running one).")]
Owners = Annotated[list[str] | None, typer.Option("--owner", help="A uid whose commands count; repeatable.")]
Task = Annotated[Path | None, typer.Option(help="The task.md to start with.")]
EnvFile = Annotated[Path | None, typer.Option(help="A file of KEY=VALUE lines for the executor.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON value.")]


def new(
    name: NewName,
    *,
    server: Server = None,
    account: AccountName = None,
    token_file: TokenFile = None,
    adapter: AdapterWord = None,
    model: Model = None,
    binary: Binary = None,
    cwd: Cwd = None,
    sandbox: SandboxWord = None,
    network: Network = None,
    user: User = None,
    env_file: EnvFile = None,
    template: Annotated[str | None, typer.Option("--from", help="A template to start from.")] = None,
    owners: Owners = None,
    task: Task = None,
    as_json: Json = False,
) -> None:
    """Make a home that passes the gate; one that would not is not left behind (78)."""
    home = home_of_new(name)
    build.must_be_free(home)
    start = templates.load(template) if template else templates.task_only()
    word = _known(adapter or start.get("adapter", b"").decode().strip(), "--adapter")
    needed = {"--server": server, "--account": account, "--token-file": token_file, "--model": model}
    missing = [flag for flag, value in needed.items() if value is None]
    if missing or token_file is None:
        raise UsageError(f"{' '.join(missing)} not given", mend="a persona needs each of them; see --help")
    values = {"server": server, "account": account, "model": model}
    values["owners"] = "\n".join(owners) if owners else None
    own = {"bin": binary, "cwd": cwd, "sandbox": sandbox, "network": network, "user": user}
    files = build.draft(start, adapter=word, values=values, own=own)
    files["token"] = token_from(token_file)
    if env_file is not None:
        files[f"{word}_env"] = build.read_source(env_file, what="the environment file").data
    if task is not None:
        files["task.md"] = build.read_source(task, what="the task").data
    verdict = build.place(home, files, interpreter=sys.executable, must_pass=True)
    code = report(verdict, as_json=as_json)
    tell(f"{home} is ready" if code is Exit.DONE else f"{home} was not made")
    raise typer.Exit(code)


def adopt(
    name: Name,
    *,
    server: Server = None,
    account: AccountName = None,
    token_file: TokenFile = None,
    adapter: AdapterWord = None,
    model: Model = None,
    binary: Binary = None,
    cwd: Cwd = None,
    sandbox: SandboxWord = None,
    network: Network = None,
    cid: Annotated[str | None, typer.Option(help="The conversation that it guarded.")] = None,
    cursor: Annotated[
        int | None, typer.Option(min=0, help="Its cursor, if ws_state.json cannot say.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Take over an older home: ask for what is missing, import its thread and cursor once."""
    home = find(name)
    facts = read(home)
    if not isinstance(facts.directory, DirectoryFacts):
        raise ConfigError(f"{home} is no directory that can be read", mend="name an older home")
    word = adapter or _declared(facts) or older.guess_adapter(facts) or _ask("adapter", "--adapter")
    values = {"server": server, "account": account, "model": model}
    own = {"bin": binary, "cwd": cwd, "sandbox": sandbox, "network": network}
    files = build.draft({}, adapter=_known(word, "--adapter"), values=values, own=own)
    if token_file is not None:
        files["token"] = token_from(token_file)
    for file in older.needs(facts, word):
        if file not in files:
            files[file] = _asked(file, "--" + file.removeprefix(f"{word}_"))
    imported = older.left_behind(home, cid=cid, cursor=cursor)
    if imported != older.Imported() and cid is None:
        cid = _ask("conversation that it guarded", "--cid")
        imported = older.left_behind(home, cid=cid, cursor=cursor)
    verdict = older.adopt(home, files, imported, cid=cid, interpreter=sys.executable)
    code = report(verdict, as_json=as_json)
    tell(f"{home} is adopted" if code is Exit.DONE else f"{home} was not changed")
    raise typer.Exit(code)


def token_from(path: Path) -> bytes:
    """Return the content of a token file, with a warning when others could read it; the copy is private anyway."""
    source = build.read_source(path, what="the token file")
    if source.is_exposed:
        tell(
            f"warning: other users of this machine can read {path}: run chmod 600 on it, or rotate the token"
        )
    return source.data


def must_be_terminal(what: str, flag: str) -> None:
    """Raise `UsageError` where nobody is there to be asked."""
    if not sys.stdin.isatty():
        raise UsageError(what, mend=f"give {flag}")


def _known(word: str, flag: str) -> str:
    if not word:
        raise UsageError(f"{flag} not given", mend=f"choose one of: {', '.join(ADAPTERS)}")
    if word not in ADAPTERS:
        raise UsageError(
            f"the adapter {word[:40]!r} is unknown", mend=f"choose one of: {', '.join(ADAPTERS)}"
        )
    return word


def _asked(file: str, flag: str) -> bytes:
    if file == "token":
        return token_from(Path(_ask("path of a file that holds the token", "--token-file")))
    return build.line_of(_ask(file, flag))


def _ask(what: str, flag: str) -> str:
    must_be_terminal(f"the {what} is missing", flag)
    answer: str = typer.prompt(f"The {what}", err=True)
    return answer.strip()


def _declared(facts: HomeFacts) -> str | None:
    fact = facts.files.get("adapter")
    return adapter_word(fact.data) if isinstance(fact, Present) else None
