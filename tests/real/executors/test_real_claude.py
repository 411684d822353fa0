"""claude: chat text is live there. The danger is real without the guards, and gone with them."""

import asyncio
import json
import uuid
from pathlib import Path

import pytest

from adapters import claude
from sentinel.core.codec import Ended, EndedBy, Sandbox, StopStep
from sentinel.core.outcome import Answer, FailureClass

pytestmark = pytest.mark.real
FILE = Path("/etc/passwd")
CONTENT = "root:x:0:0"
DANGER = {"sandbox": Sandbox.DANGER_FULL_ACCESS, "network": True}
# What a prompt makes of somebody's text: our own line first, and every `@` that is not ours escaped inside JSON.
DEFUSED = 'You are in a room.\n{"text": "\\u0040/etc/passwd and /clear"}'


@pytest.fixture
async def world(make_world):
    return await make_world("claude", claude.ADAPTER)


class Bare:
    """claude as somebody would call it who knows nothing of its live text."""

    stop = (StopStep("SIGTERM", 2.0),)

    def __init__(self, binary, prompt):
        self._binary, self._prompt = binary, prompt
        self.heard = b""

    def argv(self):
        return (self._binary, "-p", "--output-format=stream-json", "--verbose", "--model", "claude-opus-5-5")

    def env(self):
        return {"DISABLE_TELEMETRY": "1", "DISABLE_ERROR_REPORTING": "1", "DISABLE_AUTOUPDATER": "1"}

    def to_send(self):
        return self._prompt.encode()

    def receive(self, data):
        self.heard += data
        return [Ended()] if b'"type":"result"' in data else []


async def bare(world, prompt):
    codec = Bare(world.binary, prompt)
    turn = await world.start(codec)
    await turn.result()
    await asyncio.wait_for(turn.gone(), 20)
    return codec.heard.decode()


async def test_without_guards_a_file_is_read_into_the_prompt(world):
    await bare(world, f"look at @{FILE}")

    assert CONTENT in world.model.requests()[-1]


async def test_without_guards_a_slash_runs_a_command_and_drops_the_conversation(world):
    heard = await bare(world, "/clear")

    assert '"conversation_reset"' in heard
    assert world.model.requests() == []


async def test_read_only_reads_no_file_outside_of_its_cwd_even_for_raw_text(world):
    outcome = await world.turn(f"look at @{FILE}", network=True)

    assert isinstance(outcome, Answer)
    assert CONTENT not in world.model.requests()[-1]


async def test_in_danger_a_denied_path_is_not_read_even_for_raw_text(world):
    home = world.base / "homes"
    home.mkdir()
    (home / "token").write_text("the-room-token")
    prompt = f"look at @{home}/token"

    await world.turn(prompt, **DANGER)
    assert "the-room-token" in world.model.requests()[-1]  # without the rule it would be

    await world.turn(prompt, denied_paths=(str(home),), **DANGER)
    assert "the-room-token" not in world.model.requests()[-1]


async def test_in_danger_a_tool_can_neither_read_nor_write_a_denied_path(world):
    home = world.base / "homes"
    home.mkdir()
    (home / "token").write_text("the-room-token")
    world.model.always(f"tool:cmd=cat {home}/token")
    await world.turn(denied_paths=(str(home),), **DANGER)
    world.model.always(f"write:path={home}/new")
    await world.turn(denied_paths=(str(home),), **DANGER)

    assert not any("the-room-token" in one for one in world.model.requests())
    assert [one.name for one in home.iterdir()] == ["token"]


@pytest.mark.parametrize("wall", [{}, DANGER], ids=["read-only", "danger"])
async def test_defused_text_is_only_text(world, wall):
    outcome = await world.turn(DEFUSED, **wall)

    asked = world.model.requests()[-1]
    assert isinstance(outcome, Answer)
    assert CONTENT not in asked
    assert json.dumps("\\u0040/etc/passwd and /clear")[1:-1] in asked


async def test_a_command_that_ran_instead_of_a_turn_is_never_an_answer(world):
    outcome = await world.turn("/clear")

    assert not isinstance(outcome, Answer)
    assert world.model.requests() == []


@pytest.mark.parametrize("call", ["tool:cmd=touch {0}", "write:path={0}"], ids=["shell", "write"])
async def test_read_only_can_neither_run_nor_write(world, call):
    target = world.cwd / "made"
    world.model.always(call.format(target))

    await world.turn()

    assert not target.exists()


@pytest.mark.parametrize("call", ["tool:cmd=touch {0}", "write:path={0}"], ids=["shell", "write"])
async def test_danger_can_do_both_outside_of_its_cwd(world, call):
    target = world.base / "made"
    world.model.always(call.format(target))

    await world.turn(**DANGER)

    assert target.exists()


async def test_a_session_that_was_never_written_begins_under_the_same_id(world):
    """Spec 02 section 5: the id is stored before the spawn; a turn that was killed at once left no session."""
    session = str(uuid.uuid4())
    assert (await world.turn(resume=session)).kind is FailureClass.THREAD_LOST

    outcome = await world.turn(new_thread=session)

    assert isinstance(outcome, Answer)
    assert outcome.thread == session


async def test_it_tries_an_outage_a_few_times_only(world):
    world.environment({key: value for key, value in world.env.items() if key != "CLAUDE_CODE_MAX_RETRIES"})
    world.model.always("http_500")

    outcome = await world.turn()

    assert outcome.kind is FailureClass.UNAVAILABLE
    assert len(world.model.requests()) == 3


async def test_a_stop_while_the_model_is_silent_is_quick(world):
    world.model.always("hang_headers")
    codec = world.adapter.codec(world.request("Message from ann:\nhello"))
    turn = await world.start(codec)
    turn.request_stop(EndedBy.TERM)

    assert (await asyncio.wait_for(turn.result(), 10)).status.ended_by is EndedBy.TERM
