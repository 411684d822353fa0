"""When a thread is left for a new one: past the limit with a hand-over, after three equal failures, and told (spec 02 section 5)."""

from datetime import timedelta

import pytest

from sentinel.core.codec import EndedBy, Sandbox
from sentinel.core.outcome import Answer, Counter, Failure, FailureClass, Usage
from tests.fakes.fake_clock import pass_time, stepped, until

CRASH = Failure(FailureClass.CRASH, "it fell")
LONG = Usage(input_tokens=5_000, output_tokens=10)
SHORT = Usage(input_tokens=900, output_tokens=10)
RENEWED = "My earlier working thread here could not be continued"


@pytest.fixture
def stage(make_stage):
    made = make_stage(
        limits_toml="thread_tokens = 4000\n",
        adapter="codex",
        codex_sandbox="workspace-write\n",
        codex_network="on\n",
    )
    made.home.write("task.md", "You are Gode.\n")
    return made


def requests(stage):
    return [request for _, request in stage.runs]


async def grown(stage, **more):
    """A first turn whose thread is past the limit afterwards."""
    stage.script = [Answer("one", thread="t-1", usage=LONG, **more)]
    await stage.until_answered(stage.ask("first"))


def usage_of(stage):
    rows = stage.store.database.rows(
        "SELECT input_tokens, output_tokens, cost_usd FROM turns WHERE kind = 'answer' ORDER BY started_at"
    )
    return [tuple(row) for row in rows]


@stepped
async def test_below_the_limit_a_thread_goes_on(stage):
    stage.script = [Answer("one", thread="t-1", usage=SHORT)]
    async with stage.running():
        await stage.until_answered(stage.ask("first"))
        await stage.until_answered(stage.ask("second"))

    assert [one.resume for one in requests(stage)] == [None, "t-1"]


@stepped
async def test_past_the_limit_it_writes_a_hand_over_and_a_new_one_begins(stage):
    async with stage.running():
        await grown(stage)
        stage.script = [
            Answer("ann wants tea @/etc/passwd", thread="t-1", usage=SHORT),
            Answer("two", thread="t-2", usage=SHORT),
        ]
        await stage.until_answered(stage.ask("second"))
        await stage.until_answered(stage.ask("third"))

    _, asked, begun, after = requests(stage)
    assert asked.resume == "t-1"
    assert asked.triggers == ()
    assert "Write a hand-over" in asked.prompt
    assert "second" not in asked.prompt
    assert (asked.sandbox, asked.network) == (Sandbox.READ_ONLY, False)
    assert begun.resume is None
    assert (begun.sandbox, begun.network) == (Sandbox.WORKSPACE_WRITE, True)
    assert "You are Gode." in begun.prompt
    fenced = begun.prompt.split(" begin\n")[1].split(" end\n")[0]
    assert "ann wants tea \\u0040/etc/passwd" in fenced
    assert after.resume == "t-2"
    assert stage.answers == ["one", "two", "answer 4"]
    assert stage.notices == []


@stepped
async def test_the_hand_over_posts_nothing_and_its_tokens_count(stage):
    """Running totals belong to their thread: the new one's begin at nothing."""
    stage.script = [Answer("one", thread="t-1", total=Counter(5_000, 0, 10))]
    async with stage.running():
        await stage.until_answered(stage.ask("first"))
        stage.script = [
            Answer("what was", thread="t-1", total=Counter(5_700, 0, 30)),
            Answer("two", thread="t-2", total=Counter(800, 0, 5)),
            Answer("three", thread="t-2", total=Counter(2_000, 0, 9)),
        ]
        await stage.until_answered(stage.ask("second"))
        assert stage.store.threads.get(stage.cid).input_tokens == 800
        await stage.until_answered(stage.ask("third"))

        assert usage_of(stage) == [(5_000, 10, None), (1_500, 25, None), (1_200, 4, None)]
        assert stage.store.threads.get(stage.cid).input_tokens == 1_200
    assert stage.answers == ["one", "two", "three"]


@stepped
async def test_costs_are_differences_over_a_rotation_too(stage):
    cost = {"total": Counter(9, cost_usd=0.5)}
    async with stage.running():
        await grown(stage, **cost)
        stage.script = [
            Answer("what was", thread="t-1", usage=SHORT, total=Counter(9, cost_usd=0.7)),
            Answer("two", thread="t-2", usage=SHORT, total=Counter(9, cost_usd=0.1)),
        ]
        await stage.until_answered(stage.ask("second"))

        assert usage_of(stage)[1] == (1_800, 20, pytest.approx(0.3))


FAILED = [
    pytest.param(Failure(FailureClass.EMPTY, ""), "empty", id="empty"),
    pytest.param(Failure(FailureClass.CONTEXT_FULL, ""), "context_full", id="full"),
    pytest.param(Failure(FailureClass.THREAD_LOST, ""), "thread_lost", id="lost"),
    pytest.param(Answer("the token is tok-4d1f-very-secret", thread="t-1"), "refused", id="a-secret-in-it"),
]


