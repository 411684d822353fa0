"""Presence tells the truth, sooner or later, and a turn never waits for it."""

import asyncio

from tests.fakes.fake_clock import pass_time, stepped, until
from tests.fakes.fake_room import delay, drop_before, rate_limited


@stepped
async def test_it_works_while_it_works_and_is_idle_afterwards(stage):
    stage.works.clear()
    async with stage.running():
        question = stage.ask()
        await until(lambda: stage.shown[0] == "working")
        assert (stage.cid, stage.gode.uid) in stage.server.typing

        stage.works.set()
        await stage.until_answered(question)
        await until(lambda: stage.shown[0] == "idle")
        assert stage.server.typing == set()


@stepped
async def test_what_could_not_be_told_is_told_later(stage):
    async with stage.running():
        await until(lambda: stage.shown[0] == "idle")
        stage.room.faults.on("presence", drop_before(), rate_limited(30))
        stage.works.clear()
        stage.ask()
        await until(lambda: stage.shown[0] == "working", within_s=60)


@stepped
async def test_a_turn_does_not_wait_for_presence(stage):
    async with stage.running():
        await pass_time(1)
        stage.room.faults.always("presence", delay(asyncio.Event()))
        stage.room.faults.always("typing", delay(asyncio.Event()))
        question = stage.ask()

        await until(lambda: stage.answers_to(question), within_s=5)
