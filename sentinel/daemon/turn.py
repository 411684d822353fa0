"""One turn: gate, fetch, `running`, executor, outcome, draft. Delivery is the postman's.

The order is the promise: the gate is asked at this very turn (law 2), `running` is durable before the executor exists,
its pid is durable as soon as there is one, and the exact bytes of the answer are durable before anything is posted.
Source: spec 02 sections 2 to 5.
"""

from collections.abc import Callable, Sequence

from sentinel.bridge.fetch import fetch
from sentinel.core.codec import EndedBy
from sentinel.core.errors import Rejected, RoomError, Unauthorized
from sentinel.core.gate import GateRefused
from sentinel.core.outcome import Failure, FailureClass
from sentinel.core.persona import Persona
from sentinel.core.turns import Queued
from sentinel.daemon import folders
from sentinel.daemon.case import Case
from sentinel.daemon.drafting import Drafting
from sentinel.daemon.ends import Drafted, Failed, Refusal, TurnEnd, ended_by_us
from sentinel.daemon.execution import Execution, Running
from sentinel.daemon.far import FarSide
from sentinel.daemon.ground import Ground
from sentinel.daemon.roster import Roster
from sentinel.daemon.threads import Threads
from sentinel.daemon.window import Window
from sentinel.home.examine import examine_aside


class Turner:
    """Runs the turns of one persona, one after the other."""

    def __init__(
        self, ground: Ground, *, roster: Roster, window: Window, on_running: Callable[[Running], None]
    ) -> None:
        room, store, me, clock, log = ground.room, ground.store, ground.me, ground.clock, ground.log
        self._home, self._room, self._store, self._me = ground.home, room, store, me
        self._roster, self._window, self._clock, self._log = roster, window, clock, log
        self.running: Running | None = None
        self._threads = Threads(store, clock=clock, log=log)
        self._far = FarSide(store, log)
        self._drafting = Drafting(room, store, me, roster=roster, far=self._far, clock=clock, log=log)
        self._execution = Execution(store, clock, log, far=self._far, on_running=on_running)

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
        turn_id, cid = self._clock.token(), batch[0].cid
        running = self.running = Running(turn_id, cid, self._now())  # from here on a `/stop` finds it
        try:
            verdict = await examine_aside(self._home, guarded=True)
            if isinstance(verdict, GateRefused):
                return Refusal(verdict)
            persona = verdict.persona
            case = await self._prepare(turn_id, persona, [one.message_id for one in batch])
            if isinstance(case, Failed):
                folders.forget(folders.folder_of(self._home, turn_id))
                return case
            if running.stop_by is not None:  # told to end before anything was started: so nothing is
                folders.forget(case.folder)
                return Failed(None, ended_by_us(running.stop_by), persona)
            return await self._work(case, running)
        finally:
            self.running = None
            self._far.over(self._execution.gone)

    async def gone(self) -> None:
        """Wait until nothing of the last executor's tree lives, here and as far as the other side can be reached."""
        await self._execution.gone()
        await self._far.settled()

    def left_on_far_side(self, turn_id: str, persona: Persona) -> None:
        """Note what an earlier process may have left running as another user: it is ended before anything begins there."""
        self._far.began(turn_id, persona)
        self._far.over(self._execution.gone)

    async def _prepare(self, turn_id: str, persona: Persona, ids: Sequence[str]) -> "Case | Failed":
        triggers = self._store.turns.triggers(ids)
        messages = self._store.inbox.messages(ids)
        cid = triggers[0].cid
        known = self._store.inbox.conversation(cid)
        answered = max(known.answered, known.first_mark) if known else 0
        folder = folders.folder_of(self._home, turn_id)
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
        if persona.far is not None:
            carried = await self._far.carry(fetched, turn_id, persona)
            if isinstance(carried, Failure):
                return Failed(None, carried, persona)
            fetched = carried
        thread = self._store.threads.get(cid)
        title = self._roster.title(cid)
        return Case(
            turn_id, persona, triggers, messages, fetched, thread, folder, self._home, self._me, title
        )

    async def _work(self, case: Case, running: Running) -> TurnEnd:
        """Execute, in the old thread or in a new one; then draft, or end the turn."""
        ran = await self._threads.run(case, running, self._execution)
        outcome = ran.outcome
        if running.stop_by is EndedBy.STOP:  # also when the answer was quicker than the signal
            outcome = ended_by_us(EndedBy.STOP)
        if isinstance(outcome, Failure):
            return self._failed(case, outcome)
        end = await self._drafting.draft(case, outcome, running, ran)
        if isinstance(end, Drafted):
            folders.forget(case.folder)
        return end

    def _failed(self, case: Case, failure: Failure) -> Failed:
        folders.forget(case.folder)
        record = self._store.turns.get(case.turn_id)
        return Failed(case.turn_id, failure, case.persona, thread=record.thread)

    def _now(self) -> float:
        return self._clock.now().timestamp()
