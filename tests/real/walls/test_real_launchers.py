"""The launchers over the real sudo and a real sshd, from an unprivileged operator to a real second user.

Each test runs as `hoopop`, who may not signal what runs as `hoopbox`, nor sudo itself. Source: docs/launcher.md; spec 02
section 2 "Launcher protocol"; spec 06 "Users and walls".
"""

import contextlib
import fcntl
import json
import os
import pwd
import select
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.real.walls.walls_world import BOX, GONE_S, OPERATOR, home_of, until

pytestmark = [pytest.mark.real, pytest.mark.timeout(90)]

TURN = "turn-1"
STEPS = [["SIGINT", 0.5], ["SIGTERM", 0.5]]
# The executor, one in a session of its own, one that forked twice and dropped its environment: all deaf to what is polite.
HOSTILE = """
trap '' TERM INT HUP
setsid sh -c 'trap "" TERM INT HUP; while :; do sleep 1; done' &
(setsid env -i /bin/sh -c 'trap "" TERM INT HUP; while :; do sleep 1; done' &) &
echo up
while :; do sleep 1; done
"""


class Way:
    """One way to the other user."""

    def __init__(self, walls, kind):
        self.walls, self.kind, self.path = walls, kind, walls.launcher(kind)
        self.started = []

    def start(self, *words, **options):
        child = self.walls.as_operator([self.path, *words], **{"bufsize": 0, **options})
        self.started.append(child)
        return child

    def call(self, *words, data=b""):
        child = self.start(*words)
        out, err = child.communicate(data, timeout=60)
        return child.returncode, out, err.decode()

    def order(self, script, **changed):
        env = {"PATH": "/usr/bin:/bin", "GIVEN": "yes"}
        values = {"argv": ["sh", "-c", script], "cwd": str(self.walls.box_cwd), "env": env, "turn": TURN}
        return json.dumps({**values, "user": BOX, "stop": STEPS, **changed}).encode() + b"\n"

    def run(self, script, *, prompt=b"", **changed):
        return self.call("--run", data=self.order(script, **changed) + prompt)

    def begin(self, script=HOSTILE, **options):
        """Start a turn and return its near side once the executor says that its tree stands."""
        child = self.start("--run", **options)
        child.stdin.write(self.order(script))
        assert child.stdout.readline() == b"up\n", child.stderr.read()
        assert until(lambda: len(self.walls.alive_of_box()) >= 4, GONE_S)
        return child

    def end(self):
        for child in self.started:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            for pipe in (child.stdin, child.stdout, child.stderr):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()
        self.walls.end_box()


@pytest.fixture(params=["sudo", "ssh", "forced"])
def way(request, walls):
    made = Way(walls, request.param)
    yield made
    made.end()


@pytest.fixture(params=["ssh", "forced"])
def remote(request, walls):
    made = Way(walls, request.param)
    yield made
    made.end()


@pytest.fixture
def sudo(walls):
    made = Way(walls, "sudo")
    yield made
    made.end()


# --- Who runs there, and behind which wall


def test_probe_names_the_other_user_and_starts_no_executor(way, walls):
    line = {"cwd": str(walls.box_cwd), "program": "sh", "path": "/bin"}

    code, out, err = way.call("--probe", data=json.dumps(line).encode() + b"\n")

    home = os.path.realpath(home_of(BOX))
    assert (code, err) == (0, "")
    assert json.loads(out) == {
        "user": BOX,
        "cwd_ok": True,
        "cwd": os.path.realpath(walls.box_cwd),
        "home": home,
        "turns": f"{home}/.hoop-turns",
        "program": "/bin/sh",
    }
    assert walls.wait_for_empty_box() == []


def test_probe_says_that_the_operators_workspace_cannot_be_entered(way, walls):
    out = way.call("--probe", data=json.dumps({"cwd": str(walls.workspace)}).encode() + b"\n")[1]

    assert json.loads(out)["cwd_ok"] is False


def test_the_kernel_itself_denies_the_workspace(way, walls):
    code, out, err = way.run(
        f"id -un; cat {walls.workspace}/secret.txt; ls {walls.workspace}; echo x > {walls.workspace}/new"
    )

    assert out.decode() == f"{BOX}\n"
    assert err.count("Permission denied") == 3
    assert code != 0
    assert [one.name for one in walls.workspace.iterdir()] == ["secret.txt"]


def test_the_environment_is_the_lines_alone(way):
    code, out, _ = way.run("", argv=["env"])

    assert code == 0
    assert sorted(out.decode().splitlines()) == ["GIVEN=yes", f"HOOP_TURN={TURN}", "PATH=/usr/bin:/bin"]
    assert b"never-seen" not in out


