"""When a told limit ends: times out of executors' sentences. Pure.

Executors print the time of a reset for human eyes, in the machine's local zone and without naming it. So `now` must be
aware, in that zone; results are UTC. Forms seen in transcripts and sources: `try again at Jan 1st, 2030 12:00 AM`,
`try again at 3:45 PM`, `try again in 1.5s`, `try again in 2 days 5 hours`, `resets 3pm`, `resets Jan 5, 3:30pm`,
`limit reached|1893456000`.
"""

import re
from datetime import UTC, datetime, timedelta

LONG_WAIT = timedelta(minutes=15)
"""A reset farther away than this is a wall, not a pause (spec 02 section 5)."""

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_CLOCK = r"(?P<hour>\d{1,2})(?::(?P<minute>\d{2}))?\s*(?P<half>[ap]m)"
_AT = re.compile(
    r"(?:try again at|resets?(?: at| on)?)\s+"
    r"(?:(?P<month>[a-z]{3})[a-z]*\.?\s+(?P<day>\d{1,2})(?:st|nd|rd|th)?,?\s+(?:(?P<year>\d{4}),?\s+)?(?:at\s+)?)?"
    + _CLOCK,
    re.IGNORECASE,
)
_EPOCH = re.compile(r"\|\s*(\d{10})\b")
_IN = re.compile(
    r"(?:try again|resets?|retry) in\s+((?:\d+(?:\.\d+)?\s*[a-z]+[\s,]*(?:and\s+)?)+)", re.IGNORECASE
)
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)[a-z]*", re.IGNORECASE)
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_FARTHEST = timedelta(days=400)


def told_reset(text: str, *, now: datetime) -> datetime | None:
    """Return the moment after which `text` says to try again, in UTC, or None where it says none that makes sense."""
    try:
        moment = _epoch(text) or _after(text, now) or _at(text, now)
    except (ValueError, OverflowError):
        return None
    return moment.astimezone(UTC) if moment is not None and moment > now else None


def from_epoch(seconds: float) -> datetime | None:
    """Return a moment from seconds since 1970, or None where that is no time at all."""
    try:
        return datetime.fromtimestamp(seconds, UTC) if seconds > 0 else None
    except (ValueError, OverflowError, OSError):
        return None


def _epoch(text: str) -> datetime | None:
    found = _EPOCH.search(text)
    return from_epoch(float(found.group(1))) if found else None


def _after(text: str, now: datetime) -> datetime | None:
    found = _IN.search(text)
    if not found:
        return None
    amounts = _AMOUNT.findall(found.group(1))
    seconds = sum(float(number) * _SECONDS[unit.lower()] for number, unit in amounts)
    return now + min(timedelta(seconds=seconds), _FARTHEST) if seconds else None


def _at(text: str, now: datetime) -> datetime | None:
    found = _AT.search(text)
    if not found:
        return None
    hour = int(found["hour"]) % 12 + (12 if found["half"].lower() == "pm" else 0)
    moment = now.replace(hour=hour, minute=int(found["minute"] or 0), second=0, microsecond=0)
    if not found["month"]:
        return moment if moment > now else moment + timedelta(days=1)
    month = _MONTHS.index(found["month"].lower()) + 1
    moment = moment.replace(month=month, day=int(found["day"]), year=int(found["year"] or now.year))
    if not found["year"] and moment <= now:
        moment = moment.replace(year=now.year + 1)
    return moment
