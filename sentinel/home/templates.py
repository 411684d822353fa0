"""The templates that new homes start from: directories of one-value files beside a `task.md`. Source: spec 06."""

from pathlib import Path

import sentinel
from sentinel.core.errors import UsageError

DEFAULT_TASK = "gode"


def folder() -> Path:
    """Return the folder of templates: inside the installed package, else beside it in a checkout."""
    package = Path(sentinel.__path__[0])
    packed = package / "_data" / "personas"
    return packed if packed.is_dir() else package.parent / "personas"


def names() -> tuple[str, ...]:
    """Return the names of all templates, sorted."""
    return tuple(sorted(one.name for one in folder().iterdir() if (one / "task.md").is_file()))


def load(name: str) -> dict[str, bytes]:
    """Return a template's files; raise `UsageError` for a name that none has."""
    if name not in names():
        raise UsageError(f"there is no template {name[:80]!r}", mend=f"choose one of: {', '.join(names())}")
    return {one.name: one.read_bytes() for one in sorted((folder() / name).iterdir()) if one.is_file()}


def task_only() -> dict[str, bytes]:
    """Return a starting `task.md` and nothing else: each setting is then the operator's word."""
    return {"task.md": load(DEFAULT_TASK)["task.md"]}
