"""The life of a turn is a table, and the table is complete (spec 02 section 4 "Journal states")."""

import itertools
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.core.errors import Damaged
from sentinel.core.journal import (
    DELIVERING,
    TRANSITIONS,
    UNFINISHED,
    FinishDelivery,
    State,
    Step,
    StopAndRequeue,
    Unfinished,
    advance,
    recover,
)

ENDS = {
    State.VERIFIED,
    State.FAILED,
    State.INTERRUPTED,
    State.STOPPED,
    State.PARKED,
    State.REJECTED,
    State.NEEDS_HUMAN,
    State.STALE,
    State.MOOT,
}


def reachable(start):
    found, waiting = {start}, [start]
    while waiting:
        here = waiting.pop()
        new = {to for (state, _), to in TRANSITIONS.items() if state is here} - found
        found |= new
        waiting.extend(new)
    return found


@pytest.mark.parametrize(
    ("state", "step"), [one for one in itertools.product(State, Step) if one not in TRANSITIONS]
)
def test_what_is_not_in_the_table_is_an_error(state, step):
    with pytest.raises(Damaged, match=f"cannot go from {state.value} by {step.value}"):
        advance(state, step)


@pytest.mark.parametrize(("pair", "to"), TRANSITIONS.items())
def test_what_is_in_the_table_leads_there(pair, to):
    assert advance(*pair) is to


def test_every_state_is_reached_and_every_end_is_an_end():
    assert reachable(State.SEEN) == set(State)
    assert {state for state in State if not any(one is state for one, _ in TRANSITIONS)} == ENDS


def test_every_unfinished_state_can_come_to_a_good_end():
    assert all(State.VERIFIED in reachable(state) for state in UNFINISHED)
    assert set(State) - ENDS - {State.SEEN} == UNFINISHED


def test_nothing_leads_from_a_draft_back_to_an_executor():
    """The text is produced once: after `drafted` no step leads to `running`."""
    assert all(State.RUNNING not in reachable(state) for state in DELIVERING)


def test_nothing_is_verified_that_was_not_read_back():
    assert {pair for pair, to in TRANSITIONS.items() if to is State.VERIFIED} == {
        (State.POSTED, Step.READ_BACK)
    }


def test_nothing_is_moot_once_it_may_have_been_sent():
    assert {pair for pair, to in TRANSITIONS.items() if to is State.MOOT} == {(State.DRAFTED, Step.LAPSE)}


@given(
    left=st.lists(
        st.builds(Unfinished, st.text("ab1", min_size=1), st.sampled_from(sorted(UNFINISHED))), max_size=8
    )
)
def test_executors_are_stopped_before_anything_is_said(left):
    plan = recover(tuple(left))

    kinds = [type(one) for one in plan]
    assert kinds == sorted(kinds, key=lambda kind: kind is FinishDelivery)
    assert [one.turn_id for one in plan if isinstance(one, StopAndRequeue)] == [
        one.turn_id for one in left if one.state is State.RUNNING
    ]
    assert [one.turn_id for one in plan if isinstance(one, FinishDelivery)] == [
        one.turn_id for one in left if one.state in DELIVERING
    ]


def test_the_specification_names_every_state():
    spec = (Path(__file__).parents[2] / "docs/spec/02-sentinel.md").read_text(encoding="utf-8")
    section = spec.split("Journal states, each durable", 1)[1].split("Nonce:", 1)[0]

    named = set(re.findall(r"[a-z_]+", section))

    assert {state.value for state in State} <= named
