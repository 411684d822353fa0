"""One `state.db` as the sentinel uses it: inbox, turns, threads, and a few facts about itself."""

from pathlib import Path

from sentinel.core.errors import ConfigError
from sentinel.store.crashes import Crashes
from sentinel.store.database import Database, open_database, open_for_reading
from sentinel.store.inbox import Inbox
from sentinel.store.threads import Threads
from sentinel.store.turns import Turns

FILE = "state.db"


class Store:
    """Everything durable of one persona."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self.inbox = Inbox(database)
        self.turns = Turns(database)
        self.threads = Threads(database)
        self.crashes = Crashes(database)

    @property
    def database(self) -> Database:
        """The database itself, for reports that read across the tables."""
        return self._db

    def bind(self, server: str, uid: str) -> None:
        """Tie this state to one account for good: seqs and nonces of another account would be nonsense here.

        The server's address may change (it moved, another port); the account's uid may not.

        Raises:
            ConfigError: the state belongs to another account.
        """
        known = self.meta("uid")
        if known not in {None, uid}:
            raise ConfigError(
                f"{self._db.path} belongs to another account ({known})",
                mend="make a new home for this account, or move state.db aside",
            )
        self.keep("uid", uid)
        self.keep("server", server.rstrip("/"))

    def meta(self, key: str) -> str | None:
        """Return a fact that was kept, or None."""
        row = self._db.row("SELECT value FROM meta WHERE key = ?", (key,))
        return row[0] if row else None

    def keep(self, key: str, value: str) -> None:
        """Keep a fact."""
        with self._db.transaction() as write:
            write.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (key, value))

    def forget(self, key: str) -> None:
        """Forget a fact."""
        with self._db.transaction() as write:
            write.execute("DELETE FROM meta WHERE key = ?", (key,))

    def close(self) -> None:
        """Close the database."""
        self._db.close()


def open_store(home: Path) -> Store:
    """Open the state of a persona home for writing; call it only while holding the account lock."""
    return Store(open_database(home / FILE))


def look_at_store(home: Path) -> Store:
    """Open the state of a persona home for reading only."""
    return Store(open_for_reading(home / FILE))
