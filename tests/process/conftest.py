"""A real runner for the tests: programs of a few lines under it, nothing left behind after each."""

import os
import sys
from dataclasses import dataclass, field

import pytest

from sentinel import process, proctree
from sentinel.core.codec import Ended, Progress, StopStep, Unknown
from sentinel.process import RunLimits


@pytest.fixture(scope="session", autouse=True)
def _adopting():
    process.adopt_orphans()


@pytest.fixture(autouse=True)
def _nothing_left():
    """No test leaves a descriptor, a child or a zombie."""
    before_fds, before = set(os.listdir("/proc/self/fd")), proctree.own_children()
    yield
    assert proctree.own_children() <= before
    assert len(os.listdir("/proc/self/fd")) <= len(before_fds) + 3  # the loop's own


@dataclass
class ScriptCodec:
    """A codec whose executor is a Python or shell text. Lines `END`, `TOOL n`, anything else is unknown."""

    script: str
    shell: bool = False
    prompt: bytes = b""
    settings: dict = field(default_factory=dict)
    stop: tuple = (StopStep("SIGTERM", 0.3), StopStep("SIGKILL", 0.3))
    got: bytearray = field(default_factory=bytearray)
    _rest: bytearray = field(default_factory=bytearray)

    def argv(self):
        return ("/bin/sh", "-c", self.script) if self.shell else (sys.executable, "-Ic", self.script)

    def env(self):
        return self.settings

    def to_send(self):
        return self.prompt

    def receive(self, data):
        self.got += data
        self._rest += data
        if b"\n" not in data:
            return []
        *lines, self._rest = self._rest.split(b"\n")
        return [self._event(line.decode()) for line in lines]

    @staticmethod
    def _event(line):
        if line == "END":
            return Ended()
        if line.startswith("TOOL"):
            return Progress("tool", open_tools=int(line.split()[1]))
        return Unknown(line)

    def outcome(self, status, *, stderr, now):
        raise NotImplementedError


LIMITS = {"silence_s": 20.0, "linger_s": 0.2, "total_s": 30.0, "output_bytes": 64 * 1024 * 1024}


@pytest.fixture
def run(tmp_path):
    """Return a function that starts a codec's turn; whatever it started is ended after the test."""
    turns = []

    async def started(
        codec, *, env=None, secrets=(), events=None, lines=None, cwd=None, marker="m-test", **limits
    ):
        turn = await process.start(
            codec,
            cwd=str(cwd or tmp_path),
            env=env if env is not None else {"PATH": "/usr/bin:/bin"},
            marker=marker,
            limits=RunLimits(**{**LIMITS, **limits}),
            secrets=secrets,
            on_event=(events if events is not None else []).append,
            on_exec=(lines if lines is not None else []).append,
        )
        turns.append(turn)
        return turn

    return started


def script(text, **more):
    return ScriptCodec(text, **more)


def shell(text, **more):
    return ScriptCodec(text, shell=True, **more)


@pytest.fixture(name="script")
def _script():
    return script


@pytest.fixture(name="shell")
def _shell():
    return shell
