"""The near sides hand on the five verbs and nothing else, and say who it was that failed. Source: docs/launcher.md."""

import signal
import subprocess
from pathlib import Path

import pytest

from sentinel.home.launcher import Ssh, Sudo
from tests.launcher.far_program import until
from tests.launcher.near_program import Near, is_gone

SUDO = Sudo("bob", "/opt/hoop-executor")
SSH = Ssh("bob", "mini.example", 2222, "/home/ann/.ssh/k", "/home/ann/.ssh/hosts", "/opt/hoop-executor")
ASKED = [("--probe",), ("--run",), ("--stop", "t-1"), ("--put", "T_2"), ("--get", "a" * 64)]
OTHER = [
    (),
    ("--help",),
    ("--run", "x"),
    ("--stop",),
    ("--stop", ""),
    ("--stop", "a b"),
    ("--stop", "$(id)"),
    ("--stop", "é"),
    ("--put", "a" * 65),
    ("--get", "a", "b"),
]


@pytest.fixture(params=[SUDO, SSH], ids=["sudo", "ssh"])
def near(request, tmp_path):
    made = Near(tmp_path, request.param)
    yield made
    made.end()


@pytest.fixture
def sudo(tmp_path):
    made = Near(tmp_path, SUDO)
    yield made
    made.end()


@pytest.fixture
def ssh(tmp_path):
    made = Near(tmp_path, SSH)
    yield made
    made.end()


def both(near, script):
    near.stand_in("sudo", script)
    near.stand_in("ssh", script)


@pytest.mark.parametrize("words", ASKED, ids=" ".join)
def test_a_verb_comes_through_as_it_is_with_its_streams(near, words):
    both(
        near,
        'for one; do last="$before" before="$one"; printf "%s|" "$one"; done; cat; echo complaint >&2; exit 9',
    )

    code, out, err = near.call(*words, data=b"input")

    assert (code, err) == (9, "complaint\n")
    assert out.endswith("|".join(("/opt/hoop-executor", *words)) + "|input")


@pytest.mark.parametrize("words", OTHER, ids=ascii)
def test_nothing_else_comes_through(near, words):
    both(near, "echo reached")

    code, out, err = near.call(*words)

    assert (code, out, err.count("\n")) == (64, "", 1)


# --- sudo


def test_sudo_is_asked_for_one_user_and_never_for_a_password(sudo):
    sudo.stand_in("sudo", 'printf "%s|" "$@"')

    assert sudo.call("--run")[1] == "-n|-u|bob|--|/opt/hoop-executor|--run|"


def test_where_there_is_no_sudo_the_other_side_is_out_of_reach(tmp_path):
    near = Near(tmp_path, SUDO, system=False)

    code, _, err = near.call("--probe")

    assert (code, "install it" in err) == (255, True)


@pytest.mark.parametrize(
    ("may", "code"), [("exit 0", 1), ("exit 1", 78)], ids=["executor-said-1", "sudo-said-1"]
)
def test_a_refusal_of_sudos_own_is_told_from_an_executors_one(sudo, may, code):
    sudo.stand_in("sudo", f'[ "$2" = -l ] && {{ {may}; }}; exit 1')

    assert sudo.call("--run")[0] == code


def test_the_near_side_of_sudo_can_be_ended_though_sudo_cannot(sudo):
    sudo.stand_in("sudo", "echo up; exec sleep 60")
    child = sudo.start("--run")
    child.stdout.readline()

    child.terminate()

    assert child.wait(5) == 128 + signal.SIGTERM


def test_a_sudo_that_stopped_itself_goes_on_when_the_near_side_is_ended(sudo, tmp_path):
    """It stops when its command is stopped, and only its own session may wake it."""
    sudo.stand_in("sudo", f"echo $$; kill -STOP $$; echo on >{tmp_path}/woken")
    child = sudo.start("--run")
    pid = int(child.stdout.readline())
    assert until(lambda: Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T")

    child.terminate()

    assert until((tmp_path / "woken").exists)


# --- ssh


def test_ssh_is_called_hardened(ssh):
    ssh.stand_in("ssh", 'printf "%s|" "$@"')

    said = ssh.call("--run")[1]

    for part in (
        "-T|-a|-x|-F|/dev/null|-p|2222|-l|bob|-i|/home/ann/.ssh/k|",
        "|BatchMode=yes|",
        "|ConnectTimeout=10|",
        "|ServerAliveInterval=5|",
        "|ServerAliveCountMax=3|",
        "|IdentitiesOnly=yes|",
        "|IdentityAgent=none|",
        "|ClearAllForwardings=yes|",
        "|StrictHostKeyChecking=yes|",
        "|UserKnownHostsFile=/home/ann/.ssh/hosts|",
        "|--|mini.example|/opt/hoop-executor|--run|",
    ):
        assert part in said
    assert "-t|" not in said


def begun(ssh, **options):
    """Start a near ssh whose stand-in is silent; return it and the stand-in's number."""
    ssh.stand_in("ssh", "echo $$; exec sleep 60")
    child = ssh.start("--run", **options)
    return child, int(child.stdout.readline())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_ssh_too(ssh, number):
    child, reached = begun(ssh)

    child.send_signal(number)

    assert child.wait(5) == 128 + signal.SIGTERM
    assert until(lambda: is_gone(reached))


def test_killing_the_near_side_ends_ssh(ssh):
    child, reached = begun(ssh)

    child.kill()

    assert until(lambda: is_gone(reached), 5)


def test_ssh_ends_when_the_caller_is_killed_though_nothing_is_said(ssh, tmp_path):
    """ssh itself would notice only when it has something to print."""
    ssh.stand_in("ssh", f"echo $$ > {tmp_path}/reached; exec sleep 60")
    caller = ['"$0" --run & wait', ssh.path]
    child = subprocess.Popen(
        ["/bin/sh", "-c", *map(str, caller)], start_new_session=True, stdin=subprocess.DEVNULL
    )
    ssh.started.append(child)
    assert until(lambda: (tmp_path / "reached").exists() and (tmp_path / "reached").read_text().strip())
    reached = int((tmp_path / "reached").read_text())

    child.kill()

    assert until(lambda: is_gone(reached), 5)


def test_the_prompt_ends_where_the_caller_ends_it(ssh):
    ssh.stand_in("ssh", "cat; echo .")

    assert ssh.call("--run", data=b"a\nb")[1] == "a\nb.\n"


def test_the_output_ends_with_ssh(ssh):
    """Neither this script nor its watcher keeps the pipe open."""
    ssh.stand_in("ssh", "echo said")
    child = ssh.start("--probe")

    assert child.stdout.read() == b"said\n"
    assert child.wait(5) == 0
