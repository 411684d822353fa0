"""Law 2: where a check cannot say yes, the process exits 78 and nothing runs. There is no default executor.

A `codex`, a `claude` and a `cat` lie first on PATH and count their runs: a sentinel that fell back on anything would run
one of them. Every breakage goes through the real command `run`, some through the shim and a process of their own.
"""

import subprocess
import sys

import pytest

from sentinel.cli.main import run
from sentinel.home import shim
from tests.fakes.persona_homes import TOKEN, make_home, plant

BREAKAGES = {
    "file absent": lambda home: home.remove("codex_bin"),
    "empty": lambda home: home.write("codex_bin", ""),
    "blank": lambda home: home.write("codex_bin", " \n"),
    "relative": lambda home: home.write("codex_bin", "codex\n"),
    "nonexistent": lambda home: home.write("codex_bin", f"{home.cwd}/codex\n"),
    "directory": lambda home: home.write("codex_bin", f"{home.cwd}\n"),
    "not executable": lambda home: home.binary.chmod(0o600),
    "looping link": lambda home: (home.binary.unlink(), home.binary.symlink_to(home.binary)),
    "dangling link": lambda home: (home.binary.unlink(), home.binary.symlink_to("nowhere")),
    "no adapter": lambda home: home.remove("adapter"),
    "no model": lambda home: home.remove("model"),
    "no token": lambda home: home.remove("token"),
}
CHECK = {"no adapter": "adapter", "no model": "model", "no token": "identity"}


@pytest.fixture
def home(tmp_path):
    return make_home(tmp_path)


@pytest.fixture
def planted(tmp_path):
    return plant(tmp_path)


@pytest.mark.parametrize("how", BREAKAGES)
def test_a_broken_persona_runs_nothing_else_instead(home, planted, how, monkeypatch, capsys):
    monkeypatch.setenv("PATH", planted.path)
    monkeypatch.setenv("HOOP_HOME", str(home.folder))
    BREAKAGES[how](home)

    code = run(["run", str(home.path), "c1"])

    said = capsys.readouterr()
    assert code == 78
    assert f"gate: {CHECK.get(how, 'executor')}: " in said.err
    assert TOKEN not in said.out + said.err
    assert planted.runs == 0


def test_a_conversation_must_be_named(home, planted, monkeypatch, capsys):
    monkeypatch.setenv("PATH", planted.path)
    monkeypatch.setenv("HOOP_HOME", str(home.folder))

    assert run(["run", str(home.path)]) == 78

    assert "gate: voice: " in capsys.readouterr().err
    assert planted.runs == 0


@pytest.mark.parametrize("how", ["file absent", "dangling link"])
def test_a_service_that_enters_by_the_shim_is_refused_alike(home, planted, how):
    shim.write(home.path, sys.executable)
    BREAKAGES[how](home)

    done = subprocess.run(
        ["/bin/sh", str(home.path / "launch"), str(home.path), "c1"],
        env={"PATH": planted.path, "HOME": str(home.cwd), "HOOP_HOME": str(home.folder)},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert done.returncode == 78, done.stderr
    assert done.stderr.startswith("gate: executor: ")
    assert planted.runs == 0


@pytest.mark.parametrize("name", ["codex", "claude", "cat"])
def test_the_planted_executors_do_count(planted, name):
    """Without this the counter above would prove nothing."""
    subprocess.run([name], env={"PATH": planted.path}, executable=f"{planted.folder}/{name}", check=True)
    subprocess.run(["/bin/sh", "-c", name], env={"PATH": planted.path}, check=True)

    assert planted.runs == 2


def test_an_executor_that_passes_the_gate_is_not_run_by_a_check(home, planted, monkeypatch):
    monkeypatch.setenv("HOOP_HOME", str(home.folder))
    home.write("codex_bin", f"{planted.folder}/codex\n")

    assert run(["check", "gode"]) == 0
    assert planted.runs == 0
