"""Take over an older home: `model codex_* claude_bin session.id ws_state.json task.md`. Source: spec 02 section 1.

What the old sentinel knew is imported once: the thread of the guarded conversation and the cursor go into
`imports.json`, which the store takes in when it next opens; the two old files are renamed to `*.imported` last, so that
a run that was cut off is simply run again. The gate judges the result before anything is written.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from sentinel.core.errors import ConfigError
from sentinel.core.facts import (
    LEGACY_FILES,
    Absent,
    Broken,
    DirectoryFacts,
    HomeFacts,
    Present,
    Unreadable,
    one_value,
)
from sentinel.core.gate import Passed, Verdict, judge
from sentinel.home import shim
from sentinel.home.executors import ADAPTERS
from sentinel.home.facts import read, read_legacy
from sentinel.home.write import DIRECTORY_MODE, put, sync

IMPORTS = "imports.json"
CURSOR_KEYS = ("cursor", "last_seq", "seq")

_DIGITS = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class Imported:
    """What an older home knew of its one conversation; None where it knew nothing."""

    thread: str | None = None
    cursor: int | None = None


def needs(facts: HomeFacts, adapter: str) -> tuple[str, ...]:
    """Return the files that a home of this adapter must have and does not, in the order in which to ask for them."""
    own = ("bin", "cwd", "sandbox", "network") if ADAPTERS[adapter].needs_binary else ()
    wanted = ("server", "account", "token", "model", *(f"{adapter}_{name}" for name in own))
    return tuple(name for name in wanted if isinstance(facts.files.get(name, Absent()), Absent))


def guess_adapter(facts: HomeFacts) -> str | None:
    """Return the adapter that the older home used, if its files name exactly one."""
    used = [word for word in ADAPTERS if any(name.startswith(f"{word}_") for name in facts.names)]
    return used[0] if len(used) == 1 else None


def left_behind(home: Path, *, cid: str | None, cursor: int | None) -> Imported:
    """Return what `session.id` and `ws_state.json` hold; raise `ConfigError` for one that says nothing we understand.

    `cursor` is the operator's word, for a `ws_state.json` that we cannot read.
    """
    thread, state = (_old(home, name) for name in LEGACY_FILES)
    try:
        known = None if thread is None else one_value(thread, "session.id")
    except Broken as broken:
        raise ConfigError(broken.what, mend="mend it, or remove it to begin a new thread") from broken
    if cursor is None and state is not None:
        cursor = _cursor(state, cid)
    return Imported(known, cursor)


def judged(home: Path, files: Mapping[str, bytes]) -> Verdict:
    """Return what the gate will say once `files` are written, the old ones renamed and the home made private."""
    facts = read(home, instead={**dict.fromkeys(LEGACY_FILES), **files})
    if isinstance(facts.directory, DirectoryFacts) and facts.directory.owner == facts.uid:
        facts = replace(facts, directory=replace(facts.directory, mode=DIRECTORY_MODE))
    return judge(facts, ADAPTERS, guarded=None)


def adopt(
    home: Path, files: Mapping[str, bytes], imported: Imported, *, cid: str | None, interpreter: str
) -> Verdict:
    """Write what is missing and import what was known; where the gate would refuse, change nothing at all."""
    verdict = judged(home, files)
    if not isinstance(verdict, Passed):
        return verdict
    home.chmod(DIRECTORY_MODE)
    if imported != Imported():
        record = {"cid": cid, "thread": imported.thread, "cursor": imported.cursor}
        put(home, IMPORTS, (json.dumps(record) + "\n").encode())
    for name, data in files.items():
        put(home, name, data)
    shim.write(home, interpreter)
    for name in LEGACY_FILES:
        if (home / name).exists():
            (home / name).rename(home / f"{name}.imported")
    sync(home)
    return judge(read(home), ADAPTERS, guarded=None)


def _old(home: Path, name: str) -> bytes | None:
    match read_legacy(home, name):
        case Present(data):
            return data
        case Absent():
            return None
        case Unreadable(why):
            raise ConfigError(f"{name} cannot be read: {why}", mend="make it a plain file of yours")


def _cursor(data: bytes, cid: str | None) -> int:
    try:
        state: Any = json.loads(data)
    except (ValueError, RecursionError):
        state = None
    held = cast("dict[str, Any]", state) if isinstance(state, dict) else {}
    for key in CURSOR_KEYS:
        value: Any = held.get(key)
        if isinstance(value, dict):
            value = cast("dict[str, Any]", value).get(cid or "")
        if isinstance(value, str) and _DIGITS.fullmatch(value):
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
    raise ConfigError(
        f"ws_state.json holds no cursor ({', '.join(CURSOR_KEYS)})", mend="give it yourself: --cursor SEQ"
    )
