"""How a turn of the daemon can end: refused by the gate, drafted, or failed. Source: spec 02 sections 2, 5 and 7."""

from dataclasses import dataclass
from typing import TypeAlias

from sentinel.core.codec import EndedBy
from sentinel.core.gate import GateRefused
from sentinel.core.journal import Step
from sentinel.core.outcome import Failure, FailureClass
from sentinel.core.persona import Persona


@dataclass(frozen=True, slots=True)
class Refusal:
    """The gate said no at this turn: nothing ran."""

    verdict: GateRefused


@dataclass(frozen=True, slots=True)
class Drafted:
    """An answer stands in the journal. `anchor`: the newest `seq` known. `renewed`: why the thread is a new one.

    `ambiguous` are names in it that fit several members and so called nobody; `files_left` counts what was not sent with it.
    """

    turn_id: str
    anchor: int
    renewed: FailureClass | None
    ambiguous: tuple[str, ...] = ()
    files_left: int = 0


@dataclass(frozen=True, slots=True)
class Failed:
    """No answer. `turn_id` is None when nothing was started; `thread` is the tentative one, to go on in."""

    turn_id: str | None
    failure: Failure
    persona: Persona
    thread: str | None = None


TurnEnd: TypeAlias = Refusal | Drafted | Failed


def ended_by_us(by: EndedBy) -> Failure:
    """Return what a turn is that we ended ourselves although no executor failed."""
    kind = FailureClass.STOPPED if by is EndedBy.STOP else FailureClass.INTERRUPTED
    return Failure(kind, f"ended by us ({by.value})")


def stop_step(failure: Failure) -> Step:
    """Return the journal's step for a turn that ended with this failure."""
    match failure.kind:
        case FailureClass.STOPPED:
            return Step.STOP
        case FailureClass.INTERRUPTED:
            return Step.INTERRUPT
        case _:
            return Step.FAIL