def test_nothing_of_a_turn_stands_in_an_argument_list(way, walls):
    """What is meant for the executor travels on standard input; other users read argument lists."""
    child = way.start("--run")
    child.stdin.write(way.order("echo up; cat; : SECRET-WORD", env={"PATH": "/bin", "KEY": "SECRET-VALUE"}))
    assert child.stdout.readline() == b"up\n"

    lists = [_command(pid) for pid in os.listdir("/proc") if pid.isdigit()]
    bearers = [
        one
        for one in lists
        if b"SECRET-VALUE" in one or (b"SECRET-WORD" in one and not one.startswith(b"sh\0-c"))
    ]

    assert bearers == []


def _command(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
        return file.read()
    return b""


def test_streams_and_codes_come_as_they_are(way):
    prompt = os.urandom(500_000)

    code, out, err = way.run("cat; echo complaint >&2; exit 7", prompt=prompt)

    assert (code, out, err) == (7, prompt, "complaint\n")


@pytest.mark.parametrize(
    ("script", "code"), [("exit 255", 254), ("kill -TERM $$", 143), ("exit 1", 1), ("exit 0", 0)]
)
def test_255_is_nobodys_but_sshs(way, script, code):
    assert way.run(script)[0] == code


def test_a_wrong_user_is_refused_in_the_chain_that_execs(way, walls):
    assert json.loads(way.call("--probe")[1])["user"] == BOX

    code, out, err = way.run("echo ran", user=OPERATOR)

    assert (code, out) == (78, b"")
    assert f"runs as {BOX}, not as {OPERATOR}" in err


def test_a_directory_closed_after_the_probe_is_refused_at_the_run(way, walls):
    asked = json.dumps({"cwd": str(walls.box_cwd)}).encode() + b"\n"
    assert json.loads(way.call("--probe", data=asked)[1])["cwd_ok"] is True
    walls.box_cwd.chmod(0)

    code, out, err = way.run("echo ran")
    walls.box_cwd.chmod(0o755)

    assert (code, out, "cannot be entered" in err) == (78, b"", True)


def test_two_connections_have_nobody_alive_between_them(way, walls):
    way.run(f"echo word > {walls.box_cwd}/kept")
    assert walls.wait_for_empty_box() == []

    assert way.run(f"cat {walls.box_cwd}/kept")[1] == b"word\n"


# --- How it ends


def near_killed(way, child):
    child.kill()


def near_told(way, child):
    child.terminate()


def caller_lets_go(way, child):
    child.stdout.close()
    child.stderr.close()
    child.terminate()


def stopped_by_word(way, child):
    begun_s = time.monotonic()
    assert way.call("--stop", TURN) == (0, b"", "")
    assert time.monotonic() - begun_s < GONE_S
    assert way.walls.alive_of_box() == [] or way.kind != "sudo"


@pytest.mark.parametrize(
    "how", [near_killed, near_told, caller_lets_go, stopped_by_word], ids=lambda one: one.__name__
)
def test_nothing_of_the_far_tree_lives_ten_seconds_later(way, walls, how):
    child = way.begin()

    how(way, child)

    assert walls.wait_for_empty_box() == []


def test_nothing_lives_when_the_caller_is_killed_while_nothing_is_said(way, walls):
    """As `kill -9` of the sentinel: the near side is an orphan, and the executor is silent."""
    script = 'exec 3<&0; "$0" --run <&3 3<&- & wait'
    child = walls.as_operator(["/bin/sh", "-c", script, way.path], bufsize=0)
    way.started.append(child)
    child.stdin.write(way.order(HOSTILE))
    assert child.stdout.readline() == b"up\n"

    child.kill()
    for pipe in (child.stdin, child.stdout, child.stderr):
        pipe.close()

    assert walls.wait_for_empty_box() == []


def test_killing_the_far_side_itself_ends_the_executor_and_stop_the_rest(way, walls):
    """What is left until `--stop` is what fled; the marker finds it. What also dropped its environment is not found."""
    loop = "while :; do sleep 1; done"
    child = way.begin(f"setsid sh -c ': fled; {loop}' & echo up; exec sh -c ': executor; {loop}'")
    with (home_of(BOX) / ".hoop-turns" / TURN / ".supervisor").open() as file:
        os.kill(int(file.read()), signal.SIGKILL)

    assert until(lambda: not _sleepers("executor"), GONE_S)
    assert _sleepers("fled")
    assert way.call("--stop", TURN)[0] == 0

    assert walls.wait_for_empty_box() == []
    assert child.wait(GONE_S) in {137, 255}, "sudo tells the signal, ssh only that it was lost"


def _sleepers(word):
    """Return the processes that were started with a script that begins with this word."""
    return [pid for pid in os.listdir("/proc") if pid.isdigit() and f"\0: {word};".encode() in _command(pid)]


def test_stop_can_be_said_again_and_of_what_never_was(way):
    assert [way.call("--stop", "never")[0] for _ in range(2)] == [0, 0]


def test_an_operator_cannot_signal_sudo_but_the_near_side(sudo, walls):
    """Why the near side of sudo is no exec: its process is the operator's own, and the far side ends when it is gone."""
    child = sudo.begin()
    root_sudo = _child_of(child.pid)
    denied = walls.as_operator(["/bin/sh", "-c", f"kill -KILL {root_sudo} {walls.alive_of_box()[0]}"])

    assert b"not permitted" in denied.communicate()[1]
    mine = walls.as_operator(["/bin/sh", "-c", f"kill -KILL {child.pid}"])
    assert (mine.wait(), mine.communicate()[1]) == (0, b"")

    assert walls.wait_for_empty_box() == []


def _child_of(pid):
    return int(
        subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, check=True).stdout
    )


