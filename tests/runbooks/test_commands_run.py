"""Every command of every runbook is run, in the order of its page, against a throwaway server and home.

What stands in a code block is run by `sh -eu` as it stands, block by block between blank lines; a `sentinel …` in the
running text too, once a page. Words in capitals are replaced by this test's values. `sentinel run` and `sentinel hoop serve` go on
beside the rest; a line `# Ctrl-C: …` ends one. Only what is named in BY_HAND may be left out, and it says so on its line.
"""

import contextlib
import inspect
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from markdown_it import MarkdownIt

from sentinel.app import status
from sentinel.core.model import Kind
from sentinel.server.admin import directory
from tests.fakes import supervisor
from tests.fakes.demo_process import STAND_INS, until

RUNBOOKS = Path(__file__).parents[2] / "runbooks"
PAGES = sorted(one.name for one in RUNBOOKS.glob("*.md"))
NEEDS_ROOT = {"sandboxed-persona.md"}  # it makes a user: tests/real/walls/test_real_runbook.py runs it
BY_HAND = {
    "codex login",
    "claude auth login",
    "sudo -u BOX -H codex login",
}  # they open a browser and ask; nothing else may be left out
LONG = {"sentinel run": "the sentinel", "sentinel hoop serve": "the server"}
PLACEHOLDER = re.compile(r"\b[A-Z]{2,}(?:-[A-Z]+)*\b")
HAND = re.compile(r"^(.*?)\s*# by hand$", re.MULTILINE)
STOP = re.compile(r"^# Ctrl-C: (.*)$", re.MULTILINE)
WAIT_S = 40

pytestmark = pytest.mark.timeout(180)  # a page is up to twenty programs, one after the other


def commands_of(page):
    """Return the scripts of a page, in order: chunks of its code blocks, and `sentinel …` of the running text."""
    scripts = []
    for token in MarkdownIt("commonmark").enable("table").parse((RUNBOOKS / page).read_text("utf-8")):
        if token.type in {"code_block", "fence"}:
            scripts += [one.strip("\n") for one in re.split(r"\n\s*\n", token.content) if one.strip()]
        elif token.type == "inline":
            spans = [one.content for one in token.children if one.type == "code_inline"]
            scripts += [one for one in spans if one.startswith("sentinel ") and one not in scripts]
    return scripts


