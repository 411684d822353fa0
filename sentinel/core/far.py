"""The far side: an executor that runs as another operating-system user, behind a launcher. Pure; a part of the gate.

What to ask a launcher, what its answers mean, and the checks on them. The kernel is the wall; this makes sure that it is the
right wall: the user that was declared, in the directory that was declared, or nothing runs.
Source: docs/launcher.md; spec 02 section 2, checks 4 and 6.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from sentinel.core.codec import Adapter
from sentinel.core.evidence import evidence_of
from sentinel.core.facts import Broken, FarFacts, FarSilent, HomeFacts, optional

OUT_OF_REACH = 255
"""ssh's own exit code: the far side was not reached. An outage, never a death."""

_MEND_LAUNCHER = "run the launcher by hand with --probe < /dev/null, and see docs/launcher.md"


@dataclass(frozen=True, slots=True)
class Question:
    """What to ask before the gate judges: the launcher's path, and the line that it reads."""

    launcher: str
    line: bytes


def is_elsewhere(facts: HomeFacts, adapter: Adapter) -> bool:
    """Return whether the executor is declared to run as another user than this one. Raises `Broken`."""
    return (optional(facts, f"{adapter.name}_user") or facts.user) != facts.user


def question(launcher: str, cwd: str, program: str, path: str) -> Question:
    """Return the question of a probe; `path` is the PATH that the executor will be looked up on."""
    asked = {"cwd": cwd, "program": program, "path": path}
    return Question(launcher, json.dumps(asked).encode() + b"\n")


def read_answer(code: int | None, stdout: bytes, stderr: str, why: str) -> FarFacts | FarSilent:
    """Return what the answer to a probe means.

    Args:
        code: the launcher's exit code; None when there was none, and `why` says it.
        stdout: what it printed.
        stderr: the tail of its complaints.
        why: why it has no exit code.
    """
    if code != 0:
        return silence(code, stderr, why)
    try:
        told: Any = json.loads(stdout)
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict):
        return FarSilent("is unknown: its launcher did not print one line of JSON", is_passing=False)
    return _facts(cast("Mapping[str, object]", told))


def silence(code: int | None, stderr: str, why: str) -> FarSilent:
    """Return what it means that a launcher did not do what it was asked; the arguments are those of `read_answer`."""
    said = evidence_of(stderr)
    if code == OUT_OF_REACH:
        return FarSilent(f"could not be reached: {said or 'its launcher said 255'}", is_passing=True)
    if code is None:
        return FarSilent(f"gave no answer: {why}", is_passing=True)
    return FarSilent(
        f"was refused by its launcher (exit {code}): {said or 'no reason given'}", is_passing=False
    )


def _facts(told: Mapping[str, object]) -> FarFacts | FarSilent:
    user, cwd_ok = told.get("user"), told.get("cwd_ok")
    if not isinstance(user, str) or not user or not isinstance(cwd_ok, bool):
        return FarSilent(
            "is unknown: its launcher named no user, or not whether cwd can be entered", is_passing=False
        )
    cwd = _path(told, "cwd") or ""
    return FarFacts(
        user=user,
        cwd=cwd if cwd_ok else None,
        home=_path(told, "home"),
        turns=_path(told, "turns"),
        program=_path(told, "program"),
        tells_program="program" in told,
    )


def _path(told: Mapping[str, object], key: str) -> str | None:
    value = told.get(key)
    return value if isinstance(value, str) and value.startswith("/") and "\0" not in value else None


def answer(facts: HomeFacts) -> FarFacts:
    """Return what the launcher told, or raise `Broken` for its silence."""
    match facts.far:
        case FarFacts():
            return facts.far
        case FarSilent(why, is_passing):
            raise Broken(f"the other user's side {why}", _MEND_LAUNCHER, is_passing=is_passing)
        case None:
            raise Broken("the launcher was not asked who it runs as", "mend the lines above first")


def check(facts: HomeFacts, adapter: Adapter, user: str) -> str:
    """The far half of check 4: say who the launcher runs the executor as, or raise `Broken`."""
    told = answer(facts)
    file = f"{adapter.name}_user"
    if told.user != user:
        raise Broken(
            f"{file} is {user}, but the launcher runs as {told.user}",
            f"make the launcher reach {user}, or write the right user into {facts.home}/{file}",
            file=file,
        )
    if told.tells_program and told.program is None:
        mend = f"install {adapter.name} for {user}, or set PATH in {facts.home}/{adapter.name}_env"
        raise Broken(f"{user} has no {adapter.name} on its PATH", mend, file=f"{adapter.name}_bin")
    return f"runs as {told.user}"


def entered(facts: HomeFacts, adapter: Adapter, path: str) -> str:
    """Return the real path of the far working directory, or raise `Broken`; a silent far side is check 4's to say."""
    told = facts.far
    if not isinstance(told, FarFacts):
        return path
    if told.cwd is None:
        file = f"{adapter.name}_cwd"
        mend = f"make the directory as {told.user}, or name another in {facts.home}/{file}"
        raise Broken(f"{file} is {path}, which {told.user} cannot enter", mend, file=file)
    return told.cwd or path
