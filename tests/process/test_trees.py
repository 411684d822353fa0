"""Whole trees end, whatever session they fled into; strangers of a dead sentinel too, and nobody else."""

import asyncio
import os
import signal
import subprocess
import sys
import time

import pytest

from sentinel import process, proctree, reaper
from sentinel.core.codec import EndedBy, StopStep


def alive(pid):
    seen = proctree.look(pid)
    return seen is not None and not seen.is_zombie


async def until(condition, limit_s=10.0):
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "did not come about in time"
        await asyncio.sleep(0.005)


def pids_in(folder):
    return [int(text) for one in sorted(folder.glob("pid*")) if (text := one.read_text().strip())]


# In the executor's group; in a session of its own; a grandchild whose parent is gone; one that ignores SIGTERM and HUP.
TREE = """
sleep 71 & echo $! > pid1
setsid sh -c 'echo $$ > pid2; exec sleep 72' &
setsid sh -c '(setsid sh -c "echo \\$\\$ > pid3; exec sleep 73" &) ; sleep 0.01' &
env -u HOOP_TURN setsid sh -c 'trap "" TERM HUP INT; echo $$ > pid4; while :; do sleep 1; done' &
while [ ! -s pid1 ] || [ ! -s pid2 ] || [ ! -s pid3 ] || [ ! -s pid4 ]; do sleep 0.01; done
"""


@pytest.mark.parametrize(
    "last_words",
    ["echo END; exec sleep 60", "echo END", "exit 1", "kill -9 $$", "echo READY; exec sleep 60"],
    ids=["lingers", "answers", "fails", "crashes", "is-stopped"],
)
async def test_nothing_of_the_tree_lives_when_the_turn_is_gone(run, shell, tmp_path, last_words):
    codec = shell(TREE + last_words)
    turn = await run(codec, linger_s=0.05)
    await until(lambda: b"END" in codec.got or b"READY" in codec.got or not alive(turn.pid))
    if b"READY" in codec.got:
        turn.request_stop(EndedBy.STOP)

    await asyncio.wait_for(turn.gone(), 10)

    assert len(pids_in(tmp_path)) == 4
    assert [pid for pid in pids_in(tmp_path) if alive(pid)] == []
    assert not alive(turn.pid)


async def test_without_adoption_the_tree_ends_too(run, shell, tmp_path, monkeypatch):
    """Where the kernel does not give us orphans: by descent, session and marker."""
    monkeypatch.setattr(reaper._family, "adopts", False)
    codec = shell(TREE + "echo READY; exec sleep 60")
    turn = await run(codec)
    await until(lambda: b"READY" in codec.got)
    turn.request_stop(EndedBy.STOP)

    await asyncio.wait_for(turn.gone(), 10)

    assert [pid for pid in pids_in(tmp_path) if alive(pid)] == []
    for pid in proctree.own_children():  # the kernel goes on giving them to this process
        os.waitpid(pid, os.WNOHANG)


async def test_the_sweep_of_one_turn_spares_the_other(run, shell, tmp_path):
    here, there = tmp_path / "a", tmp_path / "b"
    here.mkdir()
    there.mkdir()
    first, second = shell(TREE + "echo READY; exec sleep 60"), shell(TREE + "echo READY; exec sleep 60")
    one = await run(first, cwd=here, marker="m-one")
    other = await run(second, cwd=there, marker="m-other")
    await until(lambda: b"READY" in first.got and b"READY" in second.got)

    one.request_stop(EndedBy.STOP)
    await asyncio.wait_for(one.gone(), 10)
    assert [pid for pid in pids_in(here)[:3] if alive(pid)] == []
    assert all(alive(pid) for pid in [other.pid, *pids_in(there)])

    other.request_stop(EndedBy.STOP)
    await asyncio.wait_for(other.gone(), 10)
    assert [pid for pid in [*pids_in(here), *pids_in(there)] if alive(pid)] == []


async def test_children_that_somebody_else_started_are_left_alone(run, shell):
    bystander = subprocess.Popen(["/bin/sleep", "60"])
    try:
        turn = await run(shell("echo END"))
        await asyncio.wait_for(turn.gone(), 10)
        assert alive(bystander.pid)
    finally:
        bystander.kill()
        bystander.wait()


