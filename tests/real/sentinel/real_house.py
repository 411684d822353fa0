"""A whole house on loopback: a real server, a model server, a persona with a real executor, and its real sentinel.

    house.model.always("text:text=hello")
    question = house.ask(house.room, "are you there?")
    house.until_answered(question)
    assert house.texts(house.room) == ["are you there?", "hello"]

Everything is a process of its own, in a network namespace with nothing but loopback, with fresh homes and a fake key.
The `codex`, `claude` and `cat` on the sentinel's PATH count their runs: nothing may ever start one of them.
"""

import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from sentinel import proctree
from sentinel.core.model import Kind
from sentinel.server.admin import directory
from tests.fakes.persona_homes import plant
from tests.real.executors.real_world import CONFIG, FAKES, MOCKS, Model, binary_of
from tests.real.page.hoop_process import SENTINEL, Hoop

KEY = "fake-key-of-the-model-server"
MODEL_NAMES = {"codex": "mock-model", "claude": "claude-opus-5-5"}
READ_ONLY = ("read-only", "off")
ACTING = {"codex": ("workspace-write", "off"), "claude": ("danger-full-access", "on")}
WAIT_S = 40


def until(condition, what, limit_s=WAIT_S):
    """Poll `condition` until it gives something true and return that; fail with `what` after the limit."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.02)
    return pytest.fail(f"not within {limit_s} s: {what() if callable(what) else what}")


class House:
    """One server with a few rooms, one persona `gode` on one kind of executor, one sentinel."""

    def __init__(self, kind):
        self.kind = kind
        self.base = Path(tempfile.mkdtemp(prefix="hoop-", dir="/var/tmp"))  # codex dislikes a home under /tmp
        for name in ("home", "homes", "executor", "ws"):
            (self.base / name).mkdir(mode=0o700)
        self.home, self.cwd, self.binary = self.base / "homes" / "gode", self.base / "ws", binary_of(kind)
        self.planted = plant(self.base)
        self.command, self.as_user = SENTINEL, {}
        """How `sentinel` is called, and as whom: more options of a child process."""
        self.hoop = Hoop(self.base / "server")
        self.env = {
            "PATH": self.planted.path,
            "HOME": str(self.base / "home"),
            "HOOP_HOME": str(self.base / "homes"),
            "XDG_STATE_HOME": str(self.base / "state"),
            "LANG": "C.UTF-8",
            "SOMETHING_OF_OURS": "that no executor may see",
        }
        self.model = self._mock = self.process = None

    # Its life.

    def open(self):
        """Start everything for the first time."""
        with directory(self.hoop.data, create=True) as accounts:  # what `sentinel hoop account add` does
            for name in ("ann", "bob", "Gode"):
                made = accounts.add_account(name, Kind.PERSONA if name == "Gode" else Kind.HUMAN)
                self.hoop.accounts[name] = {"uid": made.account.uid, "name": name, "token": made.token}
        self.hoop.start()
        self._start_model(port=0)
        self.room = self.new_room("the laboratory", "bob")
        token = self.base / "token"
        token.touch(mode=0o600)
        token.write_text(self.token)
        words = [word for name, value in self._arguments().items() for word in (f"--{name}", str(value))]
        self.cli("persona", "new", "gode", *words)
        environment = self._executor_environment()
        self.write(f"{self.kind}_env", "".join(f"{key}={value}\n" for key, value in environment.items()))
        self.start()

    def _arguments(self):
        return {
            "server": self.hoop.url,
            "account": "Gode",
            "token-file": self.base / "token",
            "adapter": self.kind,
            "model": MODEL_NAMES[self.kind],
            "bin": self.binary,
            "cwd": self.cwd,
            "sandbox": READ_ONLY[0],
            "network": READ_ONLY[1],
            "owner": self.hoop.uid("ann"),
        }

    def _executor_environment(self):
        state, port = self.base / "executor", self.model.port
        if self.kind == "codex":
            (state / "config.toml").write_text(CONFIG.format(port=port))
            return {"CODEX_HOME": str(state), "MOCK_API_KEY": KEY}
        return {
            "CLAUDE_CONFIG_DIR": str(state),
            "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{port}",
            "ANTHROPIC_API_KEY": KEY,
            "CLAUDE_CODE_MAX_RETRIES": "0",
        }

    def _start_model(self, port):
        ready, log = self.base / "ready", self.base / "requests.jsonl"
        ready.unlink(missing_ok=True)
        command = [
            sys.executable,
            FAKES / MOCKS[self.kind],
            "--port",
            port,
            "--ready-file",
            ready,
            "--log",
            log,
        ]
        command += ["--count-all"] if self.kind == "claude" else []
        self._mock = subprocess.Popen([str(one) for one in command], env={}, stderr=subprocess.DEVNULL)
        until(lambda: ready.exists() and ready.read_text(), "the model server listens")
        self.model = Model(int(ready.read_text()), log)

    def start(self):
        """Start the sentinel and wait until its live line is up."""
        already = self._connections()
        with open(self.base / "stderr", "ab") as stderr:
            self.process = subprocess.Popen(
                [*self.command, "run", "gode", "all"],
                env=self.env,
                cwd=self.base,
                stderr=stderr,
                **self.as_user,
            )
        until(lambda: self._connections() > already or self.process.poll() is not None, self.stderr)
        assert self._connections() > already, self.stderr()

    def _connections(self):
        return self.log().count('"event": "connected"')

    def end(self, number=signal.SIGTERM):
        """End the sentinel by a signal."""
        self.process.send_signal(number)
        code = self.process.wait(WAIT_S)
        assert code == (0 if number == signal.SIGTERM else -number), self.stderr()

    def end_everything(self, number):
        """End sentinel, server and model server by a signal."""
        self.end(number)
        for process in (self.hoop.process, self._mock):
            process.send_signal(number)
            process.wait(WAIT_S)

    def start_everything(self):
        """Start what `end_everything` ended, on the same ports."""
        self.hoop.start()
        self._start_model(self.model.port)
        self.start()

    def close(self):
        """End what runs and remove what is left."""
        with contextlib.suppress(OSError, AttributeError):
            self.model.always("text")
        for process in (self.process, self.hoop.process, self._mock):
            if process is not None and process.poll() is None:
                process.terminate()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(WAIT_S / 2)
                process.kill()
                process.wait()
        for pid in proctree.everything():  # what a failed test's executor left running
            if environment(pid).get("HOME") == self.env["HOME"]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self.hoop.client.close()
        shutil.rmtree(self.base, ignore_errors=True)

    # What an operator does and sees.

    @property
    def token(self):
        return self.hoop.account("Gode")["token"]

    def cli(self, *arguments, code=0):
        """Run one command; its exit code must be `code`. Return its standard output."""
        done = subprocess.run(
            [*self.command, *arguments],
            env=self.env,
            cwd=self.base,
            **self.as_user,
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    def write(self, file, content):
        """Write one file of the persona's home; it counts from the next turn on."""
        path = self.home / file
        path.touch(mode=0o600)
        path.write_text(content)

    def walls(self, sandbox, network):
        self.write(f"{self.kind}_sandbox", f"{sandbox}\n")
        self.write(f"{self.kind}_network", f"{network}\n")

    def stderr(self):
        return (self.base / "stderr").read_text()

    def log(self):
        file = self.home / "log" / "sentinel.jsonl"
        return file.read_text() if file.exists() else ""

    def rows(self, query, *values):
        """Read rows from the sentinel's journal, without taking part in it."""
        with contextlib.closing(sqlite3.connect(f"file:{self.home}/state.db?mode=ro", uri=True)) as db:
            db.row_factory = sqlite3.Row
            return [dict(row) for row in db.execute(query, values)]

    def trigger(self, message):
        found = self.rows("SELECT * FROM triggers WHERE message_id = ?", message["id"])
        return found[0] if found else {"state": None, "failures": None}

    def turns(self, message):
        """Return the turns whose batch held this message, oldest first."""
        query = "SELECT * FROM turns WHERE kind = 'answer' AND batch LIKE ? ORDER BY started_at"
        return self.rows(query, f'%"{message["id"]}"%')

    def classes(self, message):
        return [one["class"] for one in self.turns(message)]

    def thread(self, cid):
        return self.rows("SELECT thread FROM conversations WHERE cid = ?", cid)[0]["thread"]

    def ledgers(self):
        """Return the executor's own records of its threads."""
        pattern = {"codex": "sessions/**/rollout-*.jsonl", "claude": "projects/*/*.jsonl"}[self.kind]
        return sorted((self.base / "executor").glob(pattern))

    # What people in the room do and see.

    def new_room(self, title, *others):
        """Return the cid of a new room of ann, Gode and the others; the sentinel finds it by itself."""
        return self.hoop.room(title, "ann", "Gode", *others)

    def ask(self, cid, text, *, mention=True, **fields):
        """Post as ann, with a structured mention of Gode."""
        mentions = [self.hoop.uid("Gode")] if mention else []
        return self.hoop.post("ann", cid, text, mentions=mentions, **fields)

    def everything(self, cid):
        return self.hoop.messages("ann", cid)

    def texts(self, cid):
        return [one["text"] for one in self.everything(cid)]

    def own(self, cid):
        gode = self.hoop.uid("Gode")
        return [one for one in self.everything(cid) if one["sender"]["uid"] == gode]

    def notices(self, cid):
        return [one["text"] for one in self.own(cid) if not one["answers"]]

    def answers(self, message):
        """Return every message that says that it answers this one."""
        return [one for one in self.own(message["cid"]) if message["id"] in one["answers"]]

    def until_state(self, message, *states):
        return until(
            lambda: self.trigger(message)["state"] in states, lambda: f"{states}: {self._story(message)}"
        )

    def until_answered(self, message):
        """Wait until the answer was read back, and return it: it must be the only one."""
        self.until_state(message, "verified")
        (answer,) = self.answers(message)
        return answer

    def until_failed(self, message, failures=1):
        """Wait until this message's turn failed so many times, and return the class of the last."""
        until(
            lambda: [one for one in self.classes(message) if one][failures - 1 :],
            lambda: self._story(message),
        )
        return self.classes(message)[failures - 1]

    def until_running(self, message):
        """Wait until an executor works on this message, and return its turn."""
        return until(
            lambda: next(
                (one for one in self.turns(message) if one["state"] == "running" and one["pid"]), None
            ),
            lambda: self._story(message),
        )

    def until_presence(self, state, detail=None):
        """Wait until the server tells ann that Gode is so."""
        until(lambda: self._presence() == (state, detail), lambda: f"{state}: {self._presence()}", limit_s=10)

    def _presence(self):
        members = self.hoop.call("ann", "GET", f"/v1/conversations/{self.room}/members")
        (gode,) = [one for one in members if one["name"] == "Gode"]
        return gode["state"], gode.get("detail")

    def _story(self, message):
        return f"{self.trigger(message)}\n{self.turns(message)}\n{self.log()[-3000:]}"


def living(mark):
    """Return the command lines of processes that began as `sleep` and hold `mark`."""
    lines = (command_line(pid) for pid, seen in proctree.everything().items() if not seen.is_zombie)
    return [line for line in lines if line[:1] == ["sleep"] and any(mark in word for word in line)]


def command_line(pid):
    """Return the argv of a process, [] when it is gone."""
    return _proc(pid, "cmdline")


def environment(pid):
    """Return the environment of a process as the kernel shows it, {} when it is gone."""
    return dict(one.partition("=")[::2] for one in _proc(pid, "environ"))


def _proc(pid, file):
    try:
        return [os.fsdecode(one) for one in Path(f"/proc/{pid}/{file}").read_bytes().split(b"\0")[:-1]]
    except OSError:
        return []


def spoken(request):
    """Return the turns of a request to the model, oldest first, each as JSON text."""
    body = json.loads(request)
    return [json.dumps(one, ensure_ascii=False) for one in body.get("input") or body.get("messages")]
