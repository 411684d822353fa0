"""What a human's command does, and that nobody else's does anything (spec 02 section 3 "Commands"; law 8)."""

import asyncio

import pytest

from sentinel.core.commands import Command, CommandKind
from sentinel.core.model import Kind
from sentinel.core.outcome import Answer
from tests.fakes.fake_clock import pass_time, stepped, until
from tests.fakes.fake_room import delay


@stepped
async def test_stop_parks_what_is_older_and_keeps_what_is_newer(stage):
    stage.works.clear()
    async with stage.running():
        running = stage.ask("a long one")
        await until(lambda: stage.runs)
        waiting = stage.ask("waits")
        await until(lambda: stage.state_of(waiting) == "seen")

        stage.ask("/stop")
        newer = stage.ask("after the stop")
        stopped_at = stage.clock.now()
        await until(lambda: stage.state_of(running) == "parked")
        assert (stage.clock.now() - stopped_at).total_seconds() < 1
        stage.works.set()
        await stage.until_answered(newer)

        assert stage.state_of(waiting) == "parked"
        assert [one.text for one in stage.own] == [
            "Stopped. Messages put aside: 2; an owner takes them up again with /retry.",
            "answer 2",
        ]


@stepped
async def test_a_stopped_turn_is_not_a_failure_and_retry_takes_it_up(stage):
    stage.works.clear()
    async with stage.running():
        question = stage.ask()
        await until(lambda: stage.runs)
        stage.ask("/stop")
        await until(lambda: stage.state_of(question) == "parked")
        stage.works.set()
        await pass_time(3600)
        assert len(stage.runs) == 1
        assert stage.trigger(question).failures == 0

        stage.ask("/retry")
        await stage.until_answered(question)


@stepped
async def test_an_answer_that_is_quicker_than_the_stop_is_not_posted(stage):
    """The line says that the message was put aside, so that must be so."""

    def answers_while_stopped(case, request):
        stage.sentinel.commands.stop()
        return Answer("too late")

    stage.script = [answers_while_stopped]
    async with stage.running():
        question = stage.ask()
        await until(lambda: stage.state_of(question) == "parked")
        await pass_time(10)

    assert stage.answers == []


@stepped
async def test_a_stop_while_the_context_is_fetched_starts_nothing(stage):
    held = asyncio.Event()
    async with stage.running():
        await pass_time(1)
        stage.sentinel._window._size = 0
        stage.sentinel._window.since = lambda *_: None
        question = stage.ask()
        stage.room.faults.on("history", *[delay(_set())], delay(held))
        await until(lambda: stage.sentinel.turner.running)
        assert stage.runs == []
        stage.room.faults.clear("history")
        stage.sentinel.commands.obey(stage.ask("/stop"), _stop())
        held.set()
        await until(lambda: stage.state_of(question) == "parked")

    assert stage.runs == []


def _set():
    event = asyncio.Event()
    event.set()
    return event


def _stop():
    return Command(CommandKind.STOP)


@stepped
async def test_status_is_for_any_human(stage):
    async with stage.running():
        stage.say(stage.bob, "/status")
        await until(lambda: stage.notices)

    assert "idle" in stage.notices[0].lower()


@pytest.mark.parametrize("text", ["/stop", "/pause", "/retry", "/new", "/resume"])
@stepped
async def test_a_command_of_somebody_who_is_no_owner_does_nothing(stage, text):
    stage.works.clear()
    async with stage.running():
        question = stage.ask()
        await until(lambda: stage.runs)
        said = stage.say(stage.bob, text)
        await pass_time(5)

        assert stage.state_of(question) == "running"
        assert not stage.condition.paused
        assert stage.own == []
        assert stage.store.inbox.why(said.id).reason == "not-owner"


@pytest.mark.parametrize(
    "text",
    [
        "please do this:\n/pause",
        "```\n/pause\n```",
        "> /pause",
        "ann says /pause",
        "role=owner /pause",
    ],
)
@stepped
async def test_a_command_that_is_only_talked_about_is_none(stage, text):
    async with stage.running():
        question = stage.ask(text)
        await stage.until_answered(question)

        assert not stage.condition.paused


@stepped
async def test_a_personas_command_is_none(stage):
    robo = stage.server.account("Robo", Kind.PERSONA, uid="u-robo")
    stage.home.write("owners", f"{robo.uid}\n")
    async with stage.running():
        stage.server.join(stage.cid, robo)
        await pass_time(1)
        stage.say(robo, "/pause")
        await pass_time(5)

        assert not stage.condition.paused


@stepped
async def test_a_command_older_than_ten_minutes_is_stale(stage):
    async with stage.running():
        await pass_time(1)
    said = stage.ask("/pause")
    await pass_time(601)

    async with stage.running():
        await pass_time(5)

        assert not stage.condition.paused
        assert stage.store.inbox.why(said.id).reason == "stale-command"


@stepped
async def test_pause_and_resume(stage):
    async with stage.running():
        stage.ask("/pause")
        await until(lambda: stage.notices)
        question = stage.ask("kept")
        await pass_time(600)
        assert stage.runs == []

        stage.ask("/resume")
        await stage.until_answered(question)


@stepped
async def test_the_model_never_sees_a_command(stage):
    async with stage.running():
        stage.ask("/status")
        await until(lambda: stage.notices)
        question = stage.ask("hello")
        await stage.until_answered(question)

        assert [[one.id for one in case.messages] for case, _ in stage.runs] == [[question.id]]


@stepped
async def test_a_command_is_obeyed_once_whatever_rings(stage):
    async with stage.running():
        stage.ask("/status")
        await until(lambda: stage.notices)
        for _ in range(3):
            stage.room.cut_doorbell()
            await pass_time(5)
    async with stage.running():
        await pass_time(5)

    assert len(stage.notices) == 1


@stepped
async def test_a_command_is_not_lost_by_a_kill_right_after_it_was_taken_in(stage):
    """Taken in and carried out are two writes; between them a `/stop` must not get lost."""
    async with stage.running():
        await pass_time(1)
        object.__setattr__(stage.sentinel._intake._heard, "command", _killed)
        said = stage.ask("/pause")
        await until(lambda: stage.store.inbox.why(said.id))
        await stage.kill()

    async with stage.running():
        await until(lambda: stage.condition.paused, within_s=10)
        await until(lambda: stage.notices)


def _killed(message, command):
    """A process that is gone before it could carry anything out."""
    raise asyncio.CancelledError


@stepped
async def test_new_begins_a_new_thread(stage):
    async with stage.running():
        await stage.until_answered(stage.ask("one"))
        stage.ask("/new")
        await until(lambda: stage.notices)
        await stage.until_answered(stage.ask("two"))

    assert [request.resume for _, request in stage.runs] == [None, None]
