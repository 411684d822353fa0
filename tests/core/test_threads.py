"""When a thread is left, and what the next one is told."""

import pytest

from sentinel.core import threads
from sentinel.core.outcome import FailureClass
from sentinel.core.persona import Limits

OURS = {FailureClass.INTERRUPTED, FailureClass.STOPPED, FailureClass.BUG, FailureClass.LEAK}
OUTSIDE = {
    FailureClass.AUTH,
    FailureClass.QUOTA,
    FailureClass.RATE,
    FailureClass.CONFIG,
    FailureClass.MISSING,
    FailureClass.BUSY,
    FailureClass.UNAVAILABLE,
    FailureClass.ROOM_UNAVAILABLE,
    FailureClass.REJECTED,
}


@pytest.mark.parametrize("kind", FailureClass)
def test_only_what_an_executor_did_in_a_thread_counts_against_it(kind):
    assert threads.is_blamed(kind) == (kind not in OURS | OUTSIDE)
    assert threads.ends_turn(kind) == (kind in OURS | OUTSIDE)


def test_a_thread_may_reach_the_limit_and_not_pass_it():
    limits = Limits(thread_tokens=1_000)

    assert not threads.is_past_limit(1_000, limits)
    assert threads.is_past_limit(1_001, limits)


@pytest.mark.parametrize("failures", range(6))
def test_three_equal_failures_are_a_quarantine(failures):
    assert threads.is_quarantined(failures) == (failures >= 3)


def test_a_hand_over_is_told_and_cut():
    (note,) = threads.notes(handover="h" * 100_000, why_new=None)

    assert note.count("h" * 8_000) == 1
    assert len(note) < 9_000


def test_a_loss_is_told_with_its_reason():
    (note,) = threads.notes(handover=None, why_new=FailureClass.CRASH)

    assert "(crash)" in note


def test_a_first_thread_is_told_nothing():
    assert threads.notes(handover=None, why_new=None) == ()


def test_what_asks_for_a_hand_over_calls_nothing_alive():
    """In claude a leading slash is a command, and an at sign reads a file."""
    assert "@" not in threads.ASK_FOR_HANDOVER
    assert not threads.ASK_FOR_HANDOVER.startswith("/")
