"""Law 10: every action leaves a receipt, refusals too. Every decision is a line of the log, a row of the journal, or both."""

import json
import logging

import pytest

from sentinel.app.logs import open_log
from sentinel.core.model import Kind
from sentinel.core.outcome import Answer, Failure, FailureClass
from tests.fakes.fake_clock import pass_time, stepped, until
from tests.fakes.fake_room import drop_after, reject
from tests.fakes.stage import Stage, never_adopt


@pytest.fixture
def stage(tmp_path, monkeypatch):
    never_adopt(monkeypatch)
    made = Stage(tmp_path)
    made.log.lines = _Written(made.home.path)
    yield made
    for handler in logging.getLogger("hoop-sentinel.gode").handlers:
        handler.close()


class _Written(list):
    """The log as it is written to the disk too."""

    def __init__(self, home):
        super().__init__()
        self._log, self.path = open_log(home, name="gode"), home / "log" / "sentinel.jsonl"

    def append(self, line):
        event, fields = line
        self._log.info(event, **fields)
        super().append(line)

    @property
    def on_disk(self):
        return [json.loads(one) for one in self.path.read_text().splitlines()]


@stepped
async def test_a_turn_can_be_followed_line_by_line(stage):
    async with stage.running():
        question = stage.ask("hello")
        await stage.until_answered(question)

    events = [one["event"] for one in stage.log.lines.on_disk]
    assert [one for one in events if one in {"wakes", "verified"}] == ["wakes", "verified"]
    assert stage.log.of("wakes") == [{"cid": stage.cid, "message": question.id}]
    assert stage.log.of("verified")[0]["messages"] == [stage.own[0].id]


@stepped
async def test_what_does_not_wake_leaves_its_reason(stage):
    robo = stage.server.account("Robo", Kind.PERSONA)
    async with stage.running():
        stage.server.join(stage.cid, robo)
        await pass_time(1)
        said = stage.say(robo, "you there")
        await pass_time(1)

        assert {"cid": stage.cid, "message": said.id, "reason": "persona-not-allowed"} in stage.log.of(
            "does not wake"
        )
        assert stage.store.inbox.why(said.id).reason == "persona-not-allowed"


RECEIPTS = {
    "a failed turn": ([Failure(FailureClass.CRASH, "it fell")], None, "turn failed", "crash"),
    "a death": ([Failure(FailureClass.AUTH, "401")], None, "dead", "auth"),
    "a leak": ([Answer("SECRET")], None, "turn failed", "leak"),
    "a postponed delivery": ([], drop_after(), "delivery postponed", None),
    "a refusal of the room": ([], reject(422), "rejected by the room", None),
}


@pytest.mark.parametrize(("script", "fault", "event", "word"), RECEIPTS.values(), ids=RECEIPTS)
@stepped
async def test_each_refusal_and_failure_is_a_line(stage, script, fault, event, word):
    secret = (stage.home.path / "token").read_text().strip()
    stage.script = [Answer(secret) if isinstance(one, Answer) else one for one in script]
    async with stage.running():
        await pass_time(1)
        if fault is not None:
            stage.room.faults.on("post", fault)
            stage.room.faults.on("find_by_nonce", reject(403))
        stage.ask()
        await until(lambda: stage.log.of(event))

    assert word is None or word in json.dumps(stage.log.of(event))
    assert secret not in stage.log.lines.path.read_text()


@stepped
async def test_a_refused_gate_is_its_own_line(stage):
    async with stage.running():
        await pass_time(1)
        stage.home.remove("model")
        stage.ask()
        await until(lambda: stage.condition.refused_since)

    assert any(event.startswith("gate: model: ") for event, _ in stage.log.lines)


@stepped
async def test_commands_and_notices_are_lines(stage):
    async with stage.running():
        said = stage.ask("/status")
        await until(lambda: stage.notices)

    assert stage.log.of("obeys") == [{"cid": stage.cid, "message": said.id, "command": "status"}]
    assert stage.log.of("notice")[0]["key"] == f"command:{said.id}"


@stepped
async def test_the_log_holds_no_message_and_is_private(stage):
    async with stage.running():
        await stage.until_answered(stage.ask("a very private question"))

    written = stage.log.lines.path.read_text()
    assert "very private" not in written
    assert "answer 1" not in written
    assert stage.log.lines.path.parent.stat().st_mode & 0o777 == 0o700
