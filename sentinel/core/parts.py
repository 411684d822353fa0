"""Decide how an answer becomes posts: its parts, their nonces, and whether what was read back is what was sent.

Pure. All lengths are code points, as rooms count them. Source: spec 02 section 4 "reply".
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import unquote

from sentinel.core.evidence import is_blank
from sentinel.core.model import Message, MessageType, Outgoing, Resolution
from sentinel.core.persona import Secret
from sentinel.core.splitting import split

NONCE_VERSION = 1
INTRO_CHARS = 600
FILE_NOTE = "(The whole answer is in the attached file.)"

LEAK_MIN_CHARS = 8
_SECRET_WORDS = ("KEY", "TOKEN", "SECRET", "PASS", "AUTH", "CREDENTIAL")
_CODINGS = ("utf-8", "utf-16-le", "utf-16-be")
_BACKSLASHED = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(.))", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Parts:
    """The answer as texts to be posted in this order."""

    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AsFile:
    """The answer as a short text and, posted after it, a file that holds all of it."""

    intro: str
    file_text: str


Plan: TypeAlias = Parts | AsFile


@dataclass(frozen=True, slots=True)
class Attachment:
    """An uploaded file that is posted after the answer."""

    type: MessageType
    media_id: str


def nonce(*, account: str, persona: str, cid: str, trigger_id: str, generation: int, part: int) -> str:
    """Return the nonce of one post: 128 bits of SHA-256 as 32 hex digits, the same for the same turn for ever.

    Args:
        account: uid of the posting account.
        persona: name of the persona.
        cid: the conversation.
        trigger_id: the lowest trigger id of the batch.
        generation: 0; raised only by a human's `/retry` after `rejected` or `needs_human`.
        part: 0 for the first part of the answer.
    """
    identity = json.dumps([NONCE_VERSION, account, persona, cid, trigger_id, generation, part])
    return hashlib.sha256(identity.encode("ascii")).hexdigest()[:32]


def plan(text: str, *, limit: int, max_parts: int, note: str = FILE_NOTE) -> Plan:
    """Return how an answer is posted: in at most `max_parts` parts, or else as an introduction and a file.

    Args:
        text: the answer.
        limit: the most code points that one post may hold.
        max_parts: how many posts a room can bear.
        note: the sentence that ends the introduction, in the persona's language.
    """
    texts = split(text, limit=limit)
    if len(texts) <= max_parts:
        return Parts(texts)
    room = min(limit, INTRO_CHARS) - len(note) - 2
    intro = f"{split(text, limit=room)[0]}\n\n{note}" if room > 0 else note[:limit]
    return AsFile(intro, text)


def posts(
    planned: Plan,
    *,
    nonces: Sequence[str],
    resolution: Resolution,
    answers: tuple[str, ...],
    reply_to: str | None = None,
    hops: int = 0,
    media_id: str | None = None,
    attached: Sequence[Attachment] = (),
) -> tuple[Outgoing, ...]:
    """Return the posts of a plan, in order.

    Mentions and broadcast ride on the last one, so that nobody is woken by half an answer; `answers`, `reply_to` and
    `hops` stand on each, so that any of them, found alone, says what it belongs to.

    Args:
        planned: what `plan` returned.
        nonces: one per post; more are ignored.
        resolution: of the whole answer.
        answers: the trigger ids that this answers.
        reply_to: the message that they reply to.
        hops: of the answer.
        media_id: the uploaded file of an `AsFile`; needed for that, and only for that.
        attached: uploaded files that follow the answer.

    Raises:
        ValueError: too few nonces, or no `media_id` for a file.
    """
    match planned:
        case Parts(texts):
            bodies: list[tuple[MessageType, str | None, str | None]] = [
                (MessageType.TEXT, text, None) for text in texts
            ]
        case AsFile(intro):
            if media_id is None:
                raise ValueError("an answer that goes as a file needs the media_id of its upload")
            bodies = [(MessageType.TEXT, intro, None), (MessageType.FILE, None, media_id)]
    bodies += [(one.type, None, one.media_id) for one in attached]
    if len(nonces) < len(bodies):
        raise ValueError(f"{len(bodies)} posts need as many nonces, not {len(nonces)}")
    last = len(bodies) - 1
    return tuple(
        Outgoing(
            text=text,
            nonce=nonces[index],
            type=kind,
            mentions=resolution.mentions if index == last else (),
            broadcast=resolution.broadcast and index == last,
            media_id=media,
            reply_to=reply_to,
            answers=answers,
            hops=hops,
        )
        for index, (kind, text, media) in enumerate(bodies)
    )


def matches(outgoing: Outgoing, message: Message, *, uid: str) -> bool:
    """Say whether a message that was read back is the post that `uid` sent: text, file, sender, nonce.

    The conversation is compared by the caller: an `Outgoing` does not name one.
    """
    media_id = message.media.id if message.media else None
    return (
        message.nonce == outgoing.nonce
        and message.sender.uid == uid
        and message.type is outgoing.type
        and (message.text or None) == (outgoing.text or None)
        and media_id == outgoing.media_id
    )


def secret_values(env: Mapping[str, Secret]) -> tuple[str, ...]:
    """Return the values of `<adapter>_env` that are secrets: long enough, and their key says so, in any case."""
    return tuple(
        secret.reveal()
        for key, secret in env.items()
        if len(secret.reveal()) >= LEAK_MIN_CHARS and any(word in key.upper() for word in _SECRET_WORDS)
    )


def leaks(text: str, secrets: Sequence[str]) -> bool:
    """Say whether one of `secrets` stands in `text`.

    It is also found percent-encoded, JSON- or markdown-escaped, and with white space, zero-width or control characters
    put between its characters. Secrets of fewer than 8 characters are not searched: they would be found everywhere.
    """
    readings = {text, unquote(text), _BACKSLASHED.sub(_unescaped, text)}
    squeezed = {_squeezed(one) for one in readings}
    return any(
        _stands_in(secret, readings) or _stands_in(_squeezed(secret), squeezed)
        for secret in secrets
        if len(secret) >= LEAK_MIN_CHARS
    )


def leaks_bytes(data: bytes, secrets: Sequence[str]) -> bool:
    """Say whether one of `secrets` stands in a file: as bytes of UTF-8 or UTF-16, or, in a text, as `leaks` reads it."""
    long_enough = [one for one in secrets if len(one) >= LEAK_MIN_CHARS]
    if any(secret.encode(coding) in data for secret in long_enough for coding in _CODINGS):
        return True
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return leaks(text, long_enough)


def _stands_in(secret: str, readings: set[str]) -> bool:
    return len(secret) >= LEAK_MIN_CHARS and any(secret in one for one in readings)


def _unescaped(escape: re.Match[str]) -> str:
    return chr(int(escape[1], 16)) if escape[1] else escape[2]


def _squeezed(text: str) -> str:
    return "".join(one for one in text if not is_blank(one))
