"""The live line of the HOOP client: a WebSocket that says "something is new" and reconnects by itself.

A socket promises nothing across reconnects, so each `Connected` means "pull what you missed". The delay is our own:
the library forgets its backoff at every handshake, and a server that accepts and closes would see hundreds of
connections a second. Ours starts again only after something useful was heard, or after a line that was long up.
Source: spec 01 section 1; spec 02 section 3 (superseded); rooms fact sheet, section 5, numbers 1 to 5.
"""

import asyncio
import json
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import NoReturn

from pydantic import ValidationError
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException
from websockets.protocol import State

from sentinel.core.errors import Unauthorized
from sentinel.core.persona import Secret
from sentinel.core.ports import Connected, Disconnected, Doorbell, MembersChanged, Rang, Superseded
from sentinel.rooms.address import Address
from sentinel.rooms.hoop_http import USER_AGENT, proxy
from sentinel.rooms.hoop_wire import FRAME_LIMIT_BYTES, Reply
from sentinel.rooms.refusals import NEW_TOKEN, retry_after_s
from sentinel.rooms.timing import Timing

CLOSE_UNAUTHORIZED = 4401
_KNOWN_AND_UNUSED = frozenset({"hello", "typing", "presence"})

# At DEBUG the library writes every header of the handshake, the token among them, into its logger.
_WIRE_LOG = logging.getLogger("sentinel.rooms.wire")
_WIRE_LOG.setLevel(logging.WARNING)


class _Letterhead(Reply):
    cid: str
    seq: int
    mentions: tuple[str, ...] = ()
    broadcast: bool = False


class _Knock(Reply):
    """The few fields of a frame that a doorbell may use; the letter itself is pulled over HTTP."""

    type: str
    cid: str | None = None
    uid: str | None = None
    message: _Letterhead | None = None


class _LineLost(Exception):
    """The line is not, or no longer, up."""

    def __init__(self, why: str, *, wait_s: float = 0.0) -> None:
        super().__init__(why)
        self.why = why
        self.wait_s = wait_s


class _Connect(connect):
    def process_redirect(self, exc: Exception) -> Exception:
        """Follow no redirect: the address of a room is the operator's word."""
        return exc


