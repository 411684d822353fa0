"""Every captured run of a real executor is judged as its documented outcome says."""

import itertools

import pytest
from executor_runs import NOW, all_runs, codec_of, load, names, outcome_of
from expected_outcomes import EXPECTED
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sentinel.core.codec import Ended, EndedBy, ExitStatus, Progress, ThreadStarted, Unknown
from sentinel.core.evidence import EVIDENCE_CHARS
from sentinel.core.outcome import Answer, Failure, FailureClass

GROUPS = ("codex", "codex-0.147.0", "claude")
RUNS = all_runs(*GROUPS)
BY_ID = {run.id: run for run in RUNS}


@pytest.mark.parametrize("group", GROUPS)
def test_the_table_holds_every_captured_run(group):
    assert sorted(EXPECTED[group]) == names(group)


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.id)
def test_each_run_is_judged_as_documented(run):
    events, outcome = outcome_of(run)

    word = "ok" if isinstance(outcome, Answer) else outcome.kind.value
    assert word == run.expected, outcome
    assert sum(isinstance(one, Ended) for one in events) <= 1


def test_evidence_is_one_short_line_without_a_payload():
    failures = [outcome for _, outcome in map(outcome_of, RUNS) if isinstance(outcome, Failure)]

    for outcome in failures:
        assert 0 < len(outcome.evidence) <= EVIDENCE_CHARS
        assert outcome.evidence.isprintable()
        assert "{" not in outcome.evidence.replace("{…}", "")
        assert "test-key" not in outcome.evidence


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_any_split_of_the_bytes_gives_the_same_events_and_outcome(data):
    run = BY_ID[data.draw(st.sampled_from(sorted(BY_ID)))]
    cuts = data.draw(st.lists(st.integers(0, len(run.stdout)), max_size=40).map(sorted))
    edges = [0, *cuts, len(run.stdout)]
    chunks = [run.stdout[a:b] for a, b in itertools.pairwise(edges)]

    assert outcome_of(run, chunks) == outcome_of(run)


@pytest.mark.parametrize("name", ["text", "unicode", "tool_output_300k"])
@pytest.mark.parametrize("group", ["codex", "claude"])
def test_byte_by_byte_is_no_different(group, name):
    run = load(group, name)
    chunks = [run.stdout[at : at + 1] for at in range(len(run.stdout))]

    assert outcome_of(run, chunks) == outcome_of(run)


def test_an_answer_counts_whatever_the_exit_code_says():
    """Spec 02 section 5: the terminal event and a non-empty text decide before the exit code."""
    for run in [one for one in RUNS if one.expected == "ok"]:
        codec = codec_of(run)
        codec.receive(run.stdout)

        assert isinstance(codec.outcome(ExitStatus(1), stderr="401 unauthorized", now=NOW), Answer), run.id


@pytest.mark.parametrize(
    "ended_by", [EndedBy.STOP, EndedBy.TERM, EndedBy.SILENCE, EndedBy.TOTAL, EndedBy.FLOOD]
)
@pytest.mark.parametrize("group", ["codex", "claude"])
def test_what_we_ended_is_judged_by_who_ended_it(group, ended_by):
    codec = codec_of(load(group, "sigkill_during_stream"))
    codec.receive(load(group, "sigkill_during_stream").stdout)

    outcome = codec.outcome(ExitStatus(-9, ended_by), stderr="", now=NOW)

    assert (
        outcome.kind
        is {
            EndedBy.STOP: FailureClass.STOPPED,
            EndedBy.TERM: FailureClass.INTERRUPTED,
            EndedBy.SILENCE: FailureClass.TIMEOUT,
            EndedBy.TOTAL: FailureClass.TIMEOUT,
            EndedBy.FLOOD: FailureClass.CRASH,
        }[ended_by]
    )


