"""Open `state.db` so that a commit is a promise: WAL, FULL, read back; refuse where that cannot be had.

Source: spec 02 section 1 ("`state.db`"), security facts section B (fsync) and F.
"""

import os
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from sentinel.core.errors import ConfigError, Damaged, Exit, SentinelError
from sentinel.store.schema import MIGRATIONS

_PROMISES = {
    "journal_mode": "wal",
    "synchronous": "2",
    "fullfsync": "1",
    "checkpoint_fullfsync": "1",
    "foreign_keys": "1",
}
_BUSY_MS = 5_000
# File systems on which neither flock nor WAL's shared memory can be trusted.
_NETWORK_FILE_SYSTEMS = frozenset(
    {
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "afpfs",
        "webdav",
        "fuse.sshfs",
        "9p",
        "afs",
        "glusterfs",
        "ceph",
    }
)


class Unwritable(SentinelError):
    """`state.db` cannot be written just now: without it nothing may be done, so the sentinel ends."""

    exit_code = Exit.UNAVAILABLE


class Database:
    """One connection to a `state.db`. Not shared between threads; every write goes through `transaction`."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self.path = path

    @contextmanager
    def transaction(self) -> Generator[sqlite3.Connection]:
        """Run the block in one transaction; it is on disk when the block ends, or nothing of it is.

        Raises:
            Unwritable: the disk is full, or the file cannot be written for another reason.

        """
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.commit()
            except BaseException:
                self._connection.rollback()
                raise
        except sqlite3.OperationalError as error:
            raise Unwritable(
                f"{self.path} cannot be written: {error}",
                mend="free room on its disk and start the persona again: nothing that was kept is lost",
            ) from error

    @contextmanager
    def unsynced(self) -> Generator[sqlite3.Connection]:
        """Run the block in one transaction that the *next* `transaction` makes durable (or the next checkpoint).

        For what a power cut may take back whole, because it is read from the server again: a page and its cursor. It
        stays atomic, it stays in order, and a `kill -9` takes nothing back. Nothing outside may be done on the strength
        of it before a synced transaction: the sync of that one covers this one too (one write-ahead log, in order).
        """
        self._connection.execute("PRAGMA synchronous=NORMAL")
        try:
            with self.transaction() as write:
                yield write
        finally:
            self._connection.execute("PRAGMA synchronous=FULL")

    def rows(self, sql: str, parameters: tuple[object, ...] = ()) -> list[sqlite3.Row]:
        """Return all rows of a query."""
        return self._connection.execute(sql, parameters).fetchall()

    def row(self, sql: str, parameters: tuple[object, ...] = ()) -> sqlite3.Row | None:
        """Return the first row of a query, or None."""
        return self._connection.execute(sql, parameters).fetchone()

    def close(self) -> None:
        """Close the connection; a checkpoint may run."""
        self._connection.close()


def open_database(path: Path) -> Database:
    """Open (or make) the database at `path`, bring its schema up to date, and check that its promises hold.

    Raises:
        ConfigError: a network file system, or a promise that SQLite did not take up.
        Damaged: the file is no database, or was written by a newer version.

    """
    _refuse_network_file_system(path.parent)
    if not path.exists():
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    try:
        connection = sqlite3.connect(path, isolation_level=None, timeout=_BUSY_MS / 1000)
        connection.row_factory = sqlite3.Row
        _promise(connection, path)
        _migrate(connection, path)
    except sqlite3.DatabaseError as error:
        raise _no_database(path, error) from error
    return Database(connection, path)


def open_for_reading(path: Path) -> Database:
    """Open an existing database without ever writing to it, for commands that only look.

    Raises:
        ConfigError: there is none, or nothing was ever written into it.
        Damaged: the file is no database, or not one of this version.

    """
    never = ConfigError(f"{path} does not exist", mend="start the persona once with `sentinel run`")
    if not path.exists():
        raise never
    try:
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None, timeout=_BUSY_MS / 1000
        )
        connection.row_factory = sqlite3.Row
        have = _schema_of(connection)
    except sqlite3.DatabaseError as error:
        raise _no_database(path, error) from error
    if have != len(MIGRATIONS):
        connection.close()
        if have == 0:
            raise never
        raise Damaged(
            f"{path} has schema {have}, and this version reads {len(MIGRATIONS)}",
            mend="use the hoop-sentinel that runs this persona",
        )
    return Database(connection, path)


def _promise(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute(f"PRAGMA busy_timeout={_BUSY_MS}")
    for pragma, wanted in _PROMISES.items():
        connection.execute(f"PRAGMA {pragma}={wanted}")
        got = str(connection.execute(f"PRAGMA {pragma}").fetchone()[0]).lower()
        if got != wanted:
            raise ConfigError(
                f"{path}: SQLite says {pragma}={got}, and {wanted} is needed for a commit to be durable",
                mend="put the persona's home on a local disk and use a standard SQLite",
            )


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    have = _schema_of(connection)
    if have > len(MIGRATIONS):
        raise Damaged(
            f"{path} was written by a newer version (schema {have}, this one knows {len(MIGRATIONS)})",
            mend="upgrade hoop-sentinel; an older one must not write here",
        )
    for number, statements in enumerate(MIGRATIONS[have:], start=have + 1):
        connection.execute("BEGIN IMMEDIATE")
        for statement in statements:
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version={number}")
        connection.execute("COMMIT")


def _schema_of(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _no_database(path: Path, error: sqlite3.DatabaseError) -> Damaged:
    return Damaged(
        f"{path} cannot be opened as a database ({error})",
        mend="move it aside and restore it from a back-up; it holds the journal of what was said",
    )


def _refuse_network_file_system(folder: Path) -> None:
    kind = _file_system_of(folder)
    if kind in _NETWORK_FILE_SYSTEMS:
        raise ConfigError(
            f"{folder} lies on a network file system ({kind}), where locks and syncs cannot be trusted",
            mend="move the persona's home to a local disk",
        )


def _file_system_of(folder: Path) -> str:
    """Return the file system's name from the kernel's mount table, or "" where there is none to ask (macOS)."""
    try:
        table = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""
    device = folder.stat().st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    for line in table.splitlines():
        fields, _, tail = line.partition(" - ")
        if fields.split(" ")[2] == wanted:
            return tail.split(" ")[0]
    return ""
