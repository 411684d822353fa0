"""Conversations and who is in them, as rows. Each function is one step of somebody's transaction or one tiny read.

Membership is the only right there is: `require_member` stands on every path, and answers for a conversation that does
not exist as it does for one that is not the caller's. Source: spec 01 sections 2 and 3.
"""

import secrets
import sqlite3
from collections.abc import Iterable

from sentinel.core.model import Account, Conversation, Kind
from sentinel.server.problem import not_found, unprocessable


def is_member(db: sqlite3.Connection, cid: str, uid: str) -> bool:
    """Return whether the account is in the conversation."""
    return db.execute("SELECT 1 FROM members WHERE cid = ? AND uid = ?", (cid, uid)).fetchone() is not None


def require_member(db: sqlite3.Connection, cid: str, uid: str) -> None:
    """Raise `Problem` 404 unless the account is in the conversation."""
    if not is_member(db, cid, uid):
        raise not_found("conversation")


def member_uids(db: sqlite3.Connection, cid: str) -> frozenset[str]:
    """Return the uids in a conversation."""
    return frozenset(row[0] for row in db.execute("SELECT uid FROM members WHERE cid = ?", (cid,)))


def members_of(db: sqlite3.Connection, cid: str) -> list[Account]:
    """Return who is in a conversation, by name."""
    rows = db.execute(
        "SELECT a.uid, a.name, a.kind FROM members m JOIN accounts a USING (uid) WHERE m.cid = ? ORDER BY a.name_key",
        (cid,),
    )
    return [Account(row["uid"], row["name"], Kind(row["kind"])) for row in rows]


def conversations_of(db: sqlite3.Connection, uid: str | None) -> list[Conversation]:
    """Return an account's conversations, oldest first (None: all there are, for the operator)."""
    rows = db.execute(
        "SELECT cid, title, last_seq FROM conversations"
        " WHERE ?1 IS NULL OR cid IN (SELECT cid FROM members WHERE uid = ?1) ORDER BY created_at, cid",
        (uid,),
    )
    return [Conversation(row["cid"], row["title"], row["last_seq"]) for row in rows]


def add_conversation(db: sqlite3.Connection, title: str, uids: Iterable[str], *, now_ms: int) -> Conversation:
    """Make a conversation of these accounts, or raise `Problem` 422 for one that does not exist."""
    conversation = Conversation("c" + secrets.token_hex(8), title, 0)
    db.execute(
        "INSERT INTO conversations (cid, title, created_at) VALUES (?, ?, ?)",
        (conversation.cid, title, now_ms),
    )
    for uid in dict.fromkeys(uids):
        if db.execute("SELECT 1 FROM accounts WHERE uid = ? AND disabled = 0", (uid,)).fetchone() is None:
            raise unprocessable("members", f"there is no account {uid}")
        join(db, conversation.cid, uid, now_ms=now_ms)
    return conversation


def join(db: sqlite3.Connection, cid: str, uid: str, *, now_ms: int) -> None:
    """Put an account into a conversation; being in it already changes nothing."""
    db.execute("INSERT OR IGNORE INTO members (cid, uid, joined_at) VALUES (?, ?, ?)", (cid, uid, now_ms))


def leave(db: sqlite3.Connection, cid: str, uid: str) -> None:
    """Take an account out of a conversation; not being in it changes nothing."""
    db.execute("DELETE FROM members WHERE cid = ? AND uid = ?", (cid, uid))


def all_memberships(db: sqlite3.Connection) -> dict[str, frozenset[str]]:
    """Return every conversation's uids: what the fan-out goes by."""
    found: dict[str, set[str]] = {}
    for cid, uid in db.execute("SELECT cid, uid FROM members"):
        found.setdefault(cid, set()).add(uid)
    return {cid: frozenset(uids) for cid, uids in found.items()}


def change_counters(db: sqlite3.Connection) -> tuple[int, int]:
    """Return the counters that triggers keep: of access (accounts, tokens) and of membership."""
    (access,), (membership,) = db.execute("SELECT value FROM meta ORDER BY name").fetchall()
    return access, membership
