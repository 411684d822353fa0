"""What the simulator must find: for each guard of the sentinel a change that takes it away, as a patch of the real code.

    with MUTATIONS["nonce is kept"].applied():
        simulate(7)

`promises` are those of the oracle that may break for it; anything else that breaks would be an accident. `seed` is one that
finds it, found by `python -m tests.simulation --mutations`; the test runs that seed, with the guard and without.
"""

import contextlib
import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import SimpleNamespace

from sentinel.bridge import deliver
from sentinel.core import classify, obituary, triage
from sentinel.core.codec import Codec
from sentinel.core.journal import FinishDelivery, State, StopAndRequeue, recover
from sentinel.core.outcome import Answer, Failure, FailureClass
from sentinel.core.triage import Wake
from sentinel.daemon import aftermath, commands, execution, intake, sentinel, worker
from sentinel.store import inbox
from sentinel.store.records import TriggerChange
from sentinel.store.turns import Turns


@dataclass(frozen=True)
class Mutation:
    """One guard, taken away. `patch()` returns (where, name, what stands there instead)."""

    patch: Callable
    promises: tuple[str, ...]
    seed: int = 0

    @contextlib.contextmanager
    def applied(self):
        """Run the block without the guard."""
        patches = self.patch()
        real = [(where, name, getattr(where, name)) for where, name, _ in patches]
        try:
            for where, name, ours in patches:
                setattr(where, name, ours)
            yield
        finally:
            for where, name, theirs in real:
                setattr(where, name, theirs)


def _cursor_first():
    """A page's seen ids and cursor in one transaction, its triggers in the next."""
    take = inbox.Inbox.take

    def takes(self, cid, taken, **more):
        take(self, cid, [replace(one, wakes=False) for one in taken], **more)
        with self._db.unsynced() as write:
            inbox._queue(
                write,
                cid,
                [one.message for one in taken if one.wakes],
                now=more["now"],
                rang_at=more.get("rang_at"),
            )

    return [(inbox.Inbox, "take", takes)]


def _fresh_nonce():
    """Each try of a post under a nonce of its own."""
    post, number = deliver.Deliverer._post, itertools.count()

    async def posts(self, turn, part):
        fresh = replace(part.outgoing, nonce=f"fresh-{next(number)}")
        return await post(self, turn, replace(part, outgoing=fresh))

    return [(deliver.Deliverer, "_post", posts)]


def _recover_reruns():
    """A start has the executor run again for an answer that was drafted already."""

    def recovers(left):
        return tuple(
            StopAndRequeue(one.turn_id) if isinstance(one, FinishDelivery) else one for one in recover(left)
        )

    def requeues(self, turn_id):
        record = self._store.turns.get(turn_id)
        with self._store.database.transaction() as write:
            write.execute("UPDATE turns SET state = ? WHERE id = ?", (State.INTERRUPTED, turn_id))
        self._store.turns.change([TriggerChange(one, State.SEEN) for one in record.batch])

    return [(sentinel, "recover", recovers), (aftermath.Aftermath, "recover_running", requeues)]


def _counts_outages():
    judge = obituary.judge

    def judges(failure, **facts):
        verdict = judge(failure, **facts)
        if isinstance(verdict, obituary.Outage):
            return obituary._counted(facts["failures_before"], facts["limits"])
        return verdict

    return [(obituary, "judge", judges)]


def _counts_the_batch():
    """A batch that fails counts for all of it."""

    def counts(self, batch, verdict, _failure):
        state = State.PARKED if verdict.park else State.SEEN
        later = self._now() + 60.0
        return [
            TriggerChange(one.message_id, state, ready_at=later, failures=one.failures + 1) for one in batch
        ]

    return [(aftermath.Aftermath, "_count", counts)]


def _reads_the_answer():
    """The answer's own words are taken for the executor's state."""
    watch = execution.Execution._watch

    async def watches(self, case, child, codec: Codec):
        outcome = await watch(self, case, child, codec)
        kind = classify.classify_text(outcome.text) if isinstance(outcome, Answer) else None
        return outcome if kind is None else Failure(kind, "it said so")

    return [(execution.Execution, "_watch", watches)]


def _reads_tools():
    """What a tool printed is taken for the executor's state."""
    watch = execution.Execution._watch

    async def watches(self, case, child, codec):
        outcome = await watch(self, case, child, codec)
        said = [line.get("item", {}).get("aggregated_output", "") for line in child.behaviour.lines]
        if isinstance(outcome, Failure) and classify.classify_text(" ".join(said)) is not None:
            return Failure(FailureClass.AUTH, "a tool said so")
        return outcome

    return [(execution.Execution, "_watch", watches)]


