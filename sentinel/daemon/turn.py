"""One turn: gate, fetch, `running`, executor, outcome, draft. Delivery is the postman's.

The order is the promise: the gate is asked at this very turn (law 2), `running` is durable before the executor exists,
its pid is durable as soon as there is one, and the exact bytes of the answer are durable before anything is posted.
Source: spec 02 sections 2 to 5.
"""

import shutil
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from sentinel.bridge.draft import draft
from sentinel.bridge.fetch import fetch
from sentinel.core.codec import EndedBy
from sentinel.core.errors import RoomError, Unauthorized
from sentinel.core.gate import GateRefused
from sentinel.core.journal import Step
from sentinel.core.model import Account
from sentinel.core.outcome import Answer, Failure, FailureClass
from sentinel.core.parts import leaks
from sentinel.core.persona import Persona
from sentinel.core.ports import Clock, Room
from sentinel.core.turns import Queued
from sentinel.daemon.case import Case, request_of, secrets_of, task_hash
from sentinel.daemon.execution import Execution, Running
from sentinel.daemon.log import Log
from sentinel.daemon.roster import Roster
from sentinel.daemon.window import Window
from sentinel.home.examine import examine
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
                return case
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
        self._store.turns.begin(
            case.turn_id,
            case.triggers,
            snapshot=case.fetched.snapshot,
            thread=resume or first,
            now=self._now(),
        )
        request = request_of(
            case, resume=resume, new_thread=first, boundary=self._clock.token(), why_new=None
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
        if isinstance(outcome, Failure):
            return self._failed(case, outcome)
        return await self._draft(case, outcome, resumed=request.resume, renewed=renewed)

    def _failed(self, case: Case, failure: Failure) -> Failed:
        self._forget_folder(case)
        record = self._store.turns.get(case.turn_id)
        return Failed(case.turn_id, failure, case.persona, thread=record.thread)

    async def _draft(
        self, case: Case, answer: Answer, *, resumed: str | None, renewed: FailureClass | None
    ) -> TurnEnd:
        """Turn an answer into exact posts, and keep them."""
        if leaks(answer.text, secrets_of(case.persona)):
            case.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            kept = case.folder / "answer.txt"
            kept.touch(mode=0o600)
            kept.write_text(answer.text, encoding="utf-8")
            return Failed(case.turn_id, Failure(FailureClass.LEAK, f"kept in {kept}"), case.persona)
        members = await self._roster.members(case.cid)
        made = await draft(
            self._room,
            answer.text,
            me=self._me,
            persona=case.persona,
            members=members,
            triggers=case.messages,
            generation=case.triggers[0].generation,
        )
        if made.ambiguous:
            self._log.warning("ambiguous names", turn=case.turn_id, count=len(made.ambiguous))
        usage = answer.usage or difference(
            answer.total,
            case.thread.total,
            same_thread=resumed is not None and answer.thread == case.thread.id,
        )
        done = Completed(answer.thread, usage, answer.total, task_hash(case.persona.task_md))
        self._store.turns.draft(case.turn_id, made.posts, done, now=self._now())
        self._forget_folder(case)
        return Drafted(case.turn_id, case.fetched.snapshot, renewed)

    def _forget_folder(self, case: Case) -> None:
        with suppress(OSError):
            shutil.rmtree(case.folder)

    def _now(self) -> float:
        return self._clock.now().timestamp()


def stop_step(failure: Failure) -> Step:
    """Return the journal's step for a turn that ended with this failure."""
    match failure.kind:
        case FailureClass.STOPPED:
            return Step.STOP
        case FailureClass.INTERRUPTED:
            return Step.INTERRUPT
        case _:
            return Step.FAIL
