"""One short question to a program: every way in which it can fail to answer (sentinel/asking.py)."""

import asyncio
import json
import os
import sys
import time

import pytest

from sentinel.asking import ask, ask_aside

ENV = {"PATH": "/usr/bin:/bin", "ONLY": "this"}


def sh(script, *, data=b"", timeout_s=20.0, cap_bytes=1 << 20):
    return ask(("/bin/sh", "-c", script), data=data, env=ENV, timeout_s=timeout_s, cap_bytes=cap_bytes)


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def has_ended(pid):
    end = time.monotonic() + 5
    while is_alive(pid) and time.monotonic() < end:
        time.sleep(0.005)
    return not is_alive(pid)


def test_an_answer_is_its_code_and_both_outputs():
    said = sh("cat; echo no >&2; exit 7", data=b"bytes \x00\xff")

    assert (said.code, said.stdout, said.stderr, said.why) == (7, b"bytes \x00\xff", "no\n", "")


def test_it_gets_exactly_the_environment_it_was_given():
    program = f"exec {sys.executable} -IS -c 'import os, json; print(json.dumps(dict(os.environ)))'"

    told = json.loads(sh(program).stdout)

    assert {name: told[name] for name in ENV} == ENV
    assert "HOME" not in told


def test_much_goes_in_and_out_at_once():
    data = os.urandom(5 << 20)

    said = sh("cat", data=data, cap_bytes=len(data))

    assert said.stdout == data


def test_one_that_does_not_read_is_no_fault():
    assert sh("exec 0<&-; echo done", data=b"x" * (1 << 20)).stdout == b"done\n"


def test_one_that_hangs_is_ended_with_its_children():
    said = sh("sleep 600 & echo $!; wait", timeout_s=0.5)

    assert said.code is None
    assert said.why == "no answer within 0.5 s"
    assert has_ended(int(said.stdout))


def test_one_that_closes_its_outputs_and_lives_on_is_ended_too():
    said = sh("echo $$; exec >&- 2>&-; sleep 600", timeout_s=0.5)

    assert said.code is None
    assert has_ended(int(said.stdout))


def test_a_grandchild_that_holds_the_pipes_is_no_answer():
    said = sh("sleep 600 & echo $!", timeout_s=0.5)

    assert said.code is None
    assert has_ended(int(said.stdout))


def test_a_flood_is_cut_off():
    said = sh("yes", cap_bytes=100_000)

    assert said.code is None
    assert "more than 100000 bytes" in said.why
    assert len(said.stdout) < 400_000


def test_a_flood_of_complaints_costs_nothing():
    said = sh("head -c 3000000 /dev/zero | tr '\\0' x >&2; echo end >&2")

    assert said.code == 0
    assert said.stderr.endswith("xend\n")
    assert len(said.stderr) <= 8 * 1024


@pytest.mark.parametrize("program", ["/nowhere/at/all", "/etc/passwd", "/"])
def test_what_cannot_be_started_is_126_and_says_why(program):
    said = ask((program,), env={}, timeout_s=5, cap_bytes=10)

    assert said.code == 126
    assert said.stderr.startswith(f"{program} cannot be started: ")


def test_no_descriptor_is_left_behind():
    sh("exit 0")
    before = len(os.listdir("/proc/self/fd"))

    for _ in range(20):
        sh("exit 3", data=b"x")
        ask(("/nowhere",), env={}, timeout_s=5, cap_bytes=10)

    assert len(os.listdir("/proc/self/fd")) == before


async def test_aside_the_loop_goes_on():
    ticks = 0

    async def tick():
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.01)

    ticking = asyncio.create_task(tick())
    begun = time.monotonic()
    said = await ask_aside(("/bin/sleep", "0.3"), env={}, timeout_s=10, cap_bytes=10)
    ticking.cancel()

    assert said.code == 0
    assert time.monotonic() - begun >= 0.3
    assert ticks > 5
