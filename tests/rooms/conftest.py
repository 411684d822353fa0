"""Small servers on real sockets that do one wrong thing each, and a room that talks to them without waiting."""

import asyncio
import base64
import hashlib
import json
from collections import deque
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace

import pytest
from websockets.asyncio.server import serve

from sentinel.core.persona import Secret
from sentinel.rooms.hoop import HoopRoom
from sentinel.rooms.timing import Timing

TOKEN = "tok-9f3a-very-secret"
FAST = Timing(
    connect_s=1,
    read_s=0.2,
    write_s=0.2,
    pool_s=0.2,
    call_s=3,
    transfer_s=3,
    open_s=1,
    hello_s=0.2,
    close_s=0.1,
)
CUT = "cut"  # close without an answer
HANG = "hang"  # never answer


@dataclass
class Request:
    method: str
    target: str
    headers: dict[str, str]
    body: bytes


def reply(status=200, body=b"", **headers):
    """The bytes of a whole answer; `body` may be a value, which becomes JSON."""
    if not isinstance(body, bytes):
        body = json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} X", f"content-length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


class ScriptedServer:
    """Answers request after request from a list; what is past its end is answered with 500."""

    def __init__(self, *script):
        self.script = deque(script)
        self.requests: list[Request] = []
        self.connections = 0
        self.closed_connections = 0
        self.writers = []
        self.url = ""

    async def serve(self, reader, writer):
        self.connections += 1
        self.writers.append(writer)
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                first, *lines = head.strip().split("\r\n")
                headers = dict(line.lower().split(": ", 1) for line in lines)
                raw = dict(line.split(": ", 1) for line in lines)
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                method, target, _ = first.split(" ")
                lowered = {name.lower(): value for name, value in raw.items()}
                self.requests.append(Request(method, target, lowered, body))
                action = self.script.popleft() if self.script else reply(500)
                if action == HANG:
                    await reader.read()
                    return
                if action == CUT:
                    return
                if isinstance(action, tuple):  # (bytes, "cut")
                    writer.write(action[0])
                    await writer.drain()
                    return
                writer.write(action)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.closed_connections += 1
            writer.close()


@asynccontextmanager
async def listening(handler):
    server = await asyncio.start_server(handler, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


class Clock:
    """Waits that take no time and are remembered."""

    def __init__(self):
        self.slept: list[float] = []

    async def sleep(self, seconds):
        self.slept.append(seconds)
        await asyncio.sleep(0)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
async def opened(clock):
    """Make rooms that are closed at the end."""
    rooms = []

    def make(url, *, timing=FAST, draw=lambda: 0.5, **changes):
        room = HoopRoom(url, Secret(TOKEN), draw=draw, timing=replace(timing, **changes), sleep=clock.sleep)
        rooms.append(room)
        return room

    yield make
    for room in rooms:
        await room.aclose()


@pytest.fixture
async def scripted(opened):
    """Serve a script and open a room on it: `server, room = await scripted(reply(200, ...), CUT)`."""
    async with AsyncExitStack() as stack:

        async def start(*script, **changes):
            server = ScriptedServer(*script)
            server.url = await stack.enter_async_context(listening(server.serve))
            return server, opened(server.url, **changes)

        yield start


@pytest.fixture
async def live(opened):
    """Serve a WebSocket by a coroutine and open a room on it: `server, room = await live(say)`."""
    async with AsyncExitStack() as stack:

        async def start(talk, *, before=None, **changes):
            server = LiveServer(talk, before)
            running = await stack.enter_async_context(
                serve(server.accept, "127.0.0.1", 0, process_request=server.before, ping_interval=None)
            )
            server.url = f"http://127.0.0.1:{running.sockets[0].getsockname()[1]}"
            return server, opened(server.url, **changes)

        yield start


class LiveServer:
    """Greets each socket, then lets the test's `talk(socket, n)` have it; remembers the handshakes."""

    def __init__(self, talk, before):
        self.talk = talk
        self._before = before
        self.handshakes = []
        self.open = 0
        self.url = ""

    def before(self, connection, request):
        self.handshakes.append(request)
        return self._before(connection, len(self.handshakes)) if self._before else None

    async def accept(self, socket):
        self.open += 1
        try:
            await self.talk(socket, len(self.handshakes))
        finally:
            self.open -= 1


HELLO = json.dumps({"type": "hello", "uid": "u-gode", "server_time": "2026-01-01T00:00:00.000Z"})


async def never_ponging(reader, writer):
    """A peer that greets and then is frozen: it reads nothing, and answers no ping."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    key = next(
        line.split(": ")[1] for line in head.split("\r\n") if line.lower().startswith("sec-websocket-key")
    )
    magic = hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()
    accept = base64.b64encode(magic).decode()
    writer.write(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Accept: {accept}\r\n\r\n".encode()
    )
    writer.write(bytes([0x81, len(HELLO)]) + HELLO.encode())
    try:
        await asyncio.Event().wait()
    finally:
        writer.close()
