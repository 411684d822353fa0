"""How the persona speaks: task.md, the bridge, the switches and numbers of its turns. Pure; a part of the gate.

Source: spec 02 section 2, check 7; law 1 (what has a file of its own stands nowhere else).
"""

import re

from sentinel.core import settings
from sentinel.core.executor import Adapters, declared
from sentinel.core.facts import Broken, HomeFacts, one_value, raw, text_of


def check(facts: HomeFacts, adapters: Adapters, *, guarded: bool | None) -> str:
    """Check 7: say that the persona can speak, or raise `Broken`."""
    word = declared(facts, adapters).name
    task(facts, word)
    _bridge(facts, f"{word}_reply_bridge")
    settings.switch(facts, "may_broadcast")
    settings.switch(facts, "reply_wakes")
    settings.on_interrupt(facts)
    settings.locale(facts)
    settings.limits(facts)
    if guarded is False:
        raise Broken("no conversation to guard was given", "name one, or all: sentinel run HOME CID")
    return "task.md speaks, the bridge is on"


def task(facts: HomeFacts, word: str) -> str:
    """Return `task.md` whole; `Broken` where it is blank or repeats what has a file of its own.

    `word` is the adapter's name: a model of that very name (echo) names no model, and stays a word one may use.
    """
    found = raw(facts, "task.md")
    mend = "say in it who the persona is and how it works"
    if found is None:
        raise Broken("task.md is absent", mend, file="task.md")
    text = text_of(found.data, "task.md")
    if not text.strip():
        raise Broken("task.md is empty", mend, file="task.md")
    for file in ("model", *sorted(name for name in facts.files if name.endswith(("_bin", "_cwd")))):
        value = _value_or_nothing(facts, file)
        if value not in ("", word) and repeats(text, value):
            mend = f"remove it there: the file {file} is its one place"
            raise Broken(f"task.md repeats the value of {file}", mend, file="task.md")
    return text


def repeats(text: str, value: str) -> bool:
    """Whether `text` holds `value` as a whole word: `gpt-5` is in "use gpt-5." and not in "gpt-5.4" or "my-gpt-5"."""
    word = rf"(?<![A-Za-z0-9_-]){re.escape(value)}(?![A-Za-z0-9_-]|\.[A-Za-z0-9])"
    return re.search(word, text) is not None


def _value_or_nothing(facts: HomeFacts, file: str) -> str:
    """Return the value, or "" where there is none that could be repeated: the file's own check says what is wrong."""
    found = raw(facts, file)
    try:
        return one_value(found.data, file) if found else ""
    except Broken:
        return ""


def _bridge(facts: HomeFacts, file: str) -> None:
    found = raw(facts, file)
    if found is not None and found.data.removesuffix(b"\n") != b"on":
        mend = f"write on into {file}, or remove it"
        raise Broken(f"{file} is not on, and without the bridge nothing is ever said", mend, file=file)
