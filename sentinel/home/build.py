"""Make a new home: drafted in memory, built beside its place, judged there, then renamed into it. Source: spec 09.

Whatever interrupts it, the place holds either nothing or the whole home.
"""

import os
import shutil
import stat
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from sentinel.core.errors import UsageError
from sentinel.core.gate import Passed, Verdict
from sentinel.home import shim
from sentinel.home.examine import examine, examine_facts
from sentinel.home.executors import ADAPTERS
from sentinel.home.facts import TASK_CAP_BYTES, read
from sentinel.home.write import DIRECTORY_MODE, put, sync


@dataclass(frozen=True, slots=True)
class Source:
    """What a file that the operator named holds. `is_exposed`: other users of this machine can read it."""

    data: bytes
    is_exposed: bool


def read_source(path: Path, *, what: str) -> Source:
    """Read a file that was named on the command line; `UsageError` when it cannot be read or is absurdly large."""
    try:
        with path.expanduser().open("rb") as file:
            status = os.fstat(file.fileno())
            data = file.read(TASK_CAP_BYTES + 1)
    except OSError as fault:
        raise UsageError(
            f"{what} {path} cannot be read: {fault.strerror}", mend="name a file of yours"
        ) from fault
    if len(data) > TASK_CAP_BYTES:
        raise UsageError(f"{what} {path} is larger than {TASK_CAP_BYTES} bytes", mend="name the right file")
    exposed = stat.S_ISREG(status.st_mode) and bool(status.st_mode & 0o044)
    return Source(data, exposed)


def draft(
    template: Mapping[str, bytes],
    *,
    adapter: str,
    values: Mapping[str, str | None],
    own: Mapping[str, str | None],
) -> dict[str, bytes]:
    """Return the files of a new home.

    Args:
        template: where it starts from; files of other adapters than the chosen one are left out.
        adapter: the chosen one.
        values: file name -> value; None leaves the template's.
        own: the same for files of the adapter, by the part of their name behind `<adapter>_`.

    """
    told = {"adapter": adapter, **values, **{f"{adapter}_{name}": value for name, value in own.items()}}
    files = {name: data for name, data in template.items() if _is_for(name, adapter)}
    files.update((name, line_of(value)) for name, value in told.items() if value is not None)
    return files


def line_of(value: str) -> bytes:
    """Return the content of a one-value file; `UsageError` for a value that is not text (bytes of another encoding)."""
    try:
        return f"{value}\n".encode()
    except UnicodeEncodeError:
        raise UsageError("a value is not UTF-8 text", mend="give it as UTF-8") from None


def place(home: Path, files: Mapping[str, bytes], *, interpreter: str, must_pass: bool) -> Verdict:
    """Build `home` from `files` and the shim, and return what the gate says of it.

    With `must_pass` a home that the gate refuses is not left behind. Raises `UsageError` where something is already there.
    """
    with _beside(home) as fresh:
        for name, data in files.items():
            put(fresh, name, data)
        shim.write(fresh, interpreter)
        # Judged under the name it will have, so that each line names a path that will exist.
        verdict = examine_facts(replace(read(fresh), home=str(home), name=home.name), guarded=None)
        if must_pass and not isinstance(verdict, Passed):
            return verdict
        must_be_free(home)
        fresh.rename(home)
        sync(home.parent)
    return examine(home, guarded=None)


def must_be_free(home: Path) -> None:
    """Raise `UsageError` if anything at all stands where `home` would go."""
    if os.path.lexists(home):
        mend = "choose another name, or remove that persona first"
        raise UsageError(f"{home} is already there and is not overwritten", mend=mend)


@contextmanager
def _beside(home: Path) -> Generator[Path]:
    """Give a private folder beside `home`; what is left of it afterwards goes, and the parent too if it was ours."""
    must_be_free(home)
    made = [folder for folder in (home.parent, *home.parent.parents) if not folder.exists()]
    fresh = home.parent / f".{home.name}.{os.urandom(6).hex()}.new"
    try:
        for folder in reversed(made):
            folder.mkdir(mode=DIRECTORY_MODE)
        fresh.mkdir(mode=DIRECTORY_MODE)
        yield fresh
    except OSError as fault:
        mend = "set HOOP_HOME to a directory of yours, with room"
        raise UsageError(f"{home.parent} cannot hold a home: {fault.strerror}", mend=mend) from fault
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
        for folder in made:
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()


def _is_for(name: str, adapter: str) -> bool:
    others = (word for word in ADAPTERS if word != adapter)
    return not name.startswith(tuple(f"{word}_" for word in others))
