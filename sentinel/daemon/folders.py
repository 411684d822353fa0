"""The private folder of a turn: the media that it is about, its executor's TMPDIR, and an answer kept for the owners.

A folder goes with its turn, unless it keeps an answer; what a killed process left goes at the next start.
Source: spec 02 section 4 "fetch"; section 7 (`leak`, `rejected`: the body is kept).
"""

import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_KEPT = "answer.txt"


def folder_of(home: Path, turn_id: str) -> Path:
    """Return where the folder of a turn lies; it need not exist."""
    return home / "turns" / turn_id


def forget(folder: Path) -> None:
    """Remove the folder of a turn, if there is one."""
    with suppress(OSError):
        shutil.rmtree(folder)


def keep_answer(folder: Path, text: str) -> Path:
    """Keep the body of an answer that is not posted, for the owners alone; return its file."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    kept = folder / _KEPT
    kept.touch(mode=0o600)
    kept.write_text(text, encoding="utf-8")
    return kept


def keep_files(folder: Path, files: Iterable[tuple[str, bytes]]) -> None:
    """Keep files that are not posted beside the kept answer, where they are not there already; numbered, whatever they are called."""
    for number, (name, data) in enumerate(files):
        kept = folder / f"{number}-{name}"
        kept.touch(mode=0o600)
        kept.write_bytes(data)


def sweep(home: Path) -> None:
    """Remove what a killed process left, while no turn runs; kept answers stay."""
    with suppress(FileNotFoundError):
        for folder in (home / "turns").iterdir():
            if not (folder / _KEPT).exists():
                forget(folder)
