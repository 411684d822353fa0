"""The environment of an executor: an allow-list, and what the persona's own `<adapter>_env` says. Source: spec 02 section 1."""

import os
import pwd
from pathlib import Path

from sentinel.core.facts import FarFacts
from sentinel.core.persona import Persona

# Fixed, so that a persona behaves the same started by hand and by a service manager; `<adapter>_env` may set another.
PATH = "/opt/homebrew/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
LANG = "C.UTF-8"


def child_environment(persona: Persona, turn_dir: Path) -> dict[str, str]:
    """Return the executor's whole environment: PATH HOME USER LANG TZ TMPDIR, then `<adapter>_env` over it.

    HOME, LANG and TZ are the sentinel's own (TZ stays unset where it is unset here); TMPDIR is the turn's private folder. For an
    executor that runs as another user HOME and TMPDIR are that user's: our own paths mean nothing there.
    Nothing else of our environment passes, and the room's token is in none of it: the gate refused an `_env` with it.
    """
    environment = {"PATH": PATH, "USER": persona.user, **_language()}
    if persona.far is None:
        environment |= {"HOME": str(Path.home()), "TMPDIR": str(turn_dir)}
    else:
        environment |= _far_places(persona.far, turn_dir.name)
    return environment | {key: value.reveal() for key, value in persona.env.items()}


def launcher_environment() -> dict[str, str]:
    """Return what a launcher gets: our user's plain environment, for ssh and sudo, and no secret of anybody."""
    return {
        "PATH": PATH,
        "HOME": str(Path.home()),
        "USER": pwd.getpwuid(os.geteuid()).pw_name,
        **_language(),
    }


def _language() -> dict[str, str]:
    told = {"LANG": os.environ.get("LANG", LANG)}
    return told | {"TZ": os.environ["TZ"]} if "TZ" in os.environ else told


def _far_places(far: FarFacts, turn: str) -> dict[str, str]:
    places = {"HOME": far.home or _home_here(far.user)}
    if far.turns:
        places["TMPDIR"] = f"{far.turns}/{turn}"
    return {name: path for name, path in places.items() if path}


def _home_here(user: str) -> str:
    """Return the home that this machine knows for a user, for a launcher that does not tell; "" if it knows none."""
    try:
        return pwd.getpwnam(user).pw_dir
    except KeyError:
        return ""
