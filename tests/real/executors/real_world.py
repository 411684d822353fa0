"""The real executors, each in a network namespace with nothing but loopback, against model servers of ours.

Every test gets a fresh HOME, fake keys and a model server as a process of its own. Needs root (for the namespace) and
what `tests/real/install.sh` installs; where either is absent these tests fail, they do not skip.
"""

import asyncio
import contextlib
import ctypes
import http.client
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import pytest

from sentinel import process, proctree
from sentinel.core.codec import EndedBy, Sandbox, TurnRequest
from sentinel.process import RunLimits

REAL = (
    Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "hoop-sentinel" / "real" / "node_modules"
)
FAKES = Path(__file__).parents[2] / "fakes"
CLONE_NEWNET = 0x40000000
BINARIES = {"codex": "@openai/codex-*/vendor/*/bin/codex", "claude": "@anthropic-ai/claude-code-*/claude"}
MOCKS = {"codex": "mock_openai_responses.py", "claude": "mock_anthropic_messages.py"}
LIMITS = RunLimits(silence_s=40, linger_s=2, total_s=50, output_bytes=64 * 1024 * 1024)

CONFIG = """
model_provider = "mock"
[model_providers.mock]
name = "mock"
base_url = "http://127.0.0.1:{port}/v1"
wire_api = "responses"
env_key = "MOCK_API_KEY"
request_max_retries = 0
stream_max_retries = 0
"""


def binary_of(name):
    found = sorted(REAL.glob(BINARIES[name]))
    if not found:
        pytest.fail(f"the real {name} is absent: run tests/real/install.sh")
    return str(found[0])


@contextlib.contextmanager
def loopback_only():
    """Move this thread, and with it every child, into a fresh network namespace; and back at the end."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/thread-self/ns/net") as before:
        if libc.unshare(CLONE_NEWNET):
            pytest.fail(f"no network namespace: {os.strerror(ctypes.get_errno())}: run these tests as root")
        try:
            subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
            yield
        finally:
            assert libc.setns(before.fileno(), CLONE_NEWNET) == 0


@pytest.fixture(autouse=True)
def _loopback_only():
    with loopback_only():
        yield


@pytest.fixture(scope="session", autouse=True)
def _adopting():
    process.adopt_orphans()


@dataclass
class Model:
    """The model server: what it shall do next, and what it was asked."""

    port: int
    log: Path

    def does(self, *modes):
        self._post("/__mock__/set", {"script": list(modes)})

    def always(self, mode):
        self._post("/__mock__/set", {"mode": mode, "script": []})

    def requests(self):
        """Return the bodies of all requests for an answer, as text."""
        lines = [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []
        return [json.dumps(one["body"], ensure_ascii=False) for one in lines if one.get("body")]

    def _post(self, path, body):
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        line.request("POST", path, json.dumps(body))
        assert line.getresponse().status == 200
        line.close()


@dataclass
class World:
    """One persona's machine: where the executor lives, and how a turn of it runs."""

    name: str
    adapter: object
    base: Path
    model: Model
    binary: str
    env: dict
    exec_lines: list = field(default_factory=list)
    events: list = field(default_factory=list)
    turns: list = field(default_factory=list)

    @property
    def cwd(self):
        return self.base / "ws"

    def request(self, prompt, **changes):
        fields = {
            "binary": self.binary,
            "model": "mock-model" if self.name == "codex" else "claude-opus-5-5",
            "cwd": str(self.cwd),
            "sandbox": Sandbox.READ_ONLY,
            "network": False,
            "prompt": prompt,
            "triggers": (),
            "new_thread": str(uuid.uuid4()),
        }
        return TurnRequest(**{**fields, **changes})

    async def start(self, codec, limits=LIMITS):
        self.events.clear()
        turn = await process.start(
            codec,
            cwd=str(self.cwd),
            env=self.env,
            marker=f"real-{self.base.name}",
            limits=limits,
            secrets=["test-key"],
            on_event=self.events.append,
            on_exec=self.exec_lines.append,
        )
        self.turns.append(turn)
        return turn

    async def turn(self, prompt="Message from ann:\nhello", *, limits=LIMITS, **changes):
        """Run one turn to its very end and return its outcome."""
        codec = self.adapter.codec(self.request(prompt, **changes))
        turn = await self.start(codec, limits)
        finished = await turn.result()
        await asyncio.wait_for(turn.gone(), 20)
        return codec.outcome(finished.status, stderr=finished.stderr, now=datetime.now().astimezone())

    def environment(self, executor_env):
        self.env = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.base / "home"),
            "LANG": "C.UTF-8",
            **executor_env,
        }


async def until(condition, limit_s=30.0):
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "did not come about in time"
        await asyncio.sleep(0.02)


@pytest.fixture
async def make_world(_loopback_only):
    """Return a function that builds the world of one executor."""
    base = Path(tempfile.mkdtemp(prefix="hoop-", dir="/var/tmp"))  # codex dislikes a home under /tmp
    programs, worlds = [], []

    async def make(name, adapter):
        binary = binary_of(name)
        for folder in ("home", "state", "ws"):
            (base / folder).mkdir()
        log, ready = base / "log.jsonl", base / "ready"
        mock = [sys.executable, str(FAKES / MOCKS[name]), "--ready-file", str(ready), "--log", str(log)]
        if name == "claude":
            mock.append("--count-all")
        programs.append(await process.start_program(mock, env={}, cwd=str(base), stdout=subprocess.DEVNULL))
        await until(lambda: ready.exists() and ready.read_text())
        world = World(name, adapter, base, Model(int(ready.read_text()), log), binary, {})
        worlds.append(world)
        if name == "codex":
            (base / "state" / "config.toml").write_text(CONFIG.format(port=world.model.port))
            world.environment({"CODEX_HOME": str(base / "state"), "MOCK_API_KEY": "test-key"})
        else:
            url = f"http://127.0.0.1:{world.model.port}"
            world.environment(
                {
                    "CLAUDE_CONFIG_DIR": str(base / "state"),
                    "ANTHROPIC_BASE_URL": url,
                    "ANTHROPIC_API_KEY": "test-key",
                    "CLAUDE_CODE_MAX_RETRIES": "0",
                }
            )
        return world

    yield make
    for turn in [turn for world in worlds for turn in world.turns]:
        turn.request_stop(EndedBy.STOP)
        await asyncio.wait_for(turn.gone(), 20)
    for program in programs:
        program.kill()
        await program.wait()
    shutil.rmtree(base, ignore_errors=True)


def living(marker):
    """Return the command lines of living processes that begin with `sleep` and hold `marker`."""
    found = []
    for pid, seen in proctree.everything().items():
        try:
            line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if line.startswith("sleep ") and marker in line and not seen.is_zombie:
            found.append(line)
    return found
