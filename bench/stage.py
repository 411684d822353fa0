"""A stage: a real server process, a human, and a persona whose executor is the stamp program, with a real sentinel."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

ROOT = Path(__file__).resolve().parent.parent
SENTINEL = (sys.executable, "-m", "sentinel.cli.main")


@dataclass
class Stage:
    """Everything a benchmark needs. `human` posts; `persona_uid` is whom to mention."""

    folder: Path
    url: str
    cid: str
    human: httpx.Client
    human_token: str
    persona_uid: str
    home: Path
    stamps: Path
    server: subprocess.Popen
    env: dict = field(default_factory=dict)
    sentinel: subprocess.Popen | None = None
    _read_to: int = 0
    _verified: int = 0

    def start_sentinel(self) -> None:
        """Start `sentinel run` and wait until it is connected."""
        log = self.home / "log" / "sentinel.jsonl"
        before = log.read_text().count('"connected"') if log.exists() else 0
        self.sentinel = subprocess.Popen(
            [*SENTINEL, "run", str(self.home), self.cid], env=self.env, stderr=subprocess.DEVNULL
        )
        until(lambda: log.exists() and log.read_text().count('"connected"') > before, "the sentinel connects")

    def stop_sentinel(self) -> None:
        """End the sentinel and wait for it."""
        if self.sentinel is not None:
            end(self.sentinel)
            self.sentinel = None

    def post(self, text: str, *, mention: bool) -> str:
        """Post as the human; return the message's id."""
        body = {"text": text, "mentions": [self.persona_uid] if mention else []}
        reply = self.human.post(f"/v1/conversations/{self.cid}/text", json=body)
        reply.raise_for_status()
        return reply.json()["id"]

    def read_stamps(self) -> list[float]:
        """Return when each executor so far ran its first instruction (epoch seconds)."""
        return [float(line) for line in self.stamps.read_text().split()] if self.stamps.exists() else []

    def stamped_bytes(self) -> int:
        """Return how much the stamp programs have written: cheap to ask for, so that asking disturbs nothing."""
        return self.stamps.stat().st_size if self.stamps.exists() else 0

    def answered(self) -> int:
        """Return how many turns were verified so far, by the sentinel's own log, read on from where we were."""
        log = self.home / "log" / "sentinel.jsonl"
        if log.exists():
            with log.open("rb") as lines:
                lines.seek(self._read_to)
                data = lines.read()
            self._verified += data.count(b'"verified"')
            self._read_to += len(data)
        return self._verified

    def log_tail(self) -> str:
        """Return the end of the sentinel's log, for a benchmark that gives up."""
        log = self.home / "log" / "sentinel.jsonl"
        return "\n".join(log.read_text().splitlines()[-25:]) if log.exists() else ""


@contextmanager
def stage(folder: Path) -> Iterator[Stage]:
    """Build a stage in `folder` and take it down again."""
    env = {key: os.environ[key] for key in ("PATH", "LANG", "TZ") if key in os.environ}
    env |= {"HOME": str(folder), "HOOP_HOME": str(folder / "homes"), "XDG_STATE_HOME": str(folder / "state")}
    data = folder / "server"
    human = account(env, data, "ann", "human")
    persona = account(env, data, "Gode", "persona")
    account(env, data, "bob", "human")  # a third: in a conversation of two every message is a call
    server = subprocess.Popen(
        [*SENTINEL, "hoop", "serve", "--data", str(data), "--port", "0", *UNLIMITED],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        url = server.stdout.readline().split()[-1]
        cid = run_json(env, "hoop", "room", "add", "Bench", *MEMBERS, "--data", data)["cid"]
        home = make_home(env, folder, url, persona["token"])
        client = httpx.Client(base_url=url, headers={"Authorization": f"Bearer {human['token']}"}, timeout=30)
        made = Stage(
            folder, url, cid, client, human["token"], persona["uid"], home, folder / "stamps", server, env
        )
        try:
            yield made
        except SystemExit:
            print(made.log_tail(), file=sys.stderr)
            raise
        finally:
            made.stop_sentinel()
            client.close()
    finally:
        end(server)


MEMBERS = ("--member", "ann", "--member", "bob", "--member", "Gode")
UNLIMITED = ("--reads-per-s", "100000", "--posts-per-s", "100000", "--burst", "1000000")


def account(env: dict, data: Path, name: str, kind: str) -> dict:
    """Add an account and return `{uid, name, kind, token}`."""
    return run_json(env, "hoop", "account", "add", name, "--kind", kind, "--data", data)


def run_json(env: dict, *arguments: object) -> dict:
    """Run a sentinel command with `--json` and return what it printed."""
    done = subprocess.run(
        [*SENTINEL, *map(str, arguments), "--json"], env=env, check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout)


def make_home(env: dict, folder: Path, url: str, token: str) -> Path:
    """Make a persona whose codex is the stamp program."""
    stamp = build_stamp(folder)
    token_file, work = folder / "token", folder / "work"
    token_file.touch(mode=0o600)
    token_file.write_text(token)
    work.mkdir()
    flags = {
        "server": url, "account": "Gode", "token-file": token_file, "adapter": "codex", "model": "stamp-model",
        "bin": stamp, "cwd": work, "sandbox": "read-only", "network": "off",
    }  # fmt: skip
    words = [word for key, value in flags.items() for word in (f"--{key}", str(value))]
    subprocess.run([*SENTINEL, "persona", "new", "gode", *words], env=env, check=True, capture_output=True)
    home = folder / "homes" / "gode"
    (home / "codex_env").touch(mode=0o600)
    (home / "codex_env").write_text(f"STAMP_FILE={folder / 'stamps'}\n")
    return home


def build_stamp(folder: Path) -> Path:
    """Compile the stamp program."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        sys.exit("bench: no C compiler: install one (cc), the stamp program is C")
    target = folder / "stamp"
    subprocess.run([compiler, "-O2", "-o", str(target), str(ROOT / "bench" / "stamp.c")], check=True)
    return target


def until(condition, what: str, limit_s: float = 60.0) -> None:
    """Wait for a condition; say which when it does not come."""
    deadline = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > deadline:
            sys.exit(f"bench: it took over {limit_s:g} s until {what}")
        time.sleep(0.002)


def end(process: subprocess.Popen) -> None:
    """End a process of ours and wait for it."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
