"""What a start makes of what an earlier process left: threads, cut-off runs, TERM (spec 02 sections 3 and 4)."""

import asyncio

import pytest

from sentinel.core.errors import AlreadyRunning
from sentinel.core.outcome import Answer, Failure, FailureClass
from tests.fakes.fake_clock import pass_time, stepped, until


@stepped
async def test_term_gives_the_running_turn_its_grace(stage):
    stage.works.clear()
    async with stage.running():
        question = stage.ask()
        await until(lambda: stage.runs)
        begun = stage.clock.now()
        ending = asyncio.ensure_future(stage.sentinel.end())
        await pass_time(9)
        stage.works.set()
        assert await stage.task == 0
        ending.cancel()

        assert stage.state_of(question) == "verified"
        assert (stage.clock.now() - begun).total_seconds() < 10


@stepped
async def test_term_after_the_grace_is_interrupted_and_not_failed(stage):
    stage.works.clear()
    async with stage.running():
        question = stage.ask()
        await until(lambda: stage.runs)
        begun = stage.clock.now()
        await stage.sentinel.end()
        assert await stage.task == 0

        assert 10 <= (stage.clock.now() - begun).total_seconds() < 12
        found = stage.trigger(question)
        assert (found.state, found.failures, found.cuts) == ("seen", 0, 1)
    stage.works.set()
    async with stage.running():
        await stage.until_answered(question)
    assert len(stage.answers) == 1
    assert stage.notices == []


@stepped
async def test_after_term_no_more_turns_are_taken(stage):
    stage.works.clear()
    async with stage.running():
        stage.ask("one")
        await until(lambda: stage.runs)
        ending = asyncio.ensure_future(stage.sentinel.end())
        await pass_time(1)
        stage.ask("two")
        await pass_time(1)
        stage.works.set()
        await stage.task
        ending.cancel()

    assert len(stage.runs) == 1


@stepped
async def test_superseded_ends_with_75_and_does_not_fight(stage):
    stage.start()
    await until(lambda: stage.room.connected)
    stage.room.supersede()

    with pytest.raises(AlreadyRunning, match="superseded") as fault:
        await stage.task
    assert fault.value.exit_code == 75
    assert len(stage.room.called("doorbells")) == 1
    await stage.kill()


@stepped
async def test_a_killed_run_is_run_again_once(stage):
    stage.works.clear()
    async with stage.running():
        question = stage.ask()
        await until(lambda: stage.runs)
    stage.works.set()
    async with stage.running():
        await stage.until_answered(question)

        assert stage.trigger(question).cuts == 1
    assert len(stage.answers) == 1
    assert len(stage.runs) == 2


def _codex(make_stage, **files):
    return make_stage(adapter="codex", codex_sandbox="workspace-write\n", **files)


@stepped
async def test_a_cut_run_that_may_have_acted_goes_on_in_its_thread_and_is_told(make_stage):
    stage = _codex(make_stage)
    stage.works.clear()
    async with stage.running():
        question = stage.ask()
        await until(lambda: stage.runs)
        case, _ = stage.runs[0]
        stage.store.turns.tentative_thread(case.turn_id, "0199-thread")
    stage.works.set()
    async with stage.running():
        await stage.until_answered(question)

    first, second = (request for _, request in stage.runs)
    assert second.resume == "0199-thread"
    assert "earlier attempt" in second.prompt
    assert "earlier attempt" not in first.prompt


@stepped
async def test_a_cut_run_whose_thread_was_never_told_is_told_all_the_same(make_stage):
    """codex names its thread late: without one there is nothing to go on in, but what it did may be done."""
    stage = _codex(make_stage)
    stage.works.clear()
    async with stage.running():
        question = stage.ask()
        await until(lambda: stage.runs)
    stage.works.set()
    async with stage.running():
        await stage.until_answered(question)

    _, again = stage.runs[1]
    assert again.resume is None
    assert "earlier attempt" in again.prompt


@stepped
async def test_a_cut_run_that_could_only_read_is_simply_run_again(make_stage):
    stage = make_stage(adapter="codex")
    stage.works.clear()
    async with stage.running():
        question = stage.ask()
        await until(lambda: stage.runs)
        stage.store.turns.tentative_thread(stage.runs[0][0].turn_id, "0199-thread")
    stage.works.set()
    async with stage.running():
        await stage.until_answered(question)

    assert stage.runs[1][1].resume is None
    assert "earlier attempt" not in stage.runs[1][1].prompt


@stepped
async def test_with_ask_a_cut_run_waits_for_a_human(make_stage):
    stage = _codex(make_stage, on_interrupt="ask\n")
    stage.works.clear()
    async with stage.running():
        question = stage.ask()
        await until(lambda: stage.runs)
    stage.works.set()
    async with stage.running():
        await until(lambda: stage.notices)
        await pass_time(3600)
        assert len(stage.runs) == 1
        assert stage.state_of(question) == "needs_human"

        stage.ask("/retry")
        await stage.until_answered(question)
    assert len(stage.notices) == 2


@stepped
async def test_a_second_turn_goes_on_in_the_thread_also_after_a_restart(stage):
    async with stage.running():
        await stage.until_answered(stage.ask("one"))
    async with stage.running():
        await stage.until_answered(stage.ask("two"))

    assert [request.resume for _, request in stage.runs] == [None, "t-1"]


@pytest.mark.parametrize("kind", [FailureClass.THREAD_LOST, FailureClass.CONTEXT_FULL])
@stepped
async def test_a_lost_thread_is_renewed_within_the_attempt_and_told(stage, kind):
    async with stage.running():
        await stage.until_answered(stage.ask("one"))
        stage.script = [Failure(kind, "gone"), Answer("again", thread="t-2")]
        question = stage.ask("two")
        await stage.until_answered(question)
        await until(lambda: stage.notices)

        assert stage.trigger(question).failures == 0
        assert [request.resume for _, request in stage.runs] == [None, "t-1", None]
        assert stage.store.threads.get(stage.cid).id == "t-2"
    assert len(stage.notices) == 1


@stepped
async def test_usage_is_a_difference_and_never_a_total(stage):
    from sentinel.core.outcome import Counter

    stage.script = [
        Answer("a", thread="t", total=Counter(100, 10, 20, 5)),
        Answer("b", thread="t", total=Counter(250, 30, 60, 6)),
        Answer("c", thread="u", total=Counter(40, 0, 4, 0)),
    ]
    async with stage.running():
        for text in ("one", "two", "three"):
            await stage.until_answered(stage.ask(text))

        used = stage.store.threads.usage(since=0)
    assert (used.turns, used.input_tokens, used.output_tokens) == (3, 290, 64)


@stepped
async def test_nothing_is_left_in_the_turns_folder(stage):
    stage.script = [Failure(FailureClass.CRASH, "x"), Answer("a")]
    async with stage.running():
        question = stage.server.post(stage.ann.uid, stage.cid, _voice(stage, "note.ogg", b"sound"))
        await stage.until_answered(question)

    assert list((stage.home.path / "turns").glob("*")) == []


def _voice(stage, name, data):
    from sentinel.core.model import MessageType, Outgoing

    media = stage.server.store_media(stage.ann.uid, data, "audio/ogg", name)
    return Outgoing(None, "v-1", type=MessageType.VOICE, media_id=media.id, mentions=(stage.gode.uid,))
