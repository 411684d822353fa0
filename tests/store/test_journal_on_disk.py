"""The journal on disk: a step is one transaction, and an illegal one is an error (spec 02 section 4)."""

import pytest

from sentinel.core.errors import Damaged
from sentinel.core.journal import State, Step
from sentinel.core.outcome import Counter, Failure, FailureClass, Usage
from sentinel.store.records import TriggerChange
from sentinel.store.store import open_store
from sentinel.store.threads import Completed, difference
from tests.store.state_pieces import outgoing, wake

DONE = Completed("t-1", Usage(5, 1, 2, 0), None, "hash")


def begin(store, *seqs, turn="turn"):
    for seq in seqs:
        store.inbox.take("c1", [wake(seq)], cursor=seq, keep_seen_from=0, now=float(seq))
    triggers = store.turns.triggers([f"c1-m{seq}" for seq in seqs])
    store.turns.begin(turn, triggers, snapshot=max(seqs), thread=None, now=10.0)
    return turn


def state_of(store, seq):
    return store.turns.triggers([f"c1-m{seq}"])[0].state


def deliver(store, turn, parts=1):
    store.turns.draft(turn, [outgoing(f"n{part}") for part in range(parts)], DONE, now=11.0)
    for part in range(parts):
        store.turns.sending(turn, part, anchor=3)
        store.turns.posted(turn, part, f"s{part}", now=12.0)
        store.turns.read_back(turn, part)
    store.turns.verified(turn, now=13.0)


def test_a_turn_from_seen_to_verified(store):
    turn = begin(store, 1, 2)
    assert [state_of(store, seq) for seq in (1, 2)] == [State.RUNNING] * 2

    deliver(store, turn, parts=3)

    assert store.turns.get(turn).state is State.VERIFIED
    assert [state_of(store, seq) for seq in (1, 2)] == [State.VERIFIED] * 2
    assert store.inbox.conversation("c1").answered == 2
    assert store.turns.unfinished() == ()
    assert store.threads.get("c1").id == "t-1"


def test_each_state_outlives_its_process(store, tmp_path):
    turn = begin(store, 1)
    steps = [
        (State.RUNNING, lambda: None),
        (State.DRAFTED, lambda: store.turns.draft(turn, [outgoing("n")], DONE, now=1.0)),
        (State.SENDING, lambda: store.turns.sending(turn, 0, anchor=0)),
        (State.POSTED, lambda: store.turns.posted(turn, 0, "s", now=1.0)),
    ]
    for state, step in steps:
        step()
        other = open_store(tmp_path)
        assert [(one.turn_id, one.state) for one in other.turns.unfinished()] == [(turn, state)]
        other.close()


def test_nothing_is_verified_with_a_part_that_was_not_read_back(store):
    turn = begin(store, 1)
    store.turns.draft(turn, [outgoing("n0"), outgoing("n1")], DONE, now=1.0)
    store.turns.sending(turn, 0, anchor=0)
    store.turns.posted(turn, 0, "s", now=1.0)
    store.turns.read_back(turn, 0)

    with pytest.raises(Damaged, match="1 parts that were not read back"):
        store.turns.verified(turn, now=2.0)
    assert store.turns.get(turn).state is State.POSTED


ILLEGAL = {
    "posted before sending": lambda turns: turns.posted("turn", 0, "s", now=1.0),
    "read back before posted": lambda turns: turns.read_back("turn", 0),
    "drafted twice": lambda turns: turns.draft("turn", [outgoing("n")], DONE, now=1.0),
    "failed after the draft": lambda turns: turns.end("turn", Step.FAIL, (), failure=None, now=1.0),
    "interrupted after the draft": lambda turns: turns.end("turn", Step.INTERRUPT, (), failure=None, now=1.0),
    "run twice": lambda turns: turns.begin("t2", turns.triggers(["c1-m1"]), snapshot=1, thread=None, now=1.0),
    "a part that is not there": lambda turns: turns.sending("turn", 7, anchor=0),
    "a turn that is not there": lambda turns: turns.get("unknown"),
}


@pytest.mark.parametrize("act", ILLEGAL.values(), ids=ILLEGAL)
def test_an_illegal_step_is_an_error_and_changes_nothing(store, act):
    turn = begin(store, 1)
    store.turns.draft(turn, [outgoing("n")], DONE, now=1.0)
    before = (store.turns.get(turn), store.turns.parts(turn), store.turns.triggers(["c1-m1"]))

    with pytest.raises(Damaged):
        act(store.turns)
    assert (store.turns.get(turn), store.turns.parts(turn), store.turns.triggers(["c1-m1"])) == before


def test_a_trigger_that_was_put_aside_meanwhile_is_not_run(store):
    """The worker's record of a trigger may be older than a human's `/stop`."""
    store.inbox.take("c1", [wake(1)], cursor=1, keep_seen_from=0, now=1.0)
    stale = store.turns.triggers(["c1-m1"])
    store.turns.change([TriggerChange("c1-m1", State.PARKED)])

    with pytest.raises(Damaged):
        store.turns.begin("turn", stale, snapshot=1, thread=None, now=1.0)
    assert state_of(store, 1) is State.PARKED


