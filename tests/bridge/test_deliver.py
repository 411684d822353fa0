"""Every part of a draft onto the server once, read back before it counts (spec 02 section 4; security facts, F; law 7)."""

import pytest

from sentinel.bridge.deliver import Delivered, InDoubt, Postponed, Refused
from sentinel.core.errors import Unauthorized
from sentinel.core.journal import State
from sentinel.core.ports import NonceMemory
from sentinel.store.store import look_at_store
from tests.fakes.fake_clock import stepped
from tests.fakes.fake_room import (
    drop_after,
    drop_before,
    forge,
    late_visibility,
    rate_limited,
    reject,
    unauthorized,
)

FORGETFUL = [NonceMemory.BOUNDED, NonceMemory.STORED, NonceMemory.NONE]


class Killed(BaseException):
    """The process is gone."""


async def until_done(desk, turn="turn", tries=8):
    """What the postman does: again and again, as long as the room says later."""
    if desk.state(turn) is State.VERIFIED:  # then nobody tries
        return Delivered(())
    for _ in range(tries):
        end = await desk.deliver(turn)
        if not isinstance(end, Postponed):
            return end
    return end


@stepped
async def test_an_answer_is_posted_and_read_back(desk):
    asked = desk.ask("one", "two")
    desk.draft(asked, "the answer")

    end = await desk.deliver()

    assert isinstance(end, Delivered)
    assert desk.said == ["the answer"]
    assert desk.state() is State.VERIFIED
    assert [desk.state_of(one) for one in asked] == [State.VERIFIED] * 2
    assert desk.room.called("find_by_nonce")


FAULTS = {
    "response lost": [drop_after()],
    "lost twice": [drop_after(), drop_after()],
    "cut before": [drop_before()],
    "cut before, then response lost": [drop_before(), drop_after()],
    "429": [rate_limited(2.0)],
    "429, then lost": [rate_limited(2.0), drop_after()],
    "accepted, shown late": [late_visibility(2)],
    "accepted, shown very late": [late_visibility(11)],
    "shown late, response came": [late_visibility(6, lost=False)],
    "never shown for three sends": [late_visibility(14, lost=False)],
}


@pytest.mark.parametrize("faults", FAULTS.values(), ids=FAULTS)
@stepped
async def test_whatever_happens_to_the_post_it_is_said_exactly_once(desk, faults):
    desk.draft(desk.ask("one"), "the answer")
    desk.room.faults.on("post", *faults)

    end = await until_done(desk)

    assert isinstance(end, Delivered)
    assert desk.said == ["the answer"]


@pytest.mark.parametrize("fault", [drop_before(), rate_limited(1), reject(403)], ids=["cut", "429", "403"])
@stepped
async def test_a_readback_that_fails_says_nothing_about_the_post(desk, fault):
    desk.draft(desk.ask("one"), "the answer")
    desk.room.faults.on("find_by_nonce", fault, fault)

    assert isinstance(await desk.deliver(), Postponed)
    assert desk.state() is State.POSTED
    assert isinstance(await until_done(desk), Delivered)
    assert desk.said == ["the answer"]
    assert len(desk.room.called("post")) == 1


@stepped
async def test_a_room_that_is_gone_for_a_while_loses_nothing(desk):
    desk.draft(desk.ask("one"), "the answer")
    desk.room.gone()
    for _ in range(5):
        assert isinstance(await desk.deliver(), Postponed)
    desk.room.back()

    assert isinstance(await desk.deliver(), Delivered)
    assert desk.said == ["the answer"]


@stepped
async def test_a_told_wait_is_handed_on(desk):
    desk.draft(desk.ask("one"), "the answer")
    desk.room.faults.on("post", rate_limited(17.0))

    assert await desk.deliver() == Postponed("the room says wait", 17.0)


@pytest.mark.parametrize("status", [400, 403, 404, 413, 422])
@stepped
async def test_a_definite_no_is_final_and_the_body_is_kept(desk, status):
    desk.draft(desk.ask("one"), "the answer")
    desk.room.faults.on("post", reject(status))

    end = await desk.deliver()

    assert isinstance(end, Refused)
    assert end.status == status
    assert desk.said == []
    assert desk.store.turns.parts("turn")[0].outgoing.text == "the answer"


