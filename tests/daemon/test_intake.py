"""From the doorbell to the queue: one pull for everything that rings; nothing lost, nothing twice (spec 02 section 3)."""

import asyncio

import pytest

from sentinel.core.errors import ConfigError
from sentinel.core.model import Kind
from tests.fakes.fake_clock import pass_time, stepped, until
from tests.fakes.fake_room import delay, drop_after, drop_before, reject, unauthorized


def pulls(stage):
    return [one for one in stage.room.called("history") if one.arguments["cid"] == stage.cid]


@stepped
async def test_a_ring_is_one_pull_from_the_cursor(stage):
    async with stage.running():
        await pass_time(1)
        before, cursor = len(pulls(stage)), stage.store.inbox.conversation(stage.cid).cursor

        stage.say(stage.bob, "nothing to do with you", mention=False)
        await pass_time(1)

        new = pulls(stage)[before:]
        assert [one.arguments["after"] for one in new] == [cursor]


@stepped
async def test_rings_during_a_pull_lead_to_exactly_one_more(stage):
    async with stage.running():
        await pass_time(1)
        before, held = len(pulls(stage)), asyncio.Event()
        stage.room.faults.on("history", delay(held))

        for number in range(5):
            stage.say(stage.bob, f"line {number}", mention=False)
            await pass_time(1)
        in_flight = len(pulls(stage)) - before
        held.set()
        await pass_time(1)

        assert in_flight == 1
        assert len(pulls(stage)) - before == 2


@stepped
async def test_the_doorbell_carries_no_letter(stage):
    """A ring for a seq that is not there wakes nobody: what counts is what the server's pages hold."""
    async with stage.running():
        await pass_time(1)
        stage.room.ring(stage.cid, 99)
        await pass_time(1)

    assert stage.runs == []


@stepped
async def test_a_ring_that_is_lost_is_made_good_by_the_reconnection(stage):
    async with stage.running():
        await pass_time(1)
        stage.room.cut_doorbell(stay_down=True)
        await pass_time(1)
        question = stage.ask("said while the line was down")
        await pass_time(1)
        assert stage.runs == []

        stage.room.mend_doorbell()
        await stage.until_answered(question)

    assert len(stage.answers) == 1


@stepped
async def test_a_deaf_line_is_made_good_by_the_fallback(stage):
    async with stage.running():
        await pass_time(1)
        stage.room._line.is_down = True  # it looks open, and nothing rings any more
        question = stage.ask("said to a deaf line")
        await pass_time(60)
        assert stage.runs == []

        await until(lambda: stage.answers_to(question), within_s=700)


@stepped
async def test_the_overlap_behind_the_cursor_is_read_again_after_a_reconnection(stage):
    """Ids may become visible late, behind the cursor: they are found there, and nothing known is taken twice."""
    async with stage.running():
        first = stage.ask("one")
        await stage.until_answered(first)
        cursor = stage.store.inbox.conversation(stage.cid).cursor
        stage.store.database._connection.execute(
            "DELETE FROM seen WHERE message_id = ?", (stage.say(stage.bob, "x", mention=False).id,)
        )
        stage.room.cut_doorbell()
        await pass_time(2)

        after = [one.arguments["after"] for one in pulls(stage)]
        assert any(one < cursor for one in after)
        assert len(stage.answers) == 1


@stepped
async def test_a_late_message_behind_the_cursor_is_taken_once(stage):
    async with stage.running():
        await pass_time(1)
        late = stage.ask("late")
        with stage.store.database.transaction() as write:  # as if the page had shown only what came after it
            write.execute("UPDATE conversations SET cursor = 50 WHERE cid = ?", (stage.cid,))
        await pass_time(0)

        stage.room.cut_doorbell()
        await until(lambda: stage.answers_to(late))
        stage.room.cut_doorbell()
        await pass_time(5)

    assert len(stage.answers_to(late)) == 1


@pytest.mark.parametrize("fault", [drop_before(), drop_after()], ids=["before", "after"])
@stepped
async def test_a_page_that_is_cut_is_read_again(stage, fault):
    async with stage.running():
        await pass_time(1)
        stage.room.faults.on("history", fault, fault)

        question = stage.ask("hello")
        await stage.until_answered(question)

    assert len(stage.answers) == 1


@stepped
async def test_a_room_that_is_back_is_pulled_at_once_and_not_after_the_backoff(stage):
    async with stage.running():
        await pass_time(1)
        stage.room.gone()
        stage.room.ring(stage.cid, 1)
        await pass_time(3000)
        question = stage.ask("while away")
        stage.room.back()

        await until(lambda: stage.answers_to(question), within_s=3)


