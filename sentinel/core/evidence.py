"""What an operator may see of why a turn failed: one short line without secrets or raw payloads. Pure.

Source: spec 02 section 5 ("A raw provider payload never reaches the room", secrets masked).
"""

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import cast

EVIDENCE_CHARS = 300
_LOOKED_AT = 8 * 1024
MASK = "***"

_URL = re.compile(
    r"\b([a-z][a-z0-9+.-]{0,20}://)(?:[^\s/@\"'<>]*@)?([^\s?#\"'<>]*)(?:[?#][^\s\"'<>]*)?", re.IGNORECASE
)
_BEARER = re.compile(r"\b(bearer|basic)\s+\S+", re.IGNORECASE)
_NAMED = re.compile(
    r"\b((?:api[ _-]?key|x-api-key|token|secret|password|passwd|credential)s?"
    r"(?:\s+provided)?[\"']?\s*[:=]\s*)(?!\*\*\*)[\"']?[^\s\"',;]+",
    re.IGNORECASE,
)
_KEYLIKE = re.compile(r"\b(?:sk|pk|rk|ghp|gho|ghs|glpat|xox[abprs]|AKIA|AIza|eyJ)[-_]?[A-Za-z0-9][\w.-]{7,}")
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?")


def evidence_of(text: str) -> str:
    """Return `text` as one line of at most `EVIDENCE_CHARS` characters, redacted; JSON bodies are reduced to their message."""
    line = without_controls(_without_body(text[:_LOOKED_AT]))
    line = _URL.sub(r"\1\2", line)
    line = _BEARER.sub(rf"\1 {MASK}", line)
    line = _NAMED.sub(rf"\1{MASK}", line)
    line = " ".join(_KEYLIKE.sub(MASK, line).split())
    return line if len(line) <= EVIDENCE_CHARS else line[: EVIDENCE_CHARS - 1] + "…"


def without_controls(text: str, *, keep: str = "") -> str:
    """Return `text` with terminal escapes removed and every control character but those of `keep` made a space."""
    plain = _ESCAPE.sub("", text)
    return "".join(one if one in keep or unicodedata.category(one) not in _CONTROL else " " for one in plain)


def masked(text: str, secrets: Sequence[str]) -> str:
    """Return `text` with every one of `secrets` replaced; longer ones first, so that none shows a part of another."""
    for secret in sorted((one for one in secrets if one), key=len, reverse=True):
        text = text.replace(secret, MASK)
    return text


def is_blank(text: str) -> bool:
    """Return whether nothing of `text` would be seen: only white space, zero-width, filler and control characters."""
    return all(one.isspace() or one in _INVISIBLE or unicodedata.category(one) in _UNSEEN for one in text)


_CONTROL = frozenset({"Cc", "Zl", "Zp"})
# Control, format (zero-width, directional marks, BOM) and surrogate characters, and spaces.
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zs", "Zl", "Zp"})
# Fillers, the grapheme joiner and variation selectors: letters and marks by category that draw nothing alone.
_INVISIBLE = frozenset("\u034f\u115f\u1160\u2800\u3164\uffa0") | frozenset(map(chr, range(0xFE00, 0xFE10)))


def _without_body(text: str) -> str:
    """Return `text` with what stands between its first and last brace put down to the message in it, if it has one."""
    start, end = text.find("{"), text.rfind("}") + 1
    if not 0 <= start < end:
        return text
    try:
        value: object = json.loads(text[start:end])
    except (ValueError, RecursionError):
        value = None
    return text[:start] + (_message_in(value) or "{…}") + text[end:]


def _message_in(value: object) -> str:
    if not isinstance(value, dict):
        return ""
    body = cast("Mapping[str, object]", value)
    for key in ("message", "detail"):
        said = body.get(key)
        if isinstance(said, str):
            return said
    return _message_in(body.get("error"))
