"""The far side owns the tree: whatever ends a turn, nothing of it lives afterwards. Source: docs/launcher.md."""

import contextlib
import os
import signal
import subprocess
import sys
import time

import pytest

from tests.launcher.far_program import load, until

program = load()

# Six processes: the executor, one in a session of its own, one that forked twice, each deaf to what is polite; and a
# child of each. The last one also dropped its environment, so no marker leads to it.
HOSTILE = """
trap '' TERM INT HUP
setsid sh -c 'trap "" TERM INT HUP; : WORD; while :; do sleep 1; done' &
(setsid env -i /bin/sh -c 'trap "" TERM INT HUP; : WORD; while :; do sleep 1; done' &) &
echo up
: WORD; while :; do sleep 1; done
"""
STEPS = [["SIGINT", 0.2], ["SIGTERM", 0.2]]


def begin(far, script=HOSTILE, **changed):
    """Start a turn and return its far program once the executor says that its tree stands."""
    child = far.start("--run")
    child.stdin.write(far.order(script.replace("WORD", far.word), **{"stop": STEPS, **changed}))
    assert child.stdout.readline() == b"up\n", child.stderr.read()
    assert until(lambda: len(far.alive()) >= 3 or script is not HOSTILE)
    return child


def nobody_listens(far, child):
    child.stdout.close()


def nobody_hears_complaints(far, child):
    child.stderr.close()


def told_to_stop(far, child):
    assert far.stop() == (0, b"", "")
    assert far.alive() == []


ENDS = {
    "SIGTERM": lambda _, child: child.send_signal(signal.SIGTERM),
    "SIGINT": lambda _, child: child.send_signal(signal.SIGINT),
    "SIGHUP": lambda _, child: child.send_signal(signal.SIGHUP),
    "stdout": nobody_listens,
    "stderr": nobody_hears_complaints,
    "stop": told_to_stop,
}


@pytest.mark.parametrize("how", ENDS)
def test_the_whole_tree_ends(far, how):
    child = begin(far)

    ENDS[how](far, child)

    assert child.wait(10) == 128 + signal.SIGKILL
    assert far.alive() == []


def test_the_whole_tree_ends_when_the_time_is_over(far):
    child = begin(far, limit_s=0.5)

    assert child.wait(10) == 128 + signal.SIGKILL
    assert far.alive() == []


def test_the_whole_tree_ends_with_the_executor_and_its_code_is_kept(far):
    script = HOSTILE.replace(": WORD; while :; do sleep 1; done\n", "read line; exit 5\n")
    child = begin(far, script)
    assert until(lambda: len(far.alive()) == 3)

    child.stdin.write(b"go\n")

    assert child.wait(10) == 5
    assert far.alive() == []


