"""A codec spoken through a launcher (docs/launcher.md)."""

import json
from datetime import UTC, datetime

import pytest

from adapters.codex import ADAPTER as CODEX
from sentinel.core.codec import Ended, EndedBy, ExitStatus, Sandbox, TurnRequest
from sentinel.core.launched import Launched
from sentinel.core.outcome import Answer, Failure, FailureClass

NOW = datetime(2026, 11, 30, tzinfo=UTC)
SECRET = "sk-very-secret-value"
ANSWERED = (
    b'{"type":"thread.started","thread_id":"01a22dc0-0000-7000-8000-000000000000"}\n'
    b'{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"done"}}\n'
    b'{"type":"turn.completed","usage":{"input_tokens":1,"cached_input_tokens":0,"output_tokens":1}}\n'
)


def codec(prompt="who broke it?\n"):
    inner = CODEX.codec(
        TurnRequest(
            binary="codex",
            model="gpt-5",
            cwd="/home/box/room",
            sandbox=Sandbox.READ_ONLY,
            network=False,
            prompt=prompt,
            triggers=(),
        )
    )
    return inner, Launched(
        inner,
        launcher="/opt/launcher",
        user="box",
        cwd="/home/box/room",
        env={"PATH": "/usr/bin", "KEY": SECRET},
        turn="turn-1",
        limit_s=60.0,
        litter=CODEX.litter,
    )


def outcome(code, by=EndedBy.ITSELF, *, stderr="", output=b""):
    _, launched = codec()
    launched.receive(output)
    return launched.outcome(ExitStatus(code, by), stderr=stderr, now=NOW)


def test_nothing_of_the_turn_stands_in_the_launchers_arguments_or_environment():
    _, launched = codec()

    assert launched.argv() == ("/opt/launcher", "--run")
    assert launched.env() == {}


def test_the_header_is_one_line_and_the_prompt_follows_as_it_is():
    inner, launched = codec("line one\nline two\x00 \u4f60\u597d")

    line, _, rest = launched.to_send().partition(b"\n")

    header = json.loads(line)
    assert header["argv"] == list(inner.argv())
    assert header["argv"][0] == "codex"
    assert header["env"]["KEY"] == SECRET
    assert (header["cwd"], header["user"], header["turn"]) == ("/home/box/room", "box", "turn-1")
    assert header["stop"] == [["SIGINT", 2.0], ["SIGTERM", 1.0], ["SIGKILL", 1.0]]
    assert header["litter"] == list(CODEX.litter)
    assert rest == inner.to_send()


def test_the_exec_line_names_who_runs_what_where_and_no_secret():
    inner, launched = codec()

    assert launched.meant() == ("[as box in /home/box/room]", *inner.argv())
    assert SECRET not in " ".join(launched.meant())


def test_ours_wait_longer_than_the_far_sides_own_steps():
    inner, launched = codec()

    assert [step.signal for step in launched.stop] == ["SIGTERM"]
    assert sum(step.wait_s for step in inner.stop) < launched.stop[0].wait_s < 10


def test_the_executors_own_events_decide():
    _, launched = codec()

    events = launched.receive(ANSWERED)

    assert isinstance(events[-1], Ended)
    said = launched.outcome(ExitStatus(None), stderr="", now=NOW)
    assert isinstance(said, Answer)
    assert said.text == "done"


@pytest.mark.parametrize(
    "output", [b"", ANSWERED.splitlines(keepends=True)[0]], ids=["before", "in-the-middle"]
)
@pytest.mark.parametrize(
    "stderr", ["", "Permission denied (publickey).", "401 unauthorized", "not logged in"]
)
def test_255_is_unreachable_whatever_is_said_beside_it(output, stderr):
    """What ssh complains of is not the executor's own error channel."""
    said = outcome(255, stderr=stderr, output=output)

    assert isinstance(said, Failure)
    assert said.kind is FailureClass.UNAVAILABLE


def test_255_is_an_outage_and_no_death():
    """Spec 02 section 2: ssh's own 255 is "unavailable", not death."""
    said = outcome(255, stderr="ssh: connect to host 127.0.0.1 port 22: Connection refused")

    assert isinstance(said, Failure)
    assert said.kind is FailureClass.UNAVAILABLE
    assert "Connection refused" in said.evidence


@pytest.mark.parametrize(
    ("by", "kind"),
    [
        (EndedBy.STOP, FailureClass.STOPPED),
        (EndedBy.TERM, FailureClass.INTERRUPTED),
        (EndedBy.TOTAL, FailureClass.TIMEOUT),
    ],
)
def test_255_of_a_turn_that_we_ended_is_what_we_made_it(by, kind):
    said = outcome(255, by)

    assert isinstance(said, Failure)
    assert said.kind is kind


@pytest.mark.parametrize(
    ("code", "kind", "words"),
    [
        (78, FailureClass.MISSING, ""),
        (127, FailureClass.MISSING, ""),
        (137, FailureClass.CRASH, "signal 9"),
        (254, FailureClass.CRASH, "exit 255"),
        (1, FailureClass.CRASH, "exit 1"),
    ],
)
def test_other_codes_are_the_executors_own(code, kind, words):
    said = outcome(code)

    assert isinstance(said, Failure)
    assert said.kind is kind
    assert words in said.evidence
