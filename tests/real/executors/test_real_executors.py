"""What both real executors must do under the runner, with the real codecs."""

import asyncio
import shlex
import uuid
from pathlib import Path

import pytest
from real_world import living, until

from adapters import claude, codex
from sentinel.core.codec import EndedBy, Progress, Sandbox
from sentinel.core.outcome import Answer, FailureClass
from sentinel.process import RunLimits

pytestmark = pytest.mark.real
DANGER = {"sandbox": Sandbox.DANGER_FULL_ACCESS, "network": True}


@pytest.fixture(params=["codex", "claude"])
async def world(request, make_world):
    return await make_world(request.param, {"codex": codex.ADAPTER, "claude": claude.ADAPTER}[request.param])


async def test_it_answers_and_a_resumed_turn_goes_on_in_the_same_thread(world):
    world.model.does("text:text=the first answer")
    first = await world.turn("Message from ann:\nthe code word is plover-77")
    world.model.does("text:text=the second answer")
    second = await world.turn("Message from ann:\nwhat was the code word?", resume=first.thread)

    assert (first.text, second.text) == ("the first answer", "the second answer")
    assert second.thread == first.thread
    assert "plover-77" in world.model.requests()[-1]
    assert first.usage is not None or first.total is not None


async def test_the_exec_line_and_the_environment_are_the_real_ones(world, capsys):
    """Law 1, and spec 02 section 5: nothing but what was given reaches the executor; no token of a room."""
    world.model.always("hang_headers")
    settings = world.adapter.codec(world.request("x")).env()
    turn = await world.start(world.adapter.codec(world.request("Message from ann:\nhello")))
    proc = Path(f"/proc/{turn.pid}")
    argv = proc.joinpath("cmdline").read_bytes().decode().split("\0")[:-1]
    entries = proc.joinpath("environ").read_bytes().decode().split("\0")[:-1]
    turn.request_stop(EndedBy.STOP)
    await asyncio.wait_for(turn.gone(), 20)

    assert shlex.split(world.exec_lines[0].removeprefix("exec: ")) == argv
    assert dict(one.split("=", 1) for one in entries) == {
        **settings,
        **world.env,
        "HOOP_TURN": f"real-{world.base.name}",
    }
    assert "test-key" not in world.exec_lines[0]


@pytest.mark.parametrize(
    ("mode", "kind"),
    [
        ("no_output", FailureClass.EMPTY),
        ("http_401", FailureClass.AUTH),
        ("http_400", FailureClass.INPUT_REJECTED),
        ("cut", FailureClass.UNAVAILABLE),
    ],
)
async def test_what_is_no_answer_is_named_by_its_class(world, mode, kind):
    world.model.always(mode)

    outcome = await world.turn()

    assert not isinstance(outcome, Answer)
    assert outcome.kind is kind, outcome


async def test_a_reached_limit_is_a_quota(world):
    world.model.always("http_429_usage_limit" if world.name == "codex" else "http_400_credit")

    outcome = await world.turn()

    assert outcome.kind is FailureClass.QUOTA
    assert (outcome.retry_at is not None) is (world.name == "codex")


async def test_a_model_that_never_answers_ends_at_our_silence_limit(world):
    world.model.always("hang_stream")

    outcome = await world.turn(limits=RunLimits(silence_s=3, linger_s=1, total_s=40, output_bytes=10**8))

    assert outcome.kind is FailureClass.TIMEOUT


async def test_a_thread_that_is_not_there_is_lost(world):
    assert (await world.turn(resume=str(uuid.uuid4()))).kind is FailureClass.THREAD_LOST


async def test_nothing_of_a_stopped_turn_lives_whatever_its_tools_started(world):
    mark = f"9{uuid.uuid4().int % 10**8:08d}"
    command = f"setsid sleep {mark}1 & nohup sleep {mark}2 & (setsid setsid sleep {mark}3 &) ; sleep {mark}4"
    world.model.always(f"tool:cmd={command}")
    codec = world.adapter.codec(world.request("Message from ann:\nrun it", **DANGER))
    turn = await world.start(codec)
    await until(lambda: len(living(mark)) == 4)
    await until(lambda: any(isinstance(one, Progress) and one.open_tools for one in world.events))

    turn.request_stop(EndedBy.STOP)
    finished = await asyncio.wait_for(turn.result(), 10)
    await asyncio.wait_for(turn.gone(), 10)

    assert living(mark) == []
    assert not Path(f"/proc/{turn.pid}").exists()
    assert finished.status.ended_by is EndedBy.STOP


async def test_what_a_finished_turn_left_running_is_ended_too(world):
    mark = f"9{uuid.uuid4().int % 10**8:08d}"
    world.model.always(f"tool:cmd=setsid sleep {mark} >/dev/null 2>&1 & echo started")

    outcome = await world.turn(**DANGER)

    assert isinstance(outcome, Answer)
    assert living(mark) == []


async def test_a_long_answer_and_every_character_come_through(world):
    world.model.does("huge")
    assert len((await world.turn()).text) == 200 * 1024
    world.model.does("unicode")
    assert "U+2028:\u2028 end" in (await world.turn()).text
