"""The environment of an executor: an allow-list, and what the persona's own `<adapter>_env` says. Source: spec 02 section 1."""

import os
from pathlib import Path

from sentinel.core.persona import Persona

# Fixed, so that a persona behaves the same started by hand and by a service manager; `<adapter>_env` may set another.
PATH = "/opt/homebrew/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
LANG = "C.UTF-8"


def child_environment(persona: Persona, turn_dir: Path) -> dict[str, str]:
    """Return the executor's whole environment: PATH HOME USER LANG TZ TMPDIR, then `<adapter>_env` over it.

    HOME, LANG and TZ are the sentinel's own (TZ stays unset where it is unset here); TMPDIR is the turn's private folder.
    Nothing else of our environment passes, and the room's token is in none of it: the gate refused an `_env` with it.
    """
    environment = {
        "PATH": PATH,
        "HOME": str(Path.home()),
        "USER": persona.user,
        "LANG": os.environ.get("LANG", LANG),
        "TMPDIR": str(turn_dir),
    }
    if "TZ" in os.environ:
        environment["TZ"] = os.environ["TZ"]
    return environment | {key: value.reveal() for key, value in persona.env.items()}
