"""A real server, as a process or inside this one, with accounts and rooms made the operator's way."""

import asyncio
import contextlib
import json
import os
import secrets
import signal
import ssl
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import websockets

from sentinel.core.model import Kind
from sentinel.server.admin import directory
from sentinel.server.config import ServerConfig
from sentinel.server.serve import serving

LOOSE = ServerConfig(
    reads_per_s=100_000,
    posts_per_s=100_000,
    burst=100_000,
    address_per_s=1e6,
    address_burst=1e6,
    access_look_s=0.05,
)
WAIT_S = 20.0
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # shared: loading authorities costs each client 30 ms


@dataclass
class Person:
    """An account and its token, with the clients that a test talks through."""

    uid: str
    name: str
    kind: str
    token: str
    url: str
    _clients: list = field(default_factory=list)

    @property
    def bearer(self):
        return {"Authorization": f"Bearer {self.token}"}

    @property
    def account(self):
        return {"uid": self.uid, "name": self.name, "kind": self.kind}

    @property
    def http(self):
        if not self._clients:
            self._clients.append(
                httpx.AsyncClient(base_url=self.url, headers=self.bearer, timeout=WAIT_S, verify=NO_TLS)
            )
        return self._clients[0]

    def socket(self, **more):
        return Ears(self.url, self.bearer, **more)

    async def text(self, cid, text="hello", **fields):
        return await self.http.post(f"/v1/conversations/{cid}/text", json={"text": text, **fields})

    async def history(self, cid, after=0, limit=200):
        reply = await self.http.get(
            f"/v1/conversations/{cid}/messages", params={"after": after, "limit": limit}
        )
        assert reply.status_code == 200, reply.text
        return reply.json()

    async def upload(self, data=b"some bytes", content_type="application/octet-stream", **params):
        headers = {"content-type": content_type}
        reply = await self.http.post("/v1/media", content=data, headers=headers, params=params)
        assert reply.status_code == 201, reply.text
        return reply.json()


class Ears:
    """An open WebSocket; frames are waited for by type, with a limit, and kept in order."""

    def __init__(self, url, headers=None, **more):
        self._opening = websockets.connect(
            url.replace("http", "ws", 1) + "/v1/ws", additional_headers=headers, max_size=None, **more
        )

    async def __aenter__(self):
        self.ws = await self._opening.__aenter__()
        return self

    async def __aexit__(self, *failure):
        await self._opening.__aexit__(*failure)

    async def send(self, **frame):
        await self.ws.send(json.dumps(frame))

    async def next(self):
        return json.loads(await asyncio.wait_for(self.ws.recv(), WAIT_S))

    async def until(self, kind, **fields):
        while True:
            frame = await self.next()
            if frame["type"] == kind and all(frame.get(name) == value for name, value in fields.items()):
                return frame

    async def closed(self):
        """Read to the end; return the close code and reason."""
        with contextlib.suppress(websockets.ConnectionClosed):
            while True:
                await self.next()
        return self.ws.close_code, self.ws.close_reason


class House:
    """A served data directory."""

    def __init__(self, url, data):
        self.url = url
        self.data = data
        self.people = []

    def person(self, name=None, kind="human"):
        """Add an account; its name is made unique, so that tests may share a server."""
        name = f"{name or kind}-{secrets.token_hex(4)}"
        with directory(self.data) as opened:
            made = opened.add_account(name, Kind(kind))
        person = Person(made.account.uid, name, kind, made.token, self.url)
        self.people.append(person)
        return person

    def persona(self, name=None):
        return self.person(name, "persona")

    def room(self, *people, title="Kitchen"):
        with directory(self.data) as opened:
            return opened.add_room(title, [one.name for one in people]).conversation.cid

    def code(self, person):
        with directory(self.data) as opened:
            return opened.code(person.name)

    @property
    def operator(self):
        """The commands' own operations, in a process that is not the server's (for a server process)."""
        return directory(self.data)

    async def leave(self):
        for person in self.people:
            for client in person._clients:
                await client.aclose()


class HouseProcess:
    """`sentinel hoop serve` as a process of its own."""

    def __init__(self, data, *options, wrap=()):
        self.errors = Path(data).parent / f"stderr-{secrets.token_hex(4)}"
        command = [*wrap, sys.executable, "-m", "sentinel.cli.main", "hoop", "serve", "--data", str(data)]
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [*command, "--port", "0", *options],
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        line = self.process.stdout.readline().decode()
        assert line.startswith("listening on http://"), (line, self.errors.read_text())
        self.url = line.split()[-1]
        self.data = Path(data)

    def kill(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        return self._ended()

    def stop(self):
        self.process.terminate()
        return self._ended()

    def _ended(self):
        code = self.process.wait(WAIT_S)
        self.process.stdout.close()
        return code


@contextlib.asynccontextmanager
async def house_of(data, **config):
    """A server inside this process, over a real socket, with its own numbers."""
    import dataclasses

    clock = {"now_ms": config.pop("now_ms")} if "now_ms" in config else {}
    async with serving(data, config=dataclasses.replace(LOOSE, **config), **clock) as served:
        house = House(served.url, data)
        try:
            yield house
        finally:
            await house.leave()


async def eventually(claim):
    """Wait until `claim()` (or what it awaits to) is true, within a limit."""
    async with asyncio.timeout(WAIT_S):
        while True:
            found = claim()
            if asyncio.iscoroutine(found):
                found = await found
            if found:
                return found
            await asyncio.sleep(0.01)
