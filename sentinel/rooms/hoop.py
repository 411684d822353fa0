"""The Room port over the HOOP wire: values of the core in, values of the core out.

The bytes of HTTP are in `hoop_http.py`, the live line is in `doorbell.py`; this page says which call is which.
Source: spec 01 sections 1 and 2.
"""

import asyncio
import json
import urllib.parse
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import cache
from typing import BinaryIO, TypeVar

from pydantic import TypeAdapter, ValidationError

from sentinel.core.errors import ConfigError, NotFound, Rejected, Unavailable
from sentinel.core.model import (
    Account,
    Conversation,
    Media,
    Member,
    Message,
    MessageType,
    Outgoing,
    Page,
    PresenceState,
)
from sentinel.core.persona import Secret
from sentinel.core.ports import Doorbell, NonceMemory, RoomTraits
from sentinel.rooms.address import Address
from sentinel.rooms.doorbell import LiveLine
from sentinel.rooms.hoop_http import HoopHttp, tls
from sentinel.rooms.hoop_wire import (
    MEDIA_LIMIT_BYTES,
    PAGE_LIMIT,
    TEXT_LIMIT_CHARS,
    SendInput,
    WireAccount,
    WireConversation,
    WireMedia,
    WireMember,
    WireMessage,
    WirePage,
)
from sentinel.rooms.timing import Timing

TRAITS = RoomTraits(
    nonce_memory=NonceMemory.FOR_GOOD,
    text_limit_chars=TEXT_LIMIT_CHARS,
    media_limit_bytes=MEDIA_LIMIT_BYTES,
    server_filters_mentions=True,
)

Wire = TypeVar("Wire")
Value = TypeVar("Value")


