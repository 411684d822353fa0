"""The runner: what goes in, what comes out, what ends a turn."""

import asyncio
import errno
import os
import shlex
import sys
import time
from pathlib import Path

import pytest

from sentinel import process, proctree
from sentinel.core.codec import Ended, EndedBy, ExitStatus, StopStep, Unknown
from sentinel.process import SpawnFailed


def alive(pid):
    seen = proctree.look(pid)
    return seen is not None and not seen.is_zombie


async def until(condition, limit_s=10.0):
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "did not come about in time"
        await asyncio.sleep(0.005)


async def finish(turn):
    result = await asyncio.wait_for(turn.result(), 20)
    await asyncio.wait_for(turn.gone(), 20)
    return result


async def test_the_environment_is_exactly_what_was_given_and_the_marker(run, shell):
    """Law 2, spec 02 section 5: nothing of ours is inherited; `<adapter>_env` wins over the codec's settings."""
    codec = shell("exec /usr/bin/env -0", settings={"A": "codec", "B": "codec"})

    await finish(await run(codec, env={"PATH": "/usr/bin", "B": "given"}, marker="m1"))

    got = dict(one.split("=", 1) for one in codec.got.decode().split("\0") if one)
    assert {k: v for k, v in got.items() if k not in ("PWD", "SHLVL", "_", "OLDPWD")} == {
        "A": "codec",
        "B": "given",
        "PATH": "/usr/bin",
        "HOOP_TURN": "m1",
    }


async def test_it_runs_in_its_cwd_as_the_leader_of_its_own_session(run, script, tmp_path):
    codec = script("import os; print(os.getcwd(), os.getpid() == os.getsid(0) == os.getpgrp())")

    result = await finish(await run(codec))

    assert codec.got.decode().split() == [str(tmp_path), "True"]
    assert result.status == ExitStatus(0)


@pytest.mark.parametrize("size", [0, 1, 70_000, 10_000_000])
async def test_a_prompt_of_any_size_goes_in_while_output_comes_out(run, shell, size):
    """Spec 02 section 5: a program that answers while it reads must not deadlock."""
    codec = shell("exec cat", prompt=b"x" * size)

    result = await finish(await run(codec, output_bytes=20_000_000))

    assert codec.got == b"x" * size
    assert result.output_bytes == size


async def test_an_executor_that_does_not_read_its_prompt_is_no_fault(run, shell):
    codec = shell("exec 0<&-; echo END", prompt=b"x" * 1_000_000)

    result = await finish(await run(codec))

    assert result.status.ended_by is EndedBy.ITSELF
    assert codec.got == b"END\n"


async def test_the_result_is_there_at_the_terminal_event_and_the_lingerer_is_stopped_beside(run, shell):
    turn = await run(shell("echo END; exec sleep 60"), linger_s=0.05)

    result = await asyncio.wait_for(turn.result(), 10)

    assert result.status == ExitStatus(None)
    await asyncio.wait_for(turn.gone(), 10)
    assert not alive(turn.pid)


async def test_what_a_lingerer_still_says_counts_for_nothing(run, shell):
    codec, events = shell("echo END; sleep 0.05; echo more; exec sleep 60"), []
    turn = await run(codec, events=events, linger_s=0.2)

    await finish(turn)

    assert events == [Ended()]
    assert codec.got == b"END\n"


async def test_the_last_words_before_the_exit_are_all_heard(run, script):
    codec = script("import sys; sys.stdout.write('x' * 300_000 + '\\nEND\\n')")

    await finish(await run(codec))

    assert len(codec.got) == 300_005


async def test_a_pipe_held_open_by_a_grandchild_does_not_hold_the_result(run, shell):
    turn = await run(shell("sleep 60 & echo hello"))

    result = await asyncio.wait_for(turn.result(), 10)

    assert result.status == ExitStatus(0)
    await turn.gone()


async def test_unknown_events_are_counted(run, shell):
    events = []
    result = await finish(await run(shell("echo a; echo b; echo END"), events=events))

    assert result.unknown == 2
    assert events == [Unknown("a"), Unknown("b"), Ended()]


