"""`sentinel demo`: the main job in one command - a server, a human, a persona that answers, in a browser.

The server runs in this process, each persona's sentinel in one of its own, exactly as in real use: through the gate,
`sentinel run HOME CID`. State in the data folder survives; a second start goes on with it. Source: spec 09.
"""

import asyncio
import os
import shutil
import signal
import sys
import webbrowser
from asyncio.subprocess import Process
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sentinel import process
from sentinel.core.errors import ConfigError, UsageError
from sentinel.core.gate import Passed
from sentinel.core.model import Kind
from sentinel.home import build, templates
from sentinel.home.write import put
from sentinel.server.admin import Directory, directory
from sentinel.server.serve import serving

HUMAN = "ann"
TITLE = "Demo"


@dataclass(frozen=True, slots=True)
class Cast:
    """A persona of the demo: its account, and how its home is made."""

    name: str
    adapter: str
    template: str
    model: str
    binary: str | None = None


def cast_for(path: str | None = None, environ: Mapping[str, str] = os.environ) -> tuple[Cast, ...]:
    """Return Echo, and a persona for each executor found on PATH (their model may be named in the environment)."""
    found = [Cast("Echo", "echo", "gode", "echo")]
    codex, claude = shutil.which("codex", path=path), shutil.which("claude", path=path)
    if codex:
        found.append(
            Cast("Gode", "codex", "gode", environ.get("HOOP_DEMO_CODEX_MODEL", "gpt-5-codex"), codex)
        )
    if claude:
        found.append(
            Cast("Claude", "claude", "claude-core", environ.get("HOOP_DEMO_CLAUDE_MODEL", "sonnet"), claude)
        )
    return tuple(found)


async def demo(data: Path, *, port: int, open_browser: bool, tell: Callable[[str], None]) -> None:
    """Serve and run until TERM or Ctrl-C."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopping.set)
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    server_data, homes = data / "server", data / "homes"
    async with serving(server_data, port=port) as served:
        with directory(server_data, create=True) as accounts:
            tokens = _accounts(accounts, homes, cast_for())
            cid = _room(accounts, tuple(one.name for one in cast_for()))
            code = accounts.code(HUMAN)
        started: list[Process] = []
        try:
            for one in cast_for():
                home = _home(homes, one, served.url, tokens.get(one.name), data)
                started.append(await _start(home, cid, homes))
            address = f"{served.url}/#cid={cid}"
            tell(f"the room: {address}")
            tell(f"log in as: {HUMAN}")
            tell(f"with the code: {code}")
            tell(
                f"then write to: {', '.join('@' + one.name for one in cast_for())}   (Ctrl-C ends it; state stays in {data})"
            )
            if open_browser:
                await asyncio.to_thread(webbrowser.open, address)
            await _until_over(stopping, started, served.ended)
        finally:
            await _end(started)


def _accounts(accounts: Directory, homes: Path, wanted: tuple[Cast, ...]) -> dict[str, str]:
    """Make the accounts that are missing; a new token only for a persona whose home does not hold one yet."""
    known = {one.account.name for one in accounts.accounts()}
    if HUMAN not in known:
        accounts.add_account(HUMAN, Kind.HUMAN)
    tokens: dict[str, str] = {}
    for one in wanted:
        if one.name not in known:
            tokens[one.name] = accounts.add_account(one.name, Kind.PERSONA).token
        elif not (homes / one.name.lower()).exists():
            tokens[one.name] = accounts.rotate(one.name).token
    return tokens


def _room(accounts: Directory, names: tuple[str, ...]) -> str:
    """Return the demo's room, made at the first start; personas found later are invited."""
    for room in accounts.rooms():
        if room.conversation.title == TITLE:
            inside = {one.name for one in room.members}
            missing = [one for one in names if one not in inside]
            if missing:
                accounts.invite(room.conversation.cid, missing)
            return room.conversation.cid
    return accounts.add_room(TITLE, [HUMAN, *names]).conversation.cid


def _home(homes: Path, one: Cast, url: str, token: str | None, data: Path) -> Path:
    """Return the persona's home, made where it is missing; its server's address is the one of this run."""
    home = homes / one.name.lower()
    if home.exists():
        put(home, "server", f"{url}\n".encode())
        return home
    if token is None:
        raise ConfigError(f"{home} is gone", mend=f"remove {data} and begin anew")
    cwd = data / "work" / one.name.lower()
    cwd.mkdir(mode=0o700, parents=True, exist_ok=True)
    files = build.draft(
        templates.load(one.template),
        adapter=one.adapter,
        values={"server": url, "account": one.name, "model": one.model},
        own={"bin": one.binary, "cwd": str(cwd), "sandbox": "read-only", "network": "off", "user": None},
    )
    files["token"] = f"{token}\n".encode()
    verdict = build.place(home, files, interpreter=sys.executable, must_pass=True)
    if not isinstance(verdict, Passed):
        raise ConfigError("\n".join(check.line() for check in verdict.failed))
    return home


async def _start(home: Path, cid: str, homes: Path) -> Process:
    """Start a sentinel the way a service does: through its own launch shim."""
    keep = ("PATH", "HOME", "USER", "LANG", "TZ", "TMPDIR", "XDG_STATE_HOME", "VIRTUAL_ENV")
    env = {name: os.environ[name] for name in keep if name in os.environ} | {"HOOP_HOME": str(homes)}
    log = home / "log"
    log.mkdir(mode=0o700, exist_ok=True)
    with (log / "stderr.log").open("ab") as stderr:
        return await process.start_program(
            ("/bin/sh", str(home / "launch"), str(home), cid), env=env, cwd=str(home), stderr=stderr.fileno()
        )


async def _until_over(stopping: asyncio.Event, started: list[Process], server: asyncio.Task[None]) -> None:
    """Wait for the end; a sentinel that ends by itself is a fault to be shown, not hidden."""
    watched = {asyncio.create_task(one.wait()): one for one in started}
    stop = asyncio.create_task(stopping.wait())
    done, _ = await asyncio.wait({stop, server, *watched}, return_when=asyncio.FIRST_COMPLETED)
    for task, one in watched.items():
        if task in done:
            raise UsageError(
                f"a sentinel of the demo ended with exit code {one.returncode}", mend="see its log/stderr.log"
            )
        task.cancel()
    stop.cancel()


async def _end(started: list[Process]) -> None:
    for one in started:
        with suppress(ProcessLookupError):
            one.terminate()
    for one in started:
        try:
            async with asyncio.timeout(15):
                await one.wait()
        except TimeoutError:
            one.kill()
            await one.wait()
