"""The loop that takes turns: which batch next, run it, and what its end means for the triggers and the persona.

Turns of one persona are serial. Counters belong to trigger messages, never to the persona (law 6); an outage holds the
queue and counts nobody; death is only what `core.obituary` calls death. Source: spec 02 sections 3 (point 6) and 7.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime

from sentinel.core import notices
from sentinel.core.codec import EndedBy
from sentinel.core.errors import RoomError, Unauthorized
from sentinel.core.journal import State
from sentinel.core.model import PresenceState
from sentinel.core.notices import Notice
from sentinel.core.outcome import Failure, FailureClass
from sentinel.core.persona import Persona
from sentinel.core.turns import Queued, next_batch, next_wake
from sentinel.daemon.aftermath import Aftermath
from sentinel.daemon.condition import Conditions, Death, Hold
from sentinel.daemon.crash import CrashCounter
from sentinel.daemon.ends import Drafted, Failed, Refusal
from sentinel.daemon.ground import Ground
from sentinel.daemon.postman import Postman
from sentinel.daemon.presence import Presence
from sentinel.daemon.turn import Turner
from sentinel.store.database import Unwritable
from sentinel.store.records import TriggerChange

_BATCH_MOST = 200  # an answer names every trigger that it answers, and a room takes only so many names


class Worker:
    """Takes turns for one persona until told to end."""

    def __init__(
        self,
        ground: Ground,
        turner: Turner,
        postman: Postman,
        presence: Presence,
        conditions: Conditions,
        aftermath: Aftermath,
        crashes: CrashCounter,
        *,
        on_round: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_round` is called each time that the loop goes round (the watchdog's evidence)."""
        self._turner, self._postman, self._presence = turner, postman, presence
        self._on_round = on_round
        self._store, self._conditions = ground.store, conditions
        self._aftermath, self._clock, self._log = aftermath, ground.clock, ground.log
        self._crashes = crashes
        self._rung = asyncio.Event()
        self._ending = False
        self.batch: Sequence[Queued] = ()
        """The triggers in hand."""

    def ring(self) -> None:
        """Something changed: look at the queue again."""
        self._rung.set()

    def room_is_back(self) -> None:
        """The live line is up again: what waited for the room alone waits no longer."""
        hold = self._conditions.now.hold
        if hold is not None and hold.cause is FailureClass.ROOM_UNAVAILABLE:
            self._conditions.change(hold=replace(hold, until=self._now()))
        self.ring()

    async def end(self) -> None:
        """Take no more turns; give the running one its grace, then stop its tree (TERM)."""
        self._ending = True
        self.ring()
        grace_s = self._persona.limits.term_grace_s
        if self._turner.running is not None:
            await self._clock.sleep(grace_s)
            self._turner.stop(EndedBy.TERM)

    async def run(self) -> None:
        """Take turns until `end`; raises `Unauthorized` when the room no longer knows us, `Unwritable` on a full disk."""
        self._show()  # what an earlier process was (dead, held) is so until a turn proves otherwise
        while not self._ending:
            self._on_round()
            self._rung.clear()
            batch = self._choose()
            if batch:
                await self._turn(batch)
            else:
                await self._wait()
        await self._turner.gone()

    @property
    def _persona(self) -> Persona:
        return self._aftermath.persona

    def _choose(self) -> tuple[Queued, ...] | None:
        """Return the next batch that may run now, or None."""
        condition, now = self._conditions.now, self._now()
        if condition.paused:
            return None
        queue = self._queue()
        if condition.death is not None:
            self._say_dead(queue, condition.death)
            if now < condition.death.probe_at or not queue:
                return None
            return (
                min(queue, key=lambda one: (one.queued_at, one.seq)),
            )  # the oldest trigger *is* the probe
        if condition.hold is not None and now < condition.hold.until:
            self._say_held(queue, condition.hold)
            return None
        batch = next_batch(queue, now=now)
        return batch[:_BATCH_MOST] if batch else None

    def _queue(self) -> tuple[Queued, ...]:
        """Return the waiting triggers of conversations whose last answer is out."""
        undelivered = {one.cid for one in self._store.turns.deliveries() if one.kind == "answer"}
        return tuple(one for one in self._store.inbox.queue() if one.cid not in undelivered)

    async def _wait(self) -> None:
        """Sleep until something rings or something becomes ready."""
        now, condition = self._now(), self._conditions.now
        times = [next_wake(self._queue(), now=now)]
        if condition.death is not None:
            times = [condition.death.probe_at]
        elif condition.hold is not None and now < condition.hold.until:
            times = [condition.hold.until, condition.hold.since + self._persona.limits.outage_notice_s]
        if condition.paused:
            times = []
        later = [one for one in times if one is not None and one > now]
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.01, min(later) - now) if later else None):
                await self._rung.wait()

    async def _turn(self, batch: Sequence[Queued]) -> None:
        """Run one turn and carry its end out. The outermost edge for bugs of our own: counted, kept, never silent."""
        self.batch, crashed = batch, None
        try:
            end = await self._turner.run(batch)
        except (Unauthorized, Unwritable, asyncio.CancelledError):
            raise
        except RoomError as away:
            end = Failed(
                self._open_turn(batch), Failure(FailureClass.ROOM_UNAVAILABLE, str(away)[:300]), self._persona
            )
        except Exception as bug:
            self._log.error("a bug of ours", error=f"{type(bug).__name__}: {bug}")
            failure = Failure(FailureClass.BUG, f"{type(bug).__name__}: {bug}"[:300])
            end, crashed = Failed(self._open_turn(batch), failure, self._persona), bug
        self._presence.typing(batch[0].cid, on=False)
        match end:
            case Drafted():
                await self._succeed(end)
            case Refusal(verdict):
                self._aftermath.refuse(batch, verdict)
            case Failed():
                self._aftermath.fail(batch, end)
        self.batch = ()
        self._show()
        if crashed is not None:
            self._crashes.met(crashed, batch=batch)

    def _open_turn(self, batch: Sequence[Queued]) -> str | None:
        """Return the id of the `running` turn that holds this batch, if it came that far."""
        return self._store.turns.running_with([one.message_id for one in batch])

    async def _succeed(self, end: Drafted) -> None:
        record = self._store.turns.get(end.turn_id)
        self._store.crashes.over(record.batch)
        self._say_back()
        self._conditions.change(death=None, hold=None, refused_since=None, ended=None)
        await self._postman.attempt(end.turn_id, anchor=end.anchor)
        if end.renewed is not None:
            key = f"thread-renewed:{end.turn_id}"
            self._say(record.cid, key, Notice.THREAD_RENEWED, cause=end.renewed.value)
        if end.ambiguous:
            names = ", ".join(end.ambiguous)
            self._say(record.cid, f"ambiguous:{end.turn_id}", Notice.AMBIGUOUS, names=names)
        if end.files_left:
            self._say(record.cid, f"files-left:{end.turn_id}", Notice.FILES_LEFT, count=end.files_left)
        self._retry_parked()

    def _retry_parked(self) -> None:
        """Parked messages are tried once more after a success."""
        tried = [
            TriggerChange(one.message_id, State.SEEN, ready_at=self._now(), alone=True)
            for one in self._store.turns.in_state(State.PARKED)
            if one.failures == self._persona.limits.park_after
        ]
        if tried:
            self._store.turns.change(tried)

    def _say_dead(self, queue: Sequence[Queued], death: Death) -> None:
        """The obituary goes to each conversation at its first trigger while dead; once per cause."""
        reset_at = datetime.fromtimestamp(death.reset_at, UTC) if death.reset_at else None
        text = notices.obituary(death.cause, reset_at, self._persona.locale)
        for cid in sorted({one.cid for one in queue}):
            self._postman.say(cid, f"{death.key}:{cid}", text)

    def _say_back(self) -> None:
        """Where an obituary stands in the room, it is over now."""
        condition = self._conditions.now
        told = [one.key for one in (condition.death, condition.ended) if one is not None]
        if not told:
            return
        waiting = len(self._store.inbox.queue())
        for cid in sorted({one.cid for one in self._store.inbox.conversations()}):
            for key in told:
                if self._store.turns.notice_was_sent(f"{key}:{cid}"):
                    self._say(cid, f"back:{key}:{cid}", Notice.BACK, waiting=waiting)

    def _say_held(self, queue: Sequence[Queued], hold: Hold) -> None:
        lasted_s = self._now() - hold.since
        if lasted_s < self._persona.limits.outage_notice_s:
            return
        for cid in sorted({one.cid for one in queue}):
            key = f"outage:{hold.since:.0f}:{cid}"
            self._say(cid, key, Notice.OUTAGE, cause=hold.cause.value, minutes=int(lasted_s // 60))

    def _say(self, cid: str, key: str, notice: Notice, **fields: notices.Field) -> None:
        self._postman.say(cid, key, notices.text(notice, self._persona.locale, **fields))

    def _show(self) -> None:
        """Tell the room how this persona is: presence is the truth, not a hope."""
        condition = self._conditions.now
        if condition.death is not None:
            self._presence.show(PresenceState.DEAD, condition.death.cause.value)
        elif condition.hold is not None:
            self._presence.show(PresenceState.FAILING, condition.hold.cause.value)
        else:
            self._presence.show(PresenceState.IDLE)

    def _now(self) -> float:
        return self._clock.now().timestamp()


def still_true(conditions: Conditions, key: str) -> bool:
    """Judge a notice again at sending: its cause may be over (then it is `moot`)."""
    kind, _, rest = key.partition(":")
    condition = conditions.now
    if kind == "obituary":
        return condition.death is not None and rest.startswith(condition.death.cause.value + ":")
    if kind == "outage":
        return condition.hold is not None
    return True
