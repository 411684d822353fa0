"""The nouns of the system. Pure; frozen; no behaviour beyond what is said of the noun itself.

Source: spec 00 "Names we use", spec 01 section 2 (Message).
"""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


class Kind(StrEnum):
    """Who a member is, as the server says (law 8: never as a text says)."""

    HUMAN = "human"
    PERSONA = "persona"


class MessageType(StrEnum):
    """What a message carries."""

    TEXT = "text"
    VOICE = "voice"
    IMAGE = "image"
    FILE = "file"


class PresenceState(StrEnum):
    """What a persona tells the room about itself. `offline` is said by the server alone."""

    IDLE = "idle"
    WORKING = "working"
    FAILING = "failing"
    DEAD = "dead"
    OFFLINE = "offline"


@dataclass(frozen=True, slots=True)
class Account:
    """One account of a room backend."""

    uid: str
    name: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Member:
    """One member of a conversation, with its presence where the backend has one."""

    uid: str
    name: str
    kind: Kind
    state: PresenceState | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class Conversation:
    """A room. `last_seq` is the newest message it holds (0 when empty)."""

    cid: str
    title: str
    last_seq: int


@dataclass(frozen=True, slots=True)
class Media:
    """A voice, image or file: where it can be fetched (with our token), its content type and size."""

    id: str
    url: str
    type: str
    size: int
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """One message as the server stored it. `seq` is the cursor: strictly increasing per conversation."""

    id: str
    cid: str
    seq: int
    sender: Account
    sent_at: datetime
    type: MessageType = MessageType.TEXT
    text: str | None = None
    mentions: tuple[str, ...] = ()
    broadcast: bool = False
    media: Media | None = None
    reply_to: str | None = None
    answers: tuple[str, ...] = ()
    nonce: str | None = None
    hops: int = 0
    # A mention that the backend added only because of a reply (Matrix does; HOOP never). Kept apart: spec 02 section 3.
    reply_mentions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Outgoing:
    """What we ask a room to post. The bytes are fixed before the first try and never change (law 7)."""

    text: str | None
    nonce: str
    type: MessageType = MessageType.TEXT
    mentions: tuple[str, ...] = ()
    broadcast: bool = False
    media_id: str | None = None
    reply_to: str | None = None
    answers: tuple[str, ...] = ()
    hops: int = 0


@dataclass(frozen=True, slots=True)
class Page:
    """A page of history, oldest first, strictly newer than the cursor it was asked for."""

    messages: tuple[Message, ...]
    has_more: bool


@dataclass(frozen=True, slots=True)
class Resolution:
    """What `@name`s of a text mean: uids in order of first appearance, and names that fit several members."""

    mentions: tuple[str, ...] = ()
    broadcast: bool = False
    ambiguous: tuple[str, ...] = field(default=())
