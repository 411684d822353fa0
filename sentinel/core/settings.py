"""The optional files of a home, from bytes to values: uids, switches, limits, the executor's environment. Pure.

An absent file means its default; a file that is there and wrong is refused, never read as the default (law 2).
Source: spec 02 section 1.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Literal, cast

from sentinel.core.facts import Broken, HomeFacts, optional, private, raw, text_of
from sentinel.core.persona import Limits, OnInterrupt, Secret, WakeFrom

DAY_S = 86_400.0
BOUNDS: Mapping[str, tuple[float, float]] = {
    "stale_age_s": (60, 30 * DAY_S),
    "hop_limit": (1, 100),
    "persona_turns": (1, 1_000),
    "persona_window_s": (1, DAY_S),
    "first_start_window_s": (1, 7 * DAY_S),
    "command_age_s": (1, DAY_S),
    "fallback_poll_s": (0.1, DAY_S),
    "overlap_messages": (1, 10_000),
    "block_messages": (1, 1_000),
    "block_chars": (1_000, 1_000_000),
    "silence_s": (0.1, DAY_S),
    "linger_s": (0.1, 600),
    "turn_s": (0.1, 7 * DAY_S),
    "output_bytes": (1_024, 4 * 1024**3),
    "term_grace_s": (0.1, 600),
    "backoff_first_s": (5, 3_600),
    "backoff_cap_s": (5, DAY_S),
    "fail_notice_after": (1, 100),
    "park_after": (1, 1_000),
    "outage_notice_s": (1, DAY_S),
    "thread_tokens": (1_000, 100_000_000),
    "answer_parts": (1, 100),
    "media_bytes": (1, 1024**3),
    "outbox_files": (1, 100),
}
"""Key of `limits.toml` -> smallest and largest value that makes sense; `backoff_first_s` by spec 02 section 7."""

# HOME, PATH, LANG, TZ and TMPDIR may be set anew: that is how an executor gets its own login state or tools.
REFUSED_KEYS = frozenset({"USER", "LOGNAME", "BASH_ENV", "ENV"})
REFUSED_PREFIXES = ("HOOP_", "LD_", "DYLD_")

_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_UID = re.compile(r"[A-Za-z0-9._:@!$-]{1,128}")
_BETWEEN_UIDS = re.compile(r"[\s,]+")


def uids(facts: HomeFacts, file: str) -> frozenset[str]:
    """Return the user ids in `file`, separated by white space or commas, over any number of lines (none)."""
    found = raw(facts, file)
    if found is None:
        return frozenset()
    words = [word for word in _BETWEEN_UIDS.split(text_of(found.data, file)) if word]
    if not words:
        raise Broken(f"{file} is blank", f"write user ids into it, or remove {file}", file=file)
    for word in words:
        if not _UID.fullmatch(word):
            raise Broken(
                f"{file} holds {word[:40]!r}, which is no user id", "write ids, not names", file=file
            )
    return frozenset(words)


def wake_from(facts: HomeFacts) -> WakeFrom:
    """Return who may wake the persona: `humans` (default), `members`, or the listed uids."""
    listed = uids(facts, "wake_from")
    if not listed or listed == frozenset({"humans"}):
        return "humans"
    if listed == frozenset({"members"}):
        return "members"
    if listed & {"humans", "members"}:
        raise Broken(
            "wake_from mixes a word with user ids",
            "write humans, or members, or a list of ids",
            file="wake_from",
        )
    return listed


def word_of(facts: HomeFacts, file: str, words: tuple[str, ...], *, default: str) -> str:
    """Return the word in `file`, one of `words`; `default` when the file is absent."""
    value = optional(facts, file)
    if value is None:
        return default
    if value not in words:
        raise Broken(f"{file} is {value[:40]!r}", f"write one of: {', '.join(words)}", file=file)
    return value


def switch(facts: HomeFacts, file: str) -> bool:
    """Return a switch that is off unless its file says `on`."""
    return word_of(facts, file, ("off", "on"), default="off") == "on"


def on_interrupt(facts: HomeFacts) -> OnInterrupt:
    """Return what to do with a run that was cut off (`resume`)."""
    return OnInterrupt(word_of(facts, "on_interrupt", ("resume", "ask"), default="resume"))


def locale(facts: HomeFacts) -> Literal["en", "zh"]:
    """Return the language of what the program itself says (`en`)."""
    return cast("Literal['en', 'zh']", word_of(facts, "locale", ("en", "zh"), default="en"))


def limits(facts: HomeFacts) -> Limits:
    """Return the numbers of `limits.toml` over their defaults; an unknown key or an odd number is refused."""
    found = raw(facts, "limits.toml")
    if found is None:
        return Limits()
    import tomllib

    try:
        told = tomllib.loads(text_of(found.data, "limits.toml"))
    except (tomllib.TOMLDecodeError, RecursionError) as bad:
        raise Broken(
            f"limits.toml is not TOML: {bad}", "write KEY = NUMBER lines", file="limits.toml"
        ) from None
    whole = frozenset(one.name for one in fields(Limits) if isinstance(one.default, int))
    numbers: dict[str, Any] = {key: _number(key, value, whole=key in whole) for key, value in told.items()}
    result = Limits(**numbers)
    if result.backoff_first_s > result.backoff_cap_s:
        raise Broken(
            "limits.toml puts backoff_first_s above backoff_cap_s", "raise backoff_cap_s", file="limits.toml"
        )
    return result


def _number(key: str, value: object, *, whole: bool) -> float:
    if key not in BOUNDS:
        raise Broken(
            f"limits.toml holds the unknown key {key[:40]!r}",
            f"known are: {', '.join(BOUNDS)}",
            file="limits.toml",
        )
    low, high = BOUNDS[key]
    mend = f"write a {'whole number' if whole else 'number'} from {low:g} to {high:g}"
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or (whole and not isinstance(value, int))
    ):
        raise Broken(
            f"limits.toml: {key} is not a {'whole number' if whole else 'number'}", mend, file="limits.toml"
        )
    if not math.isfinite(value) or not low <= value <= high:
        raise Broken(f"limits.toml: {key} is {value}", mend, file="limits.toml")
    return value if whole else float(value)


def environment(facts: HomeFacts, file: str, *, token: str) -> dict[str, Secret]:
    """Return the KEY=VALUE lines of a `<adapter>_env` file, values hidden; empty when absent.

    There are no comments and no quotes: what stands behind the first `=` is the value. Empty lines are skipped. Refused
    are keys that would load code into the executor or change who it is, and any value that holds the room's token.
    """
    found = private(facts, file)
    if found is None:
        return {}
    result: dict[str, Secret] = {}
    for number, line in enumerate(text_of(found.data, file).split("\n"), start=1):
        if not line:
            continue
        key, equals, value = line.partition("=")
        if not equals or not _KEY.fullmatch(key) or any(ord(one) < ord(" ") for one in value):
            raise Broken(
                f"{file}, line {number}: not KEY=VALUE", "one KEY=VALUE a line, nothing else", file=file
            )
        if key in result:
            raise Broken(f"{file} sets {key} twice", "keep one of the two", file=file)
        if key in REFUSED_KEYS or key.startswith(REFUSED_PREFIXES):
            raise Broken(f"{file} sets {key}, which would break the walls", f"remove {key}", file=file)
        if token and token in value:
            raise Broken(f"{file} gives the room's token to the executor", f"remove {key}", file=file)
        result[key] = Secret(value)
    return result
