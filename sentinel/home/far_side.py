"""Talks to a launcher: who are you, take this file, is that turn over. Source: docs/launcher.md.

What is said goes over standard input as one line of JSON; the launcher itself gets our user's plain environment and no
secret. Each verb has a time limit: an ssh that hangs costs seconds, never a turn's whole time.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from sentinel.asking import Asked, ask, ask_aside
from sentinel.core.errors import Exit
from sentinel.core.evidence import evidence_of
from sentinel.core.facts import Far, FarFacts, FarSilent
from sentinel.core.far import Question, read_answer, silence
from sentinel.core.outcome import Failure, FailureClass
from sentinel.core.persona import Persona
from sentinel.home.environment import PATH, launcher_environment

_PROBE_S: Final = 20.0
_STOP_S: Final = 30.0
_PUT_S: Final = 120.0
_ANSWER_BYTES: Final = 64 * 1024
_NAMES_BYTES: Final = 1024 * 1024
_HEADER_BYTES: Final = 1024
_NO_SUCH: Final = (Exit.USAGE, Exit.NOT_DELIVERED)
"""64: a launcher that does not know the verb; 66: there is no such file."""
_LISTING_BYTES: Final = 64 * 1024 * 1024
_LS_REFUSED: Final = (1, 2)
_REFUSED: Final = ": Permission denied"


def probe(question: Question) -> Far:
    """Ask a launcher who it runs as, and whether the working directory can be entered there."""
    return _read(
        ask(
            (question.launcher, "--probe"),
            data=question.line,
            env=launcher_environment(),
            timeout_s=_PROBE_S,
            cap_bytes=_ANSWER_BYTES,
        )
    )


async def probe_aside(question: Question) -> Far:
    """Do as `probe`, while the event loop goes on."""
    return _read(await _say(question.launcher, ("--probe",), question.line, timeout_s=_PROBE_S))


async def stop(launcher: str, turn_id: str) -> Failure | None:
    """End what may live of a turn and forget its folder there; None when nothing of it lives, else why that is not known."""
    asked = await _say(launcher, ("--stop", turn_id), b"", timeout_s=_STOP_S)
    return None if asked.code == 0 else _failure(asked)


async def put(persona: Persona, turn_id: str, file: Path) -> str | Failure:
    """Bring a file into the turn's folder on the far side; return its path there, or why that failed."""
    data = file.read_bytes()
    line = json.dumps({"name": file.name, "size_bytes": len(data)}).encode() + b"\n"
    asked = await _say(persona.binary, ("--put", turn_id), line + data, timeout_s=_PUT_S)
    if asked.code != 0:
        return _failure(asked)
    try:
        path = json.loads(asked.stdout)["path"]
    except (ValueError, TypeError, KeyError, RecursionError):
        path = None
    if not isinstance(path, str) or not path.startswith("/"):
        return Failure(FailureClass.MISSING, "the launcher did not say where it put a file")
    return path


async def names(persona: Persona, turn_id: str, folder: str) -> tuple[str, ...] | Failure:
    """Return the names of the plain files in a folder of the turn's on the far side: each one component, no leading dot."""
    got = await _get(persona, turn_id, folder, cap_bytes=_NAMES_BYTES)
    if isinstance(got, Failure):
        return got
    told: Any = got[0].get("names", [])
    if not isinstance(told, list):
        return Failure(FailureClass.MISSING, "the launcher did not list a folder")
    listed = cast("list[object]", told)
    return tuple(sorted(one for one in listed if isinstance(one, str) and _is_plain(one)))


async def get(persona: Persona, turn_id: str, name: str, *, cap_bytes: int) -> bytes | Failure:
    """Return the bytes of a file of the turn's on the far side; a failure too when there are more than `cap_bytes`."""
    got = await _get(persona, turn_id, name, cap_bytes=cap_bytes + _HEADER_BYTES)
    if isinstance(got, Failure):
        return got
    header, data = got
    if header.get("size_bytes") != len(data) or len(data) > cap_bytes:
        return Failure(FailureClass.CRASH, "a file of the far side did not come whole")
    return data


