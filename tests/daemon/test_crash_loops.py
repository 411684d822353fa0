"""The same error of our own, five times at the same trigger, ends the sentinel for good; nothing else of ours does."""

import asyncio

import pytest

from sentinel.core.crashes import is_loop
from sentinel.core.errors import Exit
from sentinel.core.outcome import Answer
from sentinel.core.turns import Queued
from sentinel.daemon.crash import CrashLoop
from sentinel.store.database import Unwritable
from tests.fakes.fake_clock import pass_time, stepped, until
from tests.fakes.fake_room import delay


def bug(case, request):
    raise ZeroDivisionError(f"a bug, told in other words each time: {case.turn_id}")


def other_bug(case, request):
    raise KeyError("another one")


async def ends(stage):
    """Wait until the sentinel has ended, and return its fault."""
    await asyncio.wait([stage.task])
    fault = stage.task.exception()
    await stage.kill()
    return fault


async def killed_while_it_runs(stage):
    runs = len(stage.runs)
    stage.works.clear()
    async with stage.running():
        await until(lambda: len(stage.runs) == runs + 1)


@stepped
async def test_the_fifth_time_is_the_end_and_the_room_is_told(stage):
    stage.script = [bug] * 9
    stage.start()
    question = stage.ask()
    fault = await ends(stage)

    assert isinstance(fault, CrashLoop)
    assert fault.exit_code is Exit.BUG == 70
    assert "ZeroDivisionError" in str(fault)
    assert question.id in str(fault)
    assert len(stage.runs) == 5
    assert "going offline for good (bug)" in stage.notices[-1]
    assert not stage.own[-1].mentions


@stepped
async def test_it_counts_across_restarts_and_being_killed_never_counts(stage):
    stage.script = [bug, bug]
    async with stage.running():
        question = stage.ask()
        await until(lambda: stage.trigger(question) and stage.trigger(question).failures == 2)
    for _ in range(5):  # five kills in the middle of a turn
        await killed_while_it_runs(stage)
    stage.works.set()
    stage.script = [bug] * 9
    before = len(stage.runs)
    stage.start()
    fault = await ends(stage)

    assert isinstance(fault, CrashLoop)
    assert len(stage.runs) - before == 3


@stepped
async def test_two_errors_and_two_triggers_are_counted_apart(stage):
    stage.script = [bug, other_bug] * 4
    async with stage.running():
        first = stage.ask("one")
        await until(lambda: stage.trigger(first) and stage.trigger(first).failures == 6)
        second = stage.ask("two")
        await stage.until_answered(first, second)

    assert len(stage.runs) == 10


@stepped
async def test_a_success_ends_the_row(stage):
    stage.script = [bug] * 4
    async with stage.running():
        question = stage.ask()
        await stage.until_answered(question)

        assert stage.store.database.rows("SELECT * FROM crashes") == []


@stepped
async def test_started_again_it_lives_with_the_others_and_says_that_it_is_back(stage):
    stage.script = [bug] * 5
    stage.start()
    poison = stage.ask("the poison")
    await ends(stage)
    async with stage.running():
        other = stage.ask("something else")
        await stage.until_answered(other)
        await until(lambda: "I am back" in stage.notices[-1])

        assert stage.state_of(poison) == "parked"
        assert stage.condition.ended is None
        stage.sentinel.commands.retry(message_id=poison.id)
        await stage.until_answered(poison)


@stepped
async def test_a_retry_by_a_human_counts_anew(stage):
    stage.script = [bug] * 5
    stage.start()
    poison = stage.ask("the poison")
    await ends(stage)
    stage.script = [bug] * 4
    async with stage.running():
        await pass_time(1)
        stage.sentinel.commands.retry(message_id=poison.id)
        await stage.until_answered(poison)

    assert len(stage.runs) == 10


@stepped
async def test_a_poisoned_neighbour_is_found_alone(stage):
    """In a batch of several nobody is counted: the poison then runs alone, and is put aside alone."""

    def poisoned(case, request):
        if any(one.text == "poison" for one in case.messages):
            raise ZeroDivisionError
        return Answer("fine", thread="t-1")

    stage.script = [poisoned] * 40
    stage.works.clear()
    stage.start()
    blocker = stage.ask("first")
    await until(lambda: stage.runs)
    others = [stage.ask("harmless"), stage.ask("poison"), stage.ask("harmless too")]
    await until(lambda: all(stage.state_of(one) == "seen" for one in others))
    stage.works.set()
    fault = await ends(stage)
    assert isinstance(fault, CrashLoop)
    assert others[1].id in str(fault)

    async with stage.running():
        await stage.until_answered(blocker, others[0], others[2])
        assert stage.state_of(others[1]) == "parked"


@stepped
async def test_a_fault_that_ends_the_process_is_counted_at_the_trigger_in_hand(stage, monkeypatch):
    """Here the table of failures itself is broken: each start meets it again, until the trigger is put aside."""
    faults = []
    question = None
    for _ in range(5):
        stage.open()
        stage.script = [bug] * 9
        monkeypatch.setattr(stage.sentinel._aftermath, "fail", _broken)
        stage.start()
        question = question or stage.ask()
        faults.append(await ends(stage))

    assert [type(one).__name__ for one in faults] == ["RuntimeError"] * 4 + ["CrashLoop"]
    assert "going offline" in stage.notices[-1]
    async with stage.running():
        assert stage.state_of(question) == "parked"


def _broken(batch, end):
    raise RuntimeError("broken")


@stepped
async def test_a_loop_that_ends_without_a_trigger_is_counted_under_its_name(stage, monkeypatch):
    faults = []
    for _ in range(6):
        stage.open()
        monkeypatch.setattr(stage.sentinel._intake, "_rewind", _broken_rewind)
        stage.start()
        faults.append(await ends(stage))

    assert [type(one).__name__ for one in faults] == ["RuntimeError"] * 4 + ["CrashLoop"] * 2


def _broken_rewind(conversations):
    raise RuntimeError("broken")


@stepped
async def test_words_that_did_not_get_out_are_not_said_by_the_next_start(stage):
    stage.script = [bug] * 5
    stage.start()
    stage.ask()
    await until(lambda: len(stage.runs) == 4 and len(stage.notices) == 1)  # "keeps failing" is out
    stage.room.faults.on("post", delay(asyncio.Event()))
    stage.ask("/status")  # its line never gets through, and stands in the way
    fault = await ends(stage)
    assert isinstance(fault, CrashLoop)

    async with stage.running():
        await stage.until_answered(stage.ask("and now?"))
        await pass_time(120)
    assert not [one for one in stage.notices if "offline" in one]


@stepped
async def test_in_a_batch_of_several_nobody_is_counted(stage):
    counter = stage.open().sentinel._crashes
    batch = [Queued(stage.cid, f"m{number}", number, 0.0, 0.0) for number in (1, 2)]
    for _ in range(9):
        counter.met(ZeroDivisionError(), batch=batch)

    assert stage.store.database.rows("SELECT * FROM crashes") == []
    await stage.kill()


@stepped
async def test_a_full_disk_is_no_error_of_ours(stage):
    counter = stage.open().sentinel._crashes
    for _ in range(9):
        counter.met(Unwritable("the disk is full"), place="worker")
        counter.met(asyncio.CancelledError(), place="worker")
    assert stage.store.database.rows("SELECT * FROM crashes") == []
    await stage.kill()


@pytest.mark.parametrize("times", range(1, 9))
def test_five_are_a_loop(times):
    assert is_loop(times) == (times >= 5)
