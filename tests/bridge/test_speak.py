"""Saying something outside a turn: same journal, same readback, once per nonce (spec 02 section 4; spec 09)."""

import pytest

from sentinel.bridge.speak import NotDelivered, NothingToSay, speak
from sentinel.core.errors import NotPermitted, UsageError
from sentinel.core.gate import Passed
from sentinel.daemon.postman import Postman
from sentinel.home.examine import examine
from tests.fakes.fake_clock import stepped
from tests.fakes.fake_room import drop_after, drop_before, reject
from tests.fakes.persona_homes import make_home


class Silent:
    def info(self, event, **fields): ...

    warning = error = info


@pytest.fixture
def persona(tmp_path):
    verdict = examine(make_home(tmp_path / "h", adapter="echo").path, guarded=None)
    assert isinstance(verdict, Passed)
    return verdict.persona


@pytest.fixture
def say(desk, persona):
    async def run(text, *, number=None, cid=None):
        postman = Postman(
            desk.deliverer,
            desk.store,
            account=desk.gode.uid,
            persona="gode",
            clock=desk.clock,
            log=Silent(),
            still_true=lambda _: True,
            on_failure=lambda *_: None,
            on_settled=lambda: None,
        )
        return await speak(
            desk.room,
            desk.store.turns,
            text,
            cid=cid or desk.cid,
            number=number,
            persona=persona,
            members=await desk.room.members(cid or desk.cid),
            secrets=("a-secret-value",),
            clock=desk.clock,
            deliver=postman.attempt,
        )

    return run


@stepped
async def test_it_is_said_with_its_mentions_and_answers_nothing(desk, say):
    said = await say("@ann the build is green")

    (message,) = desk.server.messages(desk.cid)
    assert said.message_ids == (message.id,)
    assert message.mentions == said.mentions == (desk.ann.uid,)
    assert message.answers == ()
    assert message.reply_to is None


@stepped
async def test_the_same_nonce_says_it_once_also_after_a_restart(desk, say):
    first = await say("hello", number="n-1")
    desk.restart()
    second = await say("hello", number="n-1")

    assert desk.said == ["hello"]
    assert second.message_ids == first.message_ids


@stepped
async def test_another_text_under_the_same_nonce_is_not_said_beside_it(desk, say):
    first = await say("hello", number="n-1")
    second = await say("@ann something else", number="n-1")

    assert desk.said == ["hello"]
    assert second.message_ids == first.message_ids
    assert second.mentions == ()


@stepped
async def test_the_same_nonce_in_another_room_is_another_text(desk, say):
    other = desk.server.conversation("other", desk.ann, desk.gode)
    await say("hello", number="n-1")
    await say("hello", number="n-1", cid=other)

    assert [one.text for one in desk.server.messages(other)] == ["hello"]


@pytest.mark.parametrize("fault", [drop_after(), drop_before()], ids=["after", "before"])
@stepped
async def test_what_was_not_read_back_is_kept_and_the_nonce_tries_again(desk, say, fault):
    desk.room.faults.on("post", fault)
    desk.room.faults.on("find_by_nonce", drop_before())

    with pytest.raises(NotDelivered, match="--nonce n-1") as told:
        await say("hello", number="n-1")
    assert told.value.exit_code == 66
    assert (await say("hello", number="n-1")).message_ids
    assert desk.said == ["hello"]


@stepped
async def test_a_refused_text_is_over_and_is_not_called_said_later(desk, say):
    """It must neither come out of the journal one day, nor count as delivered when it is asked for again."""
    desk.room.faults.on("post", reject(403))
    with pytest.raises(NotDelivered, match="refused"):
        await say("hello", number="n-1")

    with pytest.raises(NotDelivered, match="rejected"):
        await say("hello", number="n-1")
    assert desk.said == []
    assert desk.store.turns.deliveries() == ()


@pytest.mark.parametrize("text", ["", "  \n\t ", "\u200b\u2060"])
@stepped
async def test_a_blank_text_is_65_and_nothing_is_drafted(desk, say, text):
    with pytest.raises(NothingToSay) as told:
        await say(text)
    assert told.value.exit_code == 65
    assert desk.store.turns.deliveries() == ()


@stepped
async def test_a_secret_is_not_said(desk, say):
    with pytest.raises(NotPermitted) as told:
        await say("it is a-secret-value")
    assert told.value.exit_code == 77
    assert "a-secret-value" not in str(told.value)
    assert desk.said == []


@stepped
async def test_a_text_for_more_posts_than_a_room_can_bear_is_refused_before_anything_is_sent(desk, say):
    with pytest.raises(UsageError, match="too long"):
        await say("word " * 60_000)
    assert desk.said == []


@stepped
async def test_a_long_text_is_several_posts_and_the_last_one_calls(desk, say):
    said = await say("word " * 6_000 + "@ann")

    messages = desk.server.messages(desk.cid)
    assert len(messages) == len(said.message_ids) == 2
    assert [one.mentions for one in messages] == [(), (desk.ann.uid,)]
