"""Law 3: a turn succeeded when a sentence for a human was produced *and* was read back from the server."""

import pytest

from adapters.claude import ADAPTER as CLAUDE
from adapters.codex import ADAPTER as CODEX
from adapters.echo import ADAPTER as ECHO
from sentinel.core.codec import ExitStatus, Sandbox, TurnRequest
from sentinel.core.journal import TRANSITIONS, State, Step
from sentinel.core.outcome import Answer, Failure, FailureClass
from tests.fakes.fake_clock import START, stepped, until
from tests.fakes.fake_room import forge, reject
from tests.fakes.stage import Stage, never_adopt

LIES = {
    "nothing at all": b"",
    "not a word of protocol": b"All good!\n",
    "an empty answer": b'{"type":"item.completed","item":{"type":"agent_message","text":" \\u200b\\n"}}\n'
    b'{"type":"turn.completed","usage":{}}\n{"type":"result","subtype":"success","is_error":false,"result":" "}\n',
    "a failure in the words of success": b'{"type":"turn.failed","error":{"message":"no"}}\n'
    b'{"type":"result","subtype":"success","is_error":true,"result":"all good"}\n',
}


@pytest.mark.parametrize("adapter", [CODEX, CLAUDE, ECHO], ids=["codex", "claude", "echo"])
@pytest.mark.parametrize("output", LIES.values(), ids=LIES)
def test_exit_0_without_an_answer_is_a_failure(adapter, output):
    request = TurnRequest("/bin/x", "m", "/", Sandbox.READ_ONLY, False, "a prompt", ())
    codec = adapter.codec(request)
    codec.receive(output)

    outcome = codec.outcome(ExitStatus(0), stderr="", now=START)

    assert isinstance(outcome, Failure)


def test_only_a_readback_verifies():
    assert {pair for pair, to in TRANSITIONS.items() if to is State.VERIFIED} == {
        (State.POSTED, Step.READ_BACK)
    }


@pytest.fixture
def stage(tmp_path, monkeypatch):
    never_adopt(monkeypatch)
    return Stage(tmp_path)


@stepped
async def test_a_post_that_the_server_named_is_not_yet_an_answer(stage):
    async with stage.running():
        stage.room.faults.always("find_by_nonce", reject(403))
        question = stage.ask()
        await until(lambda: stage.own)
        await until(lambda: stage.log.of("delivery postponed"))

        assert stage.state_of(question) == "running"
        stage.room.faults.clear("find_by_nonce")
        await stage.until_answered(question)
    assert len(stage.answers) == 1


@stepped
async def test_what_is_read_back_counts_and_not_what_the_post_was_told(stage):
    """The server confirms a post, and holds another text under its nonce."""
    stage.script = [Answer("ours")]
    async with stage.running():
        stage.room.faults.on("post", forge("theirs", answer="stored"))
        question = stage.ask()
        await stage.until_answered(question)

    assert stage.answers == ["theirs"]


@stepped
async def test_a_turn_without_a_sentence_is_never_a_success(stage):
    stage.script = [Failure(FailureClass.EMPTY, "exit 0, and nothing said")]
    async with stage.running():
        question = stage.ask()
        await until(lambda: stage.trigger(question) and stage.trigger(question).failures == 1)

        assert stage.own == []
