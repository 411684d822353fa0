"""Any order of events, killed anywhere: nothing is lost, nothing is said twice, and the journal stays legal (law 7).

The machine is a sentinel's life in small: messages come in, turns begin, fail or are drafted, a room takes posts or
cuts them, and at any moment the process is gone and a new one recovers. The model is the room's own list.
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from sentinel.core.journal import FinishDelivery, State, Step, StopAndRequeue, recover
from sentinel.core.model import Outgoing
from sentinel.core.outcome import Failure, FailureClass
from sentinel.store.records import TriggerChange
from sentinel.store.store import open_store
from sentinel.store.threads import Completed
from tests.store.state_pieces import wake


@dataclass
class Room:
    """A room that keeps nonces for good."""

    posted: dict

    def post(self, outgoing):
        return self.posted.setdefault(outgoing.nonce, (f"s-{len(self.posted)}", outgoing))[0]


class JournalMachine(RuleBasedStateMachine):
    @initialize()
    def begin(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name)
        self.room = Room({})
        self.asked = []
        self.count = 0
        self.store = open_store(self.path)
        self.store.inbox.take("c1", [], cursor=0, keep_seen_from=0, now=0.0, first_mark=0)

    def teardown(self):
        if hasattr(self, "store"):
            self.store.close()
            self.folder.cleanup()

    @property
    def turns(self):
        return self.store.turns

    def _in(self, state):
        return [one.turn_id for one in self.turns.unfinished() if one.state is state]

    @rule(several=st.integers(1, 3), again=st.booleans())
    def a_page_comes(self, several, again):
        first = max(1, len(self.asked) + 1 - (2 if again else 0))  # an overlap is read again
        page = [wake(seq) for seq in range(first, len(self.asked) + several + 1)]
        fresh = self.store.inbox.unseen("c1", [one.message for one in page])
        taken = [one for one in page if one.message in fresh]
        last = page[-1].message.seq
        self.store.inbox.take("c1", taken, cursor=last, keep_seen_from=0, now=float(last))
        self.asked = [f"c1-m{seq}" for seq in range(1, last + 1)]

    @precondition(lambda self: self.store.inbox.queue() and not self._in(State.RUNNING))
    @rule(most=st.integers(1, 3))
    def a_turn_begins(self, most):
        ids = [one.message_id for one in self.store.inbox.queue()[:most]]
        self.count += 1
        self.turns.begin(f"turn-{self.count}", self.turns.triggers(ids), snapshot=0, thread=None, now=1.0)

    @precondition(lambda self: self._in(State.RUNNING))
    @rule(parts=st.integers(1, 3))
    def it_answers(self, parts):
        turn = self.turns.get(self._in(State.RUNNING)[0])
        posts = [
            Outgoing("text", f"{turn.key_id}/{turn.generation}/{part}/{parts}", answers=turn.batch)
            for part in range(parts)
        ]
        self.turns.draft(turn.id, posts, Completed("t", None, None, "h"), now=1.0)

    @precondition(lambda self: self._in(State.RUNNING))
    @rule(park=st.booleans())
    def it_fails(self, park):
        turn = self.turns.get(self._in(State.RUNNING)[0])
        state = State.PARKED if park else State.SEEN
        changes = [TriggerChange(one, state) for one in turn.batch]
        self.turns.end(turn.id, Step.FAIL, changes, failure=Failure(FailureClass.CRASH, "x"), now=1.0)

    @precondition(lambda self: self.turns.deliveries())
    @rule(steps=st.integers(0, 12), cut_before=st.booleans())
    def it_is_delivered_up_to_a_kill(self, steps, cut_before):
        """Take so many durable steps of one delivery, then maybe be killed (before or after the post)."""
        turn = self.turns.deliveries()[0]
        for part in self.turns.parts(turn.id):
            state = part.state
            while state is not State.VERIFIED:
                if steps == 0:
                    return
                steps -= 1
                state = self._step(turn, part, state, apply=not (steps == 0 and cut_before))
                if state is None:
                    return
        self.turns.verified(turn.id, now=2.0)

    def _step(self, turn, part, state, *, apply):
        match state:
            case State.DRAFTED | State.SENDING:
                self.turns.sending(turn.id, part.part, anchor=0)
                if not apply:
                    return None
                self.turns.posted(turn.id, part.part, self.room.post(part.outgoing), now=1.0)
                return State.POSTED
            case State.POSTED:
                self.turns.read_back(turn.id, part.part)
                return State.VERIFIED

    @rule()
    def the_process_is_killed_and_started_again(self):
        self.store.close()
        self.store = open_store(self.path)
        for left in recover(self.turns.unfinished()):
            match left:
                case StopAndRequeue(turn_id):
                    changes = [TriggerChange(one, State.SEEN) for one in self.turns.get(turn_id).batch]
                    self.turns.end(turn_id, Step.INTERRUPT, changes, failure=None, now=1.0)
                case FinishDelivery():
                    pass

    @rule()
    def a_human_says_retry(self):
        self.turns.retry([one.message_id for one in self.turns.in_state(State.PARKED)], now=1.0)

    @invariant()
    def nothing_is_lost(self):
        known = {one.message_id for one in self.turns.triggers(self.asked)} if self.asked else set()
        assert known == set(self.asked)

    @invariant()
    def each_trigger_is_in_one_place(self):
        """It waits, or a turn holds it, or it is answered, or it is put aside: never two of these, never none."""
        held = [one for turn in self.turns.unfinished() for one in self.turns.get(turn.turn_id).batch]
        assert len(held) == len(set(held))
        for one in self.turns.triggers(self.asked) if self.asked else ():
            assert (one.message_id in held) == (one.state is State.RUNNING)

    @invariant()
    def nothing_is_said_twice(self):
        heads = [
            outgoing.answers for _, outgoing in self.room.posted.values() if "/0/" in outgoing.nonce[-4:]
        ]
        said = [one for answers in heads for one in answers]
        assert len(said) == len(set(said))

    @invariant()
    def what_is_answered_is_in_the_room(self):
        said = {one for _, outgoing in self.room.posted.values() for one in outgoing.answers}
        assert {one.message_id for one in self.turns.in_state(State.VERIFIED)} <= said


TestJournalMachine = JournalMachine.TestCase
TestJournalMachine.settings = settings(
    max_examples=40,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