# First start.


@stepped
async def test_the_first_start_takes_the_open_triggers_of_the_last_hour_and_replays_nothing(stage):
    async def pause(minutes):
        await pass_time(minutes * 60)

    stage.clock.now()
    old = stage.ask("two hours ago")
    await pause(75)
    answered = stage.ask("answered by an earlier installation")
    stage.server.post(stage.gode.uid, stage.cid, _answering("done", answered.id, nonce="old-one"))
    open_one = stage.ask("half an hour ago")
    command = stage.ask("/pause")
    await pause(30)

    async with stage.running():
        await stage.until_answered(open_one)
        await pass_time(5)

        assert [[one.id for one in case.messages] for case, _ in stage.runs] == [[open_one.id]]
        assert [stage.store.inbox.why(one.id).reason for one in (old, answered, command)] == [
            "before-start"
        ] * 3
        assert not stage.condition.paused


def _answering(text, message_id, *, nonce):
    from sentinel.core.model import Outgoing

    return Outgoing(text, nonce, answers=(message_id,))


@stepped
async def test_a_busy_last_hour_is_read_back_to_its_beginning(stage, monkeypatch):
    monkeypatch.setattr("sentinel.daemon.first_start.BLOCK_MESSAGES", 50)
    question = stage.ask("the first of many")
    for number in range(180):
        stage.say(stage.bob, f"line {number}", mention=False)

    async with stage.running():
        await stage.until_answered(question)


@stepped
async def test_a_second_start_is_no_first_start(stage):
    async with stage.running():
        await pass_time(1)
    missed = stage.ask("while the sentinel was down")
    await pass_time(3 * 3600)

    async with stage.running():
        await stage.until_answered(missed)


@stepped
async def test_what_is_older_than_a_day_is_one_line_and_no_turn(stage):
    async with stage.running():
        await pass_time(1)
    for number in range(3):
        stage.ask(f"old {number}")
    await pass_time(25 * 3600)

    async with stage.running():
        await until(lambda: stage.notices)
        await pass_time(5)

    assert stage.runs == []
    assert [one for one in stage.notices if "3" in one and "Missed while away" in one] == stage.notices


# Conversations that are not mine.


@stepped
async def test_only_guarded_conversations_are_pulled(stage):
    other = stage.server.conversation("other", stage.ann, stage.gode, stage.bob)

    async with stage.running(guarded=frozenset({stage.cid})):
        await pass_time(1)
        stage.ask("over here", cid=other)
        question = stage.ask("and here")
        await stage.until_answered(question)

    assert [case.cid for case, _ in stage.runs] == [stage.cid]


@stepped
async def test_being_removed_from_a_room_ends_nothing(stage):
    other = stage.server.conversation("other", stage.ann, stage.gode, stage.bob)
    async with stage.running():
        await pass_time(1)
        stage.server.leave(other, stage.gode)
        stage.room.ring(other, 1)
        await pass_time(100)

        question = stage.ask("still there?")
        await stage.until_answered(question)


@stepped
async def test_a_ring_for_a_room_that_is_not_mine_ends_nothing(stage):
    async with stage.running():
        await pass_time(1)
        stage.room.ring("c-unknown", 1)
        await pass_time(100)

        question = stage.ask("still there?")
        await stage.until_answered(question)


@stepped
async def test_a_token_that_is_no_longer_good_ends_the_sentinel(stage):
    stage.start()
    await pass_time(1)
    stage.room.faults.always("history", unauthorized())
    stage.ask("hello")

    with pytest.raises(ConfigError, match="no longer accepts"):
        await stage.task
    await stage.kill()


@stepped
async def test_a_refused_list_of_conversations_is_no_reason_to_be_deaf(stage):
    async with stage.running():
        await pass_time(1)
        stage.room.faults.always("conversations", reject(403))
        stage.room.cut_doorbell()
        question = stage.ask("hello")

        await stage.until_answered(question)


# Who wakes: every decision leaves its word.


@stepped
async def test_each_message_that_names_me_leaves_its_reason(stage):
    robo = stage.server.account("Robo", Kind.PERSONA)
    async with stage.running():
        await pass_time(1)
        stage.server.join(stage.cid, robo)
        said = {
            "not-mentioned": stage.say(stage.ann, "Gode is great", mention=False),
            "persona-broadcast": stage.say(robo, "all of you", mention=False, broadcast=True),
            "persona-not-allowed": stage.say(robo, "you there"),
            "wake": stage.ask("and you"),
        }
        await stage.until_answered(said["wake"])

        for reason, message in said.items():
            assert stage.store.inbox.why(message.id).reason == reason
        assert len(stage.runs) == 1
