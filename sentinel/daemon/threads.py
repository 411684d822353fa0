"""In which thread a turn runs: the conversation's, or a new one, with what it must be told about the old one.

Within one attempt a lost or full thread is left for a new one. Past the thread limit the old thread is first asked for a
hand-over, in a run of the executor that posts nothing and has no hands (read-only, no network); where it cannot give one, the
new thread and the room are told so. A thread that failed three times in the same way is not gone on in.
Source: spec 02 section 5 "Threads".
"""

import uuid
from dataclasses import dataclass, replace

from sentinel.core import threads
from sentinel.core.codec import Sandbox, TurnRequest
from sentinel.core.outcome import Answer, Failure, FailureClass, Outcome, Usage
from sentinel.core.parts import leaks
from sentinel.core.persona import Persona
from sentinel.core.ports import Clock
from sentinel.daemon.case import Case, request_of, secrets_of
from sentinel.daemon.execution import Execution, Running
from sentinel.daemon.log import Log
from sentinel.home.executors import ADAPTERS
from sentinel.store.store import Store
from sentinel.store.threads import difference


@dataclass(frozen=True, slots=True)
class Ran:
    """How the executor's runs of one turn ended.

    `resumed` is the thread that the last of them went on in; `renewed` why it had to begin a new one that knows nothing of
    the old; `spent` what a hand-over cost beside.
    """

    outcome: Outcome
    resumed: str | None = None
    renewed: FailureClass | None = None
    spent: Usage | None = None


@dataclass(frozen=True, slots=True)
class _Handover:
    text: str
    spent: Usage | None


class Threads:
    """Chooses threads for one persona, and keeps count of their failures."""

    def __init__(self, store: Store, *, clock: Clock, log: Log) -> None:
        self._store, self._clock, self._log = store, clock, log

    async def run(self, case: Case, running: Running, execution: Execution) -> Ran:
        """Record `running`, and run the executor for `case`: once, or once more where its thread has to be left."""
        resume, renewed = self._choose(case)
        request = self._request(case, resume=resume, renewed=renewed)
        self._store.turns.begin(
            case.turn_id,
            case.triggers,
            snapshot=case.fetched.snapshot,
            thread=resume or chosen_thread(case.persona, request),
            now=self._clock.now().timestamp(),
        )
        spent = None
        is_own = resume is not None and resume == case.thread.id and case.cut_thread is None
        if is_own and threads.is_past_limit(case.thread.input_tokens, case.persona.limits):
            given = await self._hand_over(case, request, running, execution)
            if isinstance(given, Failure) and (running.stop_by or threads.ends_turn(given.kind)):
                return Ran(given, resume)
            handover = None
            if isinstance(given, Failure):
                renewed = given.kind
            else:
                handover, spent = given.text, given.spent
            resume, request = None, self._leave(case, renewed=renewed, handover=handover)
        outcome = await self._run(case, request, running, execution)
        if isinstance(outcome, Failure) and resume and threads.is_of_the_thread(outcome.kind):
            # Once more in a new thread, within the same attempt.
            self._log.warning("thread renewed", cid=case.cid, why=outcome.kind.value)
            resume, renewed = None, outcome.kind
            outcome = await self._run(case, self._leave(case, renewed=renewed), running, execution)
        return Ran(outcome, resume, renewed, spent)

    def _choose(self, case: Case) -> tuple[str | None, FailureClass | None]:
        """Return the thread to go on in, or None and, where the conversation's is in quarantine, why."""
        for thread in (case.cut_thread, case.thread.id):
            if thread is not None and self._store.threads.quarantined(thread) is None:
                return thread, None
        return None, self._store.threads.quarantined(case.thread.id) if case.thread.id else None

    def _request(
        self,
        case: Case,
        *,
        resume: str | None = None,
        renewed: FailureClass | None = None,
        handover: str | None = None,
    ) -> TurnRequest:
        new_thread = str(uuid.UUID(hex=self._clock.token(), version=4))
        notes = threads.notes(handover=handover, why_new=renewed)
        return request_of(
            case, resume=resume, new_thread=new_thread, boundary=self._clock.token(), notes=tuple(notes)
        )

    def _leave(self, case: Case, *, renewed: FailureClass | None, handover: str | None = None) -> TurnRequest:
        """Return the request of a new thread; its id, where we choose it, is in the journal before it is used."""
        request = self._request(case, renewed=renewed, handover=handover)
        chosen = chosen_thread(case.persona, request)
        if chosen is not None:
            self._store.turns.tentative_thread(case.turn_id, chosen)
        return request

    async def _run(self, case: Case, request: TurnRequest, running: Running, execution: Execution) -> Outcome:
        outcome = await execution.run(case, request, running)
        if isinstance(outcome, Failure) and request.resume and threads.is_blamed(outcome.kind):
            failures = self._store.threads.failed(request.resume, outcome.kind)
            if threads.is_quarantined(failures):
                self._log.warning("thread in quarantine", cid=case.cid, why=outcome.kind.value)
        return outcome

    async def _hand_over(
        self, case: Case, request: TurnRequest, running: Running, execution: Execution
    ) -> _Handover | Failure:
        """Ask the thread that ends here what the next one should know."""
        tokens = case.thread.input_tokens
        self._log.info("thread rotates", cid=case.cid, turn=case.turn_id, input_tokens=tokens)
        asked = replace(request, prompt=threads.ASK_FOR_HANDOVER, triggers=(), images=())
        if (Sandbox.READ_ONLY, False) in ADAPTERS[case.persona.adapter].walls:
            asked = replace(asked, sandbox=Sandbox.READ_ONLY, network=False)
        outcome = await execution.run(case, asked, running)
        if isinstance(outcome, Answer) and leaks(outcome.text, secrets_of(case.persona)):
            outcome = Failure(FailureClass.REFUSED, "the hand-over holds a secret")
        if isinstance(outcome, Failure):
            self._log.warning("no hand-over", cid=case.cid, turn=case.turn_id, why=outcome.kind.value)
            return outcome
        same = outcome.thread == case.thread.id
        counted = difference(outcome.total, case.thread.total, same_thread=same)
        return _Handover(outcome.text, told_usage(outcome, counted))


def told_usage(answer: Answer, counted: Usage | None) -> Usage | None:
    """Return a run's usage: its own tokens where the executor tells them, with the cost that may be a running total."""
    return replace(answer.usage, cost_usd=counted and counted.cost_usd) if answer.usage else counted


def chosen_thread(persona: Persona, request: TurnRequest) -> str | None:
    """Return the thread that this run begins under an id of ours; None where the executor chooses (codex tells it)."""
    codec = ADAPTERS[persona.adapter].codec(request)
    return request.new_thread if request.new_thread in codec.argv() else None
