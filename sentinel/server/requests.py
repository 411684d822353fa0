"""What clients send beside `SendInput`: one strict model a call (spec 01 section 2)."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints

from sentinel.rooms.hoop_wire import MENTIONS_LIMIT, TEXT_LIMIT_CHARS, Identifier, Request
from sentinel.server.accounts import has_unseen

TITLE_LIMIT_CHARS = 200
DETAIL_LIMIT_CHARS = 500
RENDER_LIMIT = 200

Text = Annotated[str, StringConstraints(max_length=TEXT_LIMIT_CHARS)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=256)]


def _seen(text: str) -> str:
    if has_unseen(text):
        raise ValueError("holds a control or invisible character")
    return text


class OtpRequest(Request):
    """`POST /v1/auth/otp/request`."""

    account: Name


class OtpVerify(Request):
    """`POST /v1/auth/otp/verify`."""

    account: Name
    code: Annotated[str, StringConstraints(min_length=1, max_length=64)]


class NewConversation(Request):
    """`POST /v1/conversations`; the caller is a member without being named."""

    title: Annotated[
        str,
        StringConstraints(min_length=1, max_length=TITLE_LIMIT_CHARS, pattern=r"\S"),
        AfterValidator(_seen),
    ]
    members: Annotated[tuple[Identifier, ...], Field(max_length=MENTIONS_LIMIT, strict=False)] = ()


class PresenceInput(Request):
    """`PUT /v1/presence`; `offline` is the server's to say."""

    state: Literal["idle", "working", "failing", "dead"]
    detail: Annotated[str, StringConstraints(max_length=DETAIL_LIMIT_CHARS)] | None = None


class ResolveInput(Request):
    """`POST /v1/conversations/{cid}/mentions/resolve`."""

    text: Text


class RenderInput(Request):
    """`POST /page/render`: markdown of messages -> safe HTML, for the page only."""

    texts: Annotated[list[Text], Field(max_length=RENDER_LIMIT)]


class AuthFrame(Request):
    """The first frame of a client that could not set the `Authorization` header."""

    type: Literal["auth"]
    token: Annotated[str, StringConstraints(min_length=1, max_length=512)]


class TypingFrame(Request):
    """`typing {cid, on}`."""

    type: Literal["typing"]
    cid: Identifier
    on: bool


class SendFrame(Request):
    """What a `message.send` frame holds beside its SendInput."""

    ref: Annotated[str, StringConstraints(max_length=128)] | int | None = None
    cid: Identifier
