"""From an executor's answer to the exact posts in the journal; from here on its executor never runs again.

What holds a secret, or what the room refuses for good, is not posted: its body is kept for the owners. A room that is
away is waited for. Source: spec 02 section 4 "reply", section 7 (`leak`, `rejected`).
"""

import asyncio

from sentinel.bridge.draft import Draft, draft
from sentinel.bridge.outbox import Found, collect, holds_secret, is_empty, safe_name, upload
from sentinel.core.errors import RateLimited, Rejected, Unavailable
from sentinel.core.model import Account
from sentinel.core.outcome import Answer, Failure, FailureClass
from sentinel.core.parts import Attachment, leaks
from sentinel.core.ports import Clock, Room
from sentinel.core.turns import backoff_s
from sentinel.daemon import folders
from sentinel.daemon.case import Case, secrets_of, task_hash
from sentinel.daemon.ends import Drafted, Failed, ended_by_us
from sentinel.daemon.execution import Running
from sentinel.daemon.far import FarSide
from sentinel.daemon.log import Log
from sentinel.daemon.roster import Roster
from sentinel.daemon.threads import Ran, told_usage
from sentinel.store.store import Store
from sentinel.store.threads import Completed, difference


class Drafting:
    """Drafts the answers of one persona."""

    def __init__(
        self,
        room: Room,
        store: Store,
        me: Account,
        *,
        roster: Roster,
        far: FarSide,
        clock: Clock,
        log: Log,
    ) -> None:
        self._room, self._store, self._me = room, store, me
        self._roster, self._far, self._clock, self._log = roster, far, clock, log

    async def draft(self, case: Case, answer: Answer, running: Running, ran: Ran) -> Drafted | Failed:
        """Turn an answer and the files of its outbox into exact posts, and keep them; or say why it cannot be posted."""
        found, secrets = await self._outbox(case), secrets_of(case.persona)
        if leaks(answer.text, secrets):
            return _set_aside(case, answer, found, FailureClass.LEAK, "it holds a secret")
        if found.files and await asyncio.to_thread(holds_secret, found.files, secrets):
            return _set_aside(case, answer, found, FailureClass.LEAK, "a file of it holds a secret")
        uploads = _Uploads(self._room, found, self._log)
        try:
            made = await self._posts(case, answer, uploads, running)
        except Rejected as no:
            return _set_aside(case, answer, found, FailureClass.REJECTED, str(no))
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
        left = found.left + uploads.refused
        return Drafted(case.turn_id, case.fetched.snapshot, ran.renewed, made.ambiguous, left)

    async def _outbox(self, case: Case) -> Found:
        """Return what the executor left to be sent, here or on the other user's side."""
        if case.outbox is None:
            return Found()
        if case.persona.far is not None:
            return await self._far.fetch(case.turn_id, case.persona)
        if is_empty(case.outbox):
            return Found()
        return await asyncio.to_thread(collect, case.home, case.folder, case.persona.limits)

    async def _posts(
        self, case: Case, answer: Answer, uploads: "_Uploads", running: Running
    ) -> Draft | Failure:
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
                    attached=await uploads.attached(),
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


class _Uploads:
    """Uploads the files of one answer: each once, however often the room is away meanwhile."""

    def __init__(self, room: Room, found: Found, log: Log) -> None:
        self._room, self._waiting, self._log = room, list(found.files), log
        self._done: list[Attachment] = []
        self.refused = 0

    async def attached(self) -> tuple[Attachment, ...]:
        """Return all that the room takes; raises `Unavailable` or `RateLimited`, and goes on there the next time."""
        while self._waiting:
            try:
                self._done.append(await upload(self._room, self._waiting[0]))
            except Rejected as no:  # a file that the room will not have is no reason to lose the answer
                self.refused += 1
                self._log.warning("the room refused a file", why=str(no))
            self._waiting.pop(0)
        return tuple(self._done)


def _set_aside(case: Case, answer: Answer, found: Found, kind: FailureClass, why: str) -> Failed:
    """Keep the body of an answer that may not, or cannot, be posted, and its files: its owners decide."""
    kept = folders.keep_answer(case.folder, answer.text)
    if case.persona.far is not None:  # the other side forgets its own
        folders.keep_files(case.folder, [(safe_name(one.name), one.data) for one in found.files])
    return Failed(case.turn_id, Failure(kind, f"{why[:200]}; kept in {kept}"), case.persona)