@pytest.mark.parametrize("group", ["codex", "claude"])
def test_claude_interrupted_by_our_stop_is_stopped_though_it_says_a_result(group):
    run = load(group, "sigint_during_tool")
    codec = codec_of(run)
    codec.receive(run.stdout)

    assert codec.outcome(ExitStatus(0, EndedBy.STOP), stderr="", now=NOW).kind is FailureClass.STOPPED


@pytest.mark.parametrize("group", ["codex", "claude"])
@pytest.mark.parametrize("code", [78, 126, 127])
def test_a_launcher_that_refuses_or_finds_nothing_is_missing(group, code):
    codec = codec_of(load(group, "text"))

    assert codec.outcome(ExitStatus(code), stderr="gate: user: no", now=NOW).kind is FailureClass.MISSING


@pytest.mark.parametrize("group", ["codex", "claude"])
@pytest.mark.parametrize(
    "noise",
    [
        b"\xff\xfe\x00 not utf-8\n",
        b"plain text\n",
        b"[1,2,3]\n",
        b'"text"\n',
        b"null\n",
        b"[" * 100_000 + b"\n",
        b"1" * 5000 + b"\n",
        b'{"type":"brand.new","x":1}\n',
        b'{"type":["not","text"]}\n',
        b'{"type":"x\\ud800"}\n',
        b"{}\n",
        b"\x00\n",
    ],
    ids=lambda noise: repr(noise[:20]),
)
def test_noise_is_kept_and_counted_and_changes_nothing(group, noise):
    run = load(group, "text")
    clean_events, clean = outcome_of(run)
    codec = codec_of(run)

    noisy = [e for line in run.stdout.splitlines(keepends=True) for e in codec.receive(noise + line)]

    assert codec.outcome(run.status, stderr="", now=NOW) == clean
    assert [e for e in noisy if not isinstance(e, Unknown)] == clean_events
    assert len([e for e in noisy if isinstance(e, Unknown)]) == len(run.stdout.splitlines())


@pytest.mark.parametrize("group", ["codex", "claude"])
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_no_bytes_at_all_can_break_a_codec(group, data):
    run = load(group, data.draw(st.sampled_from(["text", "tool_output_300k", "http_401"])))
    broken = bytearray(run.stdout)
    for at, byte in data.draw(
        st.lists(st.tuples(st.integers(0, len(broken) - 1), st.integers(0, 255)), max_size=30)
    ):
        broken[at] = byte

    codec = codec_of(run)
    codec.receive(bytes(broken))

    assert isinstance(codec.outcome(ExitStatus(0), stderr="", now=NOW), Answer | Failure)


@pytest.mark.parametrize("group", ["codex", "claude"])
def test_an_absurd_line_is_skipped_and_reported(group):
    run = load(group, "text")
    codec = codec_of(run)

    events = codec.receive(b"x" * (17 * 1024 * 1024) + b"\n")
    codec.receive(run.stdout)

    assert events == [Unknown(f"a line of {17 * 1024 * 1024} bytes, skipped")]
    assert isinstance(codec.outcome(run.status, stderr="", now=NOW), Answer)


@pytest.mark.parametrize("group", ["codex", "claude"])
def test_a_last_line_without_its_line_end_still_counts(group):
    run = load(group, "text")
    codec = codec_of(run)
    codec.receive(run.stdout.rstrip(b"\n"))

    assert isinstance(codec.outcome(run.status, stderr="", now=NOW), Answer)


@pytest.mark.parametrize("group", ["codex", "claude"])
def test_a_running_tool_is_an_open_tool_and_a_finished_one_is_not(group):
    name = "tool_echo_danger" if group == "codex" else "tool_echo_default"
    events, _ = outcome_of(load(group, name))

    counts = [event.open_tools for event in events if isinstance(event, Progress)]
    assert 1 in counts
    assert counts[-1] == 0


@pytest.mark.parametrize("group", ["codex", "claude"])
def test_the_thread_is_named_before_the_end(group):
    events, outcome = outcome_of(load(group, "text"))

    started = [event.thread for event in events if isinstance(event, ThreadStarted)]
    assert started == [outcome.thread]
    assert isinstance(events[-1], Ended)
