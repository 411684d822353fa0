"""What is particular to codex: its argv, its walls, its thread, its totals."""

import itertools
import json
from datetime import UTC, datetime

import pytest
from executor_runs import NOW, load, outcome_of, request

from adapters import codex
from adapters.codex import WALLS
from sentinel.core.codec import ExitStatus, Sandbox
from sentinel.core.outcome import Counter, Failure, FailureClass

THREAD = "01a22dc3-436c-7541-9919-e2915120d4f4"
ITSELF = ExitStatus(0)


def said(message):
    """Return the outcome of a turn that failed with `message`."""
    codec = codex.ADAPTER.codec(request())
    codec.receive(json.dumps({"type": "turn.failed", "error": {"message": message}}).encode() + b"\n")
    return codec.outcome(ExitStatus(1), stderr="", now=NOW)


def test_the_walls_are_exactly_the_pairs_that_codex_enforces():
    assert set(WALLS) == {
        (Sandbox.READ_ONLY, False),
        (Sandbox.WORKSPACE_WRITE, False),
        (Sandbox.WORKSPACE_WRITE, True),
        (Sandbox.DANGER_FULL_ACCESS, True),
    }


@pytest.mark.parametrize(("wall", "resume"), list(itertools.product(WALLS, [None, THREAD])))
def test_walls_cwd_and_model_stand_on_every_turn_before_resume(wall, resume):
    argv = codex.ADAPTER.codec(request(sandbox=wall[0], network=wall[1], resume=resume)).argv()

    before = argv[: argv.index("resume")] if resume else argv
    assert argv[:4] == ("/opt/executor", "exec", "--json", "--skip-git-repo-check")
    assert before[before.index("-s") + 1] == wall[0].value
    assert before[before.index("-C") + 1] == "/srv/persona/ann/ws"
    assert before[before.index("-m") + 1] == "mock-model"
    assert argv[-1] == "-"
    assert (argv[-3:-1] == ("resume", THREAD)) is bool(resume)


@pytest.mark.parametrize("wall", WALLS)
def test_hosted_search_is_off_exactly_when_the_network_is(wall):
    argv = codex.ADAPTER.codec(request(sandbox=wall[0], network=wall[1])).argv()

    assert ('web_search="disabled"' in argv) is not wall[1]


@pytest.mark.parametrize("wall", WALLS)
def test_the_outbox_is_opened_to_the_one_sandbox_that_would_refuse_it(wall):
    outbox = "/srv/persona/gode/turns/t/outbox"
    argv = codex.ADAPTER.codec(request(sandbox=wall[0], network=wall[1], outbox=outbox)).argv()

    opened = f'sandbox_workspace_write.writable_roots=["{outbox}"]' in argv
    assert opened == (wall[0] is Sandbox.WORKSPACE_WRITE)


@pytest.mark.parametrize("wall", [wall for wall in WALLS if wall[0] is Sandbox.WORKSPACE_WRITE])
def test_workspace_write_does_not_write_to_tmp(wall):
    assert "sandbox_workspace_write.exclude_slash_tmp=true" in WALLS[wall]
    assert f"sandbox_workspace_write.network_access={str(wall[1]).lower()}" in WALLS[wall]


def test_the_prompt_goes_to_standard_input_only():
    codec = codex.ADAPTER.codec(request(prompt="a secret question 你好"))

    assert codec.to_send() == "a secret question 你好".encode()
    assert not any("secret" in one for one in codec.argv())


def test_tools_get_no_keys_and_retries_of_a_refused_connection_end():
    argv = codex.ADAPTER.codec(request()).argv()

    (seen,) = [one for one in argv if one.startswith("shell_environment_policy.include_only=")]
    assert '"HOOP_TURN"' in seen
    assert not any(word in seen for word in ("KEY", "CODEX", '"*"'))
    assert "features.unbounded_connection_retries=false" in argv
    assert "features.plugins=false" in argv


