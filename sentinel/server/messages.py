"""The one path on which a `SendInput` becomes a stored message, and the reads of what was stored.

Inside one transaction: the sender is a member; the nonce was never used by it here, or was used for the very same
input (then the *first* message is the answer, for ever); `reply_to` stands in this conversation; the media is the
sender's own; mentions are cut down to members (`filterMentions`); hops are set by the server for personas; `seq` is the
next of the conversation. Sending never resolves text. Source: spec 01 section 2.
"""

import hashlib
import json
import secrets
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from sentinel.core.model import Account, Kind
from sentinel.rooms.hoop_wire import HOPS_LIMIT, SendInput
from sentinel.server.clock import rfc3339
from sentinel.server.problem import Problem, not_found, unprocessable
from sentinel.server.rooms import member_uids, require_member

_SELECT = (
    "SELECT m.*, a.name AS sender_name, a.kind AS sender_kind,"
    " d.type AS media_type, d.size AS media_size, d.name AS media_name"
    " FROM messages m JOIN accounts a ON a.uid = m.uid LEFT JOIN media d ON d.id = m.media_id "
)


@dataclass(frozen=True, slots=True)
class Posted:
    """The message that stands for a send, as the wire shows it. `is_new` is false for a repeated nonce."""

    message: dict[str, Any]
    is_new: bool


def post(db: sqlite3.Connection, sender: Account, cid: str, send: SendInput, *, now_ms: int) -> Posted:
    """Store one send, inside the writer's transaction.

    Raises:
        Problem: 404 not a member; 409 the nonce stands for another input; 422 `reply_to` or `media_id` is not there.
    """
    members = member_uids(db, cid)
    if sender.uid not in members:
        raise not_found("conversation")
    fingerprint = input_hash(send)
    if send.nonce is not None and (first := _row_of_nonce(db, cid, sender.uid, send.nonce)) is not None:
        if first["input_hash"] != fingerprint:
            raise _nonce_conflict()
        return Posted(_wire(first), is_new=False)
    hops = _hops(db, sender, cid, send)
    _check_media(db, sender, send)
    (seq,) = db.execute(
        "UPDATE conversations SET last_seq = last_seq + 1 WHERE cid = ? RETURNING last_seq", (cid,)
    ).fetchone()
    mentions = [uid for uid in dict.fromkeys(send.mentions) if uid in members]
    db.execute(
        "INSERT INTO messages (cid, seq, id, uid, sent_at, type, text, mentions, broadcast, media_id, reply_to,"
        " answers, nonce, hops, input_hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(cid, seq, "m" + secrets.token_hex(12), sender.uid, now_ms, send.type, send.text),
            *(json.dumps(mentions), send.broadcast, send.media_id, send.reply_to),
            *(json.dumps(send.answers), send.nonce, hops, fingerprint),
        ),
    )
    return Posted(
        _wire(db.execute(_SELECT + "WHERE m.cid = ? AND m.seq = ?", (cid, seq)).fetchone()), is_new=True
    )


def input_hash(send: SendInput) -> bytes:
    """Return the hash of everything that was *sent*, before any filtering.

    Defaults are left out, so that a field which a later version adds does not change the hash of an old input.
    """
    canonical = json.dumps(send.model_dump(mode="json", exclude_defaults=True), sort_keys=True)
    return hashlib.sha256(canonical.encode()).digest()


def page(db: sqlite3.Connection, uid: str, cid: str, *, after: int, limit: int) -> dict[str, Any]:
    """Return `{messages, has_more}`, oldest first, `seq` strictly above `after`.

    A page never skips a message that commits later: `seq` is given out inside the one writer's transaction, so every
    smaller one is committed already.
    """
    require_member(db, cid, uid)
    rows = db.execute(
        _SELECT + "WHERE m.cid = ? AND m.seq > ? ORDER BY m.seq LIMIT ?", (cid, after, limit + 1)
    ).fetchall()
    return {"messages": [_wire(row) for row in rows[:limit]], "has_more": len(rows) > limit}


def find(db: sqlite3.Connection, uid: str, cid: str, mid: str) -> dict[str, Any]:
    """Return one message of a conversation, or raise `Problem` 404."""
    require_member(db, cid, uid)
    return _found(db.execute(_SELECT + "WHERE m.id = ? AND m.cid = ?", (mid, cid)).fetchone())


def find_by_nonce(db: sqlite3.Connection, uid: str, cid: str, nonce: str) -> dict[str, Any]:
    """Return the caller's own message under a nonce, or raise `Problem` 404: the readback."""
    require_member(db, cid, uid)
    return _found(_row_of_nonce(db, cid, uid, nonce))


def _row_of_nonce(db: sqlite3.Connection, cid: str, uid: str, nonce: str) -> sqlite3.Row | None:
    return db.execute(_SELECT + "WHERE m.uid = ? AND m.cid = ? AND m.nonce = ?", (uid, cid, nonce)).fetchone()


def _found(row: sqlite3.Row | None) -> dict[str, Any]:
    if row is None:
        raise not_found("message")
    return _wire(row)


def _hops(db: sqlite3.Connection, sender: Account, cid: str, send: SendInput) -> int:
    """Return 0 for a human; for a persona max(stated, that of the message replied to + 1, 1)."""
    replied_hops = -1
    if send.reply_to is not None:
        row = db.execute(
            "SELECT hops FROM messages WHERE id = ? AND cid = ?", (send.reply_to, cid)
        ).fetchone()
        if row is None:
            raise unprocessable("reply_to", "there is no such message in this conversation")
        replied_hops = int(row["hops"])
    if sender.kind is Kind.HUMAN:
        return 0
    return min(HOPS_LIMIT, max(send.hops, replied_hops + 1, 1))


def _check_media(db: sqlite3.Connection, sender: Account, send: SendInput) -> None:
    if send.media_id is None:
        return
    row = db.execute("SELECT uid FROM media WHERE id = ?", (send.media_id,)).fetchone()
    if row is None or row["uid"] != sender.uid:
        raise unprocessable("media_id", "there is no such upload of yours")


def _nonce_conflict() -> Problem:
    return Problem(
        HTTPStatus.CONFLICT,
        "nonce-conflict",
        "another message of yours stands under this nonce, with other content: read it back by its nonce",
    )


def media_url(media_id: str) -> str:
    """Return where media is fetched, relative to the server's base."""
    return f"/v1/media/{media_id}"


def _wire(row: sqlite3.Row) -> dict[str, Any]:
    """Return a row as the wire's Message; absent things are left out, lists and flags never are."""
    message: dict[str, Any] = {
        "id": row["id"],
        "cid": row["cid"],
        "seq": row["seq"],
        "sender": {"uid": row["uid"], "name": row["sender_name"], "kind": row["sender_kind"]},
        "sent_at": rfc3339(row["sent_at"]),
        "type": row["type"],
        "mentions": json.loads(row["mentions"]),
        "broadcast": bool(row["broadcast"]),
        "answers": json.loads(row["answers"]),
        "hops": row["hops"],
    }
    message.update(_present((name, row[name]) for name in ("text", "reply_to", "nonce")))
    if row["media_id"] is not None:
        message["media"] = {
            "id": row["media_id"],
            "url": media_url(row["media_id"]),
            "type": row["media_type"],
            "size": row["media_size"],
            **_present([("name", row["media_name"])]),
        }
    return message


def _present(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    return {name: value for name, value in pairs if value is not None}
