"""The launch shim, run by the real /bin/sh."""

import subprocess
import sys

import pytest

from sentinel.home import shim


def launch(path, *arguments, cwd=None, env=None):
    return subprocess.run(
        ["/bin/sh", str(path / "launch"), *arguments],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        cwd=cwd,
        env={"PATH": "/usr/bin:/bin", **(env or {})},
    )


def fake_interpreter(folder):
    program = folder / "it's a python"
    program.write_text('#!/bin/sh\necho "$$"\nfor one in "$@"; do echo "[$one]"; done\nexit 3\n')
    program.chmod(0o755)
    return program


def test_it_execs_the_interpreter_with_home_and_conversations(tmp_path):
    shim.write(tmp_path, str(fake_interpreter(tmp_path)))

    done = launch(tmp_path, str(tmp_path), "c1", "c 2")

    lines = done.stdout.splitlines()
    assert done.returncode == 3
    assert lines[1:3] == ["[-E]", "[-P]"]
    assert lines[-4:] == ["[run]", f"[{tmp_path}]", "[c1]", "[c 2]"]


def test_it_becomes_the_interpreter_and_leaves_no_shell_behind(tmp_path):
    """A TERM for the service's process must reach the sentinel itself."""
    shim.write(tmp_path, str(fake_interpreter(tmp_path)))

    with subprocess.Popen(
        ["/bin/sh", str(tmp_path / "launch"), str(tmp_path), "c1"], stdout=subprocess.PIPE, text=True
    ) as one:
        said = one.communicate(timeout=30)[0].splitlines()

    assert int(said[0]) == one.pid


@pytest.mark.parametrize("how", ["missing", "not executable", "directory"])
def test_without_its_interpreter_it_refuses(tmp_path, how):
    program = tmp_path / "python"
    if how == "not executable":
        program.write_text("x")
        program.chmod(0o600)
    if how == "directory":
        program.mkdir()
    shim.write(tmp_path, str(program))

    done = launch(tmp_path, str(tmp_path), "c1")

    assert done.returncode == 78
    assert done.stderr.startswith("gate: executor: ")
    assert str(program) in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("arguments", [(), ("HOME",)])
def test_without_home_and_conversation_it_refuses(tmp_path, arguments):
    shim.write(tmp_path, str(fake_interpreter(tmp_path)))

    done = launch(tmp_path, *arguments)

    assert (done.returncode, done.stdout) == (78, "")
    assert done.stderr.startswith("gate: voice: ")


def test_an_interpreter_without_the_package_refuses_too(tmp_path):
    """Python's own exit code for it, 1, would be restarted for ever."""
    base = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(base)], check=True, timeout=60)
    shim.write(tmp_path, str(base / "bin" / "python"))

    done = launch(tmp_path, str(tmp_path), "c1")

    assert done.returncode == 78
    assert done.stderr.startswith("gate: executor: ")


def test_neither_the_directory_nor_the_environment_puts_code_in(tmp_path):
    planted = tmp_path / "cwd"
    (planted / "sentinel").mkdir(parents=True)
    (planted / "sentinel" / "__init__.py").write_text("print('planted')\nraise SystemExit(0)\n")
    (planted / "typer.py").write_text("print('planted')\nraise SystemExit(0)\n")
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    shim.write(home, sys.executable)

    done = launch(home, str(home), "c1", cwd=planted, env={"PYTHONPATH": str(planted), "PYTHONSTARTUP": "x"})

    assert "planted" not in done.stdout
    assert done.returncode == 78
    assert "gate: identity: " in done.stderr
