"""What the operator does to a data directory, beside a running server or without one.

Each act is one transaction on the same database; a running server sees it through the change counters (schema.py).
Nothing here imports the web server. Source: spec 09, the `sentinel hoop` lines.
"""

import sqlite3
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from sentinel.core.errors import UsageError
from sentinel.core.model import Account, Conversation, Kind
from sentinel.server import accounts, rooms
from sentinel.server.clock import Now, system_now_ms
from sentinel.server.requests import TITLE_LIMIT_CHARS
from sentinel.server.store import connect, transact

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class NewAccount:
    """An account and its token, which is shown this once."""

    account: Account
    token: str


@dataclass(frozen=True, slots=True)
class Listed:
    """An account as `account list` shows it."""

    account: Account
    is_disabled: bool


@dataclass(frozen=True, slots=True)
class Room:
    """A conversation with its members."""

    conversation: Conversation
    members: tuple[Account, ...]


class Directory:
    """An open data directory. Every method raises `UsageError` for names that are wrong, and changes nothing then."""

    def __init__(self, db: sqlite3.Connection, now_ms: Now) -> None:
        self._db = db
        self._now_ms = now_ms

    def add_account(self, name: str, kind: Kind) -> NewAccount:
        """Add an account with one token for scripts."""

        def work(db: sqlite3.Connection) -> NewAccount:
            account = accounts.add_account(db, name, kind, now_ms=self._now_ms())
            return NewAccount(account, self._token(db, account.uid))

        return self._transact(work)

    def accounts(self) -> list[Listed]:
        """Return every account, by name."""
        rows = self._db.execute("SELECT uid, name, kind, disabled FROM accounts ORDER BY name_key")
        return [
            Listed(Account(row["uid"], row["name"], Kind(row["kind"])), bool(row["disabled"])) for row in rows
        ]

    def disable(self, name: str) -> Account:
        """Close an account at once, its open sockets included."""

        def work(db: sqlite3.Connection) -> Account:
            account = _account(db, name)
            accounts.disable(db, account.uid)
            return account

        return self._transact(work)

    def rotate(self, name: str) -> NewAccount:
        """End every token and session of an account and give it one new token."""

        def work(db: sqlite3.Connection) -> NewAccount:
            account = _open_account(db, name)
            accounts.end_access(db, account.uid)
            return NewAccount(account, self._token(db, account.uid))

        return self._transact(work)

    def code(self, name: str) -> str:
        """Return a fresh log-in code for the operator to hand over."""
        return self._transact(
            lambda db: accounts.issue_code(db, _open_account(db, name).uid, now_ms=self._now_ms())
        )

    def add_room(self, title: str, names: Sequence[str]) -> Room:
        """Make a conversation of the accounts with these names."""
        if not title.strip() or len(title) > TITLE_LIMIT_CHARS:
            raise UsageError(
                "the title is blank or too long", mend=f"use 1 to {TITLE_LIMIT_CHARS} characters"
            )
        if accounts.has_unseen(title):
            raise UsageError("the title holds a control or invisible character", mend="leave it out")

        def work(db: sqlite3.Connection) -> Room:
            uids = [_open_account(db, name).uid for name in names]
            made = rooms.add_conversation(db, title, uids, now_ms=self._now_ms())
            return Room(made, tuple(rooms.members_of(db, made.cid)))

        return self._transact(work)

    def rooms(self) -> list[Room]:
        """Return every conversation, oldest first."""
        return [
            Room(one, tuple(rooms.members_of(self._db, one.cid)))
            for one in rooms.conversations_of(self._db, None)
        ]

    def invite(self, cid: str, names: Sequence[str]) -> Room:
        """Put accounts into a conversation."""

        def work(db: sqlite3.Connection) -> Room:
            conversation = _conversation(db, cid)
            for name in names:
                rooms.join(db, cid, _open_account(db, name).uid, now_ms=self._now_ms())
            return Room(conversation, tuple(rooms.members_of(db, cid)))

        return self._transact(work)

    def remove(self, cid: str, names: Sequence[str]) -> Room:
        """Take accounts out of a conversation; what they posted stays."""

        def work(db: sqlite3.Connection) -> Room:
            conversation = _conversation(db, cid)
            for name in names:
                account = _account(db, name)
                if not rooms.is_member(db, cid, account.uid):
                    raise UsageError(
                        f"{account.name!r} is not in {cid}", mend="see `sentinel hoop room list`"
                    )
                rooms.leave(db, cid, account.uid)
            return Room(conversation, tuple(rooms.members_of(db, cid)))

        return self._transact(work)

    def _token(self, db: sqlite3.Connection, uid: str) -> str:
        return accounts.issue_token(db, uid, "script", now_ms=self._now_ms(), expires_at_ms=None)

    def _transact(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        return transact(self._db, work)


@contextmanager
def directory(data: Path, *, create: bool = False, now_ms: Now = system_now_ms) -> Generator[Directory]:
    """Open a data directory for the block; only with `create` is a missing one made. Raises `ConfigError`."""
    db = connect(data, create=create)
    try:
        yield Directory(db, now_ms)
    finally:
        db.close()


def _account(db: sqlite3.Connection, name: str) -> Account:
    account = accounts.find_by_name(db, name)
    if account is None:
        raise UsageError(f"there is no account called {name!r}", mend="see `sentinel hoop account list`")
    return account


def _open_account(db: sqlite3.Connection, name: str) -> Account:
    account = _account(db, name)
    if accounts.is_disabled(db, account.uid):
        raise UsageError(f"the account {account.name!r} is disabled", mend="use another account")
    return account


def _conversation(db: sqlite3.Connection, cid: str) -> Conversation:
    for one in rooms.conversations_of(db, None):
        if one.cid == cid:
            return one
    raise UsageError(f"there is no conversation {cid}", mend="see `sentinel hoop room list`")
