"""What a home declares, file by file, and what the last run really used. Source: spec 02 section 1."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from sentinel.core.facts import (
    MANY_LINES,
    Absent,
    Broken,
    HomeFacts,
    Present,
    Unreadable,
    adapter_word,
    is_secret,
    one_value,
)
from sentinel.home.facts import read_legacy

LAST_RUN = "last_run.json"
HIDDEN = "***"
DEFAULTS = {
    "owners": "",
    "wake_from": "humans",
    "handoff_from": "",
    "may_broadcast": "off",
    "reply_wakes": "off",
    "on_interrupt": "resume",
    "locale": "en",
}


@dataclass(frozen=True, slots=True)
class Setting:
    """One fact: its value, and the file it came from (None: no such file, this is the default)."""

    file: str
    value: str
    path: str | None


def settings(facts: HomeFacts) -> tuple[Setting, ...]:
    """Return each declared value and each default in force, secrets hidden, sorted by file."""
    told = {name: fact for name, fact in facts.files.items() if not isinstance(fact, Absent)}
    here = [Setting(name, _shown(name, fact), f"{facts.home}/{name}") for name, fact in told.items()]
    defaults = dict(DEFAULTS)
    adapter = facts.files.get("adapter")
    word = adapter_word(adapter.data) if isinstance(adapter, Present) else None
    if word:
        defaults |= {f"{word}_driver": "oneshot", f"{word}_user": facts.user, f"{word}_reply_bridge": "on"}
    absent = [Setting(name, value, None) for name, value in defaults.items() if name not in told]
    return tuple(sorted(here + absent, key=lambda one: one.file))


def last_run(home: Path) -> dict[str, Any] | None:
    """Return what the sentinel recorded of the last executor it started (its real argv), or None."""
    fact = read_legacy(home, LAST_RUN)
    if not isinstance(fact, Present):
        return None
    try:
        value: Any = json.loads(fact.data)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def _shown(name: str, fact: Present | Unreadable) -> str:
    match fact:
        case Unreadable(why):
            return f"(cannot be read: {why})"
        case Present(data) if name == "token":
            return HIDDEN if data.strip() else "(empty)"
        case Present(data) if is_secret(name):
            keys = (
                line.partition("=")[0] for line in data.decode("utf-8", "replace").split("\n") if "=" in line
            )
            return " ".join(f"{key}={HIDDEN}" for key in keys)
        case Present(data) if name in MANY_LINES:
            return data.decode("utf-8", "replace").strip()
        case Present(data):
            try:
                return one_value(data, name)
            except Broken as broken:
                return (
                    data.decode("utf-8", "replace").strip()
                    if name == "owners"
                    else f"(refused: {broken.what})"
                )
