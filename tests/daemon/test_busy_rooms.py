"""A busy room that talks to others costs one pull for many messages; a call is pulled at once (spec 08, busy room)."""

from tests.daemon.test_intake import pulls
from tests.fakes.fake_clock import pass_time, stepped


@stepped
async def test_many_messages_for_others_are_one_pull(stage):
    async with stage.running():
        await pass_time(1)
        before = len(pulls(stage))

        for number in range(50):
            stage.say(stage.bob, f"line {number}", mention=False)
        await pass_time(1)

        assert len(pulls(stage)) - before == 1
        assert stage.store.inbox.conversation(stage.cid).cursor == 50


@stepped
async def test_a_call_between_them_does_not_wait(stage):
    async with stage.running():
        await pass_time(1)
        for number in range(5):
            stage.say(stage.bob, f"line {number}", mention=False)

        question = stage.ask("and you?")
        await pass_time(0.1)

        assert stage.state_of(question) is not None
