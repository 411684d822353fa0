"""A Room in memory with fault switches: a simulator of a backend, not a mock of calls.

    server = FakeServer()
    ann, gode = server.account("ann"), server.account("Gode", Kind.PERSONA)
    cid = server.conversation("lab", ann, gode)
    room = FakeRoom(server, gode.uid)
    room.faults.on("post", drop_after())

The contract suite (tests/contracts) holds it to what the real HOOP client and server do.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO, TypeVar
from urllib.parse import urlsplit

from sentinel.core.errors import NonceConflict, RateLimited, Rejected, RoomError, Unauthorized, Unavailable
from sentinel.core.model import (
    Account,
    Conversation,
    Kind,
    Media,
    Member,
    Message,
    MessageType,
    Outgoing,
    Page,
    PresenceState,
)
from sentinel.core.ports import Connected, Disconnected, Doorbell, NonceMemory, Rang, RoomTraits, Superseded
from sentinel.rooms.hoop_wire import MEDIA_LIMIT_BYTES, TEXT_LIMIT_CHARS
from tests.fakes.fake_faults import (
    Delay,
    DropAfter,
    Faults,
    Forge,
    LateVisibility,
    Refuse,
    delay,
    drop_after,
    drop_before,
    forge,
    late_visibility,
    rate_limited,
    reject,
    unauthorized,
)
from tests.fakes.fake_server import FakeServer, Line

__all__ = [
    "Call",
    "FakeRoom",
    "FakeServer",
    "Faults",
    "Kind",
    "MessageType",
    "NonceConflict",
    "NonceMemory",
    "RateLimited",
    "Rejected",
    "Unauthorized",
    "Unavailable",
    "delay",
    "drop_after",
    "drop_before",
    "forge",
    "late_visibility",
    "rate_limited",
    "reject",
    "unauthorized",
]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Call:
    """One call that was made, before any fault took effect."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)


