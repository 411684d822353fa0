"""An executor that runs as another user: what its launcher must say before anything runs (spec 02 section 2)."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.core.facts import (
    DirectoryFacts,
    EnteredFacts,
    FarFacts,
    FarSilent,
    HomeFacts,
    Present,
    ProgramFacts,
    Unresolved,
)
from sentinel.core.far import question, read_answer
from sentinel.core.gate import Passed, judge
from sentinel.home.executors import ADAPTERS

ME = 1000
FILES = {
    "server": "http://127.0.0.1:1",
    "account": "GodeMini01",
    "token": "t-0123456789abcdef",
    "adapter": "codex",
    "model": "gpt-5",
    "codex_bin": "/opt/launcher",
    "codex_cwd": "/home/box/room",
    "codex_sandbox": "read-only",
    "codex_network": "off",
    "codex_user": "box",
    "task.md": "Answer.",
}
TOLD = FarFacts("box", cwd="/home/box/room", home="/home/box", turns="/home/box/.hoop-turns")
BASE = HomeFacts(
    home="/h/mini",
    real_home="/h/mini",
    name="mini",
    hoop_home="/h",
    directory=DirectoryFacts(0o700, ME),
    files={name: Present(f"{value}\n".encode(), 0o600, ME) for name, value in FILES.items()},
    names=frozenset(FILES),
    program=ProgramFacts(
        "/opt/launcher", is_regular=True, is_directory=False, is_executable=True, mode=0o755
    ),
    cwd=Unresolved("does not exist"),  # on our side: it is the other side's that counts
    uid=ME,
    user="ann",
    far=TOLD,
)


def refused(facts):
    verdict = judge(facts, ADAPTERS, guarded=None)
    return {} if isinstance(verdict, Passed) else {one.check: one for one in verdict.failed}


def test_a_launcher_that_names_the_declared_user_passes_and_the_persona_knows_its_side():
    verdict = judge(BASE, ADAPTERS, guarded=None)

    assert isinstance(verdict, Passed)
    assert verdict.persona.user == "box"
    assert verdict.persona.far == TOLD
    assert [one.what for one in verdict.checks if one.check == "executor"] == ["/opt/launcher, runs as box"]


@pytest.mark.parametrize(
    ("far", "check", "words"),
    [
        (replace(TOLD, user="ann"), "executor", "runs as ann"),
        (replace(TOLD, user="boxer"), "executor", "runs as boxer"),
        (replace(TOLD, tells_program=True), "executor", "box has no codex on its PATH"),
        (replace(TOLD, cwd=None), "walls", "box cannot enter"),
        (replace(TOLD, cwd="/h"), "walls", "where tokens are kept"),
        (replace(TOLD, cwd="/h/mini/deep"), "walls", "where tokens are kept"),
        (FarSilent("gave garbage", is_passing=False), "executor", "gave garbage"),
        (None, "executor", "was not asked"),
    ],
)
def test_anything_else_is_refused_by_the_check_that_it_breaks(far, check, words):
    found = refused(replace(BASE, far=far))

    assert list(found) == [check]
    assert words in found[check].what
    assert found[check].mend
    assert not found[check].is_passing


def test_a_far_side_out_of_reach_is_a_passing_refusal():
    """Spec 02 section 2: ssh's own 255 is "unavailable", not death."""
    verdict = judge(
        replace(BASE, far=FarSilent("could not be reached", is_passing=True)), ADAPTERS, guarded=None
    )

    assert not isinstance(verdict, Passed)
    assert verdict.is_passing


def test_a_home_that_is_broken_too_is_no_passing_refusal():
    files = {name: fact for name, fact in BASE.files.items() if name != "model"}
    far = FarSilent("could not be reached", is_passing=True)

    verdict = judge(replace(BASE, files=files, far=far), ADAPTERS, guarded=None)

    assert not isinstance(verdict, Passed)
    assert not verdict.is_passing


def test_a_built_in_executor_cannot_run_as_somebody_else():
    files = {
        **BASE.files,
        "adapter": Present(b"echo\n", 0o600, ME),
        "echo_user": Present(b"box\n", 0o600, ME),
    }

    found = refused(replace(BASE, files=files))

    assert list(found) == ["executor"]
    assert "built in" in found["executor"].what


def test_the_question_is_one_line_of_json_and_no_argument():
    asked = question("/opt/launcher", "/home/box/a\nb", "codex", "/usr/bin")

    assert asked.line.count(b"\n") == 1
    assert json.loads(asked.line) == {"cwd": "/home/box/a\nb", "program": "codex", "path": "/usr/bin"}


def test_a_whole_answer_is_taken():
    told = {
        "user": "box",
        "cwd_ok": True,
        "cwd": "/r",
        "home": "/home/box",
        "turns": "/t",
        "program": "/bin/codex",
    }

    assert read_answer(0, json.dumps(told).encode(), "", "") == FarFacts(
        "box", cwd="/r", home="/home/box", turns="/t", program="/bin/codex", tells_program=True
    )


def test_the_two_words_of_the_spec_are_enough():
    assert read_answer(0, b'{"user": "box", "cwd_ok": true}', "", "") == FarFacts("box", cwd="")
    assert read_answer(0, b'{"user": "box", "cwd_ok": false}', "", "") == FarFacts("box", cwd=None)


@pytest.mark.parametrize(
    ("code", "stdout", "is_passing"),
    [
        (255, b"", True),
        (255, b'{"user": "box", "cwd_ok": true}', True),
        (None, b'{"user": "box", "cwd_ok": true}', True),
        (78, b'{"user": "box", "cwd_ok": true}', False),
        (1, b"", False),
        (0, b"", False),
        (0, b"box", False),
        (0, b"[]", False),
        (0, b'{"user": "box"}', False),
        (0, b'{"user": "box", "cwd_ok": 1}', False),
        (0, b'{"user": "", "cwd_ok": true}', False),
        (0, b'{"user": ["box"], "cwd_ok": true}', False),
        (0, b"[" * 100_000, False),
    ],
)
def test_every_other_answer_is_silence(code, stdout, is_passing):
    said = read_answer(code, stdout, "sudo: no", "no answer within 20 s")

    assert isinstance(said, FarSilent)
    assert said.is_passing is is_passing


@given(code=st.none() | st.integers(), stdout=st.binary(), stderr=st.text())
def test_no_answer_breaks_the_reader_and_only_zero_is_a_yes(code, stdout, stderr):
    said = read_answer(code, stdout, stderr, "too late")

    assert isinstance(said, FarSilent) or code == 0


@pytest.mark.parametrize("path", ["/opt/codex", "/opt/bin/codex.js"])
def test_the_executor_itself_is_no_launcher_and_is_not_even_asked(path):
    """Else a probe would start it as the running user."""
    program = replace(BASE.program, path=path)

    found = refused(replace(BASE, program=program, far=None))

    assert list(found) == ["executor"]
    assert "codex itself" in found["executor"].what


@pytest.mark.parametrize("user", [None, "ann"])
def test_a_launcher_without_another_user_is_refused(user):
    """A lost codex_user must not make a sandboxed persona a core one."""
    files = {name: fact for name, fact in BASE.files.items() if name != "codex_user"}
    if user:
        files["codex_user"] = Present(f"{user}\n".encode(), 0o600, ME)
    program = replace(BASE.program, is_launcher=True)
    cwd = EnteredFacts("/home/box/room")

    found = refused(replace(BASE, files=files, program=program, cwd=cwd, far=None))

    assert list(found) == ["executor"]
    assert "launcher to another user" in found["executor"].what
