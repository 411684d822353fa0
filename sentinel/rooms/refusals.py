"""What an HTTP status of a HOOP server means: the closed taxonomy of the Room port. Pure.

Source: spec 01 sections 1 and 2 (problem+json); security facts, section F ("HTTP outcome classes").
"""

import json
import math
from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, cast

from sentinel.core.errors import (
    NonceConflict,
    NotFound,
    RateLimited,
    Rejected,
    RoomError,
    Unauthorized,
    Unavailable,
)

DETAIL_LIMIT_CHARS = 300
RETRY_AFTER_LIMIT_S = 3_600.0
NEW_TOKEN = "give the account a new token on the server and write it into its token file"  # noqa: S105  # no secret


def refusal(call: str, status: int, headers: Mapping[str, str], body: bytes) -> RoomError | None:
    """Return the error that `status` means, or None when the call succeeded (2xx).

    Args:
        call: what was asked, for the text: `GET /v1/me`.
        status: the HTTP status.
        headers: by name in small letters.
        body: problem+json, or anything; its `detail` is shown, cut to 300 characters.
    """
    if 200 <= status < 300:  # noqa: PLR2004  # HTTP's own numbers stand here as numbers
        return None
    said = f"{call}: {detail(body) or f'the server answered {status}'}"
    match status:
        case 401:
            return Unauthorized(said, mend=NEW_TOKEN)
        case 404:
            return NotFound(said)
        case 409:
            return NonceConflict(said)
        case 429:
            return RateLimited(said, retry_after_s=retry_after_s(headers))
        case 408 | 425:  # a time-out and "too early" heal by waiting
            return Unavailable(said)
        case _ if 400 <= status < 500:  # noqa: PLR2004
            return Rejected(said, status=status)
        case _ if 300 <= status < 400:  # noqa: PLR2004
            mend = "write the address into the server file that it really has"
            return Unavailable(f"{call}: the server answered {status} and points elsewhere", mend=mend)
        case _:
            return Unavailable(said)


def detail(body: bytes) -> str:
    """Return what a problem+json says (`detail`, else `title`), on one line, at most 300 characters; else ""."""
    try:
        problem: Any = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(problem, dict):
        return ""
    fields = cast("dict[str, Any]", problem)
    said = next((fields[one] for one in ("detail", "title") if isinstance(fields.get(one), str)), "")
    line = "".join(one if one.isprintable() else " " for one in said)
    return " ".join(line.split())[:DETAIL_LIMIT_CHARS]


def retry_after_s(headers: Mapping[str, str]) -> float:
    """Return the seconds that `Retry-After` asks for, at most an hour; 1 when it is absent or unreadable.

    A date is measured against the server's own `Date`, so that our clock does not matter.
    """
    text = headers.get("retry-after", "").strip()
    try:
        wait_s = float(text)
    except ValueError:
        wait_s = _until(text, headers.get("date", ""))
    if not math.isfinite(wait_s) or wait_s < 0:
        return 1.0
    return min(wait_s, RETRY_AFTER_LIMIT_S)


def _until(then: str, now: str) -> float:
    parsed_then, parsed_now = _date(then), _date(now)
    return (parsed_then - parsed_now).total_seconds() if parsed_then and parsed_now else math.nan


def _date(text: str) -> datetime | None:
    try:
        parsed = parsedate_to_datetime(text)
    except ValueError:
        return None
    return parsed if parsed.tzinfo else None
