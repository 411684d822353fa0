"""What the simulator found: a stop, a death or a full disk between two steps, and what must hold all the same."""

import asyncio
from types import SimpleNamespace

import pytest

from sentinel import process
from sentinel.core.codec import EndedBy
from sentinel.core.commands import Command, CommandKind
from sentinel.core.outcome import FailureClass
from sentinel.daemon import turn
from sentinel.daemon.execution import Execution, Running
from sentinel.daemon.far import FarSide
from sentinel.home.examine import examine
from sentinel.store.database import Unwritable
from tests.fakes.fake_clock import pass_time, stepped, until
from tests.fakes.stage import Lines

STOP = Command(CommandKind.STOP)


@stepped
async def test_killed_while_a_stop_is_under_way_does_not_run_it_again(stage):
    """Law 7 and spec 02 section 3: a stopped turn does not start again by itself."""
    stage.works.clear()
    async with stage.running():
        question = stage.ask()
        await until(lambda: stage.runs)
        stage.sentinel.turner.stop = lambda _by: True  # the executor takes its time to end
        stage.ask("/stop")
        await until(lambda: stage.notices)
    stage.works.set()

    async with stage.running():
        later = stage.ask("and this?")
        await stage.until_answered(later)
        assert stage.state_of(question) == "parked"

    assert len(stage.runs) == 2


@stepped
async def test_a_stop_leaves_what_was_asked_after_it(stage):
    stage.works.clear()
    async with stage.running():
        first = stage.ask("one")
        await until(lambda: stage.runs)
        stage.sentinel.commands.pause(on=True)
        older, between, newer = (
            stage.ask("two"),
            stage.say(stage.bob, "hm", mention=False),
            stage.ask("three"),
        )
        await until(lambda: stage.trigger(newer))
        stage.works.set()
        await stage.until_answered(first)
        stage.works.clear()
        stage.sentinel.commands.pause(on=False)
        await until(lambda: len(stage.runs) == 2)

        stage.sentinel.commands.obey(between, STOP)
        stage.works.set()
        await stage.until_answered(newer)
        assert stage.state_of(older) == "parked"

    assert stage.answers_to(older) == []


@stepped
async def test_what_lingers_of_an_answered_turn_is_ended_at_the_next_start(stage, monkeypatch):
    """At most one executor lives: also when the sentinel died between an answer and its executor's end."""
    ended = []

    async def stop_stranger(pid, started, marker):
        ended.append((pid, started, marker))
        return 1

    monkeypatch.setattr(process, "stop_stranger", stop_stranger)
    async with stage.running():
        question = stage.ask()
        await stage.until_answered(question)
        turn_id = stage.runs[0][0].turn_id
        stage.store.turns.spawned(turn_id, pid=77, started=5, command="exec: it", now=0.0)

    async with stage.running():
        pass

    assert ended == [(77, 5, turn_id)]


@stepped
async def test_a_full_disk_is_no_bug_of_the_message(stage):
    """It ends the sentinel, which the service starts again; nobody is counted for it."""
    async with stage.running():

        def full(*_, **__):
            raise Unwritable("the disk is full", mend="free room")

        stage.store.turns.begin = full
        question = stage.ask()
        with pytest.raises(Unwritable):
            await stage.task
        assert stage.trigger(question).failures == 0
        stage.task = None

    assert stage.log.of("a bug of ours") == []


@stepped
async def test_a_stop_before_the_executor_began_begins_none(stage, monkeypatch):
    """The last executor may linger for seconds while the next turn waits: a `/stop` then must not start it first."""

    async def start(*_, **__):
        raise AssertionError("an executor was started after the stop")

    monkeypatch.setattr(process, "start", start)
    persona = examine(stage.home.path, guarded=True).persona
    execution = Execution(
        None,
        stage.clock,
        Lines(),
        far=FarSide(SimpleNamespace(meta=lambda _: None), Lines()),
        on_running=lambda _: None,
    )
    running = Running("t-1", "c1", 0.0, stop_by=EndedBy.STOP)

    outcome = await execution.run(SimpleNamespace(persona=persona, turn_id="t-1"), None, running)

    assert outcome.kind is FailureClass.STOPPED


@stepped
async def test_a_stop_while_the_gate_is_asked_is_a_stop(stage, monkeypatch):
    """A launcher's probe takes seconds; the message that was stopped meanwhile is neither started nor counted."""
    asked, answered, real = asyncio.Event(), asyncio.Event(), turn.examine_aside

    async def slow(home, **more):
        asked.set()
        await answered.wait()
        return await real(home, **more)

    monkeypatch.setattr(turn, "examine_aside", slow)
    async with stage.running():
        question = stage.ask()
        await asked.wait()
        stage.ask("/stop")
        await until(lambda: stage.notices)
        answered.set()
        await pass_time(60)

        assert stage.state_of(question) == "parked"
        assert stage.trigger(question).failures == 0
    assert stage.runs == []
