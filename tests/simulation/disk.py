"""The disk of a simulated machine: `state.db` in memory, with a crash possible around every transaction.

The sentinel's own schema and store classes run on it. A killed process loses what it had not committed; a power cut also
takes back what no synced transaction followed (`Database.unsynced`); a full disk refuses every write.
"""

import sqlite3
from contextlib import contextmanager
from pathlib import Path

from sentinel.store.database import Database, Unwritable
from sentinel.store.schema import MIGRATIONS
from sentinel.store.store import Store

_PATH = Path("/simulated/state.db")


def _fresh():
    connection = sqlite3.connect(":memory:", isolation_level=None)
    for statements in MIGRATIONS:
        for statement in statements:
            connection.execute(statement)
    image = connection.serialize()
    connection.close()
    return image


_EMPTY = _fresh()


class Disk:
    """What outlives a process."""

    def __init__(self):
        self.is_full = False
        self._synced = None
        self._connection = None
        self._load(_EMPTY)

    def store(self, life):
        """Open `state.db` for one life of the sentinel."""
        return Store(_CrashingDatabase(self._connection, self, life))

    def look(self):
        """Open `state.db` for the oracle, who never crashes and never writes."""
        return Store(Database(self._connection, _PATH))

    def cut_power(self):
        """Take back what was not synced; return whether there was anything."""
        if self._synced is None:
            return False
        self._load(self._synced)
        self._synced = None
        return True

    def unsynced(self):
        """A write without a sync begins: remember what a power cut would leave."""
        if self._synced is None:
            self._synced = self._connection.serialize()

    def synced(self):
        """A synced write ended: the log is in order, so all before it is safe too."""
        self._synced = None

    def close(self):
        self._connection.close()

    def _load(self, image):
        if self._connection is not None:
            self._connection.close()
        self._connection = sqlite3.connect(":memory:", isolation_level=None)
        self._connection.deserialize(image)
        self._connection.row_factory = sqlite3.Row


class _CrashingDatabase(Database):
    def __init__(self, connection, disk, life):
        super().__init__(connection, _PATH)
        self._disk, self._life = disk, life

    @contextmanager
    def transaction(self):
        with self._write("write") as write:
            yield write
        self._disk.synced()
        self._life.step("after a write")

    @contextmanager
    def unsynced(self):
        self._life.must_live()
        self._disk.unsynced()
        with self._write("page") as write:
            yield write
        self._life.step("after a page")

    @contextmanager
    def _write(self, what):
        self._life.step(f"before a {what}")
        if self._disk.is_full:
            raise Unwritable("the simulated disk is full", mend="free room")
        with Database.transaction(self) as write:
            yield write
            self._life.step(f"before the commit of a {what}")

    def rows(self, sql, parameters=()):
        self._life.must_live()
        return super().rows(sql, parameters)

    def row(self, sql, parameters=()):
        self._life.must_live()
        return super().row(sql, parameters)

    def close(self):
        """The disk outlives the process."""