class FakeRoom:
    """One account's view of a `FakeServer`; implements the Room port.

    `calls` records every call in order. After a simulated restart make a new `FakeRoom` on the same server.
    """

    def __init__(self, server: FakeServer, uid: str, *, faults: Faults | None = None) -> None:
        self.server = server
        self.uid = uid
        self.faults = faults or Faults()
        self.calls: list[Call] = []
        self.closed = False
        self._line: Line | None = None
        self._mended = asyncio.Event()
        self._mended.set()

    @property
    def traits(self) -> RoomTraits:
        return RoomTraits(
            nonce_memory=self.server.nonce_memory,
            text_limit_chars=TEXT_LIMIT_CHARS,
            media_limit_bytes=MEDIA_LIMIT_BYTES,
            server_filters_mentions=True,
            nonce_window_s=self.server.nonce_window_s,
        )

    # What a test does to it and asks of it.

    def called(self, name: str) -> list[Call]:
        """Return the calls of one name."""
        return [one for one in self.calls if one.name == name]

    @property
    def connected(self) -> bool:
        """Whether a doorbell line is up."""
        return self._line in self.server.lines and not (self._line and self._line.is_down)

    def cut_doorbell(self, *, stay_down: bool = False) -> None:
        """Cut the live line: it reconnects at once, or with `stay_down` only after `mend_doorbell()`. Rings get lost."""
        if stay_down:
            self._mended.clear()
        if self._line in self.server.lines:
            self._line.is_down = True
            self._line.queue.put_nowait(Disconnected("the fake cut the line", 0.0))

    def mend_doorbell(self) -> None:
        """Let a line that stays down reconnect."""
        self._mended.set()

    def gone(self) -> None:
        """Take the whole server away from this account: every call and the live line."""
        self.faults.gone()
        self.cut_doorbell(stay_down=True)

    def back(self) -> None:
        """End `gone()`."""
        self.faults.back()
        self.mend_doorbell()

    def supersede(self) -> None:
        """Let another process of this account take the live line over."""
        if self._line in self.server.lines:
            self.server.disconnect(self._line)
            self._line.queue.put_nowait(Superseded())

    def ring(self, cid: str, seq: int) -> None:
        """Ring by hand: a doorbell for whatever a test wants, true or not."""
        if self._line is not None:
            self._line.queue.put_nowait(Rang(cid, seq))

    # The port.

    async def who_am_i(self) -> Account:
        return await self._do("who_am_i", lambda: self.server.who(self.uid))

    async def doorbells(self) -> AsyncIterator[Doorbell]:
        reconnects = 0
        line = Line(self.uid)
        try:
            while True:
                await self._mended.wait()
                fault = self._began("doorbells")
                try:
                    await _before(fault)
                except Unauthorized:
                    raise
                except RoomError as broken:
                    yield Disconnected(str(broken), 0.0)
                    await asyncio.sleep(0)
                    continue
                line = Line(self.uid)
                self.server.connect(line)
                self._line = line
                yield Connected(reconnects)
                reconnects += 1
                while not isinstance(bell := await line.queue.get(), Disconnected):
                    yield bell
                    if isinstance(bell, Superseded):
                        return
                self.server.disconnect(line)
                yield bell
        finally:
            self.server.disconnect(line)

    async def conversations(self) -> tuple[Conversation, ...]:
        return await self._do("conversations", lambda: self.server.conversations_of(self.uid))

    async def history(self, cid: str, *, after: int, limit: int = 200) -> Page:
        return await self._do(
            "history",
            lambda: self.server.page(self.uid, cid, after=after, limit=limit),
            cid=cid,
            after=after,
            limit=limit,
        )

    async def members(self, cid: str) -> tuple[Member, ...]:
        return await self._do("members", lambda: self.server.members_of(self.uid, cid), cid=cid)

    async def find(self, cid: str, message_id: str) -> Message:
        return await self._do(
            "find", lambda: self.server.find(self.uid, cid, message_id), cid=cid, message_id=message_id
        )

    async def find_by_nonce(self, cid: str, nonce: str) -> Message | None:
        return await self._do(
            "find_by_nonce", lambda: self.server.find_by_nonce(self.uid, cid, nonce), cid=cid, nonce=nonce
        )

    async def post(self, cid: str, outgoing: Outgoing) -> Message:
        if len(outgoing.text or "") > TEXT_LIMIT_CHARS:
            raise Rejected("the text is too long", status=413)
        fault = self._began("post", cid=cid, outgoing=outgoing)
        await _before(fault)
        if isinstance(fault, Forge):
            forged = self.server.post(self.uid, cid, replace(outgoing, text=fault.text))
            if fault.answer == "stored":
                return forged
            if fault.answer == "lost":
                raise _lost()
        hidden = fault.reads if isinstance(fault, LateVisibility) else 0
        posted = self.server.post(self.uid, cid, outgoing, hidden_reads=hidden)
        await _after(fault)
        return posted

    async def typing(self, cid: str, *, on: bool) -> None:
        change = self.server.typing.add if on else self.server.typing.discard
        await self._do("typing", lambda: change((cid, self.uid)), cid=cid, on=on)

    async def presence(self, state: PresenceState, detail: str | None = None) -> None:
        def apply() -> None:
            self.server.presence[self.uid] = (state, detail)

        await self._do("presence", apply, state=state, detail=detail)

    async def download(self, media: Media, into: BinaryIO, *, cap_bytes: int) -> int:
        def apply() -> int:
            if urlsplit(media.url).netloc:
                raise Rejected("the media lies on another server", status=400)
            data = self.server.media_bytes(self.uid, media)
            if len(data) > cap_bytes:
                raise Rejected(f"the media is larger than {cap_bytes} bytes", status=413)
            return into.write(data)

        return await self._do("download", apply, media=media, cap_bytes=cap_bytes)

    async def upload(self, data: bytes, *, content_type: str, name: str) -> Media:
        return await self._do(
            "upload",
            lambda: self.server.store_media(self.uid, data, content_type, name),
            size=len(data),
            content_type=content_type,
            name=name,
        )

    async def aclose(self) -> None:
        self.closed = True
        if self._line is not None:
            self.server.disconnect(self._line)

    # The faults' two places.

    def _began(self, call: str, /, **arguments: Any):
        self.calls.append(Call(call, arguments))
        return self.faults.take(call)

    async def _do(self, call: str, apply: Callable[[], T], /, **arguments: Any) -> T:
        fault = self._began(call, **arguments)
        await _before(fault)
        result = apply()
        await _after(fault)
        return result


async def _before(fault: object) -> None:
    await asyncio.sleep(0)  # every call of a real room gives way at least once
    if isinstance(fault, Delay) and not fault.applied:
        await fault.released.wait()
    if isinstance(fault, Refuse):
        raise fault.error


async def _after(fault: object) -> None:
    if isinstance(fault, Delay) and fault.applied:
        await fault.released.wait()
    if isinstance(fault, DropAfter) or (isinstance(fault, LateVisibility) and fault.lost):
        raise _lost()


def _lost() -> Unavailable:
    return Unavailable("the fake lost the answer: it may have been applied")
