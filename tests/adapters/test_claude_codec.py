"""What is particular to claude: its argv, its walls, its session, and the texts that are not the model's."""

import itertools
import json
from datetime import UTC, datetime

import pytest
from executor_runs import NOW, load, outcome_of, request

from adapters import claude
from adapters.claude import WALLS
from sentinel.core.codec import ExitStatus, Sandbox
from sentinel.core.outcome import Answer, Counter, FailureClass, Usage

SESSION = "aaaaaaaa-0000-4000-8000-000000000001"
OTHER = "bbbbbbbb-0000-4000-8000-000000000002"


def option(argv, name):
    return next(one.removeprefix(f"{name}=") for one in argv if one.startswith(f"{name}="))


def turn(*events):
    """Return the outcome of a turn with these events after init."""
    codec = claude.ADAPTER.codec(request(new_thread=SESSION))
    lines = [{"type": "system", "subtype": "init", "session_id": SESSION}, *events]
    codec.receive(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    return codec.outcome(ExitStatus(0), stderr="", now=NOW)


def model(text, message="m1"):
    content = [{"type": "text", "text": text}]
    return {"type": "assistant", "message": {"id": message, "model": "mock-model", "content": content}}


def tool_result():
    return {
        "type": "user",
        "message": {"content": [{"type": "tool_result", "tool_use_id": "t", "content": "x"}]},
    }


def result(text, *, is_error=False, **more):
    return {"type": "result", "subtype": "success", "is_error": is_error, "result": text, **more}


def test_the_walls_are_exactly_the_pairs_that_claude_enforces():
    assert set(WALLS) == {
        (Sandbox.READ_ONLY, False),
        (Sandbox.READ_ONLY, True),
        (Sandbox.DANGER_FULL_ACCESS, True),
    }


@pytest.mark.parametrize("network", [False, True])
def test_read_only_offers_no_shell_and_no_writing_and_the_web_only_with_network(network):
    argv = claude.ADAPTER.codec(request(network=network)).argv()

    tools = option(argv, "--tools").split(",")
    assert not {"Bash", "Edit", "Write", "NotebookEdit"} & set(tools)
    assert ({"WebFetch", "WebSearch"} <= set(tools)) is network
    assert "--restricted" in argv


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({}, ("--session-id", SESSION), id="new"),
        pytest.param({"resume": OTHER}, ("--resume", OTHER), id="resume"),
    ],
)
def test_we_choose_the_session(changes, expected):
    argv = claude.ADAPTER.codec(request(new_thread=SESSION, **changes)).argv()

    assert expected in list(itertools.pairwise(argv))
    assert len([one for one in argv if one in ("--session-id", "--resume")]) == 1


@pytest.mark.parametrize("wall", WALLS)
def test_no_settings_commands_or_servers_of_others_and_the_model_each_time(wall):
    argv = claude.ADAPTER.codec(request(sandbox=wall[0], network=wall[1])).argv()

    assert {"--setting-sources=", "--disable-slash-commands", "--strict-mcp-config", "--verbose"} <= set(argv)
    assert argv[argv.index("--model") + 1] == "mock-model"
    assert option(argv, "--permission-mode") == "dontAsk"


@pytest.mark.parametrize("wall", WALLS)
def test_denied_paths_can_neither_be_read_nor_written(wall):
    asked = request(sandbox=wall[0], network=wall[1], denied_paths=("/srv/homes", "/srv/a*[b]/"))
    argv = claude.ADAPTER.codec(asked).argv()

    deny = json.loads(argv[argv.index("--settings") + 1])["permissions"]["deny"]
    assert {"Read(//srv/homes)", "Read(//srv/homes/**)", "Edit(//srv/homes)", "Edit(//srv/homes/**)"} <= set(
        deny
    )
    assert "Read(//srv/a\\*\\[b\\]/**)" in deny


def test_telemetry_is_off_and_retries_are_bounded():
    env = claude.ADAPTER.codec(request()).env()

    assert env["DISABLE_TELEMETRY"] == env["DISABLE_ERROR_REPORTING"] == env["DISABLE_AUTOUPDATER"] == "1"
    assert env["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"] == "1"
    assert int(env["CLAUDE_CODE_MAX_RETRIES"]) <= 2
    assert int(env["API_TIMEOUT_MS"]) > 0


def test_all_blocks_of_the_last_message_make_the_answer():
    _, outcome = outcome_of(load("claude", "two_blocks"))

    assert outcome.text == "first block. second block."