async def _get(
    persona: Persona, turn_id: str, name: str, *, cap_bytes: int
) -> tuple[dict[str, Any], bytes] | Failure:
    line = json.dumps({"name": name}).encode() + b"\n"
    words = ("--get", turn_id)
    asked = await _say(persona.binary, words, line, timeout_s=_PUT_S, cap_bytes=cap_bytes)
    if asked.code in _NO_SUCH:
        return {}, b""
    if asked.code != 0:
        return _failure(asked)
    head, _, data = asked.stdout.partition(b"\n")
    try:
        header: Any = json.loads(head)
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict):
        return Failure(FailureClass.MISSING, "the launcher did not say what it hands out")
    return cast("dict[str, Any]", header), data


def _is_plain(name: str) -> bool:
    return bool(name) and not name.startswith(".") and "/" not in name and name.isprintable()


@dataclass(frozen=True, slots=True)
class Sight:
    """What became of going to a folder there: `is_closed` None when it cannot be told (absent, no folder, out of reach)."""

    folder: str
    is_closed: bool | None
    said: str


def look(persona: Persona, folder: str, *, turn: str) -> Sight:
    """Have the other user try to enter a folder, and to list it; what the kernel says to it, in its own words.

    A folder that can be entered is open even where it cannot be listed: what lies in it may be known by name.
    """
    said = ""
    for words, done in (
        (("/bin/ls", "-d", f"{folder}/."), "can enter it"),
        (("/bin/ls", "-a", folder), "can list it"),
    ):
        asked = _look(persona, words, turn)
        if asked.code == 0:
            return Sight(folder, is_closed=False, said=done)
        if asked.code not in _LS_REFUSED or not asked.stderr.rstrip().endswith(_REFUSED):
            return Sight(folder, is_closed=None, said=evidence_of(asked.stderr) or asked.why)
        said = evidence_of(asked.stderr)
    return Sight(folder, is_closed=True, said=said)


def _look(persona: Persona, words: tuple[str, ...], turn: str) -> Asked:
    header = {
        "argv": list(words),
        "cwd": persona.cwd,
        "env": {"PATH": PATH, "LC_ALL": "C"},
        "turn": turn,
        "user": persona.user,
    }
    return ask(
        (persona.binary, "--run"),
        data=json.dumps(header).encode() + b"\n",
        env=launcher_environment(),
        timeout_s=_PROBE_S,
        cap_bytes=_LISTING_BYTES,
    )


def forget(persona: Persona, turn: str) -> None:
    """Remove what such a look left there."""
    ask(
        (persona.binary, "--stop", turn),
        env=launcher_environment(),
        timeout_s=_STOP_S,
        cap_bytes=_ANSWER_BYTES,
    )


async def _say(
    launcher: str, words: tuple[str, ...], data: bytes, *, timeout_s: float, cap_bytes: int = _ANSWER_BYTES
) -> Asked:
    return await ask_aside(
        (launcher, *words),
        data=data,
        env=launcher_environment(),
        timeout_s=timeout_s,
        cap_bytes=cap_bytes,
    )


def _read(asked: Asked) -> FarFacts | FarSilent:
    return read_answer(asked.code, asked.stdout, asked.stderr, asked.why)


def _failure(asked: Asked) -> Failure:
    """Return what it means that a verb failed: out of reach is an outage, anything else is the launcher's own refusal."""
    silent = silence(asked.code, asked.stderr, asked.why)
    if silent.is_passing:
        kind = FailureClass.UNAVAILABLE
    else:  # 78 is the launcher's own refusal; else this one deed failed there (a full disk, say)
        kind = FailureClass.MISSING if asked.code == Exit.CONFIG else FailureClass.CRASH
    return Failure(kind, f"the other user's side {silent.why}")
