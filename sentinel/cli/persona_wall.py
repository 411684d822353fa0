"""`sentinel persona wall`: shows that the user a persona's executor runs as cannot get at a folder. Source: spec 06."""

from typing import Annotated

import typer

from sentinel.app.clock import SystemClock
from sentinel.app.ground import passed
from sentinel.cli.output import print_json, print_line
from sentinel.cli.persona_new import Json, Name
from sentinel.core.errors import Exit, UsageError
from sentinel.home.far_side import Sight, forget, look
from sentinel.home.locate import find


def wall(
    name: Name,
    folders: Annotated[
        list[str], typer.Argument(metavar="FOLDER …", help="Absolute paths that must be closed.")
    ],
    *,
    as_json: Json = False,
) -> None:
    """Try to list each folder as the executor's user; 0 when the kernel refuses them all, 78 when one is open, 69 when it cannot be told. No executor runs."""
    persona = passed(find(name), guarded=None)
    if persona.far is None:
        mend = "a core persona's walls are those of its executor; see docs/persona-home.md"
        raise UsageError(f"the executor of {persona.name} runs as this user, {persona.user}", mend=mend)
    relative = [one for one in folders if not one.startswith("/")]
    if relative:
        raise UsageError(f"{relative[0]} is not absolute", mend="name folders by their absolute paths")
    turn = f"wall-{SystemClock().token()}"
    found = [look(persona, one, turn=turn) for one in folders]
    forget(persona, turn)
    if as_json:
        print_json([{"folder": one.folder, "closed": one.is_closed, "said": one.said} for one in found])
    else:
        for one in found:
            print_line(_line(one, persona.user))
    raise typer.Exit(_code(found))


def _code(found: list[Sight]) -> Exit:
    if any(one.is_closed is False for one in found):
        return Exit.CONFIG
    return Exit.DONE if all(one.is_closed for one in found) else Exit.UNAVAILABLE


def _line(sight: Sight, user: str) -> str:
    match sight.is_closed:
        case True:
            return f"closed: {sight.folder}: the kernel tells {user}: {sight.said}"
        case False:
            return f"OPEN: {sight.folder}: {user} {sight.said}: run chmod 700 on it"
        case None:
            return f"unknown: {sight.folder}: {sight.said}"
