"""Two labs of the same furniture: the fake room, and the HOOP client against a real server process on loopback."""

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from sentinel.core.model import Account, Kind
from sentinel.core.persona import Secret
from sentinel.rooms.hoop import HoopRoom
from sentinel.server.admin import directory
from tests.fakes.fake_faults import CALLS
from tests.fakes.fake_room import FakeRoom, FakeServer, unauthorized

NAMES = {"ann": Kind.HUMAN, "bob": Kind.HUMAN, "eve": Kind.HUMAN, "Gode": Kind.PERSONA, "Mini": Kind.PERSONA}


class Lab:
    """Members of `cid` are ann, bob and Gode; Mini may be invited; eve never is."""

    def __init__(self, accounts: dict[str, Account], cid: str):
        self.ann, self.bob, self.eve, self.gode, self.mini = (accounts[name] for name in NAMES)
        self.cid = cid
        self.rooms = []

    def room(self, account: Account):
        """A fresh room: a process of its own, as far as the server can tell."""
        self.rooms.append(self._room(account))
        return self.rooms[-1]

    def strangers_room(self):
        """A room whose token the server does not know."""
        self.rooms.append(self._strangers_room())
        return self.rooms[-1]

    async def close(self):
        for room in self.rooms:
            await room.aclose()


class FakeLab(Lab):
    def __init__(self):
        self.server = FakeServer()
        accounts = {name: self.server.account(name, kind) for name, kind in NAMES.items()}
        cid = self.server.conversation("lab", *(accounts[name] for name in ("ann", "bob", "Gode")))
        super().__init__(accounts, cid)

    def _room(self, account):
        return FakeRoom(self.server, account.uid)

    def _strangers_room(self):
        room = FakeRoom(self.server, self.gode.uid)
        for call in CALLS:
            room.faults.always(call, unauthorized())
        return room

    def invite(self, account):
        self.server.join(self.cid, account)

    def remove(self, account):
        self.server.leave(self.cid, account)


@dataclass
class RealServer:
    """A running `sentinel hoop serve`."""

    url: str
    data: Path
    accounts: dict[str, Account]
    tokens: dict[str, str]


class HoopLab(Lab):
    def __init__(self, server: RealServer):
        self.server = server
        with directory(server.data) as opened:
            made = opened.add_room("lab", ["ann", "bob", "Gode"])
        super().__init__(server.accounts, made.conversation.cid)

    def _room(self, account):
        return HoopRoom(self.server.url, Secret(self.server.tokens[account.name]), draw=lambda: 0.5)

    def _strangers_room(self):
        return HoopRoom(self.server.url, Secret("nobody-knows-this-one"), draw=lambda: 0.5)

    def invite(self, account):
        with directory(self.server.data) as opened:
            opened.invite(self.cid, [account.name])

    def remove(self, account):
        with directory(self.server.data) as opened:
            opened.remove(self.cid, [account.name])


@pytest.fixture(scope="session")
def real_server(tmp_path_factory):
    """Start the embedded server as its own process, once."""
    home = tmp_path_factory.mktemp("hoop")
    data = home / "data"
    accounts, tokens = {}, {}
    with directory(data, create=True) as opened:
        for name, kind in NAMES.items():
            made = opened.add_account(name, kind)
            accounts[name], tokens[name] = made.account, made.token
    command = [sys.executable, "-m", "sentinel.cli.main", "hoop", "serve", "--data", str(data), "--port", "0"]
    command += ["--reads-per-s", "5000", "--posts-per-s", "5000", "--burst", "5000"]
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        line = process.stdout.readline()
        assert line.startswith("listening on "), f"the server did not start: {line!r}"
        yield RealServer(line.removeprefix("listening on ").strip(), data, accounts, tokens)
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0


@pytest.fixture(params=["fake", "hoop"])
async def lab(request):
    """The lab of each implementation in turn."""
    made = FakeLab() if request.param == "fake" else HoopLab(request.getfixturevalue("real_server"))
    yield made
    await made.close()
