"""Where output goes wrong, and Ctrl-C: exit codes of spec 09, and no fault of ours."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.persona_homes import make_home

SENTINEL = [sys.executable, "-m", "sentinel.cli.main"]
FULL = pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")


@pytest.fixture
def env(tmp_path):
    home = make_home(tmp_path, adapter="echo")
    return {**os.environ, "HOOP_HOME": str(home.folder), "HOME": str(tmp_path)}


def shell(line, env):
    """Run a line of sh in which `$@` is the command."""
    return subprocess.run(
        ["/bin/sh", "-c", line, "sh", *SENTINEL], env=env, capture_output=True, text=True, check=False
    )


def test_a_reader_that_goes_away_is_no_fault(env):
    """`sentinel … | head -1`: what was wanted was had."""
    done = shell('{ "$@" check gode; echo "code $?" >&2; } | true', env)

    assert done.stderr == "code 0\n"


@pytest.mark.parametrize("where", [">&-", pytest.param(">/dev/full", marks=FULL)])
@pytest.mark.parametrize("verb", ["check gode", "check gode --json", "persona list"])
def test_output_that_cannot_be_written_is_69_with_one_line(env, verb, where):
    done = shell(f'"$@" {verb} {where}', env)

    assert done.returncode == 69
    assert done.stderr.startswith("sentinel: standard output ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("where", ["2>&-", pytest.param("2>/dev/full", marks=FULL)])
def test_the_code_is_right_where_nobody_can_read_the_words(env, where):
    assert shell(f'"$@" check nobody {where}', env).returncode == 78


def test_ctrl_c_ends_a_command_by_the_signal_itself(env):
    """A calling script then sees an interrupt, and stops too."""
    home = Path(env["HOOP_HOME"]) / "gode"
    log = home / "log"
    log.mkdir()
    (log / "sentinel.jsonl").write_text('{"event": "ready"}\n', encoding="utf-8")
    following = subprocess.Popen(
        [*SENTINEL, "logs", "gode", "-f"], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with following:
        following.stdout.readline()

        following.send_signal(signal.SIGINT)

        assert following.wait(10) == -signal.SIGINT
        assert following.stderr.read() == ""