class LiveLine:
    """The live line of one account. `ignored_frames` counts what was garbage, unknown or of no use to us."""

    def __init__(
        self,
        address: Address,
        token: Secret,
        *,
        context: ssl.SSLContext,
        timing: Timing,
        draw: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self._address = address
        self._token = token
        self._context = context
        self._timing = timing
        self._draw = draw
        self._sleep = sleep
        self._socket: ClientConnection | None = None
        self._listeners = 0
        self._uid: str | None = None
        self.ignored_frames = 0

    async def doorbells(self) -> AsyncIterator[Doorbell]:
        """Yield doorbells for ever; see the Room port. A second call takes over, and the first iterator then ends."""
        self._listeners += 1
        me = self._listeners
        reconnects = failures = 0
        while me == self._listeners:
            up_since = asyncio.get_running_loop().time()
            try:
                socket = await self._connect()
                try:
                    yield Connected(reconnects)
                    reconnects += 1
                    while not isinstance(bell := await self._next(socket), Superseded):
                        failures = 0
                        yield bell
                    if me == self._listeners:  # else it was ourselves who took over: nothing to tell
                        yield bell
                    return
                finally:
                    await self._hang_up(socket)
            except _LineLost as lost:
                steady = asyncio.get_running_loop().time() - up_since >= self._timing.steady_s
                failures = 1 if steady else failures + 1
                wait_s = max(lost.wait_s, self._timing.backoff_s(failures, draw=self._draw()))
                why = lost.why
            if me == self._listeners:
                yield Disconnected(why, wait_s)
                await self._sleep(wait_s)

    async def typing(self, cid: str, *, on: bool) -> None:
        """Say "is typing" if the line is up; lose it otherwise."""
        socket = self._socket
        if socket is None:
            return
        with suppress(ConnectionClosed, TimeoutError):
            async with asyncio.timeout(self._timing.typing_s):
                await socket.send(json.dumps({"type": "typing", "cid": cid, "on": on}))

    async def aclose(self) -> None:
        """Close the socket; an iterator that still listens sees a lost line, and ends."""
        self._listeners += 1
        if self._socket is not None:
            await self._socket.close()

    async def _connect(self) -> ClientConnection:
        """Connect and wait for `hello`; what goes wrong leaves as `_LineLost` or `Unauthorized`.

        No context manager, though it looks like one: made from a generator it would be closed by a loop that shuts down
        at the same time as `doorbells`, each in the other's way.
        """
        timing = self._timing
        try:
            socket = await _Connect(
                self._address.live,
                additional_headers={"Authorization": f"Bearer {self._token.reveal()}"},
                user_agent_header=USER_AGENT,
                ssl=self._context if self._address.is_secure else None,
                proxy=proxy(self._address),
                compression=None,
                open_timeout=timing.open_s,
                ping_interval=timing.ping_every_s,
                ping_timeout=timing.ping_answer_s,
                close_timeout=timing.close_s,
                max_size=FRAME_LIMIT_BYTES + 4096,  # the frame around a message that is itself at the limit
                max_queue=64,
                logger=_WIRE_LOG,
            )
        except InvalidStatus as refused:
            _turned_away(refused)
        except TimeoutError as error:
            raise _LineLost("the server did not answer in time") from error
        except (WebSocketException, OSError, EOFError) as error:
            raise _LineLost(f"no live line ({type(error).__name__})") from error
        try:
            await self._hello(socket)
        except BaseException:
            await socket.close()
            raise
        self._socket = socket
        return socket

    async def _hang_up(self, socket: ClientConnection) -> None:
        if self._socket is socket:
            self._socket = None
        if socket.state is not State.CLOSED:  # a loop that is ending may not even begin a second closing
            await socket.close()

    async def _hello(self, socket: ClientConnection) -> None:
        try:
            async with asyncio.timeout(self._timing.hello_s):
                while (knock := await self._knock(socket)) is None or knock.type != "hello":
                    self.ignored_frames += 1
                self._uid = knock.uid
        except TimeoutError as error:
            raise _LineLost("the server did not greet in time") from error

    async def _next(self, socket: ClientConnection) -> Doorbell:
        while True:
            match await self._knock(socket):
                case _Knock(type="message.new", message=_Letterhead() as letter):
                    calls = letter.broadcast or self._uid is None or self._uid in letter.mentions
                    return Rang(letter.cid, letter.seq, calls)
                case _Knock(type="member.joined" | "member.left", cid=str(cid)):
                    return MembersChanged(cid)
                case _Knock(type="session.superseded"):
                    return Superseded()
                case _Knock(type=kind) if kind in _KNOWN_AND_UNUSED:
                    continue
                case _:
                    self.ignored_frames += 1

    async def _knock(self, socket: ClientConnection) -> _Knock | None:
        try:
            return _Knock.model_validate_json(await socket.recv(decode=False))
        except ValidationError:
            return None
        except ConnectionClosed as closed:
            _hung_up(closed)


def _turned_away(refused: InvalidStatus) -> NoReturn:
    status = refused.response.status_code
    if status in (401, 403):
        raise Unauthorized(f"the live line was refused with {status}", mend=NEW_TOKEN) from refused
    headers = {name.lower(): value for name, value in refused.response.headers.raw_items()}
    wait_s = retry_after_s(headers) if status == 429 else 0.0  # noqa: PLR2004  # HTTP's own number
    raise _LineLost(f"the live line was refused with {status}", wait_s=wait_s) from refused


def _hung_up(closed: ConnectionClosed) -> NoReturn:
    code = closed.rcvd.code if closed.rcvd else 1006
    why = closed.sent.reason if closed.sent and not closed.rcvd else ""  # ours: a ping without an answer, say
    if code == CLOSE_UNAUTHORIZED:
        raise Unauthorized(f"the live line was closed with {code}", mend=NEW_TOKEN) from closed
    raise _LineLost(f"the live line closed ({why or code})") from closed