def _text_wakes():
    why = triage._why_uncalled

    def uncalled(message, me, members, persona):
        return None if me.name in (message.text or "") else why(message, me, members, persona)

    return [(triage, "_why_uncalled", uncalled)]


def _personas_reset_the_guard():
    decide = intake.triage

    def decides(message, **facts):
        decision = decide(message, **facts)
        return Wake(resets_guard=True) if isinstance(decision, Wake) else decision

    return [(intake, "triage", decides)]


def _hops_do_not_count():
    decide = intake.triage

    def decides(message, **facts):
        return decide(replace(message, hops=0), **facts)

    return [(intake, "triage", decides)]


def _anybody_commands():
    command = triage._command

    def commands_(given, message, *, now, persona):
        return command(
            given, message, now=now, persona=replace(persona, owners=frozenset({message.sender.uid}))
        )

    return [(triage, "_command", commands_)]


def _old_commands_count():
    command = triage._command

    def commands_(given, message, *, now, persona):
        limits = replace(persona.limits, command_age_s=1e9)
        return command(given, message, now=now, persona=replace(persona, limits=limits))

    return [(triage, "_command", commands_)]


def _stop_leaves_the_queue():
    """`/stop` ends the running turn and lets what waits run."""

    stop = commands.Commands._stop_here

    def stops(self, message):
        change = self._store.turns.change
        self._store.turns.change = lambda _changes: None
        try:
            return stop(self, message)
        finally:
            self._store.turns.change = change

    return [(commands.Commands, "_stop_here", stops)]


def _stop_is_an_interruption():
    """What `/stop` ended is run again."""
    return [
        (aftermath, "_unheld", lambda _trigger: State.SEEN),
        (aftermath.Aftermath, "_wanted", lambda _self, changes: changes),
    ]


def _a_restart_undoes_the_stop():
    """What runs when the sentinel goes down is run again, also when a human had just stopped it."""

    def cuts(_self, ids, **_):
        return [TriggerChange(one, State.SEEN) for one in ids]

    return [(aftermath.Aftermath, "cut_changes", cuts)]


def _pause_is_deaf():
    choose = worker.Worker._choose

    def chooses(self):
        condition = self._conditions.now
        self._conditions.now = replace(condition, paused=False)
        try:
            return choose(self)
        finally:
            self._conditions.now = condition

    return [(worker.Worker, "_choose", chooses)]


def _leaves_executors():
    """A start does not end the executor of the life before."""

    async def stops(*_):
        return 0

    return [(sentinel, "process", SimpleNamespace(adopt_orphans=lambda: None, stop_stranger=stops))]


def _one_refusal_is_death():
    return [(obituary, "judge_refusal", lambda _first, _now: obituary.Dead(FailureClass.MISSING))]


def _one_rate_is_death():
    return [(obituary, "RATES_ARE_A_WALL", 1)]


def _an_outage_is_death():
    judge = obituary.judge

    def judges(failure, **facts):
        verdict = judge(failure, **facts)
        return obituary.Dead(FailureClass.AUTH) if isinstance(verdict, obituary.Outage) else verdict

    return [(obituary, "judge", judges)]


def _lost_is_delivered():
    """A post whose answer was lost counts as posted, without a look."""
    look = deliver.Deliverer._look

    async def looks(self, turn, part, *, absent):
        if isinstance(absent, deliver.Postponed):
            self._journal.posted(turn.id, part.part, "unknown", now=self._now())
            return None
        return await look(self, turn, part, absent=absent)

    async def reads_back(self, turn, part):
        return next(iter(self._room.server.messages(turn.cid)))

    return [(deliver.Deliverer, "_look", looks), (deliver.Deliverer, "_read_back", reads_back)]


def _sends_again_everywhere():
    """The same nonce again also on a room that does not know it any more."""
    return [(deliver.Deliverer, "_may_send_again", property(lambda _self: True))]


def _forgets_owed_commands():
    async def obeys(*_, **__):
        return

    return [(intake, "obey_what_is_owed", obeys)]


def _no_overlap():
    """After a reconnection only what is newer than the cursor is read, and a ring is the only other reason to read."""
    return [
        (intake.Intake, "_overlap", lambda _self, state: state.cursor),
        (intake.Intake, "_rewind", lambda _self, _conversations: None),
    ]


def _deaf_to_gaps():
    """No fallback poll: a doorbell that does not ring is never noticed."""

    async def never(self):
        await self._clock.sleep(1e9)

    return [(intake.Intake, "_fall_back", never)]


