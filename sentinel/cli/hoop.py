"""`sentinel hoop`: the embedded server, its accounts, rooms, codes and back-ups (spec 09).

Only `serve` imports the web server; the other commands open the database beside it.
"""

import asyncio
import signal
from pathlib import Path
from typing import Annotated, Any

import typer

from sentinel.cli.output import print_json, print_line, tell
from sentinel.core.errors import ConfigError, UsageError
from sentinel.core.model import Account, Kind
from sentinel.server.admin import Listed, NewAccount, Room, directory
from sentinel.server.config import ServerConfig, Smtp

app = typer.Typer(
    add_completion=False,
    help="The embedded HOOP server: serve, accounts, rooms, codes, back-up.",
    no_args_is_help=True,
    rich_markup_mode=None,
    epilog="Example: sentinel hoop serve --data ./hoop",
)
_account = typer.Typer(
    help="Accounts: add, list, disable, rotate.",
    no_args_is_help=True,
    rich_markup_mode=None,
    epilog="Example: sentinel hoop account add ann --kind human --data ./hoop",
)
_room = typer.Typer(
    help="Rooms: add, list, invite, remove.",
    no_args_is_help=True,
    rich_markup_mode=None,
    epilog="Example: sentinel hoop room add Kitchen --member ann --member Gode --data ./hoop",
)
app.add_typer(_account, name="account")
app.add_typer(_room, name="room")

Data = Annotated[Path, typer.Option("--data", metavar="DIR", help="The server's data directory.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The account's name.")]
Cid = Annotated[str, typer.Argument(metavar="CID", help="The conversation's id.")]
Members = Annotated[
    list[str], typer.Option("--member", metavar="NAME", help="An account's name; may be repeated.")
]
Rate = Annotated[float, typer.Option(min=0.001, help="A second, for each account.")]


@app.command(epilog="Example: sentinel hoop serve --data ./hoop --port 8080")
def serve(
    *,
    data: Data,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes any that is free.")] = 8765,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="A name by which browsers reach this server; may be repeated.")
    ] = None,
    reads_per_s: Rate = 50.0,
    posts_per_s: Rate = 20.0,
    burst: Annotated[float, typer.Option(min=1, help="Reads, or posts, at once.")] = 100.0,
    offline_after_s: Annotated[
        float, typer.Option(min=0, help="Seconds from an account's last socket to `offline`.")
    ] = 60.0,
    smtp_host: Annotated[str | None, typer.Option(help="Mail log-in codes through this server.")] = None,
    smtp_port: Annotated[int, typer.Option(min=1, max=65535)] = 25,
    smtp_from: Annotated[str | None, typer.Option(help="The sender of these mails.")] = None,
    smtp_domain: Annotated[str, typer.Option(help="Put behind names without an @.")] = "",
) -> None:
    """Run the server until it is told to stop (Ctrl-C, TERM)."""
    if (smtp_host is None) != (smtp_from is None):
        raise UsageError("--smtp-host and --smtp-from go together", mend="give both")
    smtp = Smtp(smtp_host, smtp_port, smtp_from, smtp_domain) if smtp_host and smtp_from else None
    config = ServerConfig(
        reads_per_s=reads_per_s,
        posts_per_s=posts_per_s,
        burst=burst,
        offline_after_s=offline_after_s,
        allowed_hosts=tuple(allow_host or ()),
        smtp=smtp,
    )
    asyncio.run(_serve(data, host, port, config))


