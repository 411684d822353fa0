"""A home as one tar file, to be kept or moved to another machine. Source: spec 09 `persona export|import`.

Inside stand settings, `imports.json` and a consistent copy of `state.db`; the token and `*_env` only where asked for. Not
inside: the shim (it names this machine's interpreter), logs, turns, sockets, the record of a refusal. Coming in, only plain
files with a name we know, directly in the archive, are taken: a link, a folder, a path that leads elsewhere refuses it whole.
"""

import contextlib
import io
import os
import sqlite3
import tarfile
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from sentinel.core.errors import ConfigError, UsageError
from sentinel.core.facts import Absent, DirectoryFacts, Present, Unreadable, is_secret, known_settings
from sentinel.home.facts import TASK_CAP_BYTES, read, read_legacy
from sentinel.home.write import put

STATE = "state.db"
MOVED = "moved"
CARRIED = frozenset({STATE, "imports.json"})
ARCHIVE_CAP_BYTES = 1024 * 1024 * 1024


def export(home: Path, into: Path, *, with_secrets: bool, move: bool, now: datetime) -> tuple[str, ...]:
    """Write the home into the new file `into` (0600) and return the names in it.

    With `move` the home gets the marker `moved` first, so that no turn runs here from then on; it goes again if the export
    fails. Raises `UsageError` where `into` is already there, `ConfigError` for a home that cannot be read.
    """
    files = _contents(home, with_secrets=with_secrets)
    if os.path.lexists(into):
        raise UsageError(f"{into} is already there and is not overwritten", mend="name a new file")
    if move:
        put(home, MOVED, f"moved into {into.name} at {now.isoformat()}\n".encode())
    try:
        state = _snapshot(home / STATE)
        if state is not None:
            files[STATE] = state
        put(into.parent, into.name, _packed(files, now=now))
    except BaseException as fault:
        if move:
            (home / MOVED).unlink(missing_ok=True)
        if isinstance(fault, OSError | sqlite3.Error):
            raise UsageError(f"{into} cannot be written: {fault}", mend="name a place with room") from fault
        raise
    return tuple(sorted(files))


def unpack(file: Path) -> dict[str, bytes]:
    """Return the files of an archive by name; raise `UsageError` for anything that is not an export of ours."""
    try:
        with tarfile.open(file, "r:") as archive:
            return _taken(archive)
    except (tarfile.TarError, EOFError) as fault:
        raise UsageError(f"{file} is not a sound tar file", mend="export the persona again") from fault
    except OSError as fault:
        raise UsageError(f"{file} cannot be read: {fault.strerror}", mend="name an exported file") from fault


def _contents(home: Path, *, with_secrets: bool) -> dict[str, bytes]:
    facts = read(home)
    if not isinstance(facts.directory, DirectoryFacts) or isinstance(facts.files["adapter"], Absent):
        raise ConfigError(f"{home} is no persona's home", mend="name one that sentinel persona list shows")
    if MOVED in facts.names:
        raise ConfigError(f"{home} was moved already", mend="export it where it is now")
    files: dict[str, bytes] = {}
    for name in sorted(facts.names & (known_settings() | {"imports.json"})):
        if is_secret(name) and not with_secrets:
            continue
        match read_legacy(home, name):
            case Present(data):
                files[name] = data
            case Unreadable(why):
                raise ConfigError(f"{name} cannot be read: {why}", mend="make it a plain file of yours")
            case Absent():
                pass
    return files


def _snapshot(path: Path) -> bytes | None:
    """Return a consistent copy of a database that may be in use, or None where there is none."""
    if not path.exists():
        return None
    with (
        contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as live,
        contextlib.closing(sqlite3.connect(":memory:")) as copy,
    ):
        live.backup(copy)
        return copy.serialize()


def _packed(files: Mapping[str, bytes], *, now: datetime) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:", format=tarfile.PAX_FORMAT) as archive:
        for name, data in sorted(files.items()):
            member = tarfile.TarInfo(name)
            member.size, member.mode, member.mtime = len(data), 0o600, int(now.timestamp())
            archive.addfile(member, io.BytesIO(data))
    return packed.getvalue()


def _taken(archive: tarfile.TarFile) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    for member in archive:
        said = f"the archive holds {member.name[:80]!r}"
        if member.name not in known_settings() | CARRIED or not member.isreg():
            mend = "import only what sentinel persona export wrote"
            raise UsageError(f"{said}, which is no plain file of a home", mend=mend)
        if member.name in files:
            raise UsageError(f"{said} twice", mend="export the persona again")
        if member.size > (ARCHIVE_CAP_BYTES if member.name == STATE else TASK_CAP_BYTES):
            raise UsageError(
                f"{said} of {member.size} bytes", mend="import only what sentinel persona export wrote"
            )
        content = archive.extractfile(member)
        files[member.name] = content.read() if content else b""
    if "adapter" not in files:
        raise UsageError("the archive holds no persona's home", mend="name a file of sentinel persona export")
    return files
