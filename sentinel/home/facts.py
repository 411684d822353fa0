"""Look at a home once, and say what is there. Never raises for what is on disk, never blocks, follows no link in it.

Files are opened by `sentinel.whitelist`, beneath the home that was opened once: regular ones only, through no link, read up
to a cap. Only the executor and its directory are reached by path, as the executor will be.
Source: spec 02 sections 1 and 2; spec 03 section 1 "Paths".
"""

import errno
import os
import pwd
import stat
from collections.abc import Mapping
from pathlib import Path

from sentinel.core.facts import (
    ADAPTER_FILES,
    SETTING_FILES,
    Absent,
    Broken,
    DirectoryFacts,
    EnteredFacts,
    FileFact,
    HomeFacts,
    Present,
    ProgramFacts,
    Unreadable,
    Unresolved,
    adapter_word,
    one_value,
)
from sentinel.home.locate import hoop_home
from sentinel.whitelist.beneath import Root
from sentinel.whitelist.refusal import PathRefused, Rule

VALUE_CAP_BYTES = 64 * 1024
TASK_CAP_BYTES = 256 * 1024

_LAUNCHER = b"\n# Launcher: reaches another user"
_BEGINNING_BYTES = 512


def read(home: Path, *, instead: Mapping[str, bytes | None] | None = None) -> HomeFacts:
    """Return everything that the gate may know of `home`.

    Args:
        home: the home's directory; it need not exist.
        instead: file name -> content to judge in its place (None: as if absent), for a command that wants to know what
            the gate would say before it writes anything.

    """
    try:
        with Root.open(home.absolute()) as root:
            names = frozenset(os.listdir(root.descriptor))  # noqa: PTH208  # by descriptor: what was opened is what is listed
            files = _files(root, names, instead or {})
    except PathRefused as refusal:
        directory = Absent() if refusal.rule is Rule.ABSENT else Unreadable(refusal.reason)
        return _facts(home, directory, {}, frozenset())
    except OSError as fault:
        return _facts(home, Unreadable(_why(fault)), {}, frozenset())
    for name, data in (instead or {}).items():
        names = names - {name} if data is None else names | {name}
    return _facts(home, DirectoryFacts(root.facts.mode, root.facts.owner), files, names)


def _facts(
    home: Path,
    directory: DirectoryFacts | Absent | Unreadable,
    files: Mapping[str, FileFact],
    names: frozenset[str],
) -> HomeFacts:
    uid = os.geteuid()
    word = _word(files)
    return HomeFacts(
        home=str(home),
        real_home=os.path.realpath(home),
        name=home.name,
        hoop_home=os.path.realpath(hoop_home()),
        directory=directory,
        files=files,
        names=names,
        program=_program(_path(files, f"{word}_bin")) if word else None,
        cwd=_directory(_path(files, f"{word}_cwd")) if word else None,
        uid=uid,
        user=user_name(uid),
    )


def user_name(uid: int) -> str:
    """Return the name of a user, or its number where the system has no name for it."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _files(root: Root, names: frozenset[str], instead: Mapping[str, bytes | None]) -> dict[str, FileFact]:
    files: dict[str, FileFact] = {}

    def look(name: str) -> None:
        if name in instead:
            data = instead[name]
            files[name] = Absent() if data is None else Present(data, 0o600, os.geteuid())
        else:
            files[name] = _file(root, name) if name in names else Absent()

    for name in SETTING_FILES:
        look(name)
    word = _word(files)
    for name in (f"{word}_{file}" for file in ADAPTER_FILES) if word else ():
        look(name)
    for name in (*names, *instead):  # other adapters' paths count too: task.md must not repeat them
        is_readable_name = name.isprintable()  # what no path may be called is only an unknown file
        if name not in files and is_readable_name and name.endswith(("_bin", "_cwd")):
            look(name)
    return files


def _file(root: Root, name: str) -> FileFact:
    cap = TASK_CAP_BYTES if name == "task.md" else VALUE_CAP_BYTES
    try:
        content = root.read(name, cap, follow=False)
    except PathRefused as refusal:
        return Absent() if refusal.rule is Rule.ABSENT else Unreadable(refusal.reason)
    if content.is_cut:
        return Unreadable(f"it is larger than {cap} bytes")
    return Present(content.data, content.facts.mode, content.facts.owner)


def _word(files: Mapping[str, FileFact]) -> str | None:
    fact = files.get("adapter")
    return adapter_word(fact.data) if isinstance(fact, Present) else None


def _path(files: Mapping[str, FileFact], name: str) -> str | None:
    """Return the absolute path that a file holds, or None: the gate says what is wrong with the file."""
    fact = files.get(name)
    try:
        value = one_value(fact.data, name) if isinstance(fact, Present) else ""
    except Broken:
        return None
    return value if value.startswith("/") else None


def _program(path: str | None) -> ProgramFacts | Unresolved | None:
    if path is None:
        return None
    try:
        real = os.path.realpath(path, strict=True)
        status = os.stat(path)  # noqa: PTH116  # as it is spelled: the kernel will see that too
        runs = os.access(path, os.X_OK)
    except OSError as fault:
        return Unresolved(_lost(path, fault))
    mode = status.st_mode
    is_regular = stat.S_ISREG(mode)
    return ProgramFacts(
        real,
        is_regular,
        stat.S_ISDIR(mode),
        runs,
        stat.S_IMODE(mode),
        is_launcher=is_regular and _LAUNCHER in _beginning(real),
    )


def _beginning(path: str) -> bytes:
    """Return the first lines of a program, nothing of one that may be run but not read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(fd, _BEGINNING_BYTES)
    finally:
        os.close(fd)


def _directory(path: str | None) -> EnteredFacts | Unresolved | None:
    if path is None:
        return None
    try:
        os.stat(os.path.join(path, "."))  # noqa: PTH116, PTH118  # Path drops the dot; only entering a directory resolves it
        return EnteredFacts(os.path.realpath(path, strict=True))
    except NotADirectoryError:
        return Unresolved("is not a directory")
    except PermissionError:
        return Unresolved("cannot be entered: permission denied")
    except OSError as fault:
        return Unresolved(_lost(path, fault))


def _lost(path: str, fault: OSError) -> str:
    if fault.errno == errno.ENOENT:
        return "is a link that leads nowhere" if os.path.islink(path) else "does not exist"  # noqa: PTH114
    if fault.errno == errno.ELOOP:
        return "is a link that loops"
    return f"cannot be reached: {_why(fault)}"


def _why(fault: OSError) -> str:
    return (fault.strerror or "unknown fault").lower()


def read_legacy(home: Path, name: str) -> FileFact:
    """Return one file of an older home, by the same rules."""
    try:
        with Root.open(home.absolute()) as root:
            return _file(root, name)
    except PathRefused as refusal:
        return Unreadable(refusal.reason)