def test_the_whole_tree_ends_when_the_process_that_brought_it_is_gone(far):
    """As a caller that is killed, while somebody else still holds the pipes."""
    near = [sys.executable, "-Ic", "import subprocess,sys; sys.exit(subprocess.call(sys.argv[1:]))"]
    child = far.start("--run")
    child.kill()
    argv = [*near, sys.executable, "-IS", str(far.program), "--run"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    child = subprocess.Popen(argv, **pipes, start_new_session=True, bufsize=0)
    far.started.append(child)
    child.stdin.write(far.order(HOSTILE.replace("WORD", far.word), stop=STEPS))
    assert child.stdout.readline() == b"up\n"

    child.kill()

    assert until(lambda: not far.alive())


def test_an_end_by_the_first_step_is_as_gentle_as_the_executor_likes(far):
    script = "trap 'echo bye; exit 9' INT; echo up; while :; do sleep 0.05; done"
    child = begin(far, script, stop=[["SIGINT", 20.0]])

    child.send_signal(signal.SIGTERM)

    assert child.stdout.read() == b"bye\n"
    assert child.wait(10) == 9


def test_stop_does_not_wait_for_steps_that_take_too_long(far):
    child = begin(far, stop=[["SIGINT", 50.0]])
    begun_s = time.monotonic()

    assert far.stop()[0] == 0

    assert time.monotonic() - begun_s < 10
    assert child.wait(10) == 128 + signal.SIGKILL
    assert far.alive() == []


def test_a_time_limit_of_nothing_ends_even_what_has_hardly_begun(far):
    assert far.run("sleep 60", limit_s=0, stop=[])[0] == 128 + signal.SIGKILL


@pytest.mark.skipif(sys.platform != "linux", reason="a process of /proc")
def test_a_program_whose_main_thread_ended_is_no_zombie(far):
    script = (
        "import ctypes,os,threading,time;threading.Thread(target=time.sleep,args=(60,)).start();"
        "print(os.getpid(),file=open('pid','w'),flush=True);ctypes.CDLL(None).pthread_exit(None)"
    )
    child = begin(far, f'setsid {sys.executable} -ISc "{script}" & echo up; read line')

    def status():
        return _content(f"/proc/{_content(far.cwd / 'pid').decode().strip() or 0}/status")

    assert until(lambda: b"State:\tZ" in status() and b"Threads:\t2\n" in status())

    child.stdin.write(b"go\n")

    assert child.wait(10) == 0
    assert b"Threads:\t2\n" not in status()


def _content(path):
    with contextlib.suppress(OSError), open(path, "rb") as file:
        return file.read()
    return b""


def test_output_ends_when_the_executor_does_and_not_with_who_fled(far):
    child = begin(far, "echo up; (setsid sh -c ': WORD; sleep 60' &) ; sleep 0.2")

    assert child.stdout.read() == b""
    assert child.wait(10) == 0


def test_killing_the_far_side_ends_the_executor_at_once_and_stop_ends_what_bears_the_marker(far):
    script = "setsid sh -c ': WORD; while :; do sleep 1; done' & echo up; exec sh -c ': WORD executor; while :; do sleep 1; done'"
    child = begin(far, script)
    assert until(lambda: len(far.alive()) == 2)

    child.kill()
    assert until(lambda: len(far.alive()) == 1)
    assert far.stop()[0] == 0

    assert far.alive() == []
    assert not far.folder.exists()


# --- --stop


def test_stop_of_what_never_was_is_done_and_can_be_said_again(far):
    assert far.stop() == (0, b"", "")
    assert far.stop() == (0, b"", "")


def test_stop_removes_the_folder_whatever_the_executor_left_there_and_follows_no_link(far, tmp_path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").touch()
    far.run(
        f"cd {far.folder}/outbox && mkdir -p a/b && touch a/b/c && ln -s {tmp_path}/kept l && mkfifo f && chmod 0 a/b && chmod 0 a"
    )

    assert far.stop()[0] == 0

    assert not far.folder.exists()
    assert (tmp_path / "kept" / "file").exists()


@pytest.mark.parametrize("content", ["{pid}", "", "-1", "1", "x" * 100])
def test_stop_signals_nobody_who_only_got_the_number(far, content):
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as bystander:
        far.run("exit 0")
        (far.folder / ".supervisor").write_text(content.format(pid=bystander.pid))

        code = far.stop()[0]
        lives = bystander.poll() is None
        bystander.kill()

    assert (code, lives) == (0, True)


def test_a_supervisor_that_left_since_it_was_looked_up_is_not_signalled(tmp_path, monkeypatch):
    """Its number may be somebody else's by now."""
    monkeypatch.setattr(program, "real_home", lambda: str(tmp_path))
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as bystander:
        was_sent = program.Lock.signal("t-1", bystander.pid, signal.SIGKILL)
        lives = bystander.poll() is None
        bystander.kill()

    assert (was_sent, lives) == (False, True)


def test_stop_ends_nothing_of_another_turn(far):
    child = far.start("--run")
    child.stdin.write(far.order("echo up; cat", turn="another"))
    child.stdout.readline()

    assert far.stop()[0] == 0

    assert child.poll() is None
    with contextlib.suppress(BrokenPipeError):
        child.stdin.close()
    assert child.wait(10) == 0
    assert os.path.isdir(far.turns / "another")


CHAIN = """
import os, sys, time
for _ in range(1500):
    if os.fork():
        os._exit(0)
    os.setsid()
os.closerange(0, 64)
time.sleep(60)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="orphans become the far side's own on Linux only")
def test_one_that_forks_and_ends_all_the_time_is_not_outrun(far, tmp_path):
    """A list of processes can be outrun; that no child is left cannot."""
    (tmp_path / "chain.py").write_text(CHAIN)

    code = far.run(
        f"for one in 1 2 3 4 5 6 7 8; do {sys.executable} -IS {tmp_path}/chain.py {far.word} & done; sleep 0.2"
    )[0]

    assert code == 0
    assert far.alive() == []


@pytest.mark.skipif(sys.platform != "linux", reason="a supervisor is found by its name in /proc")
def test_stop_finds_a_turn_whose_folder_was_moved_away(far):
    child = begin(far, f"mv {far.folder} {far.home}/moved; echo up; exec env -i sh -c ': WORD; sleep 60; :'")

    assert far.stop()[0] == 0

    assert child.wait(10) == 128 + signal.SIGTERM
    assert far.alive() == []


def test_a_supervisor_that_the_executor_stopped_is_ended_by_stop(far):
    begin(far, "kill -STOP $PPID; echo up; : WORD; while :; do sleep 1; done")
    begun_s = time.monotonic()

    assert far.stop()[0] == 0

    assert time.monotonic() - begun_s < 10
    assert far.alive() == []


DEEP = """
import os
for _ in range(1500):
    os.mkdir("d" * 8)
    os.chdir("d" * 8)
os.mkdir("closed", 0)
"""


def test_stop_removes_a_folder_however_deep(far):
    far.put("a.txt", b"here")

    assert far.run(f"cd {far.folder} && exec {sys.executable} -ISc '{DEEP}'")[0] == 0

    try:
        assert far.stop() == (0, b"", "")
        assert not far.folder.exists()
    finally:  # what a failure leaves is too deep for the cleaning of temporary folders
        subprocess.run(["/bin/rm", "-rf", far.turns], check=True)


def test_stop_removes_a_link_in_the_folders_place_and_not_what_it_leads_to(far, tmp_path):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").touch()
    far.put("a.txt", b"here")

    far.run(f"mv {far.folder} {far.home}/moved; ln -s {tmp_path}/precious {far.folder}")
    code = far.stop()[0]

    assert (tmp_path / "precious" / "file").exists()
    assert code in (0, 78)
