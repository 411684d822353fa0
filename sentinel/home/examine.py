"""The gate on a real home: read once, judge. Source: spec 02 section 2."""

from collections.abc import Mapping
from pathlib import Path

from sentinel.core.gate import Verdict, judge
from sentinel.home.executors import ADAPTERS
from sentinel.home.facts import read


def examine(
    home: Path, *, guarded: bool | None, instead: Mapping[str, bytes | None] | None = None
) -> Verdict:
    """Return what the gate says of `home` now; `guarded` as in `judge`, `instead` as in `read`. Writes nothing."""
    return judge(read(home, instead=instead), ADAPTERS, guarded=guarded)
