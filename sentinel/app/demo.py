"""`sentinel demo`: the main job in one command - a server, a human, a persona that answers, in a browser.

The server runs in this process, each persona's sentinel in one of its own, exactly as in real use: through the gate,
`sentinel run HOME CID`. State in the data folder survives; a second start goes on with it. Source: spec 09.
"""

import asyncio
import os
import signal
import webbrowser
from asyncio.subprocess import Process
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sentinel import process
from sentinel.app.demo_cast import Cast, cast_for, home_of, home_path
from sentinel.core.errors import ConfigError, SentinelError
from sentinel.core.model import Kind
from sentinel.server.admin import Directory, directory
from sentinel.server.serve import serving
from sentinel.server.store import make_folder

HUMAN = "ann"
TITLE = "Demo"
_KEPT = ("PATH", "HOME", "USER", "LANG", "TZ", "TMPDIR", "XDG_STATE_HOME", "VIRTUAL_ENV")
_GRACE_S = 15.0
"""A sentinel gives its running turn 10 s and then stops it (spec 02 section 3)."""

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Player:
    """A persona on stage: its name, its home and its sentinel."""

    name: str
    home: Path
    sentinel: Process


@dataclass(frozen=True, slots=True)
class Stage:
    """What the server holds: the room, the human's uid and log-in code, and the tokens of personas without a home."""

    cid: str
    owner: str
    code: str
    tokens: dict[str, str]


async def demo(data: Path, *, port: int, open_browser: bool, tell: Tell, warn: Tell) -> None:
    """Serve and run until TERM, HUP or Ctrl-C. `tell` takes what there is to use, `warn` what went wrong beside it.

    Raises:
        ConfigError: the folder or the port cannot be used, or no persona is left.
        AlreadyRunning: a server runs on this folder.
    """
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stopping.set)
    make_folder(data)
    homes, cast = data / "homes", cast_for(data / "homes")
    async with serving(data / "server", port=port) as served:
        with directory(data / "server") as accounts:
            stage = _stage(accounts, homes, cast)
        players: list[Player] = []
        try:
            # We hold this folder's server: a sentinel of it that still runs was left by a demo that was killed.
            await process.stop_stranger(0, 0, _marker(homes))
            for one in cast:
                try:
                    home = home_of(data, one, served.url, stage.tokens.get(one.name), owner=stage.owner)
                except ConfigError as refused:
                    warn(f"{one.name} stays away: {refused}")
                else:
                    players.append(Player(one.name, home, await _start(home, stage.cid)))
            address = f"{served.url}/#cid={stage.cid}"
            tell(f"the room: {address}")
            tell(f"log in as: {HUMAN}")
            tell(f"with the code: {stage.code}")
            names = ", ".join(f"@{one.name}" for one in players)
            tell(f"then write to: {names}   (Ctrl-C ends it; state stays in {data})")
            if open_browser:
                await asyncio.to_thread(webbrowser.open, address)
            await _until_over(stopping, players, served.ended, warn)
        finally:
            await _end(players)


def _stage(accounts: Directory, homes: Path, cast: Sequence[Cast]) -> Stage:
    """Make the accounts that are missing, and the room; a new token only for a persona that has no home yet."""
    known = {one.account.name for one in accounts.accounts()}
    if HUMAN not in known:
        accounts.add_account(HUMAN, Kind.HUMAN)
    tokens: dict[str, str] = {}
    for one in cast:
        if one.name not in known:
            tokens[one.name] = accounts.add_account(one.name, Kind.PERSONA).token
        elif not home_path(homes, one).exists():
            tokens[one.name] = accounts.rotate(one.name).token
    (owner,) = (one.account.uid for one in accounts.accounts() if one.account.name == HUMAN)
    return Stage(_room(accounts, [one.name for one in cast]), owner, accounts.code(HUMAN), tokens)


def _room(accounts: Directory, names: Sequence[str]) -> str:
    """Return the demo's room, made at the first start; personas found later are invited."""
    for room in accounts.rooms():
        if room.conversation.title == TITLE:
            inside = {one.name for one in room.members}
            missing = [one for one in names if one not in inside]
            if missing:
                accounts.invite(room.conversation.cid, missing)
            return room.conversation.cid
    return accounts.add_room(TITLE, [HUMAN, *names]).conversation.cid


def _marker(homes: Path) -> str:
    """Return the mark in the environment of this folder's sentinels, by which a later demo finds them."""
    return f"demo {homes}"


async def _start(home: Path, cid: str) -> Process:
    """Start a sentinel the way a service does: through its own launch shim. What it says of this run goes to a file."""
    env = {name: os.environ[name] for name in _KEPT if name in os.environ}
    env |= {"HOOP_HOME": str(home.parent), process.MARKER: _marker(home.parent)}
    log = home / "log"
    log.mkdir(mode=0o700, exist_ok=True)
    with _said(home).open("wb") as stderr:
        return await process.start_program(
            ("/bin/sh", str(home / "launch"), str(home), cid), env=env, cwd=str(home), stderr=stderr.fileno()
        )


def _said(home: Path) -> Path:
    return home / "log" / "stderr.log"


async def _until_over(
    stopping: asyncio.Event, players: Sequence[Player], server: asyncio.Task[None], warn: Tell
) -> None:
    """Wait for the end. A sentinel that ends by itself is told at once, with its reason, and the others go on."""
    stop = asyncio.create_task(stopping.wait())
    waiting = {asyncio.create_task(one.sentinel.wait()): one for one in players}
    try:
        while waiting:
            done, _ = await asyncio.wait({stop, server, *waiting}, return_when=asyncio.FIRST_COMPLETED)
            if stop in done:
                return
            if server in done:
                raise SentinelError(
                    "the demo's server ended by itself", mend="start it again, its state is kept"
                )
            for task in [one for one in waiting if one in done]:
                warn(_epitaph(waiting.pop(task)))
    finally:
        for task in (stop, *waiting):
            task.cancel()
    raise ConfigError(
        "no persona of the demo is left", mend="do what the lines above say, then start it again"
    )


def _epitaph(player: Player) -> str:
    """Return how a sentinel ended, and why: the gate's lines, else the last one that it said."""
    lines = _said(player.home).read_text("utf-8", "replace").split("\n")
    why = [line for line in lines if line.startswith(("gate: ", "sentinel: "))] or lines[-2:-1]
    ended = f"the sentinel of {player.name} ended with exit code {player.sentinel.returncode}"
    return "\n".join([f"{ended}:", *(f"  {line}" for line in why), f"  its log: {player.home / 'log'}"])


async def _end(players: Sequence[Player]) -> None:
    """End the sentinels that still run, all at once, within the time that a turn may take to stop."""
    for one in players:
        with suppress(ProcessLookupError):
            one.sentinel.terminate()
    with suppress(TimeoutError):
        async with asyncio.timeout(_GRACE_S):
            await asyncio.gather(*(one.sentinel.wait() for one in players))
    for one in players:
        if one.sentinel.returncode is None:
            one.sentinel.kill()
            await one.sentinel.wait()