@pytest.mark.parametrize(("script_text", "code"), [("exit 3", 3), ("kill -9 $$", -9)])
async def test_the_exit_code_tells_exit_and_signal(run, shell, script_text, code):
    assert (await finish(await run(shell(script_text)))).status == ExitStatus(code)


async def test_silence_ends_a_turn(run, shell):
    result = await finish(await run(shell("echo hi; exec sleep 60"), silence_s=0.15))

    assert result.status.ended_by is EndedBy.SILENCE


async def test_an_open_tool_call_is_not_silence(run, shell):
    result = await finish(await run(shell("echo TOOL 1; sleep 0.5; echo TOOL 0; echo END"), silence_s=0.1))

    assert result.status.ended_by is EndedBy.ITSELF


async def test_after_a_tool_call_silence_counts_again(run, shell):
    result = await finish(
        await run(shell("echo TOOL 1; sleep 0.2; echo TOOL 0; exec sleep 60"), silence_s=0.1)
    )

    assert result.status.ended_by is EndedBy.SILENCE


async def test_a_turn_that_talks_for_ever_ends_at_the_total(run, shell):
    result = await finish(await run(shell("while :; do echo x; sleep 0.02; done"), silence_s=5, total_s=0.3))

    assert result.status.ended_by is EndedBy.TOTAL


@pytest.mark.parametrize("stream", ["", " >&2"])
async def test_a_flood_ends_a_turn(run, shell, stream):
    result = await finish(await run(shell(f"exec yes{stream}"), output_bytes=200_000))

    assert result.status.ended_by is EndedBy.FLOOD


async def test_stderr_is_a_bounded_tail_without_secrets_and_controls(run, script):
    codec = script(
        "import sys; sys.stderr.write('a' * 100_000 + '\\x1b[31mred\\x1b[0m \\x07 key=SECRETVALUE \\u4f60 end')",
    )

    result = await finish(await run(codec, secrets=["SECRETVALUE"]))

    assert len(result.stderr) <= 16 * 1024
    assert result.stderr.endswith("red   key=*** 你 end")


async def test_a_secret_at_the_cut_of_the_tail_shows_no_part_of_itself(run, script):
    secret = "S" * 40
    codec = script(f"import sys; sys.stderr.write('{secret}' + 'b' * (16 * 1024 - 20))")

    result = await finish(await run(codec, secrets=[secret]))

    assert "S" not in result.stderr


async def test_the_exec_line_is_the_real_argv_with_secrets_masked(run, capsys):
    class Sleeper:
        stop = (StopStep("SIGKILL", 1.0),)
        env = staticmethod(dict)
        to_send = staticmethod(bytes)
        receive = staticmethod(lambda _: [])

        @staticmethod
        def argv():
            return ("/bin/sleep", "60.0")

    lines = []
    turn = await run(Sleeper(), lines=lines)
    real = Path(f"/proc/{turn.pid}/cmdline").read_bytes().decode().split("\0")[:-1]
    turn.request_stop(EndedBy.STOP)
    await finish(turn)

    assert shlex.split(lines[0].removeprefix("exec: ")) == real
    assert capsys.readouterr().err == f"{lines[0]}\n"


