"""Real things, each a process of its own: a HOOP server, a persona's sentinel, and humans who speak over REST.

town = Town(tmp_path)
place = town.place()              # a room with ann, bob and a persona with its home
place.start()
question = place.ask("hello")
place.until_answered(question)
"""

import contextlib
import io
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import httpx

from sentinel.cli import main
from sentinel.core.model import Kind
from sentinel.server.admin import directory

WAIT_S = 30.0
COMMAND = [sys.executable, "-m", "sentinel.cli.main"]


def until(claim, what="it"):
    """Look until it is so."""
    end = time.monotonic() + WAIT_S
    while not (found := claim()):
        assert time.monotonic() < end, f"{what} never came true"
        time.sleep(0.01)
    return found


class Town:
    """A server process; `kill()` and `serve()` again keep data and port."""

    def __init__(self, root):
        self.root = Path(root)
        self.data = self.root / "hoop"
        self.port = 0
        self.url = ""
        self.process = None
        self.places = []
        self.serve()

    def serve(self):
        self.log = (self.root / "server.log").open("ab")
        self.process = subprocess.Popen(
            [*COMMAND, "hoop", "serve", "--data", str(self.data), "--port", str(self.port)],
            stdout=subprocess.PIPE,
            stderr=self.log,
            start_new_session=True,
        )
        line = self.process.stdout.readline().decode()
        assert line.startswith("listening on http://"), (line, (self.root / "server.log").read_text())
        self.url = line.split()[-1]
        self.port = int(self.url.rsplit(":", 1)[1])

    def kill(self):
        self.process.kill()
        self._ended()

    def _ended(self):
        self.process.wait(WAIT_S)
        self.process.stdout.close()
        self.log.close()

    def close(self):
        for place in self.places:
            place.close()
        self.process.terminate()
        self._ended()

    def place(self, **more):
        made = Place(self, len(self.places) + 1, **more)
        self.places.append(made)
        return made


