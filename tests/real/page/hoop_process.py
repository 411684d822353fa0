"""A real `sentinel hoop serve` process, driven as an operator and as REST clients would.

Imported by its own name, since several folders have a `conftest`.
"""

import json
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest

SENTINEL = [sys.executable, "-c", "import sys; from sentinel.cli.main import main; sys.exit(main())"]
WAIT_S = 15


def until(condition, what, limit_s=WAIT_S, page=None):
    """Poll `condition` until it gives something true and return that; fail with `what` after the limit.

    Give the `page` when its own routes or events must be served meanwhile: playwright does that only inside its calls.
    """
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        if found := condition():
            return found
        if page is None:
            time.sleep(0.02)
        else:
            page.wait_for_timeout(20)
    pytest.fail(f"not within {limit_s} s: {what}")


class Hoop:
    """One data directory and the server process on it."""

    def __init__(self, data: Path):
        self.data = data
        self.accounts = {}
        self.sessions = {}
        self.printed = []
        self.port = 0
        self.process = None
        self.client = httpx.Client(timeout=WAIT_S)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def start(self):
        """Start the server, on the port it had before if there was one, and wait until it listens."""
        command = [*SENTINEL, "hoop", "serve", "--data", str(self.data), "--port", str(self.port)]
        command += ["--posts-per-s", "5000", "--reads-per-s", "5000", "--burst", "5000"]
        self.printed = []
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        threading.Thread(target=self._read, args=(self.process.stdout,), daemon=True).start()
        line = until(lambda: self.line_with("listening on http://"), "the server listens")
        self.port = int(line.rstrip("/").rpartition(":")[2])

    def _read(self, stream):
        with stream:
            for line in stream:
                self.printed.append(line.rstrip())

    def line_with(self, word):
        """Return the first printed line that holds `word`, or None."""
        return next((line for line in self.printed if word in line), None)

    def kill(self):
        """kill -9, and wait until it is gone."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(WAIT_S)

    def stop(self):
        """Stop the server as an operator would."""
        self.client.close()
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(WAIT_S)

    def run(self, *arguments):
        """Run `sentinel hoop …` on this data directory and return what it printed."""
        command = [*SENTINEL, "hoop", *arguments, "--data", str(self.data)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=WAIT_S * 2)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def account(self, name, kind="human"):
        """Return `{uid, name, kind, token}`, made when first asked for."""
        if name not in self.accounts:
            self.accounts[name] = json.loads(self.run("account", "add", name, "--kind", kind, "--json"))
        return self.accounts[name]

    def uid(self, name):
        return self.account(name)["uid"]

    def otp(self, name):
        """Return a fresh one-time code."""
        return self.run("otp", name).split()[-1]

    def call(self, name, method, path, **options):
        """Make a REST call as an account; the reply must not be a refusal."""
        headers = {"Authorization": f"Bearer {self.account(name)['token']}", **options.pop("headers", {})}
        reply = self.client.request(method, f"{self.url}{path}", headers=headers, **options)
        assert reply.is_success, reply.text
        return reply.json() if reply.content else None

    def room(self, title, *names):
        """Return the cid of a new room of these accounts."""
        uids = [self.uid(name) for name in names]
        return self.call(names[0], "POST", "/v1/conversations", json={"title": title, "members": uids[1:]})[
            "cid"
        ]

    def post(self, name, cid, text, **fields):
        """Post as an account and return the stored message."""
        return self.call(name, "POST", f"/v1/conversations/{cid}/text", json={"text": text, **fields})

    def messages(self, name, cid):
        """Return every message of a room."""
        found, more = [], True
        while more:
            after = found[-1]["seq"] if found else 0
            page = self.call(name, "GET", f"/v1/conversations/{cid}/messages?after={after}&limit=200")
            found += page["messages"]
            more = page["has_more"]
        return found

    def session(self, name):
        """Return the value of a session cookie of an account, logged in once per test run."""
        if name not in self.sessions:
            self.account(name)
            body = {"account": name, "code": self.otp(name)}
            reply = httpx.post(f"{self.url}/v1/auth/otp/verify", json=body, timeout=WAIT_S)  # keeps no cookie
            self.sessions[name] = reply.raise_for_status().json()["token"]
        return self.sessions[name]
