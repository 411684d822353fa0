"""Captured runs as values, and the codec that would have driven each of them."""

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from adapters import claude, codex
from sentinel.core.codec import EndedBy, ExitStatus, Sandbox, TurnRequest

from expected_outcomes import EXPECTED, HUNG  # isort: skip

TRANSCRIPTS = Path(__file__).parent.parent / "transcripts"
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True)
class Run:
    group: str
    name: str
    argv: tuple
    stdout: bytes
    stderr: str
    status: ExitStatus

    @property
    def id(self):
        return f"{self.group}/{self.name}"

    @property
    def expected(self):
        return EXPECTED[self.group][self.name]


def load(group, name):
    here = TRANSCRIPTS / group
    case = json.loads((here / "cases.json").read_text())[name]
    stdout, stderr = here / f"{name}.jsonl", here / f"{name}.stderr"
    code = (here / f"{name}.rc").read_text().strip()
    if not re.fullmatch(r"-?\d+", code):
        status = ExitStatus(None, EndedBy.SPAWN)
    elif (name in HUNG and int(code) != 1) or name == "hang_headers_sigint":
        status = ExitStatus(int(code), EndedBy.SILENCE)
    else:
        status = ExitStatus(int(code))
    return Run(
        group,
        name,
        tuple(case["argv"]),
        stdout.read_bytes() if stdout.exists() else b"",
        stderr.read_text(errors="replace") if stderr.exists() else "",
        status,
    )


def names(group):
    return sorted(one.stem for one in (TRANSCRIPTS / group).glob("*.rc"))


def all_runs(*groups):
    return [load(group, name) for group in groups for name in names(group)]


def request(**changes):
    fields = {
        "binary": "/opt/executor",
        "model": "mock-model",
        "cwd": "/srv/persona/ann/ws",
        "sandbox": Sandbox.READ_ONLY,
        "network": False,
        "prompt": "hello",
        "triggers": (),
        "new_thread": "aaaaaaaa-0000-4000-8000-000000000001",
    }
    return TurnRequest(**{**fields, **changes})


def codec_of(run):
    """Return a codec that asked for the thread this run was asked for."""
    if run.group.startswith("codex"):
        return codex.ADAPTER.codec(request(resume=_after("resume", run.argv)))
    asked = _after("--resume", run.argv) or _after("--session-id", run.argv)
    return claude.ADAPTER.codec(request(new_thread=asked or _first_session(run.stdout)))


def outcome_of(run, chunks=None):
    codec = codec_of(run)
    events = [event for chunk in chunks or [run.stdout] for event in codec.receive(chunk)]
    return events, codec.outcome(run.status, stderr=run.stderr, now=NOW)


def _after(word, argv):
    if word not in argv:
        return None
    rest = argv[argv.index(word) + 1 :]
    named = [one for one in rest if UUID.fullmatch(one) or one == "no-such-name"]
    return named[0] if named else None


def _first_session(stdout):
    found = re.search(rb'"session_id":"([0-9a-f-]{36})"', stdout)
    return found.group(1).decode() if found else "none"
