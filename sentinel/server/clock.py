"""The server's one clock; everything else is handed it as an argument, so that tests can step it."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeAlias

Now: TypeAlias = Callable[[], int]
"""Milliseconds since 1970, UTC: the resolution of the wire (spec 01 section 2)."""


def system_now_ms() -> int:
    """Return this machine's wall clock, in milliseconds."""
    return time.time_ns() // 1_000_000


def rfc3339(at_ms: int) -> str:
    """Return an instant as the wire writes it: `2026-01-02T03:04:05.678Z`."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