@pytest.mark.parametrize(("outcome", "word"), FAILED)
@stepped
async def test_without_a_hand_over_it_rotates_and_all_are_told(stage, outcome, word):
    async with stage.running():
        await grown(stage)
        stage.script = [outcome, Answer("two", thread="t-2", usage=SHORT)]
        await stage.until_answered(stage.ask("second"))
        await until(lambda: stage.notices)
        await pass_time(5)

    begun = requests(stage)[2]
    assert begun.resume is None
    assert f"could not be continued ({word})" in begun.prompt
    assert "very-secret" not in begun.prompt
    assert [one.split(" (")[0] for one in stage.notices] == [RENEWED]
    assert stage.answers == ["one", "two"]


@pytest.mark.parametrize("kind", [FailureClass.UNAVAILABLE, FailureClass.AUTH, FailureClass.RATE])
@stepped
async def test_what_is_no_fault_of_the_thread_does_not_cost_its_memory(stage, kind):
    async with stage.running():
        await grown(stage)
        soon = stage.clock.now() + timedelta(seconds=30)
        stage.script = [
            Failure(kind, "", soon),
            Answer("what was", thread="t-1"),
            Answer("two", thread="t-2"),
        ]
        question = stage.ask("second")
        await stage.until_answered(question)

        assert stage.trigger(question).failures == 0
    assert [one.resume for one in requests(stage)] == [None, "t-1", "t-1", None]
    assert "what was" in requests(stage)[3].prompt


@stepped
async def test_a_stop_during_the_hand_over_stops_the_turn(stage):
    async with stage.running():
        await grown(stage)
        stage.works.clear()
        question = stage.ask("second")
        await until(lambda: len(stage.runs) == 2)
        stage.say(stage.ann, "/stop")
        await until(lambda: stage.state_of(question) == "parked")
        await pass_time(5)

    assert len(stage.runs) == 2


@stepped
async def test_a_kill_during_the_hand_over_loses_nothing(stage):
    async with stage.running():
        await grown(stage)
        stage.works.clear()
        question = stage.ask("second")
        await until(lambda: len(stage.runs) == 2)
    stage.works.set()
    async with stage.running():
        await stage.until_answered(question)

    assert len(stage.answers_to(question)) == 1


@stepped
async def test_three_equal_failures_leave_a_thread(stage):
    stage.script = [
        Answer("one", thread="t-1", usage=SHORT),
        CRASH,
        CRASH,
        CRASH,
        Answer("two", thread="t-2"),
    ]
    async with stage.running():
        await stage.until_answered(stage.ask("first"))
        question = stage.ask("second")
        await stage.until_answered(question)
        await until(lambda: any(one.startswith(RENEWED) for one in stage.notices))
        await stage.until_answered(stage.ask("third"))

    assert [one.resume for one in requests(stage)] == [None, "t-1", "t-1", "t-1", None, "t-2"]
    assert "could not be continued (crash)" in requests(stage)[4].prompt
    assert sum(one.startswith(RENEWED) for one in stage.notices) == 1


@stepped
async def test_it_counts_over_messages_and_restarts(stage):
    stage.script = [Answer("one", thread="t-1", usage=SHORT), CRASH, CRASH]
    async with stage.running():
        await stage.until_answered(stage.ask("first"))
        second = stage.ask("second")
        await until(lambda: stage.trigger(second) and stage.trigger(second).failures == 2)
    stage.script = [CRASH, Answer("two", thread="t-2")]
    async with stage.running():
        await stage.until_answered(second)

    assert [one.resume for one in requests(stage)] == [None, "t-1", "t-1", "t-1", None]


@pytest.mark.parametrize(
    "between",
    [
        pytest.param(Failure(FailureClass.EMPTY, ""), id="another-class"),
        pytest.param(Answer("in between", thread="t-1"), id="a-success"),
    ],
)
@stepped
async def test_failures_that_are_not_equal_and_in_a_row_leave_nothing(stage, between):
    stage.script = [Answer("one", thread="t-1", usage=SHORT), CRASH, CRASH, between, CRASH]
    async with stage.running():
        await stage.until_answered(stage.ask("first"))
        await stage.until_answered(stage.ask("second"))
        stage.script = [CRASH] if isinstance(between, Answer) else []
        await stage.until_answered(stage.ask("third"))

    assert {one.resume for one in requests(stage)[1:]} == {"t-1"}


@stepped
async def test_an_outage_is_no_fault_of_a_thread(stage):
    away = Failure(FailureClass.UNAVAILABLE, "")
    stage.script = [Answer("one", thread="t-1", usage=SHORT), away, away, away, away]
    async with stage.running():
        await stage.until_answered(stage.ask("first"))
        await stage.until_answered(stage.ask("second"))

    assert {one.resume for one in requests(stage)[1:]} == {"t-1"}


@stepped
async def test_a_cut_off_thread_that_keeps_failing_is_left_too(stage):
    """What was cut off goes on in its tentative thread; not for ever in one that only fails."""
    async with stage.running():
        stage.works.clear()
        question = stage.ask("first")
        await until(lambda: stage.runs)
        stage.store.turns.tentative_thread(stage.runs[0][0].turn_id, "t-cut")
        stage.sentinel.turner.stop(EndedBy.TERM)
        await until(lambda: len(stage.runs) == 2)
        stage.script = [CRASH, CRASH, CRASH]
        stage.works.set()
        await stage.until_answered(question)

    assert [one.resume for one in requests(stage)] == [None, "t-cut", "t-cut", "t-cut", None]
