"""The record of a refusal, kept beside the persona.

The exit code alone is not enough: launchd shows 78 for its own spawn failures too. Source: spec 02 section 2; security
facts, section D.
"""

import contextlib
import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from sentinel.core.gate import Check, Passed, Verdict
from sentinel.home.write import put

NAME = "refusal.json"


def keep(home: Path, verdict: Verdict, *, now: datetime) -> None:
    """Record a refusal, or remove the record of an earlier one: what the file says is the last verdict."""
    if isinstance(verdict, Passed):
        clear(home)
    else:
        record(home, verdict.checks, now=now)


def record(home: Path, checks: Sequence[Check], *, now: datetime) -> None:
    """Write `{at, checks: [{check, what, mend}]}` of the failed ones, only where check 1 passed: the home is ours then.

    A disk that does not take it changes no verdict: the refusal stands on standard error and in the exit code.
    """
    if not any(check.check == "home" and check.ok for check in checks):
        return
    failed = [{"check": one.check, "what": one.what, "mend": one.mend} for one in checks if not one.ok]
    with contextlib.suppress(OSError):
        put(home, NAME, (json.dumps({"at": now.isoformat(), "checks": failed}) + "\n").encode())


def clear(home: Path) -> None:
    """Remove the record, if there is one."""
    with contextlib.suppress(OSError):
        (home / NAME).unlink()


def last(home: Path) -> tuple[str, ...]:
    """Return the lines of the kept refusal, `check: what: mend`; none when the last start was not refused."""
    try:
        kept: Any = json.loads((home / NAME).read_bytes())
        return tuple(f"{one['check']}: {one['what']}: {one['mend']}" for one in kept["checks"])
    except (OSError, ValueError, KeyError, TypeError):
        return ()