def test_sudo_sets_no_terminal_between_where_there_is_none(sudo):
    """Debian's own sudoers says use_pty; without a terminal at the near side sudo makes none."""
    assert "use_pty" in Path("/etc/sudoers").read_text()

    _, out, _ = sudo.run("tty; ps -o tty= -p $$; readlink /proc/self/fd/1")

    assert out.splitlines()[0] == b"not a tty"
    assert out.splitlines()[1].strip() == b"?"
    assert out.splitlines()[2].startswith(b"pipe:")


def test_sudo_with_a_terminal_at_the_near_side_is_refused(sudo, walls):
    """By hand, from a terminal: there use_pty would interpose, and hide a dropped connection."""
    master, slave = os.openpty()
    child = walls.as_operator(
        [sudo.path, "--run"],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        preexec_fn=lambda: fcntl.ioctl(0, 0x540E, 0),
    )
    os.close(slave)
    said = b""
    with contextlib.suppress(OSError):
        while select.select([master], [], [], 10)[0] and (more := os.read(master, 4096)):
            said += more
    os.close(master)

    assert (child.wait(), b"a terminal stands between" in said) == (78, True)


# --- Files


@pytest.mark.parametrize("name", ["a.bin", "雪 花.png", "outbox/two words"])
def test_files_come_and_go_byte_for_byte(way, name):
    data = os.urandom(3 * 1024 * 1024)
    header = json.dumps({"name": name, "size_bytes": len(data)}, ensure_ascii=False).encode() + b"\n"

    code, out, err = way.call("--put", TURN, data=header + data)
    assert (code, err) == (0, "")
    path = json.loads(out)["path"]

    found = os.stat(path)
    assert (pwd.getpwuid(found.st_uid).pw_name, found.st_mode & 0o777) == (BOX, 0o600)
    line, _, rest = way.call("--get", TURN, data=json.dumps({"name": name}).encode() + b"\n")[1].partition(
        b"\n"
    )
    assert (json.loads(line)["size_bytes"], rest) == (len(data), data)
    assert way.call("--stop", TURN)[0] == 0
    assert not os.path.exists(os.path.dirname(path))


def test_a_file_whose_connection_is_cut_is_not_kept(way, walls):
    child = way.start("--put", TURN)
    child.stdin.write(b'{"name": "a", "size_bytes": 1000}\n' + b"x" * 500)
    folder = home_of(BOX) / ".hoop-turns" / TURN
    assert until(
        lambda: folder.exists() and any(one.name.startswith(".put") for one in folder.iterdir()), GONE_S
    )

    child.kill()

    assert walls.wait_for_empty_box() == []
    assert [one.name for one in folder.iterdir()] == ["outbox"]


# --- Out of reach


def test_an_sshd_that_is_down_is_out_of_reach_and_no_death(remote, walls):
    walls.stop_sshd()
    try:
        code, out, err = remote.run("echo ran")
    finally:
        walls.start_sshd()

    assert (code, out, "refused" in err) == (255, b"", True)


def test_a_host_with_another_key_is_out_of_reach(remote, walls):
    known = walls.folder / "known_hosts"
    was = known.read_text()
    known.write_text(was.split(" ")[0] + " " + (walls.folder / "key.pub").read_text())
    try:
        code, out, _ = remote.run("echo ran")
    finally:
        known.write_text(was)

    assert (code, out) == (255, b"")


def test_a_key_behind_a_forced_command_opens_nothing_else(walls):
    told = walls.launcher("forced").read_text().replace('"$far" "$@"', "id")
    path = walls.folder / "near-else"
    path.write_text(told)
    path.chmod(0o755)

    done = walls.as_operator([path, "--probe"])

    assert b"none of its verbs" in done.communicate()[1]
    assert done.returncode == 64


def test_what_sudo_refuses_is_78_and_says_who(walls):
    """A rule that is missing is the operator's to mend; it is no death and no outage."""
    path = walls.folder / "near-root"
    path.write_text(walls.launcher("sudo").read_text().replace(f"user={BOX}", "user=root"))
    path.chmod(0o755)

    done = walls.as_operator([path, "--run"])
    err = done.communicate()[1].decode()

    assert (done.returncode, f"sudo does not let {OPERATOR} run" in err) == (78, True)
