"""The sentinel of one persona: lock, recover, connect, and let intake, worker and postman run until told to end.

Source: spec 02 section 3.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import cast

from sentinel import process
from sentinel.bridge.deliver import Deliverer
from sentinel.core import notices
from sentinel.core.codec import EndedBy
from sentinel.core.commands import Command
from sentinel.core.errors import AlreadyRunning, ConfigError, Exit, Unauthorized
from sentinel.core.gate import Passed
from sentinel.core.journal import FinishDelivery, State, StopAndRequeue, recover
from sentinel.core.model import Message, PresenceState
from sentinel.core.notices import Notice
from sentinel.core.persona import Persona
from sentinel.daemon import folders
from sentinel.daemon.aftermath import Aftermath
from sentinel.daemon.commands import Commands
from sentinel.daemon.condition import Conditions
from sentinel.daemon.control import Control
from sentinel.daemon.crash import CrashCounter, CrashLoop
from sentinel.daemon.execution import Running
from sentinel.daemon.goodbye import Goodbye
from sentinel.daemon.ground import Ground
from sentinel.daemon.guard import LoopGuard
from sentinel.daemon.intake import Heard, Intake
from sentinel.daemon.postman import Postman
from sentinel.daemon.presence import Presence
from sentinel.daemon.roster import Roster
from sentinel.daemon.turn import Turner
from sentinel.daemon.verbs import verbs
from sentinel.daemon.watchdog import Notifier, Pulse, Watchdog
from sentinel.daemon.window import Window
from sentinel.daemon.worker import Worker, still_true
from sentinel.home.examine import NOT_ASKED, examine
from sentinel.store.records import TurnRecord

HEARTBEAT_S = 60.0
_TURNS, _DELIVERIES = "turns", "deliveries"
_SILENT = Notifier()
_PERSONA_FRESH_S = 2.0


class Sentinel:
    """One persona's process."""

    def __init__(
        self, ground: Ground, *, guarded: frozenset[str] | None, notifier: Notifier = _SILENT
    ) -> None:
        """`guarded`: the conversations of the command line; None for all that the account is in.

        `notifier`: the service manager that started this process, if one did.
        """
        self._ground, self._guarded, self._notifier = ground, guarded, notifier
        self._pulse = pulse = Pulse(asyncio.get_running_loop().time)
        room, store, clock, log = ground.room, ground.store, ground.clock, ground.log
        self._persona, self._persona_at = ground.persona, clock.now().timestamp()
        self._roster = Roster(room)
        # One more than a block can hold: a full window then answers for the longest block.
        self._window = Window(ground.persona.limits.block_messages + 1)
        self._conditions = Conditions(store)
        self._presence = Presence(room, clock, log)
        self.turner = Turner(ground, roster=self._roster, window=self._window, on_running=self._show_running)
        self._postman = Postman(
            Deliverer(room, store.turns, ground.me, clock),
            store,
            account=ground.me.uid,
            persona=ground.persona.name,
            clock=clock,
            log=log,
            still_true=self._is_still_true,
            on_failure=self._undelivered,
            on_settled=lambda: self._worker.ring(),  # noqa: PLW0108  # the worker is made after the postman
            on_step=lambda: pulse.on(_DELIVERIES),
        )
        self._guard = LoopGuard(store, self._postman, persona=self._current_persona, clock=clock)
        self._goodbye = Goodbye(store, self._postman, log)
        self._aftermath = Aftermath(
            store, self._conditions, self._postman, persona=ground.persona, clock=clock, log=log
        )
        self._crashes = CrashCounter(store, self._conditions, clock=clock, log=log)
        self._worker = Worker(
            ground,
            self.turner,
            self._postman,
            self._presence,
            self._conditions,
            self._aftermath,
            self._crashes,
            on_round=lambda: pulse.on(_TURNS),
        )
        self.commands = Commands(ground, self.turner, self._worker, self._postman, self._conditions)
        self._intake = Intake(
            ground,
            guarded=guarded,
            roster=self._roster,
            window=self._window,
            persona=self._current_persona,
            heard=Heard(self._worker.ring, self._obey, self._missed, self._guard.stopped, self._link),
            pulse=pulse,
        )

    async def run(self, *, on_ready: Callable[[], object] = lambda: None) -> Exit:
        """Run until TERM (`end`), `session.superseded`, or a fault that no waiting heals."""
        ground = self._ground
        process.adopt_orphans()
        await self._recover()
        control = Control(ground.home, verbs(self.commands, ground, self._postman))
        await control.open()
        on_ready()
        tasks = {
            asyncio.create_task(one, name=name)
            for name, one in (
                ("intake", self._intake.run()),
                ("worker", self._worker.run()),
                ("postman", self._postman.run()),
                ("presence", self._presence.run()),
                ("heartbeat", self._beat()),
            )
        }
        if self._notifier.watchdog_s is not None:
            tasks.add(asyncio.create_task(self._watchdog(self._notifier.watchdog_s), name="watchdog"))
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            return await self._why_over(done)
        finally:
            await self._leave(tasks, control)

    async def end(self) -> None:
        """Take no more turns, give the running one its grace, stop its tree; then `run` returns (TERM)."""
        self._ground.log.info("ending")
        self._notifier.tell(STOPPING=1)
        await self._worker.end()

    async def _watchdog(self, period_s: float) -> None:
        watchdog = Watchdog(
            self._notifier, self._pulse, ring=self._ring, awaited=self._awaited, log=self._ground.log
        )
        await watchdog.run(period_s)

    def _ring(self) -> None:
        self._worker.ring()
        self._postman.ring()

    def _awaited(self) -> str | None:
        """Return the step that waits for a running executor: that one has time limits of its own."""
        running = self.turner.running
        return _TURNS if running and running.child and not running.child.is_judged else None

    async def _why_over(self, done: set[asyncio.Task[None]]) -> Exit:
        for task in done:
            fault = _first(task.exception())
            if isinstance(fault, Unauthorized):
                raise ConfigError(
                    "the room no longer accepts this persona's token", mend="put a good token into its home"
                ) from fault
            if fault is not None:
                await self._crashed(fault, task.get_name())
                raise fault
            if task.get_name() == "intake":
                raise AlreadyRunning(
                    "another socket of this account took over (session.superseded)",
                    mend="stop the other sentinel first; this one does not fight it",
                )
        return Exit.DONE

    async def _crashed(self, fault: BaseException, loop: str) -> None:
        """A loop of ours ended by a fault: count it, and say goodbye when it ends us for good (raises `CrashLoop`)."""
        batch = self._worker.batch if loop == "worker" else ()
        place = self._postman.delivering if loop == "postman" else None
        try:
            if isinstance(fault, CrashLoop):
                raise fault
            self._crashes.met(fault, batch=batch, place=place or loop)
        except CrashLoop as end:
            await self._goodbye.say(end.ended, self._persona.locale)
            raise

    async def _leave(self, tasks: set[asyncio.Task[None]], control: Control) -> None:
        """Stop what runs, say that we are gone, and leave nothing behind."""
        self.turner.stop(EndedBy.TERM)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        with suppress(TimeoutError):
            async with asyncio.timeout(self._persona.limits.term_grace_s):
                await self.turner.gone()
        await control.close()

    async def _recover(self) -> None:
        """Finish what an earlier process left: stop its executors first, then say nothing twice."""
        store, log = self._ground.store, self._ground.log
        last = store.turns.last_spawned()
        if last is not None and last.state is not State.RUNNING:
            # It gave its outcome and may linger all the same: one executor at a time.
            await process.stop_stranger(last.pid or 0, last.started or 0, last.id)
            self.turner.left_on_far_side(last.id, self._persona)
        for left in recover(store.turns.unfinished()):
            match left:
                case StopAndRequeue(turn_id):
                    record = store.turns.get(turn_id)
                    ended = await process.stop_stranger(record.pid or 0, record.started or 0, turn_id)
                    self.turner.left_on_far_side(turn_id, self._persona)
                    self._aftermath.recover_running(turn_id)
                    log.warning("recovered an interrupted turn", turn=turn_id, processes_ended=ended)
                case FinishDelivery(turn_id):
                    log.warning("recovers a delivery", turn=turn_id)
        folders.sweep(self._ground.home)

    async def _beat(self) -> None:
        """Keep the heartbeat that `sentinel status` reads, also when this process cannot answer any more."""
        while True:
            self._ground.store.keep("heartbeat", f"{self._ground.clock.now().timestamp():.0f}")
            await self._ground.clock.sleep(HEARTBEAT_S)

    def _current_persona(self) -> Persona:
        """Return the persona as its home says now; the last good reading while the home is being changed."""
        now = self._ground.clock.now().timestamp()
        if abs(now - self._persona_at) >= _PERSONA_FRESH_S:
            verdict = examine(self._ground.home, guarded=True, far=self._persona.far or NOT_ASKED)
            if isinstance(verdict, Passed):
                self._persona = verdict.persona
            self._persona_at = now
        return self._persona

    def _show_running(self, running: Running) -> None:
        self._presence.show(PresenceState.WORKING)
        self._presence.typing(running.cid, on=True)

    def _obey(self, message: Message, command: Command) -> None:
        self._ground.log.info("obeys", cid=message.cid, message=message.id, command=command.kind.value)
        self.commands.obey(message, command)

    def _missed(self, cid: str, count: int) -> None:
        text = notices.text(Notice.MISSED, self._persona.locale, count=count)
        self._postman.say(cid, f"missed:{cid}:{self._ground.clock.now():%Y-%m-%dT%H:%M}", text)

    def _is_still_true(self, key: str) -> bool:
        return (
            still_true(self._conditions, key)
            and self._guard.still_true(key)
            and self._goodbye.still_true(key)
        )

    def _link(self, up: bool) -> None:  # noqa: FBT001  # the shape that the intake calls
        if up:
            self._presence.again()
            self._postman.room_is_back()
            self._worker.room_is_back()

    def _undelivered(self, turn: TurnRecord, notice: Notice) -> None:
        if turn.kind == "answer":
            text = notices.text(notice, self._persona.locale)
            self._postman.say(turn.cid, f"{notice.value}:{turn.id}", text)


def _first(fault: BaseException | None) -> BaseException | None:
    """Return the first single fault of what a task raised: the intake runs in a group of tasks."""
    while isinstance(fault, BaseExceptionGroup):
        inner = cast("tuple[BaseException, ...]", fault.exceptions)
        fault = inner[0]
    return fault