def test_a_draft_and_its_thread_are_one(store):
    turn = begin(store, 1)

    with pytest.raises(AttributeError):
        store.turns.draft(turn, [outgoing("n"), object()], DONE, now=1.0)
    assert store.turns.get(turn).state is State.RUNNING
    assert store.threads.get("c1").id is None
    assert store.turns.parts(turn) == ()


def test_the_exact_bytes_come_back(store):
    turn = begin(store, 1)
    posts = [
        outgoing("n0", "# Ä 你好 \u200b\r\n\tx", mentions=("u-ann",), reply_to="c1-m1", hops=1),
        outgoing("n1", None, answers=("c1-m1",), media_id="f1", broadcast=True),
    ]
    store.turns.draft(turn, posts, DONE, now=1.0)

    assert [one.outgoing for one in store.turns.parts(turn)] == posts


@pytest.mark.parametrize("posted", [False, True], ids=["sending", "posted"])
def test_an_adopted_answer_ends_the_turn_in_one_step(store, posted):
    turn = begin(store, 1, 2)
    store.turns.draft(turn, [outgoing("n0"), outgoing("n1")], DONE, now=1.0)
    store.turns.sending(turn, 0, anchor=0)
    if posted:
        store.turns.posted(turn, 0, "s0", now=1.0)

    store.turns.adopt(turn, 0, "other", unanswered=("c1-m2",), now=2.0)

    assert store.turns.get(turn).state is State.VERIFIED
    assert [one.state for one in store.turns.parts(turn)] == [State.VERIFIED, State.MOOT]
    assert [state_of(store, seq) for seq in (1, 2)] == [State.VERIFIED, State.SEEN]
    assert store.turns.parts(turn)[0].outgoing.text == "an answer"


def test_a_notice_is_drafted_once_per_key(store):
    first = store.turns.draft_notice("a", "c1", "obituary:x", [outgoing("n")], now=1.0)
    second = store.turns.draft_notice("b", "c1", "obituary:x", [outgoing("m")], now=2.0)

    assert (first, second) == ("a", "a")
    assert len(store.turns.deliveries()) == 1


def test_only_a_notice_of_which_nothing_was_sent_can_lapse(store):
    store.turns.draft_notice("a", "c1", "k", [outgoing("n")], now=1.0)
    store.turns.sending("a", 0, anchor=0)

    with pytest.raises(Damaged):
        store.turns.lapse("a", now=2.0)


@pytest.mark.parametrize(
    ("state", "raised"),
    [(State.REJECTED, 1), (State.NEEDS_HUMAN, 1), (State.PARKED, 0), (State.STOPPED, 0)],
)
def test_a_retry_raises_the_generation_only_where_something_may_have_been_said(store, state, raised):
    store.inbox.take("c1", [wake(1)], cursor=1, keep_seen_from=0, now=1.0)
    store.turns.change([TriggerChange("c1-m1", state, failures=12, rates=2, alone=True)])

    assert store.turns.retry(["c1-m1"], now=5.0) == 1

    found = store.turns.triggers(["c1-m1"])[0]
    assert (found.state, found.generation, found.failures, found.rates, found.alone) == (
        State.SEEN,
        raised,
        0,
        0,
        False,
    )


@pytest.mark.parametrize("state", [State.SEEN, State.RUNNING, State.VERIFIED, State.STALE, State.MOOT])
def test_a_retry_touches_nothing_else(store, state):
    store.inbox.take("c1", [wake(1)], cursor=1, keep_seen_from=0, now=1.0)
    store.turns.change([TriggerChange("c1-m1", state)])

    assert store.turns.retry(["c1-m1", "unknown"], now=5.0) == 0
    assert state_of(store, 1) is state


def test_a_failure_and_what_it_means_are_one(store):
    turn = begin(store, 1)
    changes = [TriggerChange("c1-m1", State.SEEN, ready_at=99.0, failures=1)]
    store.turns.end(turn, Step.FAIL, changes, failure=Failure(FailureClass.CRASH, "x"), now=3.0)

    assert store.turns.get(turn).state is State.FAILED
    assert [(one.ready_at, one.failures) for one in store.inbox.queue()] == [(99.0, 1)]
    row = store.database.row("SELECT class, evidence FROM turns WHERE id = 'turn'")
    assert tuple(row) == ("crash", "x")


@pytest.mark.parametrize(
    ("now", "before", "same_thread", "expected"),
    [
        (Counter(100, 10, 5), None, True, Usage(100, 10, 5)),
        (Counter(100, 10, 5), Counter(60, 4, 2), True, Usage(40, 6, 3)),
        (Counter(100, 10, 5), Counter(60, 4, 2), False, Usage(100, 10, 5)),
        (Counter(30, 1, 1), Counter(60, 4, 2), True, Usage(30, 1, 1)),
        (
            Counter(9, 0, 0, 0, cost_usd=0.5),
            Counter(1, 0, 0, 0, cost_usd=0.2),
            True,
            Usage(8, 0, 0, 0, pytest.approx(0.3)),
        ),
        (None, Counter(60, 4, 2), True, None),
    ],
)
def test_usage_is_a_difference(now, before, same_thread, expected):
    assert difference(now, before, same_thread=same_thread) == expected
