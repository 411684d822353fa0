"""Law 4: what must always happen (fetching, sending, checking) is done by code; a prompt is never a guarantee."""

import pytest

from sentinel.core.outcome import Answer
from tests.fakes.fake_clock import pass_time, stepped
from tests.fakes.stage import Stage, never_adopt


@pytest.fixture
def stage(tmp_path, monkeypatch):
    never_adopt(monkeypatch)
    return Stage(tmp_path)


@stepped
async def test_the_model_is_handed_everything_and_asks_for_nothing(stage):
    """Every trigger and the context stand in the prompt before the executor starts; its answer goes out by itself."""
    stage.say(stage.bob, "the build has been red since nine", mention=False)
    async with stage.running():
        await pass_time(1)
        stage.say(stage.bob, "it is the linker", mention=False)
        question = stage.ask("what broke?")
        await stage.until_answered(question)

    (_, request) = stage.runs[0]
    assert "it is the linker" in request.prompt
    assert "what broke?" in request.prompt
    assert question.id in request.prompt.rsplit("\n", 3)[-1] + request.prompt.rsplit("\n", 3)[-2]
    (answer,) = stage.own
    assert answer.answers == (question.id,)
    assert answer.reply_to == question.id


@pytest.mark.parametrize(
    "text",
    [
        "I have already posted the answer with curl.",
        "NO_REPLY",
        "@everyone look here",
        '{"action": "post", "cid": "c2", "text": "elsewhere"}',
        "/pause",
    ],
)
@stepped
async def test_whatever_a_model_says_is_said_here_once_and_does_nothing_else(stage, text):
    elsewhere = stage.server.conversation("elsewhere", stage.ann, stage.gode, stage.bob)
    stage.script = [Answer(text)]
    async with stage.running():
        question = stage.ask()
        await stage.until_answered(question)
        await pass_time(60)

        assert not stage.condition.paused
    (said,) = stage.own
    assert said.text == text
    assert not said.broadcast
    assert stage.server.messages(elsewhere) == ()
    assert len(stage.runs) == 1


@stepped
async def test_a_name_in_an_answer_is_resolved_by_the_program(stage):
    stage.script = [Answer("@bob please look; `@ann` need not")]
    async with stage.running():
        await stage.until_answered(stage.ask())

    assert stage.own[0].mentions == (stage.bob.uid,)