class Place:
    """A room with humans ann (the owner) and bob, one persona, and its home on disk."""

    def __init__(self, town, number, *, executor=None, server=None, adapter="echo", grace_s=1.0, members=3):
        self.town = town
        self.root = town.root / f"place-{number}"
        self.home = self.root / "home" / "gode"
        self.work = self.root / "work"
        for folder in (self.home, self.work):
            folder.mkdir(parents=True)
        self.home.chmod(0o700)
        names = {"ann": Kind.HUMAN, "Gode": Kind.PERSONA, "bob": Kind.HUMAN}
        names = dict(list(names.items())[:members])
        with directory(town.data) as opened:
            made = {name: opened.add_account(f"{name}{number}", kind) for name, kind in names.items()}
            everybody = [one.account.name for one in made.values()]
            self.cid = opened.add_room("lab", everybody).conversation.cid
        self.tokens = {name: one.token for name, one in made.items()}
        self.uids = {name: one.account.uid for name, one in made.items()}
        self.gode = made["Gode"].account
        values = {
            "server": server or town.url,
            "account": self.gode.name,
            "token": self.tokens["Gode"],
            "adapter": adapter,
            "model": "m-1",
            "task.md": "You are Gode, a colleague in the team's rooms.",
            "owners": self.uids["ann"],
            "limits.toml": f"term_grace_s = {grace_s}",
        }
        if executor is not None:
            values[f"{adapter}_bin"] = str(executor)
        if adapter != "echo":
            values |= {
                f"{adapter}_cwd": str(self.work),
                f"{adapter}_sandbox": "workspace-write",
                f"{adapter}_network": "off",
            }
        for name, value in values.items():
            self.write(name, value)
        self.process = None
        self._connections_before = 0
        self.errors = self.root / "sentinel.log"
        self.people = {}

    def write(self, name, value):
        path = self.home / name
        path.write_text(value + "\n")
        path.chmod(0o600)

    # The sentinel's process.

    @property
    def environment(self):
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.root),
            "HOOP_HOME": str(self.home.parent),
            "XDG_STATE_HOME": str(self.root / "state"),
            "LANG": "C.UTF-8",
        }

    def start(self, *, wrap=(), wait=True):
        with self.errors.open("ab") as errors:
            self.process = subprocess.Popen(
                [*wrap, *COMMAND, "run", str(self.home), self.cid],
                env=self.environment,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
            )
        if wait:
            until(self._is_up, "the sentinel's connection")

    def _is_up(self):
        assert self.process.poll() is None, self.said
        return self._connections() > self._connections_before

    def _connections(self):
        return self.said.count("event='connected'")

    @property
    def said(self):
        return self.errors.read_text() if self.errors.exists() else ""

    def kill(self):
        """`kill -9`, of the sentinel alone."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait(WAIT_S)
        self._connections_before = self._connections()

    def term(self):
        self.process.terminate()
        code = self.process.wait(WAIT_S)
        self._connections_before = self._connections()
        return code

    def close(self):
        if self.process is not None and self.process.poll() is None:
            self.term()
        for one in self.people.values():
            one.close()

    def run(self, *arguments, stdin=""):
        """One command line, in a process of its own."""
        return subprocess.run(
            [*COMMAND, *arguments],
            env=self.environment,
            input=stdin if isinstance(stdin, bytes) else stdin.encode(),
            capture_output=True,
            timeout=WAIT_S,
            check=False,
        )

    def verb(self, *arguments, stdin=b""):
        """One command line in this process: a fifth of the time, for tables of them."""
        if arguments[0] == "run":  # a sentinel is a process
            return self.run(*arguments, stdin=stdin)
        out, told = io.StringIO(), io.StringIO()
        before = {name: os.environ.get(name) for name in self.environment}
        os.environ.update(self.environment)
        words = [os.fsdecode(one) if isinstance(one, bytes) else one for one in arguments]
        data = stdin if isinstance(stdin, bytes) else stdin.encode()
        real, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(data))
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(told):
                code = main.run(words)
        finally:
            sys.stdin = real
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.__setitem__(name, value)
        return subprocess.CompletedProcess(arguments, code, out.getvalue().encode(), told.getvalue().encode())

    # People.

    def person(self, name):
        if name not in self.people:
            headers = {"Authorization": f"Bearer {self.tokens[name]}"}
            self.people[name] = httpx.Client(base_url=self.town.url, headers=headers, timeout=WAIT_S)
        return self.people[name]

    def say(self, name, text, *, mention=True, **more):
        body = {"text": text, "mentions": [self.gode.uid] if mention else [], **more}
        reply = self.person(name).post(f"/v1/conversations/{self.cid}/text", json=body)
        assert reply.status_code == 201, reply.text
        return reply.json()["id"]

    def ask(self, text="hello", **more):
        return self.say("ann", text, **more)

    def messages(self):
        found, after = [], 0
        while True:
            page = self.person("ann").get(
                f"/v1/conversations/{self.cid}/messages", params={"after": after, "limit": 200}
            )
            assert page.status_code == 200, page.text
            found += page.json()["messages"]
            if not page.json()["has_more"]:
                return found
            after = found[-1]["seq"]

    def own(self):
        return [one for one in self.messages() if one["sender"]["uid"] == self.gode.uid]

    def answers_to(self, message_id):
        return [one for one in self.own() if message_id in one.get("answers", [])]

    def until_answered(self, *message_ids):
        until(
            lambda: all(self.state_of(one) == "verified" for one in message_ids),
            f"an answer\n{self.said[-3000:]}",
        )

    # The journal, looked at from outside.

    def rows(self, sql, *parameters):
        path = self.home / "state.db"
        if not path.exists():
            return []
        looking = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=5)
        try:
            return looking.execute(sql, parameters).fetchall()
        except sqlite3.OperationalError:
            return []
        finally:
            looking.close()

    def state_of(self, message_id):
        found = self.rows("SELECT state FROM triggers WHERE message_id = ?", message_id)
        return found[0][0] if found else None

    def turn_of(self, message_id):
        """Return (state, pid, class, started) of the newest turn that holds this trigger."""
        found = self.rows(
            "SELECT state, pid, class, started FROM turns WHERE batch LIKE ? ORDER BY started_at DESC LIMIT 1",
            f"%{message_id}%",
        )
        return found[0] if found else (None, None, None, None)

    def until_turn(self, message_id, state):
        until(lambda: self.turn_of(message_id)[0] == state, f"the state {state}\n{self.said[-3000:]}")

    def decisions(self):
        lines = (self.home / "log" / "sentinel.jsonl").read_text().splitlines()
        return [json.loads(one) for one in lines]


def alive(pid):
    """Whether a process runs (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False
