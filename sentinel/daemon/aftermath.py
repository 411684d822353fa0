"""What the end of a turn means: for its triggers, and for the persona as a whole.

The table is `core.obituary`; here it is carried out. Counters belong to trigger messages, never to the persona (law 6);
an outage holds the queue and counts nobody; a cut-off run may have acted. Source: spec 02 sections 4 and 7.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from sentinel.core import notices, obituary
from sentinel.core.gate import GateRefused
from sentinel.core.journal import State, Step
from sentinel.core.notices import Notice
from sentinel.core.outcome import Failure, FailureClass
from sentinel.core.persona import OnInterrupt, Persona
from sentinel.core.ports import Clock
from sentinel.core.turns import Queued, after_batch_failure, backoff_s
from sentinel.daemon.case import may_have_acted
from sentinel.daemon.condition import Conditions, Death, Hold
from sentinel.daemon.ends import Failed, stop_step
from sentinel.daemon.log import Log
from sentinel.daemon.postman import Postman
from sentinel.store.records import TriggerChange, TriggerRecord
from sentinel.store.store import Store

_HOLD_FIRST_S, _HOLD_CAP_S = 5.0, 600.0


class Aftermath:
    """Carries the verdict on a failed turn out."""

    def __init__(
        self,
        store: Store,
        conditions: Conditions,
        postman: Postman,
        *,
        persona: Persona,
        clock: Clock,
        log: Log,
    ) -> None:
        self._store, self._conditions, self._postman = store, conditions, postman
        self._clock, self._log = clock, log
        self.persona = persona

    def refuse(self, batch: Sequence[Queued], refused: GateRefused) -> None:
        """A gate refusal at a turn: death only when it is still there 5 s later (spec 02 section 7)."""
        for check in refused.failed:
            self._log.error(check.line())
        now = self._clock.now()
        if (
            refused.is_passing
        ):  # the executor's side is out of reach: an outage, which proves no death and counts nobody
            self._conditions.change(refused_since=None)
            self._probe_later()
            self._store.turns.change(self._wanted(self._waiting(batch, ready_at=now.timestamp())))
            self._hold(FailureClass.UNAVAILABLE)
            return
        since = self._conditions.now.refused_since
        first_seen = datetime.fromtimestamp(since, UTC) if since is not None else None
        match obituary.judge_refusal(first_seen, now):
            case obituary.Dead(cause, reset_at):
                self._die(cause, reset_at)
            case obituary.Hold(until):
                self._conditions.change(refused_since=since if since is not None else now.timestamp())
                self._probe_later(until)
                self._store.turns.change(self._wanted(self._waiting(batch, ready_at=until.timestamp())))

    def fail(self, batch: Sequence[Queued], end: Failed) -> None:
        """Apply the table of section 7 to a turn that gave no answer."""
        self.persona = end.persona
        failure, now = end.failure, self._clock.now()
        triggers = self._store.turns.triggers([one.message_id for one in batch])
        verdict = obituary.judge(
            failure,
            failures_before=triggers[0].failures,
            rates_before=max(one.rates for one in triggers),
            thread_failures=1,  # the one retry in a new thread was already made inside the turn
            now=now,
            limits=self.persona.limits,
        )
        self._log.warning(
            "turn failed",
            turn=end.turn_id,
            kind=failure.kind.value,
            evidence=failure.evidence,
            verdict=type(verdict).__name__,
        )
        self._conditions.change(
            refused_since=None
        )  # the gate let this turn pass: its refusals were not in a row
        if not isinstance(verdict, obituary.Dead):
            self._probe_later()
        changes: Sequence[TriggerChange]
        match verdict:
            case obituary.Dead(cause, reset_at):
                changes = self._waiting(batch, ready_at=now.timestamp(), rates=None)
                self._die(cause, reset_at)
            case obituary.Hold(until):
                changes = [
                    TriggerChange(one.message_id, State.SEEN, ready_at=until.timestamp(), rates=one.rates + 1)
                    for one in triggers
                ]
            case obituary.Outage():
                changes = self._waiting(batch, ready_at=now.timestamp())
                self._hold(failure.kind)
            case obituary.Counted():
                changes = self._count(batch, verdict, failure)
            case obituary.EndsVisibly():
                changes = self._end_visibly(batch, end)
            case obituary.Quiet():
                changes = self._cut(end, [one.message_id for one in batch])
            case obituary.RetryInNewThread():
                changes = self._waiting(batch, ready_at=now.timestamp())
        changes = self._wanted(changes)
        if end.turn_id is not None:
            self._store.turns.end(
                end.turn_id, stop_step(failure), changes, failure=failure, now=now.timestamp()
            )
        else:
            self._store.turns.change(changes)

    def _count(
        self, batch: Sequence[Queued], verdict: obituary.Counted, failure: Failure
    ) -> Sequence[TriggerChange]:
        """A message failed. A batch of several counts for nobody: its triggers then run alone."""
        after = after_batch_failure(
            batch, now=self._now(), draw=self._clock.draw(), limits=self.persona.limits
        )
        if len(batch) > 1:
            return [
                TriggerChange(one.message_id, State.SEEN, ready_at=one.ready_at, alone=True, rates=0)
                for one in after
            ]
        one = after[0]
        if verdict.notice:
            self._say(
                one.cid,
                f"failing:{one.message_id}",
                Notice.FAILING,
                cause=failure.kind.value,
                failures=verdict.failures,
            )
        if verdict.park:
            self._say(
                one.cid,
                f"parked:{one.message_id}",
                Notice.PARKED,
                cause=failure.kind.value,
                failures=verdict.failures,
            )
        state = State.PARKED if verdict.park else State.SEEN
        return [
            TriggerChange(
                one.message_id, state, ready_at=one.ready_at, alone=one.alone, failures=one.failures, rates=0
            )
        ]

    def _end_visibly(self, batch: Sequence[Queued], end: Failed) -> Sequence[TriggerChange]:
        """The message is over, until a human decides: the body is kept, one notice says so."""
        rejected = end.failure.kind is FailureClass.REJECTED
        notice, state = (Notice.REJECTED, State.REJECTED) if rejected else (Notice.LEAK, State.NEEDS_HUMAN)
        self._say(batch[0].cid, f"{notice.value}:{end.turn_id or batch[0].message_id}", notice)
        return [TriggerChange(one.message_id, state) for one in batch]

    def _cut(self, end: Failed, ids: Sequence[str]) -> Sequence[TriggerChange]:
        """We ended the turn ourselves: what a `/stop` put aside stays there, else the rule for cut-off runs."""
        if end.turn_id is None:  # nothing was started, so nothing was cut off
            return []
        if end.failure.kind is FailureClass.STOPPED:
            return [
                TriggerChange(one.message_id, _unheld(one), cut_thread=end.thread)
                for one in self._store.turns.triggers(ids)
            ]
        return self.cut_changes(ids, thread=end.thread, persona=end.persona)

    def cut_changes(
        self, ids: Sequence[str], *, thread: str | None, persona: Persona
    ) -> Sequence[TriggerChange]:
        """Return what an interrupted run means for its triggers (spec 02 section 4, "may have acted").

        What a `/stop` has put aside while it ran stays there: a stopped turn does not start again by itself.
        """
        triggers = [one for one in self._store.turns.triggers(ids) if one.state is State.RUNNING]
        acted = may_have_acted(persona)
        if acted and triggers and persona.on_interrupt is OnInterrupt.ASK:
            self._say(triggers[0].cid, f"interrupted:{triggers[0].message_id}", Notice.INTERRUPTED_ASK)
            return [TriggerChange(one.message_id, State.NEEDS_HUMAN) for one in triggers]
        return [
            TriggerChange(one.message_id, State.SEEN, cut_thread=thread if acted else None, cuts=one.cuts + 1)
            for one in triggers
        ]

    def recover_running(self, turn_id: str) -> None:
        """Count a turn that an earlier process left in `running` as interrupted; its executor is already over."""
        record = self._store.turns.get(turn_id)
        changes = self.cut_changes(record.batch, thread=record.thread, persona=self.persona)
        failure = Failure(FailureClass.INTERRUPTED, "the sentinel went down while it ran")
        self._store.turns.end(turn_id, Step.INTERRUPT, changes, failure=failure, now=self._now())

    def _waiting(
        self, batch: Sequence[Queued], *, ready_at: float, rates: int | None = 0
    ) -> Sequence[TriggerChange]:
        """Return the triggers as they wait again; what was no rate limit ends a row of them (`rates`)."""
        return [TriggerChange(one.message_id, State.SEEN, ready_at=ready_at, rates=rates) for one in batch]

    def _wanted(self, changes: Sequence[TriggerChange]) -> Sequence[TriggerChange]:
        """Return the changes without those that would take up again what a `/stop` has put aside meanwhile."""
        triggers = self._store.turns.triggers([one.message_id for one in changes])
        aside = {one.message_id for one in triggers if one.state is State.PARKED}
        return [one for one in changes if one.state is State.PARKED or one.message_id not in aside]

    def _probe_later(self, at: datetime | None = None) -> None:
        """A probe of the dead that proved neither life nor death: the next one comes in its time, not at once."""
        death = self._conditions.now.death
        if death is not None:
            later = at or obituary.probe_at(None, now=self._clock.now())
            self._conditions.change(death=replace(death, probe_at=later.timestamp()))

    def _die(self, cause: FailureClass, reset_at: datetime | None) -> None:
        now, known = self._clock.now(), self._conditions.now.death
        since = known.since if known is not None and known.cause is cause else now.timestamp()
        probe = obituary.probe_at(reset_at, now=now)
        told = reset_at.timestamp() if reset_at else None
        self._conditions.change(death=Death(cause, since, probe.timestamp(), told), hold=None)
        self._log.error("dead", cause=cause.value, probe_at=probe.isoformat())

    def _hold(self, cause: FailureClass) -> None:
        known = self._conditions.now.hold
        attempts = known.attempts + 1 if known else 1
        wait_s = backoff_s(attempts, draw=self._clock.draw(), first_s=_HOLD_FIRST_S, cap_s=_HOLD_CAP_S)
        since = known.since if known else self._now()
        self._conditions.change(hold=Hold(cause, since, self._now() + wait_s, attempts))

    def _say(self, cid: str, key: str, notice: Notice, **fields: notices.Field) -> None:
        self._postman.say(cid, key, notices.text(notice, self.persona.locale, **fields))

    def _now(self) -> float:
        return self._clock.now().timestamp()


def _unheld(trigger: TriggerRecord) -> State:
    """Return where a trigger of a stopped turn stands: asked after the `/stop`, it waits again."""
    return State.SEEN if trigger.state is State.RUNNING else trigger.state
