"""Errors of our own, counted at the place where they were met; the fifth in a row ends the sentinel for good.

The trigger that it was met at is put aside first, so that a sentinel started again lives with the others; `/retry` takes
it up, and counts anew. Source: spec 02 section 7 ("crash loop").
"""

from collections.abc import Sequence

from sentinel.core.crashes import error_of, is_loop, is_ours
from sentinel.core.errors import Exit, SentinelError
from sentinel.core.journal import State, Step
from sentinel.core.outcome import Failure, FailureClass
from sentinel.core.ports import Clock
from sentinel.core.turns import Queued
from sentinel.daemon.condition import Conditions, Ended
from sentinel.daemon.log import Log
from sentinel.store.crashes import Crash
from sentinel.store.records import TriggerChange
from sentinel.store.store import Store


class CrashLoop(SentinelError):
    """The same error of our own, five times at the same place: no restart heals it."""

    exit_code = Exit.BUG

    def __init__(self, crash: Crash, ended: Ended) -> None:
        super().__init__(
            f"a bug of ours, {crash.times} times at {crash.place}: {crash.error}",
            mend="report it with the log; what it was met at is put aside, and everything else is kept",
        )
        self.ended = ended


class CrashCounter:
    """Counts for one persona."""

    def __init__(self, store: Store, conditions: Conditions, *, clock: Clock, log: Log) -> None:
        self._store, self._conditions, self._clock, self._log = store, conditions, clock, log

    def met(self, fault: BaseException, *, batch: Sequence[Queued] = (), place: str = "") -> None:
        """Count `fault`, met with `batch` in hand or else at `place`; raises `CrashLoop` when it is one.

        In a batch of several nobody knows whose fault it was: each runs alone next, and is counted there.
        """
        if not is_ours(fault):
            return
        if len(batch) > 1:
            self._take_from(batch, [TriggerChange(one.message_id, State.SEEN, alone=True) for one in batch])
            return
        now = self._clock.now().timestamp()
        crash = self._store.crashes.count(batch[0].message_id if batch else place, error_of(fault), now=now)
        self._log.error("a bug of ours, counted", place=crash.place, error=crash.error, times=crash.times)
        if is_loop(crash.times):
            # Without its failures: what has nothing to count is not taken up again by a success, only by a human.
            changes = [TriggerChange(one.message_id, State.PARKED, failures=0) for one in batch]
            self._take_from(batch, changes)
            ended = Ended(crash.error, crash.place, crash.since)
            self._conditions.change(ended=ended)
            raise CrashLoop(crash, ended) from fault

    def _take_from(self, batch: Sequence[Queued], changes: Sequence[TriggerChange]) -> None:
        """Change triggers, and end the turn that still holds them."""
        turn_id = self._store.turns.running_with([one.message_id for one in batch])
        if turn_id is None:
            waiting = {one.message_id for one in self._store.turns.in_state(State.SEEN)}
            self._store.turns.change([one for one in changes if one.message_id in waiting])
            return
        failure = Failure(FailureClass.BUG, "an error of our own")
        now = self._clock.now().timestamp()
        self._store.turns.end(turn_id, Step.FAIL, changes, failure=failure, now=now)
