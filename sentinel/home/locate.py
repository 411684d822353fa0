"""Where homes are: `HOOP_HOME`, and what a NAME or a HOME on the command line means. Source: spec 02 section 1."""

import os
import re
from pathlib import Path

from sentinel.core.errors import UsageError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
# Words that commands and services give another meaning (spec 09: `run HOME all`, `service install limb|hoop`).
_TAKEN = frozenset({"all", "hoop", "limb"})


def hoop_home() -> Path:
    """Return the folder of all homes: `HOOP_HOME`, else `~/.hoop`."""
    told = os.environ.get("HOOP_HOME")
    return Path(told).expanduser().absolute() if told else Path.home() / ".hoop"


def find(name_or_path: str) -> Path:
    """Return the home that a command names: a path where there is a slash (or `.`, `..`, `~`), else a name.

    The home need not exist: that is for the gate to say. Raises `UsageError` for what can be neither.
    """
    if not name_or_path or "\x00" in name_or_path:
        raise UsageError("no persona was named", mend="give its name or the path of its home")
    if "/" in name_or_path or name_or_path in (".", "..") or name_or_path.startswith("~"):
        return Path(name_or_path).expanduser().absolute()
    return hoop_home() / name_or_path


def home_of_new(name: str) -> Path:
    """Return where the home of a new persona goes; raise `UsageError` for a name that cannot be one."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name[:80]!r} cannot be a persona's name",
            mend="use up to 64 letters, digits, dots, dashes and underscores, a letter or digit first",
        )
    if name in _TAKEN:
        raise UsageError(f"the name {name} has another meaning in commands", mend="choose another name")
    return hoop_home() / name