# A sentinel that starts an executor and then dies without a word.
DEAD_SENTINEL = """
import os, subprocess, sys
child = subprocess.Popen(["/bin/sh", "-c", sys.argv[2]], start_new_session=True, cwd=sys.argv[3],
                         stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                         env={"PATH": "/bin:/usr/bin", "HOOP_TURN": sys.argv[1]})
print(child.pid, flush=True)
os._exit(9)
"""


@pytest.fixture
def stranger(tmp_path):
    """Return a function that leaves an executor behind, as a sentinel that was killed does."""
    left, before = [], proctree.own_children()

    def leave(marker, script):
        made = subprocess.run(
            [sys.executable, "-Ic", DEAD_SENTINEL, marker, script, str(tmp_path)],
            stdout=subprocess.PIPE,
            check=False,
        )
        pid = int(made.stdout)
        left.append(pid)
        return pid, proctree.look(pid).started

    yield leave
    for pid in [*left, *pids_in(tmp_path)]:
        if alive(pid):
            os.kill(pid, signal.SIGKILL)
    for pid in proctree.own_children() - before:  # orphans come to this process, for it adopts them
        os.waitpid(pid, 0)


async def test_a_stranger_is_ended_with_its_whole_tree(stranger, tmp_path):
    pid, started = stranger("m-dead", TREE + "echo x > ready; exec sleep 60")
    await until((tmp_path / "ready").exists)

    ended = await process.stop_stranger(pid, started, "m-dead")

    assert ended >= 5
    assert [one for one in [pid, *pids_in(tmp_path)] if alive(one)] == []


async def test_a_stranger_is_found_by_its_marker_alone(stranger):
    pid, _ = stranger("m-dead-2", "exec sleep 60")

    assert await process.stop_stranger(0, 0, "m-dead-2") == 1
    assert not alive(pid)


@pytest.mark.parametrize(
    ("shift", "marker"), [(1, "m-other"), (0, "m-other")], ids=["reused-number", "exact"]
)
async def test_a_number_that_was_used_again_is_not_ended(stranger, shift, marker):
    pid, started = stranger("m-mine", "exec sleep 60")

    ended = await process.stop_stranger(pid, started + shift, marker)

    assert (ended, alive(pid)) == ((0, True) if shift else (1, False))


async def test_a_marker_that_only_begins_alike_is_another(stranger):
    pid, _ = stranger("m-mine-2", "exec sleep 60")

    assert await process.stop_stranger(0, 0, "m-mine") == 0
    assert alive(pid)


async def test_no_stranger_is_no_error():
    assert await process.stop_stranger(2**22 + 1, 5, "m-nobody") == 0


async def test_stopping_takes_no_longer_than_the_sequence(run, script):
    """Spec 02 section 3: nothing of the tree lives 10 s after a stop, even of one that ignores every signal it can."""
    codec = script(
        "import signal, time, os\nfor n in (1, 2, 15): signal.signal(n, signal.SIG_IGN)\n"
        "os.fork()\nos.setsid() if os.getpid() != os.getsid(0) else None\nprint('READY', flush=True); time.sleep(60)",
        stop=(StopStep("SIGINT", 0.1), StopStep("SIGTERM", 0.1), StopStep("SIGKILL", 0.1)),
    )
    turn = await run(codec)
    await until(lambda: codec.got.count(b"READY") == 2)
    begun = time.monotonic()
    turn.request_stop(EndedBy.STOP)
    await asyncio.wait_for(turn.gone(), 10)

    assert time.monotonic() - begun < 5


LEADERLESS = """
import ctypes, os, threading, time
threading.Thread(target=time.sleep, args=(600,)).start()
print(os.getpid(), file=open("pid1", "w"), flush=True)
ctypes.CDLL(None).pthread_exit(None)
"""


async def test_a_process_whose_main_thread_is_over_is_no_zombie_and_ends_with_the_tree(run, shell, tmp_path):
    (tmp_path / "leaderless.py").write_text(LEADERLESS)
    codec = shell(f"setsid {sys.executable} leaderless.py & while [ ! -s pid1 ]; do sleep 0.01; done; exit 0")
    turn = await run(codec, linger_s=0.05)

    await asyncio.wait_for(turn.gone(), 10)

    (pid,) = pids_in(tmp_path)
    assert not alive(pid)
    assert proctree.look(pid) is None