class FullDisk:
    """A standard error on a disk without room."""

    @staticmethod
    def write(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


async def test_a_full_disk_beneath_our_own_stderr_costs_the_line_and_never_the_turn(run, script, monkeypatch):
    monkeypatch.setattr(sys, "stderr", FullDisk())
    codec, lines = script("print('END')"), []

    result = await finish(await run(codec, lines=lines))

    assert result.status == ExitStatus(None, EndedBy.ITSELF)
    assert bytes(codec.got) == b"END\n"
    assert len(lines) == 1


async def test_a_secret_in_an_argument_is_masked_on_the_exec_line(run, shell):
    lines = []
    await finish(await run(shell("true # tok-12345678\n"), secrets=["tok-12345678"], lines=lines))

    assert lines[0] == "exec: /bin/sh -c 'true # *** '"


@pytest.mark.parametrize("by", [EndedBy.STOP, EndedBy.TERM])
async def test_a_stop_names_who_asked_first(run, shell, by):
    turn = await run(shell("exec sleep 60"))
    turn.request_stop(by)
    turn.request_stop(EndedBy.TOTAL)

    assert (await finish(turn)).status.ended_by is by


async def test_the_stop_sequence_goes_on_when_a_signal_is_ignored(run, script):
    codec = script(
        "import signal, time; signal.signal(2, signal.SIG_IGN); signal.signal(15, signal.SIG_IGN)\n"
        "print('READY', flush=True); time.sleep(60)",
        stop=(StopStep("SIGINT", 0.05), StopStep("SIGTERM", 0.05), StopStep("SIGKILL", 1.0)),
    )
    turn = await run(codec)
    await until(lambda: codec.got)
    turn.request_stop(EndedBy.STOP)

    assert (await finish(turn)).status == ExitStatus(-9, EndedBy.STOP)


async def test_a_stop_after_the_end_changes_nothing(run, shell):
    turn = await run(shell("echo END; exec sleep 60"), linger_s=30)
    before = await turn.result()
    turn.request_stop(EndedBy.STOP)
    await asyncio.wait_for(turn.gone(), 10)
    turn.request_stop(EndedBy.STOP)

    assert await turn.result() == before


async def test_giving_up_waiting_does_not_end_the_turn(run, shell):
    codec = shell("read line; echo END", prompt=b"")
    turn = await run(codec)
    waiting = asyncio.ensure_future(turn.result())
    await asyncio.sleep(0)
    waiting.cancel()

    assert (await finish(turn)).status.ended_by is EndedBy.ITSELF


async def test_a_listener_that_fails_is_heard_and_the_tree_ends(tmp_path, shell):
    def fails(_):
        raise ZeroDivisionError

    turn = await process.start(
        shell("echo x; exec sleep 60"),
        cwd=str(tmp_path),
        env={"PATH": "/bin:/usr/bin"},
        marker="m",
        limits=process.RunLimits(20, 1, 30, 1000),
        secrets=(),
        on_event=fails,
        on_exec=lambda _: None,
    )

    with pytest.raises(ZeroDivisionError):
        await asyncio.wait_for(turn.result(), 10)
    await asyncio.wait_for(turn.gone(), 10)


@pytest.mark.parametrize(
    ("binary", "cwd", "named"),
    [
        ("/no/such/binary", "/", "/no/such/binary"),
        ("/bin/cat", "/no/such/cwd", "/no/such/cwd"),
        ("/etc", "/", "/etc"),
    ],
    ids=["binary", "cwd", "not-executable"],
)
async def test_a_spawn_that_fails_says_what_is_missing(run, shell, binary, cwd, named):
    codec, lines = shell("x"), []
    codec.argv = lambda: (binary, "a")

    with pytest.raises(SpawnFailed, match=named) as caught:
        await run(codec, cwd=cwd, lines=lines)

    assert not caught.value.is_passing
    assert lines == [f"exec: {binary} a"]


async def test_an_argument_that_no_kernel_takes_is_a_spawn_that_failed(run, shell):
    codec = shell("x")
    codec.argv = lambda: ("/bin/cat", "x" * 3_000_000)

    with pytest.raises(SpawnFailed, match="Argument list too long"):
        await run(codec)


async def test_two_hundred_quick_turns_leave_no_zombie_and_no_descriptor(run, shell):
    before = len(os.listdir("/proc/self/fd"))

    for _ in range(200):
        await finish(await run(shell("echo END")))

    assert [seen for pid in proctree.own_children() if (seen := proctree.look(pid)) and seen.is_zombie] == []
    assert len(os.listdir("/proc/self/fd")) <= before + 3


async def test_a_program_of_ours_lives_on_beside_turns(run, shell, tmp_path):
    program = await process.start_program(["/bin/sleep", "60"], env={}, cwd=str(tmp_path))
    try:
        await finish(await run(shell("echo END")))
        assert alive(program.pid)
        assert os.getsid(program.pid) == program.pid
    finally:
        program.kill()
        await program.wait()


async def test_the_start_time_is_the_kernels(run, shell):
    turn = await run(shell("exec sleep 60"))
    assert turn.started == proctree.look(turn.pid).started > 0
    turn.request_stop(EndedBy.STOP)
    await finish(turn)