def test_an_empty_final_text_falls_back_to_the_last_text_after_the_last_tool_result():
    outcome = turn(model("before"), tool_result(), model("the answer", "m2"), model("", "m3"), result(""))

    assert isinstance(outcome, Answer)
    assert outcome.text == "the answer"


def test_it_never_falls_back_to_a_text_before_a_tool_result():
    assert turn(model("before"), tool_result(), result("")).kind is FailureClass.EMPTY


@pytest.mark.parametrize("text", ["", " \u200b\n"])
def test_nothing_to_see_is_empty(text):
    assert turn(model(text), result(text)).kind is FailureClass.EMPTY


def test_a_text_of_the_program_is_never_an_answer():
    synthetic = {
        "type": "assistant",
        "message": {"model": "<synthetic>", "content": [{"type": "text", "text": "Set"}]},
    }

    assert turn(synthetic, result("Set model to x")).kind is FailureClass.BUG


def test_is_error_beats_subtype_success_and_a_model_text():
    outcome = turn(
        model("half an answer"), result("API Error: 500 oops", is_error=True, api_error_status=500)
    )

    assert outcome.kind is FailureClass.UNAVAILABLE


def test_a_result_that_does_not_say_is_error_is_no_answer():
    event = {"type": "result", "subtype": "success", "result": "hello"}

    assert not isinstance(turn(model("hello"), event), Answer)


def test_another_session_than_ours_is_lost():
    codec = claude.ADAPTER.codec(request(new_thread=SESSION))
    codec.receive(b'{"type":"system","subtype":"init","session_id":"%s"}\n' % OTHER.encode())

    assert codec.outcome(ExitStatus(0), stderr="", now=NOW).kind is FailureClass.THREAD_LOST


def test_a_sub_agents_text_is_not_the_answer():
    inner = {**model("inner", "m9"), "parent_tool_use_id": "t"}

    assert turn(model("outer"), inner, result("")).text == "outer"


@pytest.mark.parametrize("status", ["allowed", "allowed_warning"])
def test_a_rate_limit_event_that_allows_is_no_wall(status):
    event = {"type": "rate_limit_event", "rate_limit_info": {"status": status, "resetsAt": 1893456000}}

    assert isinstance(turn(event, model("hi"), result("hi")), Answer)


def test_a_rejected_rate_limit_event_gives_the_reset():
    event = {"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "resetsAt": 1893456000}}
    synthetic = {
        "type": "assistant",
        "error": "rate_limit",
        "message": {"model": "<synthetic>", "content": []},
    }

    outcome = turn(
        event, synthetic, result("API Error: Request rejected (429)", is_error=True, api_error_status=429)
    )

    assert outcome.kind is FailureClass.QUOTA
    assert outcome.retry_at == datetime(2030, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("delay_ms", "kind"),
    [(60_000, FailureClass.RATE), (3_600_000, FailureClass.QUOTA)],
    ids=["short", "long"],
)
def test_a_long_told_wait_is_a_quota(delay_ms, kind):
    retry = {"type": "system", "subtype": "api_retry", "error": "rate_limit", "retry_delay_ms": delay_ms}
    synthetic = {
        "type": "assistant",
        "error": "rate_limit",
        "message": {"model": "<synthetic>", "content": []},
    }

    outcome = turn(
        retry, synthetic, result("API Error: Request rejected (429)", is_error=True, api_error_status=429)
    )

    assert outcome.kind is kind
    assert (outcome.retry_at - NOW).total_seconds() == delay_ms / 1000


def test_usage_is_per_turn_and_the_total_is_the_sessions():
    _, outcome = outcome_of(load("claude", "resume_by_id"))

    assert outcome.usage == Usage(input_tokens=150, cached_tokens=20, output_tokens=30)
    assert outcome.total == Counter(input_tokens=300, cached_tokens=40, output_tokens=60, cost_usd=0.002268)


def test_a_tool_call_that_is_open_at_a_retry_timeout_names_the_outage():
    codec = claude.ADAPTER.codec(request(new_thread=SESSION))
    codec.receive(
        b'{"type":"system","subtype":"init","session_id":"%s"}\n'
        b'{"type":"system","subtype":"api_retry","error":"server_error","error_status":529,"retry_delay_ms":500}\n'
        % SESSION.encode()
    )

    outcome = codec.outcome(load("codex", "hang_headers_idle_3s").status, stderr="", now=NOW)

    assert outcome.kind is FailureClass.UNAVAILABLE
