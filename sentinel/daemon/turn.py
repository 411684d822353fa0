"""One turn: gate, fetch, `running`, executor, outcome, draft. Delivery is the postman's.

The order is the promise: the gate is asked at this very turn (law 2), `running` is durable before the executor exists,
its pid is durable as soon as there is one, and the exact bytes of the answer are durable before anything is posted.
Source: spec 02 sections 2 to 5.
"""

import shutil
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from sentinel.bridge.draft import Draft, draft
from sentinel.bridge.fetch import fetch
from sentinel.core.codec import EndedBy, TurnRequest
from sentinel.core.errors import RateLimited, Rejected, RoomError, Unauthorized, Unavailable
from sentinel.core.gate import GateRefused
from sentinel.core.journal import Step
from sentinel.core.model import Account
from sentinel.core.outcome import Answer, Failure, FailureClass
from sentinel.core.parts import leaks
from sentinel.core.persona import Persona
from sentinel.core.ports import Clock, Room
from sentinel.core.turns import Queued, backoff_s
from sentinel.daemon.case import Case, request_of, secrets_of, task_hash
from sentinel.daemon.execution import Execution, Running
from sentinel.daemon.log import Log
from sentinel.daemon.roster import Roster
from sentinel.daemon.window import Window
from sentinel.home.examine import examine
from sentinel.home.executors import ADAPTERS
from sentinel.store.store import Store
from sentinel.store.threads import Completed, difference


@dataclass(frozen=True, slots=True)
class Refusal:
    """The gate said no at this turn: nothing ran."""

    verdict: GateRefused


@dataclass(frozen=True, slots=True)
class Drafted:
    """An answer stands in the journal. `anchor`: the newest `seq` known. `renewed`: why the thread is a new one."""

    turn_id: str
    anchor: int
    renewed: FailureClass | None


@dataclass(frozen=True, slots=True)
class Failed:
    """No answer. `turn_id` is None when nothing was started; `thread` is the tentative one, to go on in."""

    turn_id: str | None
    failure: Failure
    persona: Persona
    thread: str | None = None


TurnEnd: TypeAlias = Refusal | Drafted | Failed


