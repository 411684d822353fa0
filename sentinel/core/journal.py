"""The life of a turn as a table, and what a restart does with each state. Pure.

Each state is durable before the next act begins; so after a `kill -9` at any instant the state says what may have
happened outside, and `recover` says what to do about it. What is not in the table is an error.

    seen -> running -> drafted -> sending -> posted -> verified

Source: spec 02 section 4 "Journal states"; security facts, section F (the proof and the rules of recovery).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from sentinel.core.errors import Damaged


class State(StrEnum):
    """Where a turn (or a trigger that no turn has taken yet) stands."""

    SEEN = "seen"  # a trigger waits; nothing happened outside
    RUNNING = "running"  # the executor may have been started, and may have acted
    DRAFTED = "drafted"  # the exact bytes and nonces are kept; the executor never runs again for them
    SENDING = "sending"  # zero or one post per attempt, maybe still in flight
    POSTED = "posted"  # the server named its message
    VERIFIED = "verified"  # read back from the server, equal: done
    FAILED = "failed"  # the executor gave no answer; the triggers wait, park or end by the verdict
    INTERRUPTED = "interrupted"  # cut off by us: TERM, restart, kill
    STOPPED = "stopped"  # a human said /stop
    PARKED = "parked"  # kept, not tried again by itself
    REJECTED = "rejected"  # the room's definite no; the body is kept
    NEEDS_HUMAN = "needs_human"  # nobody but a human can know whether it was said
    STALE = "stale"  # too old to be answered now
    MOOT = "moot"  # a notice whose cause is over


class Step(StrEnum):
    """What moves a turn on."""

    START = "start"
    DRAFT = "draft"
    SEND = "send"
    ACKNOWLEDGE = "acknowledge"
    READ_BACK = "read_back"
    FAIL = "fail"
    INTERRUPT = "interrupt"
    STOP = "stop"
    PARK = "park"
    REJECT = "reject"
    DOUBT = "doubt"
    TURN_AWAY = "turn_away"
    EXPIRE = "expire"
    LAPSE = "lapse"


_S, _T = State, Step

TRANSITIONS: Mapping[tuple[State, Step], State] = {
    (_S.SEEN, _T.START): _S.RUNNING,
    (_S.SEEN, _T.DRAFT): _S.DRAFTED,  # a notice: the program's own words need no executor
    (_S.SEEN, _T.PARK): _S.PARKED,
    (_S.SEEN, _T.EXPIRE): _S.STALE,
    (_S.RUNNING, _T.DRAFT): _S.DRAFTED,
    (_S.RUNNING, _T.FAIL): _S.FAILED,
    (_S.RUNNING, _T.INTERRUPT): _S.INTERRUPTED,
    (_S.RUNNING, _T.STOP): _S.STOPPED,
    (_S.DRAFTED, _T.SEND): _S.SENDING,
    (_S.DRAFTED, _T.LAPSE): _S.MOOT,  # only a notice, and only while nothing was sent
    (_S.SENDING, _T.SEND): _S.SENDING,  # the same nonce and bytes again
    (_S.SENDING, _T.ACKNOWLEDGE): _S.POSTED,
    (_S.SENDING, _T.TURN_AWAY): _S.DRAFTED,  # 429 at the first try: the room says that nothing was applied
    (_S.SENDING, _T.REJECT): _S.REJECTED,
    (_S.SENDING, _T.DOUBT): _S.NEEDS_HUMAN,
    (_S.POSTED, _T.READ_BACK): _S.VERIFIED,
    (_S.POSTED, _T.SEND): _S.SENDING,  # named, but not to be found again: the same nonce once more
    (_S.POSTED, _T.DOUBT): _S.NEEDS_HUMAN,
}

UNFINISHED = frozenset({State.RUNNING, State.DRAFTED, State.SENDING, State.POSTED})
DELIVERING = frozenset({State.DRAFTED, State.SENDING, State.POSTED})


def advance(state: State, step: Step) -> State:
    """Return the state that `step` leads to; raise `Damaged` for a pair that is not in the table."""
    try:
        return TRANSITIONS[state, step]
    except KeyError:
        raise Damaged(
            f"the journal cannot go from {state.value} by {step.value}",
            mend="keep state.db and its log, and report them",
        ) from None


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A turn that an earlier process left behind."""

    turn_id: str
    state: State


@dataclass(frozen=True, slots=True)
class StopAndRequeue:
    """The executor may still live: stop it first, then count the turn as interrupted."""

    turn_id: str


@dataclass(frozen=True, slots=True)
class FinishDelivery:
    """The bytes stand: deliver them by the backend's rule; never run the executor again."""

    turn_id: str


Recovery: TypeAlias = StopAndRequeue | FinishDelivery


def recover(left_behind: tuple[Unfinished, ...]) -> tuple[Recovery, ...]:
    """Say what a start does about each turn that was left behind: executors are stopped before anything is said."""
    stops = [StopAndRequeue(one.turn_id) for one in left_behind if one.state is State.RUNNING]
    finishes = [FinishDelivery(one.turn_id) for one in left_behind if one.state in DELIVERING]
    return (*stops, *finishes)
