"""`WS /v1/ws`: the doorbell, and the third path by which a `SendInput` comes in.

A frame's own `type` stands where SendInput's would, so in a `message.send` frame SendInput's `type` is called
`message_type`; without it, a frame with a `media_id` is of the type that the media's content is. Everything else of
the frame is parsed whole by the one model. Source: spec 01 section 2.
"""

import asyncio
import contextlib
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from starlette.types import Receive, Scope, Send

from sentinel.rooms.hoop_wire import SendInput
from sentinel.server.accounts import Session
from sentinel.server.calls import Calls
from sentinel.server.clock import rfc3339
from sentinel.server.config import ServerConfig
from sentinel.server.guard import Gate
from sentinel.server.http import Access, address_of, answer_problem
from sentinel.server.hub import encode
from sentinel.server.line import AUTH_TIMEOUT, UNAUTHORIZED, Close, Line
from sentinel.server.problem import Problem, unprocessable
from sentinel.server.requests import AuthFrame, SendFrame, TypingFrame
from sentinel.server.rooms import require_member
from sentinel.server.strict_json import parse_as, parse_object

_LAST_WORDS_S = 30.0


class Gone(Exception):
    """The client closed, or the connection broke."""


@dataclass(frozen=True, slots=True)
class Socket:
    """The ASGI application of the WebSocket path."""

    calls: Calls
    gate: Gate
    config: ServerConfig

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Carry one socket from its handshake to its end."""
        await receive()  # websocket.connect
        try:
            token = self.gate.admit_socket(scope)
        except Problem as problem:
            await _deny(problem, scope, receive, send)
            return
        await send({"type": "websocket.accept"})
        try:
            session = await self._authenticate(token, address_of(scope), receive)
        except Gone:
            return
        if isinstance(session, Close):
            await send({"type": "websocket.close", "code": session.code, "reason": session.reason})
            return
        await self._serve(session, receive, send)

    async def _authenticate(self, token: str | None, address: str, receive: Receive) -> Session | Close:
        if token is None:
            try:
                async with asyncio.timeout(self.config.auth_timeout_s):
                    frame = parse_as(AuthFrame, parse_object(await _next_text(receive)))
            except TimeoutError:
                return AUTH_TIMEOUT
            except Problem:
                return UNAUTHORIZED
            token = frame.token
        try:
            return self.gate.session(token, address)
        except Problem:
            return UNAUTHORIZED

    async def _serve(self, session: Session, receive: Receive, send: Send) -> None:
        line = Line(session, send, max_frames=self.config.queue_frames, max_bytes=self.config.queue_bytes)
        line.offer(encode({"type": "hello", "uid": line.uid, "server_time": rfc3339(self.calls.now_ms())}))
        self.calls.hub.open(line)
        carrying, listening, ending = (
            asyncio.create_task(one) for one in (line.carry(), self._listen(line, receive), line.ending())
        )
        try:
            await asyncio.wait({carrying, listening, ending}, return_when=asyncio.FIRST_COMPLETED)
            if line.is_closing:  # the close frame goes out behind what a slow client has yet to read
                await asyncio.wait({carrying}, timeout=_LAST_WORDS_S)
        finally:
            self.calls.hub.shut(line)
            for task in (carrying, listening, ending):
                task.cancel()
            await asyncio.gather(carrying, listening, ending, return_exceptions=True)

    async def _listen(self, line: Line, receive: Receive) -> None:
        with contextlib.suppress(Gone):
            while not line.is_closing:
                await self._obey(line, await _next_text(receive))

    async def _obey(self, line: Line, text: str) -> None:
        ref: str | int | None = None
        if not self.calls.hub.is_good(line):
            return
        try:
            frame = parse_object(text)
            if isinstance(given := frame.get("ref"), str | int):
                ref = given
            match frame.get("type"):
                case "message.send":
                    await self._send(line, frame)
                case "typing":
                    self._typing(line, parse_as(TypingFrame, frame))
                case _:
                    raise _unknown_frame()
        except Problem as problem:
            line.offer(encode(problem.frame(ref)))

    async def _send(self, line: Line, frame: dict[str, Any]) -> None:
        self.gate.take(line.session, Access.POST)
        envelope = parse_as(SendFrame, {name: frame[name] for name in ("ref", "cid") if name in frame})
        value = {name: frame[name] for name in frame if name not in {"type", "ref", "cid", "message_type"}}
        if "message_type" in frame:
            value["type"] = frame["message_type"]
        elif isinstance(media_id := frame.get("media_id"), str):
            value["type"] = self._type_of(media_id)
        posted = await self.calls.post(line.session.account, envelope.cid, parse_as(SendInput, value))
        line.offer(encode({"type": "ack", "ref": envelope.ref, "message": posted.message}))

    def _type_of(self, media_id: str) -> str:
        row = self.calls.store.reader.execute("SELECT type FROM media WHERE id = ?", (media_id,)).fetchone()
        if row is None:
            raise unprocessable("media_id", "there is no such upload of yours")
        return {"image": "image", "audio": "voice"}.get(row["type"].partition("/")[0], "file")

    def _typing(self, line: Line, frame: TypingFrame) -> None:
        self.gate.take(line.session, Access.READ)
        require_member(self.calls.store.reader, frame.cid, line.uid)
        self.calls.hub.typing(line, frame.cid, on=frame.on)


async def _next_text(receive: Receive) -> str:
    message = await receive()
    if message["type"] == "websocket.disconnect":
        raise Gone
    text = message.get("text")
    return text if text is not None else message["bytes"].decode("utf-8", "replace")


def _unknown_frame() -> Problem:
    return Problem(
        HTTPStatus.UNPROCESSABLE_ENTITY, "unknown-frame", "type: message.send or typing is expected"
    )


async def _deny(problem: Problem, scope: Scope, receive: Receive, send: Send) -> None:
    """Refuse the handshake with a whole HTTP answer, so that the client can read why."""

    async def as_denial(message: Any) -> None:
        await send({**message, "type": message["type"].replace("http.", "websocket.http.", 1)})

    await answer_problem(problem)(scope, receive, as_denial)
