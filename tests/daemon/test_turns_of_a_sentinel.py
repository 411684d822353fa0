"""From a mention to an answer that was read back, in one sentinel on a stepped clock."""

from tests.fakes.fake_clock import stepped


@stepped
async def test_a_mention_is_answered_once(stage):
    async with stage.running():
        question = stage.ask("hello")
        await stage.until_answered(question)

    assert stage.answers == ["answer 1"]
    assert len(stage.runs) == 1
