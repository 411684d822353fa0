"""From an executor's answer to the exact posts in the journal; from here on its executor never runs again.

What holds a secret, or what the room refuses for good, is not posted: its body is kept for the owners. A room that is
away is waited for. Source: spec 02 section 4 "reply", section 7 (`leak`, `rejected`).
"""

from sentinel.bridge.draft import Draft, draft
from sentinel.core.errors import RateLimited, Rejected, Unavailable
from sentinel.core.model import Account
from sentinel.core.outcome import Answer, Failure, FailureClass
from sentinel.core.parts import leaks
from sentinel.core.ports import Clock, Room
from sentinel.core.turns import backoff_s
from sentinel.daemon import folders
from sentinel.daemon.case import Case, secrets_of, task_hash
from sentinel.daemon.ends import Drafted, Failed, ended_by_us
from sentinel.daemon.execution import Running
from sentinel.daemon.log import Log
from sentinel.daemon.roster import Roster
from sentinel.daemon.threads import Ran, told_usage
from sentinel.store.store import Store
from sentinel.store.threads import Completed, difference


class Drafting:
    """Drafts the answers of one persona."""

    def __init__(
        self, room: Room, store: Store, me: Account, *, roster: Roster, clock: Clock, log: Log
    ) -> None:
        self._room, self._store, self._me = room, store, me
        self._roster, self._clock, self._log = roster, clock, log

    async def draft(self, case: Case, answer: Answer, running: Running, ran: Ran) -> Drafted | Failed:
        """Turn an answer into exact posts, and keep them; or say why it cannot be posted."""
        if leaks(answer.text, secrets_of(case.persona)):
            return _set_aside(case, answer, FailureClass.LEAK, "it holds a secret")
        try:
            made = await self._posts(case, answer, running)
        except Rejected as no:
            return _set_aside(case, answer, FailureClass.REJECTED, str(no))
        if isinstance(made, Failure):
            record = self._store.turns.get(case.turn_id)
            return Failed(case.turn_id, made, case.persona, thread=record.thread)
        if made.ambiguous:
            self._log.warning("ambiguous names", turn=case.turn_id, count=len(made.ambiguous))
        same_thread = ran.resumed is not None and answer.thread == case.thread.id
        counted = difference(answer.total, case.thread.total, same_thread=same_thread)
        done = Completed(
            answer.thread,
            told_usage(answer, counted),
            answer.total,
            task_hash(case.persona.task_md),
            beside=ran.spent,
        )
        self._store.turns.draft(case.turn_id, made.posts, done, now=self._now())
        return Drafted(case.turn_id, case.fetched.snapshot, ran.renewed)

    async def _posts(self, case: Case, answer: Answer, running: Running) -> Draft | Failure:
        """Make the posts. While the room is away, wait: an answer that stands is not thrown away and made again."""
        attempt = 0
        while True:
            try:
                return await draft(
                    self._room,
                    answer.text,
                    me=self._me,
                    persona=case.persona,
                    members=await self._roster.members(case.cid),
                    triggers=case.messages,
                    generation=case.triggers[0].generation,
                )
            except (Unavailable, RateLimited) as away:
                attempt += 1
                wait_s = backoff_s(attempt, draw=self._clock.draw(), first_s=1.0, cap_s=30.0)
                self._log.warning("the answer waits for the room", turn=case.turn_id, why=str(away))
                until = self._now() + wait_s
                while self._now() < until:
                    if running.stop_by is not None:
                        return ended_by_us(running.stop_by)
                    await self._clock.sleep(0.5)

    def _now(self) -> float:
        return self._clock.now().timestamp()


def _set_aside(case: Case, answer: Answer, kind: FailureClass, why: str) -> Failed:
    """Keep the body of an answer that may not, or cannot, be posted: its owners decide."""
    kept = folders.keep_answer(case.folder, answer.text)
    return Failed(case.turn_id, Failure(kind, f"{why[:200]}; kept in {kept}"), case.persona)