def _wakes_the_old():
    decide = intake.triage

    def decides(message, **facts):
        persona = facts.pop("persona")
        limits = replace(persona.limits, stale_age_s=1e9)
        return decide(message, persona=replace(persona, limits=limits), **facts)

    return [(intake, "triage", decides)]


def _parks_at_once():
    counted = obituary._counted

    def counts(before, limits):
        return replace(counted(before, limits), park=True)

    return [(obituary, "_counted", counts)]


def _success_is_forgotten():
    """A delivered answer leaves its triggers in the queue."""
    verify = Turns._verify

    def verifies(self, write, record, state, *, unanswered, now):
        verify(self, write, record, state, unanswered=(*unanswered, *record.batch[1:]), now=now)

    return [(Turns, "_verify", verifies)]


_STUCK = ("nothing is stuck", "the world comes to rest")
MUTATIONS = {
    "triggers, seen ids and cursor in one transaction": Mutation(
        _cursor_first, ("no trigger is lost",), seed=45
    ),
    "the same nonce at each try": Mutation(
        _fresh_nonce, ("no trigger is answered twice", "verified means answered", *_STUCK), seed=0
    ),
    "a drafted answer is never made again": Mutation(
        _recover_reruns, ("a drafted answer is never made again",), seed=16
    ),
    "an outage counts nobody": Mutation(
        _counts_outages, ("nobody is counted for an outage or for a neighbour",), seed=12
    ),
    "a batch counts nobody": Mutation(
        _counts_the_batch, ("nobody is counted for an outage or for a neighbour",), seed=6
    ),
    "an answer is no evidence": Mutation(_reads_the_answer, ("no obituary without proof",), seed=137),
    "a tool's output is no evidence": Mutation(_reads_tools, ("no obituary without proof",), seed=31),
    "text wakes nobody": Mutation(_text_wakes, ("nobody is woken by text",), seed=1),
    "only a human resets the loop guard": Mutation(
        _personas_reset_the_guard, ("the loop guard bounds personas",), seed=28
    ),
    "hops are bounded": Mutation(
        _hops_do_not_count, ("nobody is woken by text", "the loop guard bounds personas"), seed=13
    ),
    "only owners command": Mutation(_anybody_commands, ("only an owner's command does anything",), seed=1),
    "an old command does nothing": Mutation(
        _old_commands_count, ("a stale command does nothing", "only an owner's command does anything"), seed=8
    ),
    "an old trigger wakes nobody": Mutation(_wakes_the_old, ("nobody is woken by text",), seed=23),
    "/stop puts the queue aside": Mutation(
        _stop_leaves_the_queue, ("a stopped turn does not start again by itself",), seed=43
    ),
    "/stop is no interruption": Mutation(
        _stop_is_an_interruption, ("a stopped turn does not start again by itself",), seed=43
    ),
    "a stop holds through a restart": Mutation(
        _a_restart_undoes_the_stop, ("a stopped turn does not start again by itself",), seed=1626
    ),
    "/pause holds turns": Mutation(_pause_is_deaf, ("a paused persona takes no turn",), seed=6),
    "an owed command is obeyed": Mutation(
        _forgets_owed_commands, ("an obeyed command is confirmed",), seed=21
    ),
    "the old executor is ended first": Mutation(_leaves_executors, ("at most one executor",), seed=69),
    "a refusal is seen twice": Mutation(_one_refusal_is_death, ("no obituary without proof",), seed=40),
    "three rate limits are a wall, not one": Mutation(
        _one_rate_is_death, ("no obituary without proof",), seed=77
    ),
    "an outage is no death": Mutation(_an_outage_is_death, ("no obituary without proof",), seed=12),
    "verified means read back": Mutation(_lost_is_delivered, ("verified means answered",), seed=59),
    "at most once on a forgetful room": Mutation(
        _sends_again_everywhere, ("no nonce twice in the room", "no trigger is answered twice"), seed=231
    ),
    "the overlap is read again": Mutation(_no_overlap, ("no trigger is lost", *_STUCK), seed=4),
    "the fallback polls": Mutation(_deaf_to_gaps, ("no trigger is lost", *_STUCK), seed=0),
    "twelve failures park, not one": Mutation(
        _parks_at_once, ("parked by its own failures or by /stop",), seed=6
    ),
    "a whole batch is verified": Mutation(
        _success_is_forgotten,
        ("a drafted answer is never made again", "no trigger is answered twice"),
        seed=0,
    ),
}