class House:
    """A server with ann, bob and a room; a home of a persona Gode and its running sentinel, unless it is `empty`."""

    def __init__(self, base, *, empty):
        self.base, self.running = base, {}
        for name in ("bin", "home", "work"):
            (base / name).mkdir()
        self._program("sentinel", "import sys\nfrom sentinel.cli.main import main\nmain()\n")
        for name, text in STAND_INS.items():
            self._program(name, text)
        for name in ("systemctl", "launchctl"):  # stand-ins that really start what is installed
            words = [sys.executable, supervisor.__file__, name, str(base / "services")]
            self._program(name, f"import os, sys\nos.execv({words[0]!r}, [*{words!r}, *sys.argv[1:]])\n")
        self.env = {"PATH": f"{base / 'bin'}:/usr/bin:/bin", "HOME": str(base / "home"), "LANG": "C.UTF-8"}
        self.values = {"DIR": f"{base}/server", "NEW-DIR": f"{base}/restored", "PORT": "0"}
        with directory(base / "server", create=True) as accounts:
            self.ann = accounts.add_account("ann", Kind.HUMAN)
            accounts.add_account("bob", Kind.HUMAN)
            self.cid = accounts.add_room("Kitchen", ["ann", "bob"]).conversation.cid
        self.run("sentinel hoop serve --data DIR --port PORT")
        self.url = re.search(r"http://\S+", self._said("the server"))[0].rstrip("/")
        self.values |= {
            "SERVER": self.url,
            "PORT": self.url.rpartition(":")[2],
            "CID": self.cid,
            "NAME": "gode",
            "ACCOUNT": "Gode",
            "HUMAN": "bob",
            "UID": self.ann.account.uid,
            "MODEL": "m-1",
            "BIN": f"{base}/bin/codex",
            "CWD": f"{base}/work",
            "TOKEN-FILE": f"{base}/new.token",
            "FILE": self._private("ann.token", self.ann.token),
            "BACKUP": f"{base}/hoop.tar",
            "ASIDE": f"{base}/aside",
        }
        if not empty:
            self._furnish()

    def _furnish(self):
        with directory(self.base / "server") as accounts:
            self.gode = accounts.add_account("Gode", Kind.PERSONA)
            accounts.invite(self.cid, ["Gode"])
        token = self._private("gode.token", self.gode.token)
        made = "sentinel persona new NAME --server SERVER --account ACCOUNT --adapter echo --model echo"
        self.run(f"{made} --owner UID --token-file {token}")
        self.run("sentinel run NAME CID")
        self.values["MESSAGE-ID"] = self.ask("what broke the build?")["id"]
        until(lambda: len(self.messages()) == 2, lambda: self._said("the sentinel"))

    def _program(self, name, text):
        (self.base / "bin" / name).write_text(f"#!{sys.executable}\n{text}")
        (self.base / "bin" / name).chmod(0o755)

    def _private(self, name, text):
        file = self.base / name
        file.touch(mode=0o600)
        file.write_text(f"{text}\n")
        return str(file)

    def run(self, script):
        """Run one script of a page; return what it printed. It must end with 0, or get ready if it is a long one."""
        assert not script.startswith(" "), "a block in a list is indented by one space too many"
        for who in STOP.findall(script):
            self.end(who)
        script = HAND.sub(self._left_out, STOP.sub("", script)).strip()
        script = PLACEHOLDER.sub(lambda found: self.values[found[0]], script)
        for command, who in LONG.items():
            if script.startswith(command):
                assert "\n" not in script, "a command that goes on stands alone"
                return self._go_on(who, script)
        done = subprocess.run(
            ["/bin/sh", "-eu", "-c", script],
            env=self.env,
            cwd=self.base,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            check=False,
        )
        assert done.returncode == 0, f"{script}\n{done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    @staticmethod
    def _left_out(found):
        assert found[1] in BY_HAND
        return ""

    def _go_on(self, who, script):
        self.end(who)
        connected_before = self._connected()
        with open(self.base / who, "wb") as said:
            self.running[who] = subprocess.Popen(
                ["/bin/sh", "-c", f"exec {script}"],
                env=self.env,
                cwd=self.base,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
            )
        is_ready = {
            "the server": lambda: "listening on http://" in self._said(who),
            "the sentinel": lambda: self._connected() > connected_before,
        }
        until(is_ready[who], lambda: f"{script}\n{self._said(who)}")
        return ""

    def _connected(self):
        """Return how often the persona's log says that its live line is up."""
        log = self.base / "home" / ".hoop" / "gode" / "log" / "sentinel.jsonl"
        return log.read_text("utf-8").count('"event": "connected"') if log.exists() else 0

    def _said(self, who):
        return (self.base / who).read_text()

    def end(self, who):
        """Press Ctrl-C in the terminal of the server or the sentinel, if it runs; it must end well."""
        process = self.running.pop(who, None)
        if process is not None:
            process.send_signal(signal.SIGINT)
            assert process.wait(WAIT_S) == 0, self._said(who)

    def close(self):
        for who in ("the sentinel", "the server"):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.end(who)

    def call(self, method, path, token, **options):
        headers = {"Authorization": f"Bearer {token}"}
        return httpx.request(method, f"{self.url}{path}", headers=headers, timeout=WAIT_S, **options)

    def ask(self, text):
        members = self.call("GET", f"/v1/conversations/{self.cid}/members", self.ann.token).json()
        (gode,) = [one["uid"] for one in members if one["name"] == "Gode"]
        path, body = f"/v1/conversations/{self.cid}/text", {"text": text, "mentions": [gode]}
        return self.call("POST", path, self.ann.token, json=body).json()

    def messages(self):
        path = f"/v1/conversations/{self.cid}/messages?after=0&limit=200"
        return self.call("GET", path, self.ann.token).json()["messages"]