class HoopRoom:
    """One account's view of a HOOP server; implements the Room port.

    Args:
        server: `http(s)://host[:port][/path]`.
        token: the account's bearer token; it leaves only in a header, only to that server.
        draw: uniform in [0, 1), for jitter.
        timing: every time limit and wait.
        sleep: how waits between tries are waited.

    Raises:
        ConfigError: the address or the token cannot be used.
    """

    def __init__(
        self,
        server: str,
        token: Secret,
        *,
        draw: Callable[[], float],
        timing: Timing | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        timing = timing or Timing()
        _check_token(token)
        self._address = Address.parse(server)
        context = tls(self._address)
        self._http = HoopHttp(self._address, token, context=context, timing=timing, draw=draw, sleep=sleep)
        self._live = LiveLine(self._address, token, context=context, timing=timing, draw=draw, sleep=sleep)

    @property
    def traits(self) -> RoomTraits:
        """What HOOP can do."""
        return TRAITS

    @property
    def ignored_frames(self) -> int:
        """How many frames of the live line were garbage, unknown or of no use, since this room was opened."""
        return self._live.ignored_frames

    async def who_am_i(self) -> Account:
        """GET /v1/me."""
        return await self._get(WireAccount, WireAccount.value, "me")

    def doorbells(self) -> AsyncIterator[Doorbell]:
        """WS /v1/ws; one iterator at a time: a newer one takes over and the older one ends."""
        return self._live.doorbells()

    async def conversations(self) -> tuple[Conversation, ...]:
        """GET /v1/conversations."""
        return await self._get(list[WireConversation], _conversations, "conversations")

    async def history(self, cid: str, *, after: int, limit: int = PAGE_LIMIT) -> Page:
        """GET /v1/conversations/{cid}/messages?after=SEQ&limit=N."""
        query = f"?after={after}&limit={max(1, min(limit, PAGE_LIMIT))}"
        return await self._get(WirePage, _page, "conversations", cid, "messages", query=query)

    async def members(self, cid: str) -> tuple[Member, ...]:
        """GET /v1/conversations/{cid}/members."""
        return await self._get(list[WireMember], _members, "conversations", cid, "members")

    async def find(self, cid: str, message_id: str) -> Message:
        """GET /v1/conversations/{cid}/messages/{mid}."""
        return await self._get(WireMessage, WireMessage.value, "conversations", cid, "messages", message_id)

    async def find_by_nonce(self, cid: str, nonce: str) -> Message | None:
        """GET /v1/conversations/{cid}/messages/by-nonce/{nonce}."""
        way = ("conversations", cid, "messages", "by-nonce", nonce)
        try:
            return await self._get(WireMessage, WireMessage.value, *way)
        except NotFound:
            return None

    async def post(self, cid: str, outgoing: Outgoing) -> Message:
        """POST /v1/conversations/{cid}/text or /media, once; what the server would refuse anyway is not sent."""
        body = _send_input(outgoing).model_dump_json(exclude_defaults=True).encode()
        way = "text" if outgoing.type is MessageType.TEXT else "media"
        url = self._address.url("conversations", cid, way)
        return _parsed(
            WireMessage,
            WireMessage.value,
            await self._http.post(url, body),
            "the post, which may have been applied",
        )

    async def typing(self, cid: str, *, on: bool) -> None:
        """Say `typing {cid, on}` on the live line; without one nothing is said."""
        await self._live.typing(cid, on=on)

    async def presence(self, state: PresenceState, detail: str | None = None) -> None:
        """PUT /v1/presence."""
        said = {"state": state.value} if detail is None else {"state": state.value, "detail": detail}
        await self._http.put(self._address.url("presence"), json.dumps(said).encode())

    async def download(self, media: Media, into: BinaryIO, *, cap_bytes: int) -> int:
        """GET the media's url, if it is the server's own, into a seekable file; a failure leaves the file as it was."""
        url = self._address.own(media.url)
        if media.size > cap_bytes:
            raise Rejected(f"the media is larger than {cap_bytes} bytes", status=413)
        return await self._http.download(url, into, cap_bytes=cap_bytes)

    async def upload(self, data: bytes, *, content_type: str, name: str) -> Media:
        """POST /v1/media?name=…, the bytes as they are, once."""
        if len(data) > MEDIA_LIMIT_BYTES:
            raise Rejected(f"media of {len(data)} bytes is over the limit of {MEDIA_LIMIT_BYTES}", status=413)
        if not (content_type.isascii() and content_type.isprintable()):
            raise Rejected("the content type is not one", status=415)
        url = self._address.url("media", query=f"?name={urllib.parse.quote(name, safe='')}")
        body = await self._http.upload(url, data, content_type=content_type)
        return _parsed(WireMedia, WireMedia.value, body, "the upload")

    async def aclose(self) -> None:
        """Close the live line, which ends its iterator, and every connection."""
        await self._live.aclose()
        await self._http.aclose()

    async def _get(
        self, shape: type[Wire], value: Callable[[Wire], Value], *segments: str, query: str = ""
    ) -> Value:
        body = await self._http.get(self._address.url(*segments, query=query))
        return _parsed(shape, value, body, f"GET /v1/{'/'.join(segments)}")


def _check_token(token: Secret) -> None:
    value = token.reveal()
    if not value or not value.isascii() or not value.isprintable() or " " in value:
        # Checked here, because a library that is handed such a header shows it in its error.
        raise ConfigError(
            "the token is empty or holds characters that no token has", mend="write it into its file again"
        )


def _send_input(outgoing: Outgoing) -> SendInput:
    length = len(outgoing.text or "")
    if length > TEXT_LIMIT_CHARS:
        mend = "cut it into parts"
        raise Rejected(
            f"a text of {length} characters is over the limit of {TEXT_LIMIT_CHARS}", status=413, mend=mend
        )
    try:
        return SendInput(
            type=outgoing.type.value,
            text=outgoing.text,
            media_id=outgoing.media_id,
            mentions=list(outgoing.mentions),
            broadcast=outgoing.broadcast,
            reply_to=outgoing.reply_to,
            answers=list(outgoing.answers),
            nonce=outgoing.nonce,
            hops=outgoing.hops,
        )
    except ValidationError as wrong:
        first = wrong.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(step) for step in first["loc"])
        raise Rejected(f"the post is not one: {where or 'message'}: {first['msg']}", status=422) from None


def _conversations(found: list[WireConversation]) -> tuple[Conversation, ...]:
    return tuple(one.value() for one in found)


def _members(found: list[WireMember]) -> tuple[Member, ...]:
    return tuple(one.member() for one in found)


def _page(page: WirePage) -> Page:
    return Page(tuple(one.value() for one in page.messages), page.has_more)


@cache
def _adapter(shape: type[Wire]) -> TypeAdapter[Wire]:
    return TypeAdapter(shape)


def _parsed(shape: type[Wire], value: Callable[[Wire], Value], body: bytes, what: str) -> Value:
    try:
        return value(_adapter(shape).validate_json(body))
    except (ValidationError, OverflowError) as wrong:  # overflow: a time that no calendar holds
        # No `from wrong`: its text shows what was received, and that may be somebody's message.
        kind = wrong.errors(include_input=False)[0]["type"] if isinstance(wrong, ValidationError) else "time"
        raise Unavailable(
            f"{what}: the server answered with something that is not HOOP v1 ({kind})",
            mend="check the server's address and version",
        ) from None
