"""A consistent copy of a data directory in one file, taken while the server runs, and the way back.

The database is copied first, by SQLite's own back-up call (one snapshot), the media after it: a file is on disk before
its row is committed, is never changed, and stays once a message carries it, so every row of the snapshot finds its file.
Uploads that no message carries yet are left out, for they may be removed meanwhile (unposted.py). Source: spec 09.
"""

import os
import re
import shutil
import sqlite3
import tarfile
import tempfile
from contextlib import closing
from pathlib import Path

from sentinel.core.errors import ConfigError, Damaged, UsageError
from sentinel.server.media import FOLDER, STORED, sync
from sentinel.server.store import DATABASE, connect
from sentinel.server.unposted import UNPOSTED

_OURS = re.compile(rf"{re.escape(DATABASE)}|{FOLDER}/{STORED.pattern}")


def back_up(data: Path, file: Path) -> None:
    """Write the copy to `file`, which must not exist; it appears there whole or not at all."""
    if file.exists():
        raise UsageError(f"{file} exists", mend="name a new file")
    with (
        closing(connect(data)) as source,
        tempfile.TemporaryDirectory(dir=file.parent, prefix=".hoop-") as work,
    ):
        snapshot = Path(work, DATABASE)
        with closing(sqlite3.connect(snapshot)) as target:
            source.backup(target)
            target.execute("PRAGMA journal_mode = DELETE")
            target.execute(f"DELETE FROM media WHERE {UNPOSTED}")
            target.commit()
            media = [row[0] for row in target.execute("SELECT id FROM media ORDER BY id")]
        whole = Path(work, "whole.tar")
        with whole.open("xb") as raw:
            os.fchmod(raw.fileno(), 0o600)
            with tarfile.open(fileobj=raw, mode="w") as tar:
                tar.add(snapshot, DATABASE)
                for one in media:
                    tar.add(data / FOLDER / one, f"{FOLDER}/{one}")
            raw.flush()
            sync(raw.fileno())
        os.link(whole, file)  # unlike a rename it refuses a file that appeared meanwhile


def restore(file: Path, data: Path) -> None:
    """Unpack a copy into `data`, which must be absent or empty.

    Raises:
        UsageError: there is something in `data`.
        ConfigError: `file` cannot be read.
        Damaged: it is not a back-up of ours, or not a whole one.
    """
    if data.exists() and any(data.iterdir()):
        raise UsageError(f"{data} is not empty", mend="restore into a new directory")
    try:
        tar = tarfile.open(file)  # noqa: SIM115  # closed by the block below
    except tarfile.TarError as fault:
        raise Damaged(f"{file} is not a back-up", mend="choose another file") from fault
    except OSError as fault:
        raise ConfigError(
            f"{file} cannot be read: {fault.strerror}", mend="check its path and owner"
        ) from fault
    with tar, tempfile.TemporaryDirectory(dir=data.parent, prefix=".hoop-") as work:
        _unpack(tar, Path(work), file)
        data.mkdir(mode=0o700, exist_ok=True)
        data.chmod(0o700)
        Path(work, FOLDER).rename(data / FOLDER)
        Path(work, DATABASE).rename(data / DATABASE)


def _unpack(tar: tarfile.TarFile, work: Path, file: Path) -> None:
    work.joinpath(FOLDER).mkdir(mode=0o700)
    try:
        for member in tar:
            content = tar.extractfile(member) if _OURS.fullmatch(member.name) and member.isfile() else None
            if content is None:
                raise Damaged(
                    f"{file} holds {member.name!r}, which no back-up of ours holds",
                    mend="choose another file",
                )
            # Copied by hand: `extract` can be told to distrust its archive only since Python 3.11.4.
            with content, (work / member.name).open("wb") as copy:
                shutil.copyfileobj(content, copy)
        with closing(sqlite3.connect(work / DATABASE)) as db:
            verdict = db.execute("PRAGMA integrity_check").fetchone()[0]
            media = [row[0] for row in db.execute("SELECT id FROM media")]
    except (tarfile.TarError, sqlite3.DatabaseError, EOFError) as fault:
        raise Damaged(f"{file} is not a whole back-up: {fault}", mend="choose another file") from fault
    missing = [one for one in media if not (work / FOLDER / one).is_file()]
    if verdict != "ok" or missing:
        raise Damaged(f"{file} is not a whole back-up", mend="choose another file")