async def _serve(data: Path, host: str, port: int, config: ServerConfig) -> None:
    try:
        from sentinel.server.serve import serving
    except ImportError as fault:
        raise ConfigError(
            f"the server's packages are not installed ({fault.name})",
            mend="pip install 'hoop-sentinel[server]'",
        ) from fault
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with serving(data, host=host, port=port, config=config) as served:
        print_line(f"listening on {served.url}")
        waiting = asyncio.create_task(stop.wait())
        await asyncio.wait({waiting, served.ended}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()


@_account.command("add", epilog="Example: sentinel hoop account add Gode --kind persona --data ./hoop --json")
def account_add(
    name: Name,
    data: Data,
    kind: Annotated[str, typer.Option(metavar="human|persona", help="Who it is for.")],
    *,
    as_json: Json = False,
) -> None:
    """Add an account; its token is shown this once."""
    try:
        wanted = Kind(kind)
    except ValueError as fault:
        raise UsageError(f"--kind {kind!r} is not known", mend="say human or persona") from fault
    with directory(data, create=True) as opened:
        made = opened.add_account(name, wanted)
    _show_token(made, as_json=as_json)


@_account.command("list", epilog="Example: sentinel hoop account list --data ./hoop")
def account_list(data: Data, *, as_json: Json = False) -> None:
    """List the accounts, by name."""
    with directory(data) as opened:
        found = opened.accounts()
    if as_json:
        print_json([_listed_json(one) for one in found])
        return
    for one in found:
        disabled = "  disabled" if one.is_disabled else ""
        print_line(f"{one.account.uid}  {one.account.kind:<8}{one.account.name}{disabled}")


@_account.command("disable", epilog="Example: sentinel hoop account disable bob --data ./hoop")
def account_disable(name: Name, data: Data, *, as_json: Json = False) -> None:
    """Close an account at once: its tokens, sessions, codes and open sockets end."""
    with directory(data) as opened:
        account = opened.disable(name)
    if as_json:
        print_json({**_account_json(account), "disabled": True})
    else:
        tell(f"{account.name} is disabled")


@_account.command("rotate", epilog="Example: sentinel hoop account rotate Gode --data ./hoop --json")
def account_rotate(name: Name, data: Data, *, as_json: Json = False) -> None:
    """End every token and session of an account; a new token is shown this once."""
    with directory(data) as opened:
        made = opened.rotate(name)
    _show_token(made, as_json=as_json)


@_room.command(
    "add", epilog="Example: sentinel hoop room add Kitchen --member ann --member Gode --data ./hoop --json"
)
def room_add(
    title: Annotated[str, typer.Argument(metavar="TITLE", help="What the room is called.")],
    data: Data,
    member: Members,
    *,
    as_json: Json = False,
) -> None:
    """Make a room of these accounts."""
    with directory(data) as opened:
        made = opened.add_room(title, member)
    _show_room(made, as_json=as_json)


@_room.command("list", epilog="Example: sentinel hoop room list --data ./hoop")
def room_list(data: Data, *, as_json: Json = False) -> None:
    """List the rooms, oldest first."""
    with directory(data) as opened:
        found = opened.rooms()
    if as_json:
        print_json([{**_room_json(one), "last_seq": one.conversation.last_seq} for one in found])
        return
    for one in found:
        _show_room(one, as_json=False)


@_room.command("invite", epilog="Example: sentinel hoop room invite CID --member bob --data ./hoop")
def room_invite(cid: Cid, data: Data, member: Members, *, as_json: Json = False) -> None:
    """Put accounts into a room."""
    with directory(data) as opened:
        _show_room(opened.invite(cid, member), as_json=as_json)


@_room.command("remove", epilog="Example: sentinel hoop room remove CID --member bob --data ./hoop")
def room_remove(cid: Cid, data: Data, member: Members, *, as_json: Json = False) -> None:
    """Take accounts out of a room; what they posted stays."""
    with directory(data) as opened:
        _show_room(opened.remove(cid, member), as_json=as_json)


@app.command(epilog="Example: sentinel hoop otp ann --data ./hoop")
def otp(name: Name, data: Data, *, as_json: Json = False) -> None:
    """Print a one-time log-in code to hand over: good for five minutes and one log-in."""
    with directory(data) as opened:
        code = opened.code(name)
    if as_json:
        print_json({"name": name, "code": code})
    else:
        print_line(code)


@app.command(epilog="Example: sentinel hoop backup --data ./hoop hoop-monday.tar")
def backup(
    data: Data, file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write.")]
) -> None:
    """Write a consistent copy of everything into one new file, also while serving."""
    from sentinel.server.backup import back_up

    back_up(data, file)
    tell(f"backed up to {file}")


@app.command(epilog="Example: sentinel hoop restore --data ./hoop-again hoop-monday.tar")
def restore(data: Data, file: Annotated[Path, typer.Argument(metavar="FILE", help="A back-up.")]) -> None:
    """Unpack a back-up into a new data directory."""
    from sentinel.server.backup import restore as unpack

    unpack(file, data)
    tell(f"restored into {data}")


def _account_json(account: Account) -> dict[str, Any]:
    return {"uid": account.uid, "name": account.name, "kind": str(account.kind)}


def _listed_json(one: Listed) -> dict[str, Any]:
    return {**_account_json(one.account), "disabled": one.is_disabled}


def _room_json(room: Room) -> dict[str, Any]:
    members = [_account_json(one) for one in room.members]
    return {"cid": room.conversation.cid, "title": room.conversation.title, "members": members}


def _show_token(made: NewAccount, *, as_json: bool) -> None:
    if as_json:
        print_json({**_account_json(made.account), "token": made.token})
        return
    tell(f"{made.account.name} ({made.account.kind}) is {made.account.uid}; its token, shown this once:")
    print_line(made.token)


def _show_room(room: Room, *, as_json: bool) -> None:
    if as_json:
        print_json(_room_json(room))
        return
    print_line(
        f"{room.conversation.cid}  {room.conversation.title}  {', '.join(one.name for one in room.members)}"
    )
