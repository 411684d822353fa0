"""Take a home away. Source: spec 09 `persona remove`."""

import os
import shutil
from pathlib import Path

from sentinel.core.errors import ConfigError
from sentinel.home.write import sync


def remove(home: Path) -> None:
    """Remove a home whole: first out of its name in one step, then file by file. A link is refused, not followed."""
    if home.is_symlink():
        raise ConfigError(f"{home} is a link, not a home", mend="remove what it leads to, then the link")
    away = home.parent / f".{home.name}.{os.urandom(6).hex()}.gone"
    try:
        home.rename(away)
        sync(home.parent)
        shutil.rmtree(away)
    except OSError as fault:
        raise ConfigError(
            f"{home} cannot be removed: {fault.strerror}", mend="look at its owner and rights"
        ) from fault
