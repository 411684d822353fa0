"""Deliveries: answers and notices from the journal into the room, again and again until the journal says done.

An answer is tried at once by the turn that drafted it; whatever was postponed, and every notice, is tried here, beside
the queue of turns, so that a long turn never holds back the line that confirms a `/stop`, and one failing room never
starves the others. A notice is judged again at sending: cause over and nothing sent yet is `moot`.
Source: spec 02 sections 4 and 7.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from sentinel.bridge.deliver import Delivered, Deliverer, Delivery, InDoubt, Postponed, Refused, retry_at
from sentinel.core.journal import State, Step
from sentinel.core.model import Outgoing
from sentinel.core.notices import Notice
from sentinel.core.parts import nonce
from sentinel.core.ports import Clock
from sentinel.core.turns import backoff_s
from sentinel.daemon.log import Log
from sentinel.store.records import TriggerChange, TurnRecord
from sentinel.store.store import Store


class Postman:
    """Delivers for one persona, one turn at a time."""

    def __init__(
        self,
        deliverer: Deliverer,
        store: Store,
        *,
        account: str,
        persona: str,
        clock: Clock,
        log: Log,
        still_true: Callable[[str], bool],
        on_failure: Callable[[TurnRecord, Notice], None],
        on_settled: Callable[[], None],
        on_step: Callable[[], None] = lambda: None,
    ) -> None:
        """Make the postman.

        `still_true(key)` judges a notice's cause; `on_failure` is told of turns that ended without delivery;
        `on_settled` that something ended, whichever way: a conversation may be free for its next turn; `on_step`
        that the loop went round or begins another delivery (the watchdog's evidence).
        """
        self._deliverer, self._store = deliverer, store
        self._account, self._persona = account, persona
        self._clock, self._log = clock, log
        self._still_true, self._on_failure, self._on_settled = still_true, on_failure, on_settled
        self._on_step = on_step
        self._busy = asyncio.Lock()
        self._rung = asyncio.Event()
        self._attempts: dict[str, int] = {}
        self._away: set[str] = set()
        self.delivering: str | None = None
        """The key of what is being delivered, for a fault that ends it."""

    def say(self, cid: str, key: str, text: str, *, reply_to: str | None = None) -> bool:
        """Draft a notice, once per `key` for good; the loop delivers it. It mentions nobody and wakes nobody."""
        return self._draft(cid, key, text, reply_to)[1]

    async def say_now(self, cid: str, key: str, text: str) -> None:
        """Do as `say`, and try the delivery once before this returns: there may be no later."""
        await self.attempt(self._draft(cid, key, text, None)[0])

    def _draft(self, cid: str, key: str, text: str, reply_to: str | None) -> tuple[str, bool]:
        """Return the turn of a notice, and whether it is a new one."""
        number = nonce(
            account=self._account,
            persona=self._persona,
            cid=cid,
            trigger_id=f"notice:{key}",
            generation=0,
            part=0,
        )
        outgoing = Outgoing(text=text, nonce=number, reply_to=reply_to)
        turn_id = self._clock.token()
        now = self._clock.now().timestamp()
        stands = self._store.turns.draft_notice(turn_id, cid, key, (outgoing,), now=now)
        if stands == turn_id:
            self._log.info("notice", cid=cid, key=key)
            self._rung.set()
        return stands, stands == turn_id

    def ring(self) -> None:
        """Look again at what is due."""
        self._rung.set()

    def room_is_back(self) -> None:
        """The live line is up again: try at once what waited for the room alone (a told wait stays told)."""
        now = self._clock.now().timestamp()
        for turn_id in sorted(self._away):
            self._store.turns.postpone(turn_id, ready_at=now)
        self._away.clear()
        self._rung.set()

    async def run(self) -> None:
        """Deliver what is due, for ever."""
        while True:
            self._on_step()
            self._rung.clear()
            wait_s = await self._round()
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._rung.wait()

    async def _round(self) -> float | None:
        """Try everything that is due; return how long until the next is, None when nothing waits."""
        for turn in self._store.turns.deliveries():
            if turn.ready_at <= self._clock.now().timestamp():
                self._on_step()
                await self.attempt(turn.id)
        waiting = self._store.turns.deliveries()
        if not waiting:
            return None
        return max(0.05, min(one.ready_at for one in waiting) - self._clock.now().timestamp())

    async def attempt(self, turn_id: str, *, anchor: int = 0) -> Delivery | None:
        """Try one delivery now; None when it is no longer there to be delivered."""
        async with self._busy:
            turn = self._store.turns.get(turn_id)
            if turn.state not in {State.DRAFTED, State.SENDING, State.POSTED}:
                return None
            if turn.kind == "notice" and turn.state is State.DRAFTED and not self._still_true(turn.key_id):
                self._store.turns.lapse(turn_id, now=self._clock.now().timestamp())
                self._log.info("moot", key=turn.key_id)
                return None
            self._away.discard(turn_id)
            self.delivering = turn.key_id
            delivery = await self._deliverer.deliver(turn, anchor=anchor)
            self._settle(turn, delivery)
            self.delivering = None
            self._on_settled()
            return delivery

    def _settle(self, turn: TurnRecord, delivery: Delivery) -> None:
        match delivery:
            case Delivered(messages, unanswered):
                self._attempts.pop(turn.id, None)
                self._log.info(
                    "verified",
                    turn=turn.id,
                    kind=turn.kind,
                    messages=[one.id for one in messages],
                    unanswered=len(unanswered),
                )
            case Postponed(why):
                attempt = self._attempts[turn.id] = self._attempts.get(turn.id, 0) + 1
                wait_s = backoff_s(attempt, draw=self._clock.draw(), first_s=1.0, cap_s=60.0)
                at = retry_at(self._clock.now(), delivery, backoff_s=wait_s)
                self._store.turns.postpone(turn.id, ready_at=at)
                if delivery.retry_after_s is None:
                    self._away.add(turn.id)
                self._rung.set()
                self._log.warning("delivery postponed", turn=turn.id, why=why, retry_in_s=round(wait_s, 1))
            case Refused(why, status):
                self._give_up(turn, Step.REJECT, State.REJECTED, why)
                self._log.error("rejected by the room", turn=turn.id, status=status, why=why)
                self._on_failure(turn, Notice.REJECTED)
            case InDoubt(why):
                self._give_up(turn, Step.DOUBT, State.NEEDS_HUMAN, why)
                self._log.error("needs a human", turn=turn.id, why=why)
                self._on_failure(turn, Notice.NEEDS_HUMAN)

    def _give_up(self, turn: TurnRecord, step: Step, state: State, why: str) -> None:
        del why  # it stands in the log; the journal keeps the body
        changes = [TriggerChange(one, state) for one in turn.batch]
        self._store.turns.end(turn.id, step, changes, failure=None, now=self._clock.now().timestamp())
