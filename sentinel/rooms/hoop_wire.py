"""The HOOP wire protocol v1 as models: the one place where its bytes become values, for server and client alike.

`SendInput` is parsed whole by the text call, the media call and the WebSocket frame: a field that one path drops is
the fault that this protocol was made to end. Unknown fields in what a client sends are refused; unknown fields in what
a server sends are ignored, so that an older client survives a newer server. Source: spec 01 section 2.
"""

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from sentinel.core.model import (
    Account,
    Conversation,
    Kind,
    Media,
    Member,
    Message,
    MessageType,
    PresenceState,
)

TEXT_LIMIT_CHARS = 20_000
FRAME_LIMIT_BYTES = 1024 * 1024
MEDIA_LIMIT_BYTES = 25 * 1024 * 1024
PAGE_LIMIT = 200
HOPS_LIMIT = 1_000_000
MENTIONS_LIMIT = 500

Identifier = Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9._:@!$-]+$")]


class Request(BaseModel):
    """What a client sends: unknown fields and loose types are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class SendInput(Request):
    """The one model of a post, for all three paths."""

    type: Literal["text", "voice", "image", "file"] = "text"
    text: Annotated[str, StringConstraints(max_length=TEXT_LIMIT_CHARS)] | None = None
    media_id: Identifier | None = None
    mentions: Annotated[list[Identifier], Field(max_length=MENTIONS_LIMIT)] = []
    broadcast: bool = False
    reply_to: Identifier | None = None
    answers: Annotated[list[Identifier], Field(max_length=MENTIONS_LIMIT)] = []
    nonce: Identifier | None = None
    hops: Annotated[int, Field(ge=0, le=HOPS_LIMIT)] = 0

    @model_validator(mode="after")
    def _has_a_body(self) -> "SendInput":
        if self.type == "text" and (self.text is None or not self.text.strip()):
            raise ValueError("a message of type text needs a text that is not blank")
        if self.type == "text" and self.media_id is not None:
            raise ValueError("media_id goes with type voice, image or file")
        if self.type != "text" and self.media_id is None:
            raise ValueError(f"a message of type {self.type} needs a media_id")
        return self


class Reply(BaseModel):
    """What a server sends: unknown fields are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class WireAccount(Reply):
    """`{uid, name, kind}`: a sender, and the answer of `GET /v1/me`."""

    uid: str
    name: str
    kind: Literal["human", "persona"]

    def value(self) -> Account:
        """Return the noun of the core."""
        return Account(self.uid, self.name, Kind(self.kind))


class WireMember(WireAccount):
    """A member, with its presence."""

    state: Literal["idle", "working", "failing", "dead", "offline"] | None = None
    detail: str | None = None

    def member(self) -> Member:
        """Return the noun of the core."""
        state = PresenceState(self.state) if self.state else None
        return Member(self.uid, self.name, Kind(self.kind), state, self.detail)


class WireMedia(Reply):
    """`{id, url, type, size, name?}`; `url` is relative to the server's base."""

    id: str
    url: str
    type: str
    size: int
    name: str | None = None

    def value(self) -> Media:
        """Return the noun of the core."""
        return Media(self.id, self.url, self.type, self.size, self.name)


class WireMessage(Reply):
    """One stored message."""

    id: str
    cid: str
    seq: int
    sender: WireAccount
    sent_at: datetime
    type: Literal["text", "voice", "image", "file"]
    text: str | None = None
    mentions: list[str] = []
    broadcast: bool = False
    media: WireMedia | None = None
    reply_to: str | None = None
    answers: list[str] = []
    nonce: str | None = None
    hops: int = 0

    def value(self) -> Message:
        """Return the noun of the core."""
        return Message(
            id=self.id,
            cid=self.cid,
            seq=self.seq,
            sender=self.sender.value(),
            sent_at=self.sent_at.astimezone(UTC),
            type=MessageType(self.type),
            text=self.text,
            mentions=tuple(self.mentions),
            broadcast=self.broadcast,
            media=self.media.value() if self.media else None,
            reply_to=self.reply_to,
            answers=tuple(self.answers),
            nonce=self.nonce,
            hops=self.hops,
        )


class WirePage(Reply):
    """`{messages[], has_more}`."""

    messages: list[WireMessage]
    has_more: bool


class WireConversation(Reply):
    """`{cid, title, members, last_seq}`; `last_seq` is the newest message's, 0 when there is none."""

    cid: str
    title: str
    members: list[WireMember] = []
    last_seq: int = 0

    def value(self) -> Conversation:
        """Return the noun of the core."""
        return Conversation(self.cid, self.title, self.last_seq)


class Frame(Reply):
    """A WebSocket frame from the server: its type, and whatever else it carries."""

    model_config = ConfigDict(extra="allow", frozen=True)

    type: str

    def fields(self) -> dict[str, Any]:
        """Return everything beside `type`."""
        return dict(self.model_extra or {})
