"""`sentinel demo` as a real process with a home and folders of its own, and the people's side of its room over REST.

    demo = DemoProcess(tmp_path)
    demo.start()
    ann = demo.log_in()
    answer = ann.answer_to(ann.ask("Echo", "hello"))
    assert demo.end(signal.SIGTERM) == 0
    assert demo.family() == []

Its PATH is one folder of its own, so that no executor of this machine is found; `plant` puts stand-ins there.
"""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx

from sentinel import proctree

SENTINEL = [sys.executable, "-c", "import sys; from sentinel.cli.main import main; sys.exit(main())"]
WAIT_S = 30

CODEX = """\
import json, sys
asked = sys.stdin.read()
argv = sys.argv
thread = argv[argv.index("resume") + 1] if "resume" in argv else "01a22dc0-3217-78d1-8fdd-ce098a780ef0"
say = lambda **event: print(json.dumps(event), flush=True)
say(type="thread.started", thread_id=thread)
say(type="turn.started")
say(type="item.completed", item={"id": "item_1", "type": "agent_message", "text": "codex was here"})
say(type="turn.completed", usage={"input_tokens": 1, "cached_input_tokens": 0, "output_tokens": 1})
"""
CLAUDE = """\
import json, sys
asked = sys.stdin.read()
argv = sys.argv
session = argv[argv.index("--resume" if "--resume" in argv else "--session-id") + 1]
say = lambda **event: print(json.dumps({**event, "session_id": session}), flush=True)
words = {"type": "text", "text": "claude was here"}
say(type="system", subtype="init", cwd=".", tools=[], model="m")
say(type="assistant", message={"id": "m1", "type": "message", "role": "assistant", "content": [words]})
say(type="result", subtype="success", is_error=False, result="claude was here", usage={}, num_turns=1)
"""
STAND_INS = {"codex": CODEX, "claude": CLAUDE}


def until(condition, what, limit_s=WAIT_S):
    """Poll `condition` until it gives something true and return that; fail with `what()` after the limit."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.02)
    raise AssertionError(f"not within {limit_s} s: {what()}")


class DemoProcess:
    """One data folder and the demo on it; `start` may be called again after `end`."""

    def __init__(self, base):
        self.base, self.data, self.path = base, base / "data", base / "bin"
        self.home = base / "home"
        for folder in (self.home, self.path):
            folder.mkdir()
        self.process = None
        self._humans = []

    def plant(self, name, *, mode=0o755):
        """Put a stand-in that speaks the protocol of executor `name` on the demo's PATH."""
        file = self.path / name
        file.write_text(f"#!{sys.executable}\n{STAND_INS[name]}")
        file.chmod(mode)
        return file

    def launch(self, *options, data=None, wrap=()):
        """Start the process and wait for nothing."""
        folders = {
            f"XDG_{name}_HOME": str(self.home / name.lower()) for name in ("STATE", "DATA", "CONFIG", "CACHE")
        }
        env = {"PATH": str(self.path), "HOME": str(self.home), "LANG": "C.UTF-8", **folders}
        command = [*wrap, *SENTINEL, "demo", "--data", str(data or self.data), "--no-browser"]
        with open(self.base / "out", "wb") as out, open(self.base / "err", "wb") as err:
            self.process = subprocess.Popen(
                [*command, *(options or ("--port", "0"))],
                env=env,
                cwd=self.base,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )

    def start(self):
        """Start the demo and wait until it has printed everything that a person needs."""
        self.launch()
        until(
            lambda: "then write to:" in self.out or self.process.poll() is not None,
            lambda: self.out + self.err,
        )
        assert self.process.poll() is None, self.err
        self.address = re.search(r"^the room: (\S+)$", self.out, re.MULTILINE)[1]
        self.url, _, self.cid = self.address.partition("/#cid=")
        self.code = re.search(r"^with the code: (\d+)$", self.out, re.MULTILINE)[1]

    @property
    def out(self):
        return (self.base / "out").read_text()

    @property
    def err(self):
        return (self.base / "err").read_text()

    def until_said(self, word):
        """Wait until standard error holds `word`."""
        until(lambda: word in self.err, lambda: self.err)

    def end(self, number=signal.SIGTERM):
        """Send a signal to the demo alone and return its exit code."""
        self.process.send_signal(number)
        return self.process.wait(WAIT_S)

    def ended(self):
        """Wait until it ends by itself and return its exit code."""
        return self.process.wait(WAIT_S)

    def family(self):
        """Return the command lines of the living processes that carry this demo's HOME: its whole tree, fled or not."""
        mark = f"HOME={self.home}".encode()
        found = []
        for pid, seen in proctree.everything().items():
            try:
                folder = Path(f"/proc/{pid}")
                if not seen.is_zombie and mark in (folder / "environ").read_bytes().split(b"\0"):
                    found.append((folder / "cmdline").read_bytes().decode("utf-8", "replace"))
            except OSError:  # it ended while we looked
                continue
        return found

    def close(self):
        """End whatever is left, however the test went."""
        for human in self._humans:
            human.web.close()
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(WAIT_S)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()

    def log_in(self):
        """Spend the printed code; return the human's side of the room."""
        human = Human(self)
        self._humans.append(human)
        return human


class Human:
    """A person in the demo's room, over REST."""

    def __init__(self, demo):
        self._room = f"{demo.url}/v1/conversations/{demo.cid}"
        self.web = httpx.Client(timeout=WAIT_S)
        body = {"account": "ann", "code": demo.code}
        reply = self.web.post(f"{demo.url}/v1/auth/otp/verify", json=body)
        assert reply.status_code == 200, reply.text
        self.token = reply.json()["token"]
        self.web.cookies.clear()
        self.web.headers["Authorization"] = f"Bearer {self.token}"

    def get(self, path):
        reply = self.web.get(f"{self._room}{path}")
        assert reply.status_code == 200, reply.text
        return reply.json()

    def members(self):
        """Return name -> member."""
        return {one["name"]: one for one in self.get("/members")}

    def messages(self):
        return self.get("/messages?after=0&limit=200")["messages"]

    def until_state(self, name, state):
        until(lambda: self.members()[name]["state"] == state, lambda: str(self.members()))

    def ask(self, name, text):
        """Post with a structured mention; return the stored message."""
        body = {"text": f"@{name} {text}", "mentions": [self.members()[name]["uid"]]}
        reply = self.web.post(f"{self._room}/text", json=body)
        assert reply.status_code == 201, reply.text
        return reply.json()

    def answers_to(self, question):
        return [one for one in self.messages() if question["id"] in one["answers"]]

    def answer_to(self, question):
        """Wait for the answer; it must be the only one."""
        (answer,) = until(lambda: self.answers_to(question), lambda: str(self.messages()))
        return answer