def test_another_thread_than_the_one_asked_for_is_lost_even_with_an_answer():
    events, outcome = outcome_of(load("codex", "resume_bad_name"))

    assert outcome.kind is FailureClass.THREAD_LOST
    assert len([event for event in events if type(event).__name__ == "ThreadStarted"]) == 0


def test_a_resumed_turn_that_names_no_thread_is_lost():
    codec = codex.ADAPTER.codec(request(resume=THREAD))
    codec.receive(
        b'{"type":"item.completed","item":{"type":"agent_message","text":"hi"}}\n{"type":"turn.completed"}\n'
    )

    assert codec.outcome(ITSELF, stderr="", now=NOW).kind is FailureClass.THREAD_LOST


def test_the_answer_is_the_last_message_not_a_commentary():
    _, outcome = outcome_of(load("codex", "two_messages"))

    assert outcome.text == "this is the final answer"


def test_a_text_without_turn_completed_is_no_answer():
    _, outcome = outcome_of(load("codex", "incomplete"))

    assert outcome == Failure(
        FailureClass.TRUNCATED,
        "Incomplete response returned, reason: max_output_tokens",
        thread="01a22dc0-466b-7243-9b60-58af1033595a",
    )


def test_usage_is_the_threads_running_total():
    _, outcome = outcome_of(load("codex", "tool_echo_danger"))

    assert outcome.usage is None
    assert outcome.total == Counter(input_tokens=240, cached_tokens=40, output_tokens=60, reasoning_tokens=10)


@pytest.mark.parametrize("text", ["", "  \n", "\u200b\ufeff", "\x00\x1b", "\u3164 \u2060"])
def test_a_text_that_nobody_would_see_is_empty(text):
    codec = codex.ADAPTER.codec(request())
    item = {"type": "item.completed", "item": {"type": "agent_message", "text": text}}
    codec.receive(json.dumps(item).encode() + b'\n{"type":"turn.completed"}\n')

    assert codec.outcome(ITSELF, stderr="", now=NOW).kind is FailureClass.EMPTY


def test_a_told_date_makes_the_reset_of_a_quota():
    _, outcome = outcome_of(load("codex", "http_429_usage_limit"))

    assert outcome.kind is FailureClass.QUOTA
    assert outcome.retry_at == datetime(2030, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("rate limit exceeded: try again in 1.5s", FailureClass.RATE),
        ("rate limit exceeded: try again in 14 minutes", FailureClass.RATE),
        ("rate limit exceeded: try again in 16 minutes", FailureClass.QUOTA),
        ("You've hit your usage limit. Try again later.", FailureClass.QUOTA),
        ('{"detail":"The \'x\' model is not supported when using Codex"}', FailureClass.CONFIG),
        ('{"error":{"message":"some field is wrong"}}', FailureClass.INPUT_REJECTED),
        ("something nobody has seen before", FailureClass.CRASH),
        ("", FailureClass.CRASH),
    ],
)
def test_failures_by_their_text(message, kind):
    assert said(message).kind is kind


def test_a_recovered_error_is_not_the_trouble_of_a_later_timeout():
    codec = codex.ADAPTER.codec(request())
    codec.receive(b'{"type":"error","message":"Reconnecting... (unexpected status 401 Unauthorized)"}\n')
    codec.receive(b'{"type":"item.started","item":{"id":"i","type":"command_execution"}}\n')

    outcome = codec.outcome(load("codex", "hang_headers_idle_3s").status, stderr="", now=NOW)

    assert outcome.kind is FailureClass.TIMEOUT


def test_what_a_tool_printed_is_never_read_as_an_error():
    codec = codex.ADAPTER.codec(request())
    item = {"id": "i", "type": "command_execution", "aggregated_output": "401 unauthorized, quota exceeded"}
    codec.receive(json.dumps({"type": "item.completed", "item": item}).encode() + b"\n")

    assert codec.outcome(ExitStatus(1), stderr="", now=NOW).kind is FailureClass.CRASH
