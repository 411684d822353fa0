"""The promises that no seed may break, judged from outside: from what was said, what truly ran, and what stands in the room.

The oracle reads `state.db` to see what the sentinel believes, and never one of the sentinel's own decisions to know what is
right. Source: spec 02 sections 3, 4 and 7; laws 5 to 8.
"""

import json
from collections import Counter, defaultdict

from sentinel.core.journal import State
from sentinel.core.model import Kind
from sentinel.core.ports import NonceMemory
from tests.simulation.executor import COUNTED, DEATH, RATE, RENEWED
from tests.simulation.people import MUST, NEVER

ENDS = frozenset(
    {State.VERIFIED, State.PARKED, State.REJECTED, State.NEEDS_HUMAN, State.STOPPED, State.STALE, State.MOOT}
)
_PERSONA_TURNS, _WINDOW_S, _HOPS = 6, 600.0, 3
_STALE_S, _FIRST_START_S, _COMMAND_S = 86_400.0, 3_600.0, 600.0
_PARK_AFTER, _WALL, _RECHECK_S = 12, 3, 5.0


class Oracle:
    """Watches one world."""

    def __init__(self, world):
        self._world = world
        self.broken = []
        self._batches = {}
        self._counted = Counter()
        self._rates = Counter()
        self._proofs = set()
        self._refused_since = None
        self._persona_turns = defaultdict(list)
        self._stopped, self._stops_obeyed = {}, {}
        self._drafted = set()
        self._answered = set()

    def breaks(self, promise, **fields):
        """Note a broken promise."""
        self._world.trace.note("PROMISE BROKEN", promise=promise, **fields)
        self.broken.append(f"{promise}: {', '.join(f'{name}={value}' for name, value in fields.items())}")

    # While it happens.

    def hears(self, event, fields):
        """A line of the sentinel's log."""
        match event:
            case "obeys":
                self._obeys(fields["message"], fields["command"])
            case "notice":
                self._says(fields["key"])
            case "wakes":
                self._wakes(fields["message"])
            case "a bug of ours":
                self.breaks("no bug of our own", error=fields["error"])

    def begins(self):
        """A turn begins."""
        kept = self._world.look.meta("condition")
        if kept and json.loads(kept)["paused"]:
            self.breaks("a paused persona takes no turn")

    def gate(self, *, refused):
        """The gate was asked at a turn."""
        now = self._world.clock.seconds
        if not refused:
            self._refused_since = None
        elif self._refused_since is None:
            self._refused_since = now
        elif now - self._refused_since >= _RECHECK_S - 0.001:
            self._proofs.add("missing")

    def runs(self, turn_id, name, behaviour):
        """An executor runs for a turn: what it truly is counts from here."""
        world = self._world
        world.draws(f"executor: {name}")
        row = world.look.database.row("SELECT batch, cid, started_at FROM turns WHERE id = ?", (turn_id,))
        batch, is_first = tuple(json.loads(row["batch"])), turn_id not in self._batches
        world.trace.note("executor runs", turn=turn_id, does=name, batch=batch)
        if is_first:
            self._batches[turn_id] = batch
            self._may_run(batch, row["cid"], row["started_at"])
        self._count(batch, behaviour)

    def starts(self, process, living):
        """An executor is about to live."""
        if living:
            self.breaks("at most one executor", starts=process.marker, living=sorted(living))

    def drafted(self, batch):
        """An answer to these triggers stands in the journal."""
        self._drafted.update(batch)
        for one in batch:
            self._rates[one] = 0

    def unanswered(self, ids):
        """An adopted answer leaves these open: they may run again."""
        self._drafted.difference_update(ids)

    def retried(self, ids):
        """A human has these tried again."""
        self._drafted.difference_update(ids)
        for one in ids:
            self._stopped.pop(one, None)

    def lands(self, message):
        """A message of the persona's stands in the room."""
        self._world.trace.note(
            "lands",
            id=message.id,
            cid=message.cid,
            text=message.text or message.type.value,
            answers=message.answers,
        )
        self._answered.update(message.answers)
        if not message.answers and (message.mentions or message.broadcast):
            self.breaks("a notice mentions nobody", id=message.id)

    def _may_run(self, batch, cid, began_at):
        for one in batch:
            self._is_legitimate(one)
            if one in self._drafted:
                self.breaks("a drafted answer is never made again", trigger=one)
            if one in self._stopped:
                self.breaks("a stopped turn does not start again by itself", trigger=one)
        if all(self._said(one).message.sender.kind is Kind.PERSONA for one in batch):
            self._persona_turns[cid].append(began_at)

    def _count(self, batch, behaviour):
        for one in batch:
            self._rates[one] = self._rates[one] + 1 if behaviour.truth == RATE else 0
            if self._rates[one] >= _WALL:
                self._proofs.add("rate")
        if behaviour.truth == DEATH:
            self._proofs.add(behaviour.cause)
        if behaviour.truth in {COUNTED, RENEWED} and len(batch) == 1:
            self._counted[batch[0]] += 1

    def _said(self, message_id):
        return self._world.people.said[message_id]

    def _is_legitimate(self, message_id):
        said = self._said(message_id)
        if said.wakes == NEVER:
            promise = "a command does nothing by text alone" if said.command else "nobody is woken by text"
            self.breaks(promise, trigger=message_id, text=said.message.text)

    def _wakes(self, message_id):
        self._is_legitimate(message_id)
        said, world = self._said(message_id), self._world
        message = said.message
        if message.sender.kind is not Kind.PERSONA:
            return
        reset = world.look.database.row(
            "SELECT max(queued_at) FROM triggers WHERE cid = ? AND by_persona = 0", (message.cid,)
        )[0]
        now = world.clock.now().timestamp()
        since = max(now - _WINDOW_S, reset or 0.0)
        ran = sum(1 for at in self._persona_turns[message.cid] if at > since + 0.001)
        if ran >= _PERSONA_TURNS or message.hops >= _HOPS:
            self.breaks("the loop guard bounds personas", trigger=message_id, turns=ran, hops=message.hops)

    def _obeys(self, message_id, command):
        said, world = self._said(message_id), self._world
        if said.command != command:
            self.breaks("only an owner's command does anything", id=message_id, text=said.message.text)
        age_s = (world.clock.now() - said.message.sent_at).total_seconds()
        if age_s > _COMMAND_S + 1:
            self.breaks("a stale command does nothing", id=message_id, age_s=age_s)
        if command == "stop":
            self._stops_obeyed[said.message.cid] = max(
                said.message.seq, self._stops_obeyed.get(said.message.cid, 0)
            )

    def _stops(self, stop):
        """A `/stop` was carried out and its line drafted: what it put aside, or ends just now, may not run again."""
        rows = self._world.look.database.rows(
            "SELECT message_id FROM triggers WHERE cid = ? AND seq < ? AND state IN ('parked', 'running') AND failures < ?",
            (stop.cid, stop.seq, _PARK_AFTER),
        )
        self._stopped.update({row[0]: stop.id for row in rows if row[0] not in self._drafted})

    def _says(self, key):
        kind, _, rest = key.partition(":")
        self._world.drawn[f"notice: {kind}"] += 1
        cause = rest.partition(":")[0]
        if kind == "command" and self._said(rest).command == "stop":
            self._stops(self._said(rest).message)
        if kind == "obituary" and cause not in self._proofs:
            self.breaks("no obituary without proof", key=key, proofs=sorted(self._proofs))

    # When it is over.

    def ends(self):
        """Judge a world that was healed and has come to rest."""
        look = self._world.look
        triggers = look.database.rows(
            "SELECT message_id, cid, seq, state, failures, generation, by_persona FROM triggers ORDER BY cid, seq"
        )
        for row in triggers:
            self._ended(row)
        self._nothing_lost({row["message_id"] for row in triggers})
        for cid in self._world.server.conversation_ids():
            self._said_once(cid, {row["message_id"]: row["generation"] for row in triggers})

    def _ended(self, row):
        trigger, state = row["message_id"], State(row["state"])
        self._world.drawn[f"ends: {state.value}"] += 1
        if state not in ENDS:
            self.breaks("nothing is stuck", trigger=trigger, state=state.value)
        if state is State.VERIFIED and trigger not in self._answered:
            self.breaks("verified means answered", trigger=trigger)
        if row["failures"] > self._counted[trigger]:
            self.breaks(
                "nobody is counted for an outage or for a neighbour",
                trigger=trigger,
                failures=row["failures"],
                truly=self._counted[trigger],
            )
        was_stopped = row["seq"] < self._stops_obeyed.get(row["cid"], 0)
        if state is State.PARKED and not was_stopped and row["failures"] < _PARK_AFTER:
            self.breaks("parked by its own failures or by /stop", trigger=trigger, failures=row["failures"])

    def _nothing_lost(self, triggers):
        world = self._world
        for message_id, said in world.people.said.items():
            if message_id in world.server.lost_ids:
                continue
            kept = world.look.inbox.why(message_id)
            at = kept.at if kept else world.clock.now().timestamp()
            age_s = at - said.message.sent_at.timestamp()
            before_start = bool(kept) and kept.reason == "before-start"
            is_past = age_s > (_FIRST_START_S if before_start else _STALE_S)
            if said.wakes == MUST and message_id not in triggers and not is_past:
                self.breaks("no trigger is lost", id=message_id, decision=kept and kept.reason)
            if said.command and not before_start:
                self._command_ended(message_id, said.command, kept)

    def _command_ended(self, message_id, command, kept):
        sent_s = self._said(message_id).message.sent_at.timestamp()
        if kept is None:
            self.breaks("no command is lost", id=message_id, command=command)
        # Killed between reading and obeying, it is owed: at the next connection, unless it is stale by then.
        elif (
            kept.reason == "obey"
            and not self._was_confirmed(message_id)
            and self._world.had_a_calm_connection(kept.at, sent_s + _COMMAND_S)
        ):
            self.breaks("an obeyed command is confirmed", id=message_id, command=command)

    def _was_confirmed(self, message_id):
        row = self._world.look.database.row(
            "SELECT 1 FROM turns WHERE key_id = ?", (f"command:{message_id}",)
        )
        return row is not None

    def _said_once(self, cid, generations):
        world = self._world
        own = [one for one in world.server.messages(cid) if one.sender == world.gode]
        forgetful = world.server.nonce_memory is NonceMemory.NONE
        nonces = Counter(one.nonce for one in own if not forgetful)
        for nonce, times in nonces.items():
            if times > 1:
                self.breaks("no nonce twice in the room", nonce=nonce, times=times)
        turns = defaultdict(list)
        for one in own:
            for trigger in one.answers:
                if self._turn_of(one) not in turns[trigger]:
                    turns[trigger].append(self._turn_of(one))
        for trigger, found in turns.items():
            asked_again = world.server.nonce_memory is not NonceMemory.FOR_GOOD and generations.get(trigger)
            if len(found) > 1 and not asked_again:
                self.breaks("no trigger is answered twice", trigger=trigger, by=found)

    def _turn_of(self, message):
        """Return which answer a message is a part of."""
        look = self._world.look.database
        row = look.row(
            "SELECT turn_id FROM parts WHERE server_id = ? OR nonce = ?", (message.id, message.nonce)
        )
        return row[0] if row else message.id