@stepped
async def test_a_no_after_an_ambiguous_try_is_looked_into(desk):
    """The first try was applied after all; the second meets a room that has thrown us out."""
    desk.draft(desk.ask("one"), "the answer")
    desk.room.faults.on("post", drop_after(), reject(403))
    desk.room.faults.on("find_by_nonce", drop_before())
    assert isinstance(await desk.deliver(), Postponed)

    assert isinstance(await desk.deliver(), Delivered)
    assert desk.said == ["the answer"]


@stepped
async def test_a_token_that_is_refused_is_no_matter_of_trying_again(desk):
    desk.draft(desk.ask("one"), "the answer")
    desk.room.faults.on("post", unauthorized())

    with pytest.raises(Unauthorized):
        await desk.deliver()
    assert desk.state() is State.SENDING


# Another text of ours under our nonce.


@pytest.mark.parametrize("part", [0, 1])
@stepped
async def test_another_text_under_our_nonce_is_the_answer(desk, part):
    asked = desk.ask("one")
    desk.draft(asked, "first half", "second half")
    desk.forged(asked, "somebody of us was quicker", part=part)

    end = await desk.deliver()

    assert isinstance(end, Delivered)
    assert desk.said == ["somebody of us was quicker"] + ["first half"] * part
    assert desk.state() is State.VERIFIED
    assert desk.store.turns.parts("turn")[1].state in {State.MOOT, State.VERIFIED}


@stepped
async def test_triggers_that_an_adopted_answer_does_not_name_wait_again(desk):
    asked = desk.ask("one", "two", "three")
    desk.draft(asked, "the answer")
    desk.forged(asked, "only to two of them", answers=(asked[0].id, asked[2].id))

    end = await desk.deliver()

    assert end.unanswered == (asked[1].id,)
    assert [desk.state_of(one) for one in asked] == [State.VERIFIED, State.SEEN, State.VERIFIED]
    assert [one.message_id for one in desk.store.inbox.queue()] == [asked[1].id]


@stepped
async def test_an_adopted_answer_answers_the_trigger_of_its_nonce_whatever_it_names(desk):
    """Else that trigger would make the same nonce again, and meet the same text, for ever."""
    asked = desk.ask("one", "two")
    desk.draft(asked, "the answer")
    desk.forged(asked, "names nobody", answers=())

    end = await desk.deliver()

    assert end.unanswered == (asked[1].id,)


@pytest.mark.parametrize("answer", ["natural", "stored", "lost"])
@stepped
async def test_a_text_that_got_there_while_we_sent_is_adopted_and_nothing_is_said_beside_it(desk, answer):
    asked = desk.ask("one")
    desk.draft(asked, "ours")
    desk.room.faults.on("post", forge("theirs", answer=answer))

    end = await until_done(desk)

    assert isinstance(end, Delivered)
    assert desk.said == ["theirs"]
    assert desk.state_of(asked[0]) is State.VERIFIED


@stepped
async def test_somebody_elses_message_under_the_same_nonce_is_not_ours(desk):
    asked = desk.ask("one")
    desk.draft(asked, "ours")
    desk.server.say(desk.ann, desk.cid, "a human's", nonce=f"nonce-{asked[0].id}-0")

    assert isinstance(await desk.deliver(), Delivered)
    assert desk.said == ["ours"]


# Killed anywhere.


def _kill_at(desk, count):
    """Let the process be gone at the `count`th act: a write of the journal, or a call of the room (before or after it)."""
    left = [count]

    def tick():
        if left[0] == 0:
            raise Killed
        left[0] -= 1

    def wrapped(method):
        def act(*arguments, **named):
            tick()
            result = method(*arguments, **named)
            tick()
            return result

        return act

    def wrapped_async(method):
        async def act(*arguments, **named):
            tick()
            result = await method(*arguments, **named)
            tick()
            return result

        return act

    turns, room = desk.store.turns, desk.room
    for one in ("sending", "posted", "read_back", "verified", "adopt", "turned_away"):
        setattr(turns, one, wrapped(getattr(turns, one)))
    for one in ("post", "find_by_nonce", "find"):
        setattr(room, one, wrapped_async(getattr(room, one)))
    return left


