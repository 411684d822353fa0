"""Accounts, their tokens and their one-time codes, as rows. Each function is one step of somebody's transaction.

Tokens are 256 random bits and stored only as SHA-256; they are found by that hash, so that nothing is compared byte by
byte. A code has six digits, so what protects it is its five minutes, its five tries and the limits in front of it.
Source: spec 01 sections 2 and 3.
"""

import hashlib
import hmac
import secrets
import sqlite3
import unicodedata
from dataclasses import dataclass
from typing import Literal

from sentinel.core.errors import UsageError
from sentinel.core.model import Account, Kind

NAME_LIMIT_CHARS = 64
CODE_DIGITS = 6
CODE_LIFE_MS = 5 * 60 * 1000
CODE_TRIES = 5
_JOINERS = frozenset("\u200c\u200d")  # part of how some scripts and emoji are written
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


@dataclass(frozen=True, slots=True)
class Session:
    """A good token: whose it is, and until when (None: until it is rotated)."""

    account: Account
    token_hash: bytes
    source: Literal["script", "login"]
    expires_at_ms: int | None


def name_key(name: str) -> str:
    """Return what makes two names the same name: NFC, casefolded."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def check_name(name: str) -> str:
    """Return `name` in NFC, or raise `UsageError`: 1 to 64 characters, all of them seen, no space at either end."""
    name = unicodedata.normalize("NFC", name)
    if not 1 <= len(name) <= NAME_LIMIT_CHARS:
        raise UsageError(f"the name has {len(name)} characters", mend=f"use 1 to {NAME_LIMIT_CHARS}")
    if name != name.strip():
        raise UsageError("the name begins or ends with a space", mend="leave it out")
    if has_unseen(name):
        raise UsageError("the name holds a control or invisible character", mend="leave it out")
    return name


def has_unseen(text: str) -> bool:
    """Return whether a name or title holds what nobody sees, or what steers a terminal that shows it."""
    return any(unicodedata.category(one) in _UNSEEN and one not in _JOINERS for one in text)


def token_hash(token: str) -> bytes:
    """Return what is stored and looked up of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def add_account(db: sqlite3.Connection, name: str, kind: Kind, *, now_ms: int) -> Account:
    """Add an account whose name nobody has yet."""
    name = check_name(name)
    if find_by_name(db, name) is not None:
        raise UsageError(f"an account called {name!r} exists already", mend="choose another name")
    account = Account("u" + secrets.token_hex(8), name, kind)
    db.execute(
        "INSERT INTO accounts (uid, name, name_key, kind, created_at) VALUES (?, ?, ?, ?, ?)",
        (account.uid, account.name, name_key(name), str(kind), now_ms),
    )
    return account


def find_by_name(db: sqlite3.Connection, name: str) -> Account | None:
    """Return the account of that name, disabled or not."""
    row = db.execute("SELECT uid, name, kind FROM accounts WHERE name_key = ?", (name_key(name),)).fetchone()
    return Account(row["uid"], row["name"], Kind(row["kind"])) if row else None


def account_json(account: Account) -> dict[str, str]:
    """Return an account as the wire shows it: `{uid, name, kind}`."""
    return {"uid": account.uid, "name": account.name, "kind": str(account.kind)}


def is_disabled(db: sqlite3.Connection, uid: str) -> bool:
    """Return whether the account may no longer log in."""
    row = db.execute("SELECT disabled FROM accounts WHERE uid = ?", (uid,)).fetchone()
    return row is None or bool(row["disabled"])


def issue_token(
    db: sqlite3.Connection,
    uid: str,
    source: Literal["script", "login"],
    *,
    now_ms: int,
    expires_at_ms: int | None,
) -> str:
    """Store the hash of a new token and return the token, which is nowhere else."""
    token = secrets.token_urlsafe(32)
    db.execute(
        "INSERT INTO tokens (hash, uid, source, created_at, expires_at) VALUES (?, ?, ?, ?, ?)",
        (token_hash(token), uid, source, now_ms, expires_at_ms),
    )
    return token


def end_token(db: sqlite3.Connection, hashed: bytes) -> None:
    """Log out: this token is good no longer."""
    db.execute("DELETE FROM tokens WHERE hash = ?", (hashed,))


def end_expired(db: sqlite3.Connection, uid: str, *, now_ms: int) -> None:
    """Forget an account's sessions that ran out."""
    db.execute("DELETE FROM tokens WHERE uid = ? AND expires_at <= ?", (uid, now_ms))


def end_access(db: sqlite3.Connection, uid: str) -> None:
    """End every token and code of an account."""
    db.execute("DELETE FROM tokens WHERE uid = ?", (uid,))
    db.execute("DELETE FROM codes WHERE uid = ?", (uid,))


def disable(db: sqlite3.Connection, uid: str) -> None:
    """Close an account; its messages and memberships stay."""
    db.execute("UPDATE accounts SET disabled = 1 WHERE uid = ?", (uid,))
    end_access(db, uid)


def session_of(db: sqlite3.Connection, hashed: bytes, *, now_ms: int) -> Session | None:
    """Return the session of a token's hash, if the token is good and its account open."""
    row = db.execute(
        "SELECT t.uid, t.source, t.expires_at, a.name, a.kind FROM tokens t JOIN accounts a USING (uid)"
        " WHERE t.hash = ? AND a.disabled = 0",
        (hashed,),
    ).fetchone()
    if row is None or (row["expires_at"] is not None and row["expires_at"] <= now_ms):
        return None
    return Session(
        Account(row["uid"], row["name"], Kind(row["kind"])), hashed, row["source"], row["expires_at"]
    )


def issue_code(db: sqlite3.Connection, uid: str, *, now_ms: int) -> str:
    """Store the hash of a new one-time code, which replaces an older one, and return the code."""
    code = f"{secrets.randbelow(10**CODE_DIGITS):0{CODE_DIGITS}}"
    db.execute(
        "INSERT OR REPLACE INTO codes (uid, hash, expires_at, tries_left) VALUES (?, ?, ?, ?)",
        (uid, _code_hash(uid, code), now_ms + CODE_LIFE_MS, CODE_TRIES),
    )
    return code


def redeem_code(db: sqlite3.Connection, uid: str, code: str, *, now_ms: int) -> bool:
    """Return whether `code` is the account's live code; it is spent now. A wrong one costs one of its five tries."""
    row = db.execute("SELECT hash, expires_at, tries_left FROM codes WHERE uid = ?", (uid,)).fetchone()
    if row is None or row["expires_at"] <= now_ms or is_disabled(db, uid):
        return False
    is_right = hmac.compare_digest(row["hash"], _code_hash(uid, code))
    if is_right or row["tries_left"] <= 1:
        db.execute("DELETE FROM codes WHERE uid = ?", (uid,))
    else:
        db.execute("UPDATE codes SET tries_left = tries_left - 1 WHERE uid = ?", (uid,))
    return is_right


def _code_hash(uid: str, code: str) -> bytes:
    return hashlib.sha256(f"{uid}:{code}".encode("utf-8", "surrogatepass")).digest()
