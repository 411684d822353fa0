"""Where the loop guard stops a persona, one line in the room says why (spec 02 section 3 "Triage")."""

import asyncio

import pytest

from sentinel.core.model import Kind
from tests.fakes.fake_clock import pass_time, stepped, until
from tests.fakes.fake_room import delay


@pytest.fixture
def stage(make_stage):
    made = make_stage(wake_from="members\n")
    made.robo = made.server.account("Robo", Kind.PERSONA)
    made.server.join(made.cid, made.robo)
    return made


def call(stage, **more):
    return stage.say(stage.robo, "hello again", **more)


async def called_too_often(stage):
    """Seven calls, each after the last one's answer: the budget lets six through."""
    for _ in range(6):
        await stage.until_answered(call(stage))
    return call(stage)


@stepped
async def test_a_spent_budget_is_one_line_that_calls_nobody(stage):
    async with stage.running():
        skipped = await called_too_often(stage)
        await until(lambda: stage.notices)
        for _ in range(5):
            call(stage)
            await pass_time(5)

        assert stage.store.inbox.why(skipped.id).reason == "loop-budget"
        assert len(stage.runs) == 6
        assert [one.split(",")[0] for one in stage.notices] == [
            "Personas have called me 6 times here within 10 min"
        ]
        assert [one.mentions for one in stage.own if not one.answers] == [()]


@stepped
async def test_the_hop_limit_has_words_of_its_own(stage):
    async with stage.running():
        call(stage, hops=3)
        call(stage, hops=4)
        await until(lambda: stage.notices)
        await pass_time(5)

        assert stage.runs == []
        assert [one.split(" times")[0] for one in stage.notices] == ["Personas have answered each other 3"]


@stepped
async def test_a_humans_call_resets_it_and_the_next_stop_is_said_anew(stage):
    async with stage.running():
        await called_too_often(stage)
        await until(lambda: len(stage.notices) == 1)

        await stage.until_answered(stage.ask("and you?"))
        await called_too_often(stage)
        await until(lambda: len(stage.notices) == 2)

        assert len(stage.runs) == 13


@stepped
async def test_a_human_who_calls_somebody_else_resets_nothing(stage):
    async with stage.running():
        await called_too_often(stage)
        await until(lambda: len(stage.notices) == 1)

        stage.say(stage.ann, "hello Robo", mention=False)
        call(stage)
        await pass_time(5)

        assert len(stage.runs) == 6
        assert len(stage.notices) == 1


@stepped
async def test_the_next_window_has_a_line_of_its_own(stage):
    async with stage.running():
        await called_too_often(stage)
        await until(lambda: len(stage.notices) == 1)

        await pass_time(601)
        await called_too_often(stage)
        await until(lambda: len(stage.notices) == 2)


@stepped
async def test_a_restart_does_not_say_it_again(stage):
    async with stage.running():
        await called_too_often(stage)
        await until(lambda: len(stage.notices) == 1)
    async with stage.running():
        call(stage)
        await pass_time(30)

    assert len(stage.notices) == 1
    assert len(stage.runs) == 6


@stepped
async def test_a_line_that_a_human_was_quicker_than_is_moot(stage):
    async with stage.running():
        for _ in range(6):
            await stage.until_answered(call(stage))
        held = asyncio.Event()
        stage.room.faults.on("post", delay(held))
        confirmed = stage.ask("/status")  # its line stands in the way of the next
        await until(lambda: stage.room.called("post")[-1].arguments["outgoing"].reply_to == confirmed.id)
        call(stage)
        await until(lambda: stage.store.turns.newest_notice("loop-guard:"))
        question = stage.ask("go on")
        await until(lambda: stage.state_of(question))
        held.set()
        await stage.until_answered(question)
        await pass_time(5)

    assert not [one for one in stage.notices if one.startswith("Personas")]


@stepped
async def test_what_a_human_has_called_off_in_the_same_page_is_not_said(stage):
    async with stage.running():
        for _ in range(6):
            await stage.until_answered(call(stage))
        stage.room.cut_doorbell(stay_down=True)
        call(stage)
        question = stage.ask("go on")
        stage.room.mend_doorbell()
        await stage.until_answered(question)
        await pass_time(5)

    assert stage.notices == []
