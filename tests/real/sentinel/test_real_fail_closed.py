"""Fail closed (law 2): the persona's own executor is broken, and the real one, first on PATH, is not run instead."""

import subprocess

import pytest

from tests.fakes.persona_homes import make_home, plant, run_sentinel
from tests.real.executors.real_world import binary_of

pytestmark = pytest.mark.real

BREAKAGES = {
    "absent": (lambda home, file: home.remove(file), "is absent"),
    "empty": (lambda home, file: home.write(file, ""), "is empty"),
    "blank": (lambda home, file: home.write(file, "  \n"), "is blank"),
    "relative": (lambda home, file: home.write(file, f"{file[:-4]}\n"), "is not absolute"),
    "nonexistent": (lambda home, file: home.binary.unlink(), "does not exist"),
    "directory": (lambda home, file: home.write(file, f"{home.cwd}\n"), "is a directory"),
    "not executable": (lambda home, file: home.binary.chmod(0o644), "is not executable"),
    "looping": (
        lambda home, file: (home.binary.unlink(), home.binary.symlink_to(home.binary)),
        "is a link that loops",
    ),
}


@pytest.fixture(params=["codex", "claude"])
def kind(request):
    return request.param


@pytest.fixture
def planted(tmp_path, kind):
    """Return a PATH on which the real executor comes first, behind a line that counts its runs."""
    planted = plant(tmp_path)
    program = planted.folder / kind
    program.write_text(f'{program.read_text()}exec "{binary_of(kind)}" "$@"\n')
    return planted


@pytest.fixture
def home(tmp_path, kind, planted):
    """Return a home that the gate lets pass: its own executor is the real one too, and counts as well."""
    home = make_home(tmp_path, adapter=kind)
    home.binary.write_bytes((planted.folder / kind).read_bytes())
    return home


@pytest.mark.parametrize("how", BREAKAGES)
def test_a_broken_executor_is_78_with_its_line_and_nothing_runs(home, planted, kind, how):
    break_it, said = BREAKAGES[how]
    break_it(home, f"{kind}_bin")

    done = run_sentinel("run", "gode", "c1", home=home, path=planted.path)

    (line,) = done.stderr.splitlines()
    assert done.returncode == 78
    assert line.startswith(f"gate: executor: {kind}_bin ")
    assert said in line
    assert planted.runs == 0


def test_the_same_home_unbroken_passes_the_gate(home, planted):
    """Without this the refusals above would prove nothing."""
    assert run_sentinel("check", "gode", home=home, path=planted.path).returncode == 0
    assert planted.runs == 0


def test_the_counter_counts_and_what_it_stands_before_is_the_real_executor(planted, kind, tmp_path):
    environment = {"PATH": planted.path, "HOME": str(tmp_path)}

    said = subprocess.run(
        ["/bin/sh", "-c", f"{kind} --version"], env=environment, capture_output=True, text=True, check=True
    )

    assert {"codex": "codex-cli ", "claude": "(Claude Code)"}[kind] in said.stdout
    assert planted.runs == 1