@pytest.mark.parametrize("count", range(32))
@stepped
async def test_killed_at_any_act_it_is_said_exactly_once(desk, count):
    """Law 7: nothing is lost, nothing is said twice. Three parts, ten acts each: before and after every one."""
    asked = desk.ask("one")
    desk.draft(asked, "part 1", "part 2", "part 3")
    left = _kill_at(desk, count)
    try:
        await desk.deliver()
    except Killed:
        assert left[0] == 0
        desk.restart()
        assert isinstance(await until_done(desk), Delivered)

    assert desk.said == ["part 1", "part 2", "part 3"]
    assert desk.state_of(asked[0]) is State.VERIFIED


@pytest.mark.parametrize("count", range(12))
@stepped
async def test_killed_while_another_text_is_adopted_no_trigger_is_lost(desk, count):
    asked = desk.ask("one", "two")
    desk.draft(asked, "ours")
    desk.forged(asked, "theirs", answers=(asked[0].id,))
    _kill_at(desk, count)
    try:
        await desk.deliver()
    except Killed:
        desk.restart()
        await until_done(desk)

    assert desk.said == ["theirs"]
    assert [desk.state_of(one) for one in asked] == [State.VERIFIED, State.SEEN]


@pytest.mark.parametrize("memory", FORGETFUL)
@pytest.mark.parametrize("count", range(14))
@stepped
async def test_on_a_room_that_may_forget_a_kill_never_says_it_twice(make_desk, memory, count):
    """Elsewhere: at most once, and a human is asked."""
    desk = make_desk(memory)
    desk.draft(desk.ask("one"), "the answer")
    _kill_at(desk, count)
    try:
        end = await desk.deliver()
    except Killed:
        desk.restart()
        end = await until_done(desk)

    assert len(desk.said) <= 1
    assert isinstance(end, Delivered) <= (desk.said == ["the answer"])
    assert isinstance(end, Delivered | InDoubt)


# Rooms that may forget.


@pytest.mark.parametrize("memory", FORGETFUL)
@stepped
async def test_a_room_that_may_forget_is_still_a_room(make_desk, memory):
    desk = make_desk(memory)
    desk.draft(desk.ask("one"), "part 1", "part 2")

    assert isinstance(await desk.deliver(), Delivered)
    assert desk.said == ["part 1", "part 2"]


@pytest.mark.parametrize("memory", FORGETFUL)
@pytest.mark.parametrize(
    "faults",
    [
        [drop_after()],
        [drop_before()],
        [drop_after(), drop_after()],
        [late_visibility(99)],
        [late_visibility(99, lost=False)],
    ],
    ids=["lost", "cut", "lost twice", "never shown, lost", "never shown"],
)
@stepped
async def test_what_may_have_been_sent_is_never_sent_again_there(make_desk, memory, faults):
    desk = make_desk(memory)
    desk.draft(desk.ask("one"), "the answer")
    desk.room.faults.on("post", *faults)

    end = await until_done(desk)

    assert len(desk.room.called("post")) == 1
    assert len(desk.said) <= 1
    assert isinstance(end, Delivered | InDoubt)


@pytest.mark.parametrize("memory", FORGETFUL)
@stepped
async def test_a_429_was_not_applied_so_it_is_sent_again_there_too(make_desk, memory):
    desk = make_desk(memory)
    desk.draft(desk.ask("one"), "the answer")
    desk.room.faults.on("post", rate_limited(1.0), rate_limited(1.0))

    assert isinstance(await until_done(desk), Delivered)
    assert desk.said == ["the answer"]


@stepped
async def test_a_429_behind_a_cut_changes_nothing_of_the_doubt(make_desk):
    desk = make_desk(NonceMemory.NONE)
    desk.draft(desk.ask("one"), "the answer")
    desk.room.faults.on("post", drop_after(), rate_limited(1.0))

    assert isinstance(await until_done(desk), InDoubt)
    assert desk.said == ["the answer"]


@stepped
async def test_the_journal_is_ahead_of_the_wire(desk):
    """`sending` is durable before the first byte leaves."""
    desk.draft(desk.ask("one"), "the answer")
    seen = []
    real = desk.room.post

    async def looks(cid, outgoing):
        other = look_at_store(desk.path)
        seen.append(other.turns.get("turn").state)
        other.close()
        return await real(cid, outgoing)

    desk.room.post = looks
    await desk.deliver()

    assert seen == [State.SENDING]