def new_persona_proved(house):
    """The persona answered as itself through the executor, and was taken away again."""
    texts = {one["text"]: one["sender"]["name"] for one in house.messages()}
    assert texts["codex was here"] == "Gode"
    assert not (house.base / "home" / ".hoop" / "gode").exists()
    assert not (house.base / "new.token").exists()


def rotation_proved(house):
    """The old token is dead, the new one stands in the home alone, and the persona answered with it."""
    new = (house.base / "home" / ".hoop" / "gode" / "token").read_text().strip()
    assert house.call("GET", "/v1/me", house.gode.token).status_code == 401
    assert house.call("GET", "/v1/me", new).json()["name"] == "Gode"
    assert not (house.base / "new.token").exists()
    assert len(house.messages()) == 4


def restore_proved(house):
    """What was said before the back-up is there, what came after is not, and the persona answers."""
    texts = [one["text"] for one in house.messages()]
    assert texts[0] == "what broke the build?"
    assert "said after the back-up" not in texts
    assert len(texts) == 4


def service_proved(house):
    """The service ran, and is taken away again: no unit, no sentinel."""
    units = house.base / "home" / ".config" / "systemd" / "user"
    assert list(units.glob("com.hoop.*")) == []
    assert list((house.base / "services").glob("*.json")) == []
    assert house.run("sentinel status NAME").startswith("gode: offline")


def after_the_back_up(house, script):
    """Let the persona see messages that the restored server will not know."""
    if script.startswith("sentinel hoop backup"):
        house.ask("said after the back-up")
        until(lambda: len(house.messages()) == 4, lambda: str(house.messages()))


PROOFS = {
    "new-persona.md": new_persona_proved,
    "rotate-token.md": rotation_proved,
    "restore-server.md": restore_proved,
    "service.md": service_proved,
}


@pytest.fixture(scope="module")
def shared_house(tmp_path_factory):
    """A house for the pages that look and start anew, and change nothing for good."""
    house = House(tmp_path_factory.mktemp("house"), empty=False)
    yield house
    house.close()


@pytest.mark.parametrize("page", sorted(set(PAGES) - set(PROOFS) - NEEDS_ROOT))
def test_the_commands_of_a_page_that_looks_run(page, shared_house):
    for script in commands_of(page):
        shared_house.run(script)


@pytest.mark.parametrize("page", sorted(PROOFS))
def test_the_commands_of_the_page_do_what_it_says(page, tmp_path):
    house = House(tmp_path, empty=page == "new-persona.md")
    try:
        for script in commands_of(page):
            house.run(script)
            after_the_back_up(house, script)
        PROOFS[page](house)
    finally:
        house.close()


def test_each_page_has_commands_and_stands_in_the_index():
    index = (RUNBOOKS / "README.md").read_text("utf-8")

    assert all(commands_of(page) for page in PAGES)
    assert set(re.findall(r"\]\(([\w-]+\.md)\)", index)) == set(PAGES) - {"README.md"}


def test_what_is_left_out_is_the_closed_list_and_nothing_else():
    left_out = [command for page in PAGES for one in commands_of(page) for command in HAND.findall(one)]

    assert set(left_out) == BY_HAND


def test_the_index_speaks_of_every_word_of_status():
    """The words are those that `sentinel status` can print."""
    table = (RUNBOOKS / "README.md").read_text("utf-8").split("| it says |")[1].split("\n\n")[0]
    told = {word for row in table.splitlines() for word in re.findall(r"`([\w-]+)`", row.split("|")[1])}

    assigned = re.findall(r"^ +state = (.+)$", inspect.getsource(status), re.MULTILINE)

    assert told == {word for one in assigned for word in re.findall(r'"([\w-]+)"', one)}