class Turner:
    """Runs the turns of one persona, one after the other."""

    def __init__(
        self,
        home: Path,
        room: Room,
        store: Store,
        me: Account,
        *,
        roster: Roster,
        window: Window,
        clock: Clock,
        log: Log,
        on_running: Callable[[Running], None],
    ) -> None:
        self._home, self._room, self._store, self._me = home, room, store, me
        self._roster, self._window, self._clock, self._log = roster, window, clock, log
        self.running: Running | None = None
        self._execution = Execution(store, clock, log, on_running=on_running)

    def stop(self, by: EndedBy) -> bool:
        """Begin the stop sequence of the running turn; False when nothing runs."""
        if self.running is None:
            return False
        self.running.stop_by = self.running.stop_by or by
        if self.running.child is not None:
            self.running.child.request_stop(by)
        return True

    async def run(self, batch: Sequence[Queued]) -> TurnEnd:
        """Run one turn for a batch of one conversation and return how it ended."""
        verdict = examine(self._home, guarded=True)
        if isinstance(verdict, GateRefused):
            return Refusal(verdict)
        persona, cid = verdict.persona, batch[0].cid
        turn_id = self._clock.token()
        running = self.running = Running(turn_id, cid, self._now())
        try:
            case = await self._prepare(turn_id, persona, [one.message_id for one in batch])
            if isinstance(case, Failed):
                self._forget_folder(self._home / "turns" / turn_id)
                return case
            if running.stop_by is not None:  # told to end before anything was started: so nothing is
                self._forget_folder(case.folder)
                return Failed(None, _ended_before(running.stop_by), persona)
            return await self._work(case, running)
        finally:
            self.running = None

    async def gone(self) -> None:
        """Wait until nothing of the last executor's tree lives."""
        await self._execution.gone()

    async def _prepare(self, turn_id: str, persona: Persona, ids: Sequence[str]) -> "Case | Failed":
        triggers = self._store.turns.triggers(ids)
        messages = self._store.inbox.messages(ids)
        cid = triggers[0].cid
        known = self._store.inbox.conversation(cid)
        answered = max(known.answered, known.first_mark) if known else 0
        folder = self._home / "turns" / turn_id
        try:
            fetched = await fetch(
                self._room,
                cid,
                messages,
                answered=answered,
                folder=folder,
                limits=persona.limits,
                recent=lambda after: self._window.since(cid, after),
            )
        except Unauthorized:
            raise
        except Rejected as no:  # no longer a member, say: this conversation must not hold up the others
            return Failed(None, Failure(FailureClass.REJECTED, str(no)[:300]), persona)
        except RoomError as away:
            return Failed(None, Failure(FailureClass.ROOM_UNAVAILABLE, str(away)[:300]), persona)
        thread = self._store.threads.get(cid)
        title = self._roster.title(cid)
        return Case(
            turn_id, persona, triggers, messages, fetched, thread, folder, self._home, self._me, title
        )

    async def _work(self, case: Case, running: Running) -> TurnEnd:
        """Execute, in the old thread or in a new one; then draft, or end the turn."""
        resume = case.cut_thread or case.thread.id
        first = str(uuid.UUID(hex=self._clock.token(), version=4))
        request = request_of(
            case, resume=resume, new_thread=first, boundary=self._clock.token(), why_new=None
        )
        self._store.turns.begin(
            case.turn_id,
            case.triggers,
            snapshot=case.fetched.snapshot,
            thread=resume or chosen_thread(case.persona, request),
            now=self._now(),
        )
        outcome = await self._execution.run(case, request, running)
        renewed: FailureClass | None = None
        if (
            isinstance(outcome, Failure)
            and resume
            and outcome.kind
            in {
                FailureClass.THREAD_LOST,
                FailureClass.CONTEXT_FULL,
            }
        ):
            # Once more in a new thread, within the same attempt (spec 02 section 5 "Threads").
            self._log.warning("thread renewed", cid=case.cid, why=outcome.kind.value)
            renewed = outcome.kind
            request = request_of(
                case, resume=None, new_thread=first, boundary=self._clock.token(), why_new=renewed
            )
            outcome = await self._execution.run(case, request, running)
        if running.stop_by is EndedBy.STOP:  # also when the answer was quicker than the signal
            outcome = _ended_before(EndedBy.STOP)
        if isinstance(outcome, Failure):
            return self._failed(case, outcome)
        return await self._draft(case, outcome, running, resumed=request.resume, renewed=renewed)

    def _failed(self, case: Case, failure: Failure) -> Failed:
        self._forget_folder(case.folder)
        record = self._store.turns.get(case.turn_id)
        return Failed(case.turn_id, failure, case.persona, thread=record.thread)

    async def _draft(
        self,
        case: Case,
        answer: Answer,
        running: Running,
        *,
        resumed: str | None,
        renewed: FailureClass | None,
    ) -> TurnEnd:
        """Turn an answer into exact posts, and keep them."""
        if leaks(answer.text, secrets_of(case.persona)):
            return self._set_aside(case, answer, FailureClass.LEAK, "it holds a secret")
        try:
            made = await self._posts(case, answer, running)
        except Rejected as no:
            return self._set_aside(case, answer, FailureClass.REJECTED, str(no))
        if isinstance(made, Failure):
            return self._failed(case, made)
        if made.ambiguous:
            self._log.warning("ambiguous names", turn=case.turn_id, count=len(made.ambiguous))
        same_thread = resumed is not None and answer.thread == case.thread.id
        counted = difference(answer.total, case.thread.total, same_thread=same_thread)
        # Where the executor tells the tokens of the turn, these count; its cost may still be a running total.
        usage = replace(answer.usage, cost_usd=counted and counted.cost_usd) if answer.usage else counted
        done = Completed(answer.thread, usage, answer.total, task_hash(case.persona.task_md))
        self._store.turns.draft(case.turn_id, made.posts, done, now=self._now())
        self._forget_folder(case.folder)
        return Drafted(case.turn_id, case.fetched.snapshot, renewed)

    async def _posts(self, case: Case, answer: Answer, running: Running) -> Draft | Failure:
        """Make the posts. While the room is away, wait: an answer that stands is not thrown away and made again."""
        attempt = 0
        while True:
            try:
                return await draft(
                    self._room,
                    answer.text,
                    me=self._me,
                    persona=case.persona,
                    members=await self._roster.members(case.cid),
                    triggers=case.messages,
                    generation=case.triggers[0].generation,
                )
            except (Unavailable, RateLimited) as away:
                attempt += 1
                wait_s = backoff_s(attempt, draw=self._clock.draw(), first_s=1.0, cap_s=30.0)
                self._log.warning("the answer waits for the room", turn=case.turn_id, why=str(away))
                until = self._now() + wait_s
                while self._now() < until:
                    if running.stop_by is not None:
                        return _ended_before(running.stop_by)
                    await self._clock.sleep(0.5)

    def _set_aside(self, case: Case, answer: Answer, kind: FailureClass, why: str) -> Failed:
        """Keep the body of an answer that may not, or cannot, be posted: its owners decide."""
        case.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        kept = case.folder / "answer.txt"
        kept.touch(mode=0o600)
        kept.write_text(answer.text, encoding="utf-8")
        return Failed(case.turn_id, Failure(kind, f"{why[:200]}; kept in {kept}"), case.persona)

    def _forget_folder(self, folder: Path) -> None:
        with suppress(OSError):
            shutil.rmtree(folder)

    def _now(self) -> float:
        return self._clock.now().timestamp()


def chosen_thread(persona: Persona, request: TurnRequest) -> str | None:
    """Return the thread that this run begins under an id of ours; None where the executor chooses (codex tells it)."""
    codec = ADAPTERS[persona.adapter].codec(request)
    return request.new_thread if request.new_thread in codec.argv() else None


def _ended_before(by: EndedBy) -> Failure:
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
