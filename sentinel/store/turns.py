"""The journal on disk: turns, their parts, and what their end means for the triggers. One transaction a step.

Every method that changes a state goes through `core.journal.advance`: a step that the table does not know raises.
Source: spec 02 section 4 "Journal states".
"""

import json
from collections.abc import Sequence
from sqlite3 import Connection

from sentinel.core.errors import Damaged
from sentinel.core.journal import State, Step, advance
from sentinel.core.model import Outgoing
from sentinel.core.outcome import Failure
from sentinel.store.records import OUTGOING, Records, TriggerChange, TriggerRecord, TurnRecord
from sentinel.store.threads import Completed, complete


class Turns(Records):
    """The worker's side of `state.db`: one method a step."""

    def begin(
        self,
        turn_id: str,
        triggers: Sequence[TriggerRecord],
        *,
        snapshot: int,
        thread: str | None,
        now: float,
    ) -> None:
        """Record `running` for a batch, before its executor is started."""
        first = triggers[0]
        ids = [one.message_id for one in triggers]
        attempt = 1 + max(one.failures + one.cuts for one in triggers)
        with self._db.transaction() as write:
            for one in triggers:
                row = write.execute(
                    "SELECT state FROM triggers WHERE message_id = ?", (one.message_id,)
                ).fetchone()  # what is so now: the caller's record may be older than a `/stop`
                write.execute(
                    "UPDATE triggers SET state = ?, turn_id = ? WHERE message_id = ?",
                    (advance(State(row[0]), Step.START), turn_id, one.message_id),
                )
            write.execute(
                "INSERT INTO turns (id, kind, cid, key_id, generation, batch, state, attempt, snapshot, by_persona,"
                " thread, started_at) VALUES (?, 'answer', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    turn_id,
                    first.cid,
                    first.message_id,
                    first.generation,
                    json.dumps(ids),
                    State.RUNNING,
                    attempt,
                    snapshot,
                    all(one.by_persona for one in triggers),
                    thread,
                    now,
                ),
            )

    def spawned(self, turn_id: str, *, pid: int, started: int, command: str, now: float) -> None:
        """Record the executor's process, so that a later start can find it."""
        with self._db.transaction() as write:
            write.execute(
                "UPDATE turns SET pid = ?, started = ?, exec = ?, spawned_at = ? WHERE id = ?",
                (pid, started, command, now, turn_id),
            )

    def tentative_thread(self, turn_id: str, thread: str) -> None:
        """Record the thread that the executor named; it becomes the conversation's when the turn completes."""
        with self._db.transaction() as write:
            write.execute("UPDATE turns SET thread = ? WHERE id = ?", (thread, turn_id))

    def draft(self, turn_id: str, parts: Sequence[Outgoing], done: Completed, *, now: float) -> None:
        """Keep the exact posts of a turn, and its thread; from here on its executor never runs again."""
        record = self.get(turn_id)
        state = advance(record.state, Step.DRAFT)
        told = done.spent
        with self._db.transaction() as write:
            self._put_parts(write, turn_id, parts)
            complete(write, record.cid, done)
            write.execute(
                "UPDATE turns SET state = ?, thread = ?, answered_at = ?, input_tokens = ?, cached_tokens = ?,"
                " output_tokens = ?, reasoning_tokens = ?, cost_usd = ? WHERE id = ?",
                (
                    state,
                    done.thread,
                    now,
                    told.input_tokens,
                    told.cached_tokens,
                    told.output_tokens,
                    told.reasoning_tokens,
                    told.cost_usd,
                    turn_id,
                ),
            )

    def draft_notice(
        self, turn_id: str, cid: str, key_id: str, posts: Sequence[Outgoing], *, now: float
    ) -> str:
        """Keep words of the program's own and return their turn: the one that stands under `key_id` already, if any."""
        with self._db.transaction() as write:
            known = write.execute(
                "SELECT id FROM turns WHERE kind = 'notice' AND key_id = ?", (key_id,)
            ).fetchone()
            if known is not None:
                return str(known[0])
            write.execute(
                "INSERT INTO turns (id, kind, cid, key_id, generation, batch, state, attempt, snapshot, started_at)"
                " VALUES (?, 'notice', ?, ?, 0, '[]', ?, 1, 0, ?)",
                (turn_id, cid, key_id, advance(State.SEEN, Step.DRAFT), now),
            )
            self._put_parts(write, turn_id, posts)
        return turn_id

    def lapse(self, turn_id: str, *, now: float) -> None:
        """A notice whose cause is over before anything of it was sent."""
        self._end(turn_id, Step.LAPSE, now=now)

    def sending(self, turn_id: str, part: int, *, anchor: int) -> None:
        """Record, before the first byte leaves, that a post may be on its way."""
        with self._db.transaction() as write:
            state = self._step_part(write, turn_id, part, Step.SEND)
            write.execute(
                "UPDATE parts SET attempt = attempt + 1, anchor = ? WHERE turn_id = ? AND part = ?",
                (anchor, turn_id, part),
            )
            write.execute("UPDATE turns SET state = ? WHERE id = ?", (state, turn_id))

    def turned_away(self, turn_id: str, part: int) -> None:
        """Record that the room refused the only post of this part so far for now, and applied nothing."""
        with self._db.transaction() as write:
            state = self._step_part(write, turn_id, part, Step.TURN_AWAY)
            write.execute("UPDATE turns SET state = ? WHERE id = ?", (state, turn_id))

    def posted(self, turn_id: str, part: int, server_id: str, *, now: float) -> None:
        """Record the id that the server gave."""
        with self._db.transaction() as write:
            state = self._step_part(write, turn_id, part, Step.ACKNOWLEDGE)
            write.execute(
                "UPDATE parts SET server_id = ? WHERE turn_id = ? AND part = ?", (server_id, turn_id, part)
            )
            write.execute("UPDATE turns SET state = ?, posted_at = ? WHERE id = ?", (state, now, turn_id))

    def read_back(self, turn_id: str, part: int) -> None:
        """Record that the part was found on the server, equal."""
        with self._db.transaction() as write:
            self._step_part(write, turn_id, part, Step.READ_BACK)

    def verified(self, turn_id: str, *, now: float) -> None:
        """End a turn whose every part was read back."""
        record = self.get(turn_id)
        with self._db.transaction() as write:
            self._verify(write, record, record.state, unanswered=(), now=now)

    def adopt(
        self, turn_id: str, part: int, server_id: str, *, unanswered: Sequence[str], now: float
    ) -> None:
        """End a turn with another text of ours that stands under its nonce: that *is* the answer.

        Our draft is kept and never sent; triggers in `unanswered` wait again. All in one transaction: a turn that was
        half adopted would take those for answered.
        """
        record = self.get(turn_id)
        with self._db.transaction() as write:
            row = write.execute(
                "SELECT state FROM parts WHERE turn_id = ? AND part = ?", (turn_id, part)
            ).fetchone()
            if row is not None and State(row[0]) is not State.POSTED:
                self._step_part(write, turn_id, part, Step.ACKNOWLEDGE)
            self._step_part(write, turn_id, part, Step.READ_BACK)
            write.execute(
                "UPDATE parts SET server_id = ? WHERE turn_id = ? AND part = ?", (server_id, turn_id, part)
            )
            write.execute(
                "UPDATE parts SET state = ? WHERE turn_id = ? AND state = ?",
                (advance(State.DRAFTED, Step.LAPSE), turn_id, State.DRAFTED),
            )
            self._verify(write, record, State.POSTED, unanswered=unanswered, now=now)

    def _verify(
        self, write: Connection, record: TurnRecord, state: State, *, unanswered: Sequence[str], now: float
    ) -> None:
        left = write.execute(
            "SELECT count(*) FROM parts WHERE turn_id = ? AND state NOT IN (?, ?)",
            (record.id, State.VERIFIED, State.MOOT),
        ).fetchone()[0]
        if left:
            raise Damaged(f"turn {record.id} was to be verified with {left} parts that were not read back")
        write.execute(
            "UPDATE turns SET state = ?, ended_at = ? WHERE id = ?",
            (advance(state, Step.READ_BACK), now, record.id),
        )
        for message_id in record.batch:
            ended = State.SEEN if message_id in unanswered else State.VERIFIED
            write.execute("UPDATE triggers SET state = ? WHERE message_id = ?", (ended, message_id))
        write.execute(
            "UPDATE conversations SET answered = max(answered, coalesce((SELECT max(seq) FROM triggers"
            " WHERE turn_id = ? AND state = ?), 0)) WHERE cid = ?",
            (record.id, State.VERIFIED, record.cid),
        )

    def postpone(self, turn_id: str, *, ready_at: float) -> None:
        """Try the delivery of this turn again later."""
        with self._db.transaction() as write:
            write.execute("UPDATE turns SET ready_at = ? WHERE id = ?", (ready_at, turn_id))

    def end(
        self,
        turn_id: str,
        step: Step,
        changes: Sequence[TriggerChange],
        *,
        failure: Failure | None,
        now: float,
    ) -> None:
        """End a turn without an answer, and say what becomes of its triggers, in one transaction."""
        self._end(turn_id, step, changes, failure=failure, now=now)

    def change(self, changes: Sequence[TriggerChange]) -> None:
        """Change triggers that no turn holds (parking, retrying)."""
        with self._db.transaction() as write:
            for one in changes:
                _change_trigger(write, one)

    def retry(self, message_ids: Sequence[str], *, now: float) -> int:
        """Queue parked, rejected and doubtful triggers again; a new generation where something may have been sent."""
        changed = 0
        with self._db.transaction() as write:
            for message_id in message_ids:
                done = write.execute(
                    "UPDATE triggers SET generation = generation + (state IN (?, ?)), state = ?, ready_at = ?,"
                    " failures = 0, rates = 0, alone = 0 WHERE message_id = ? AND state IN (?, ?, ?, ?)",
                    (
                        State.REJECTED,
                        State.NEEDS_HUMAN,
                        State.SEEN,
                        now,
                        message_id,
                        State.PARKED,
                        State.REJECTED,
                        State.NEEDS_HUMAN,
                        State.STOPPED,
                    ),
                )
                changed += done.rowcount
                write.execute("DELETE FROM crashes WHERE place = ?", (message_id,))
        return changed

    def _end(
        self,
        turn_id: str,
        step: Step,
        changes: Sequence[TriggerChange] = (),
        *,
        failure: Failure | None = None,
        now: float,
    ) -> None:
        record = self.get(turn_id)
        state = advance(record.state, step)
        with self._db.transaction() as write:
            write.execute(
                "UPDATE turns SET state = ?, ended_at = ?, class = ?, evidence = ? WHERE id = ?",
                (
                    state,
                    now,
                    failure.kind if failure else None,
                    failure.evidence if failure else None,
                    turn_id,
                ),
            )
            if state in {State.REJECTED, State.NEEDS_HUMAN}:
                write.execute(
                    "UPDATE parts SET state = ? WHERE turn_id = ? AND state = ?",
                    (state, turn_id, State.SENDING),
                )
            for one in changes:
                _change_trigger(write, one)

    def _step_part(self, write: Connection, turn_id: str, part: int, step: Step) -> State:
        row = write.execute(
            "SELECT state FROM parts WHERE turn_id = ? AND part = ?", (turn_id, part)
        ).fetchone()
        if row is None:
            raise Damaged(f"part {part} of turn {turn_id} is not in the journal")
        state = advance(State(row[0]), step)
        write.execute("UPDATE parts SET state = ? WHERE turn_id = ? AND part = ?", (state, turn_id, part))
        return state

    def _put_parts(self, write: Connection, turn_id: str, parts: Sequence[Outgoing]) -> None:
        write.executemany(
            "INSERT INTO parts (turn_id, part, nonce, outgoing, state) VALUES (?, ?, ?, ?, ?)",
            [
                (turn_id, number, one.nonce, OUTGOING.dump_json(one).decode(), State.DRAFTED)
                for number, one in enumerate(parts)
            ],
        )


def _change_trigger(write: Connection, change: TriggerChange) -> None:
    write.execute(
        "UPDATE triggers SET state = ?, ready_at = coalesce(?, ready_at), alone = coalesce(?, alone),"
        " failures = coalesce(?, failures), rates = coalesce(?, rates), cut_thread = coalesce(?, cut_thread),"
        " cuts = coalesce(?, cuts) WHERE message_id = ?",
        (
            change.state,
            change.ready_at,
            change.alone,
            change.failures,
            change.rates,
            change.cut_thread,
            change.cuts,
            change.message_id,
        ),
    )
