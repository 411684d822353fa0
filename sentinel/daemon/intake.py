"""From the doorbell to the queue: one pull for a ring, a reconnection and the fallback timer alike.

The doorbell carries no authority: whatever rang, the same pull reads what is newer than the cursor from the server, and
triggers, seen ids and cursor are stored in one transaction per page. At most one pull per conversation is in flight; a
ring during a pull leads to one more. After a (re)connection and at each fallback an overlap behind the cursor is read
again too. Source: spec 02 section 3 points 3 to 5, "First start".
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from sentinel.core.commands import Command
from sentinel.core.errors import NotFound, RoomError, Unauthorized
from sentinel.core.model import Account, Member, Message
from sentinel.core.persona import Persona
from sentinel.core.ports import Clock, Connected, Disconnected, MembersChanged, Rang, Room, Superseded
from sentinel.core.triage import Decision, Obey, Skip, Wake, names_me, triage, word
from sentinel.core.triage import Reason as Why
from sentinel.core.turns import backoff_s
from sentinel.daemon.first_start import first_start
from sentinel.daemon.log import Log
from sentinel.daemon.owed import obey_what_is_owed
from sentinel.daemon.roster import Roster
from sentinel.daemon.window import Window
from sentinel.store.inbox import ConversationState, Taken
from sentinel.store.store import Store

SOON_S = 0.5


@dataclass(frozen=True, slots=True)
class Heard:
    """What the intake tells the rest of the sentinel."""

    queued: Callable[[], None]
    """A trigger was stored."""
    command: Callable[[Message, Command], None]
    """A command was taken in: carry it out, beside the queue; it is noted as obeyed when this returns."""
    missed: Callable[[str, int], None]
    """So many triggers of a conversation were too old."""
    link: Callable[[bool], None]
    """The live line is up, or down."""


class Intake:
    """Reads the room for one persona."""

    def __init__(
        self,
        room: Room,
        store: Store,
        me: Account,
        *,
        guarded: frozenset[str] | None,
        roster: Roster,
        window: Window,
        persona: Callable[[], Persona],
        heard: Heard,
        clock: Clock,
        log: Log,
    ) -> None:
        """`guarded` are the conversations of the command line; None means all that the account is in."""
        self._room, self._store, self._me = room, store, me
        self._guarded, self._roster, self._window = guarded, roster, window
        self._persona, self._heard = persona, heard
        self._clock, self._log = clock, log
        self._rung: dict[str, float | None] = {}
        self._pulls: dict[str, asyncio.Task[None]] = {}
        self._later: dict[str, asyncio.Task[None]] = {}
        self._back = asyncio.Event()
        self.fault: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self) -> None:
        """Listen until `session.superseded`; raises `Unauthorized` when the room no longer knows us."""
        async with asyncio.TaskGroup() as group:
            fallback = group.create_task(self._fall_back())
            listening = group.create_task(self._listen())
            failing = group.create_task(self._fail())
            await listening
            fallback.cancel()
            failing.cancel()
            for task in (*self._pulls.values(), *self._later.values()):
                task.cancel()

    async def _fail(self) -> None:
        await self.fault

    async def _listen(self) -> None:
        async for bell in self._room.doorbells():
            match bell:
                case Connected(reconnects):
                    self._log.info("connected", reconnects=reconnects)
                    self._window.live = True
                    self._heard.link(True)
                    self._back.set()
                    self._roster.forget()
                    await obey_what_is_owed(
                        self._heard.command,
                        room=self._room,
                        store=self._store,
                        me=self._me,
                        roster=self._roster,
                        persona=self._persona(),
                        clock=self._clock,
                        log=self._log,
                    )
                    await self._pull_everything()
                case Disconnected(why, retry_in_s):
                    self._log.warning("disconnected", why=why, retry_in_s=round(retry_in_s, 1))
                    self._window.live = False
                    self._heard.link(False)
                case Rang(cid, _, may_call):
                    if may_call or self._roster.is_pair(cid):
                        self._ring(cid, overlap=False)
                    else:
                        self._ring_later(cid)
                case MembersChanged(cid):
                    self._roster.forget(cid)
                case Superseded():
                    self._log.warning("superseded")
                    return

    async def _fall_back(self) -> None:
        """Pull now and then even though nothing rang: a doorbell may be deaf and not know it."""
        while True:
            limits = self._persona().limits
            await self._clock.sleep(limits.fallback_poll_s * (0.9 + 0.2 * self._clock.draw()))
            self._log.info("fallback poll")
            self._roster.forget()
            await self._pull_everything()

    async def _pull_everything(self) -> None:
        try:
            listed = frozenset(one.cid for one in await self._roster.conversations())
            cids = listed if self._guarded is None else self._guarded
        except Unauthorized:
            raise
        except RoomError as away:
            self._log.warning("conversations not listed", why=str(away))
            known = frozenset(one.cid for one in self._store.inbox.conversations())
            cids = known if self._guarded is None else self._guarded
        for cid in sorted(cids):
            self._ring(cid, overlap=True)

    def _ring_later(self, cid: str) -> None:
        """Have `cid` pulled soon: a busy room that talks to others costs one pull for many messages."""
        if cid not in self._later:
            self._later[cid] = asyncio.create_task(self._ring_after_a_while(cid), name=f"ring {cid}")

    async def _ring_after_a_while(self, cid: str) -> None:
        await self._clock.sleep(SOON_S)
        del self._later[cid]
        self._ring(cid, overlap=False)

    def _ring(self, cid: str, *, overlap: bool) -> None:
        """Have `cid` pulled: now, or once more after the pull that is in flight."""
        if later := self._later.pop(cid, None):
            later.cancel()
        if self._guarded is not None and cid not in self._guarded:
            return
        now = self._clock.now().timestamp()
        self._rung[cid] = None if overlap else self._rung.get(cid, now)
        if cid not in self._pulls:
            pull = asyncio.create_task(self._pull_until_quiet(cid), name=f"pull {cid}")
            self._pulls[cid] = pull
            pull.add_done_callback(lambda done: self._pulled(cid, done))

    def _pulled(self, cid: str, done: asyncio.Task[None]) -> None:
        self._pulls.pop(cid, None)
        if not done.cancelled() and (fault := done.exception()) and not self.fault.done():
            self.fault.set_exception(fault)
        elif cid in self._rung and not done.cancelled():
            self._ring(cid, overlap=self._rung[cid] is None)  # it rang between the last look and the end

    async def _pull_until_quiet(self, cid: str) -> None:
        attempt = 0
        while cid in self._rung:
            rang_at = self._rung.pop(cid)
            try:
                await self.pull(cid, rang_at=rang_at)
                attempt = 0
            except Unauthorized:
                raise
            except NotFound as gone:  # no longer a member; a ring, a reconnection or the fallback looks again
                self._log.warning("not in this conversation", cid=cid, why=str(gone))
            except RoomError as away:
                attempt += 1
                wait_s = backoff_s(attempt, draw=self._clock.draw(), first_s=1.0, cap_s=60.0)
                self._log.warning("not pulled", cid=cid, why=str(away), retry_in_s=round(wait_s, 1))
                self._rung.setdefault(cid, rang_at)
                self._back.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(wait_s):
                        await self._back.wait()  # a line that is up again says that the room is

    async def pull(self, cid: str, *, rang_at: float | None = None) -> None:
        """Read everything newer than the cursor, page by page. `rang_at` None: read the overlap again too."""
        state = self._store.inbox.conversation(cid) or await self._first_start(cid)
        after = state.cursor if rang_at is not None else self._overlap(state)
        more = True
        while more:
            page = await self._room.history(cid, after=after)
            members = await self._roster.members(cid)
            self._window.add(cid, page.messages)
            await self._take(state, page.messages, members, rang_at)
            more = page.has_more and bool(page.messages)
            if page.messages:
                after = page.messages[-1].seq

    def _overlap(self, state: ConversationState) -> int:
        return max(state.first_mark, state.cursor - self._persona().limits.overlap_messages)

    async def _take(
        self,
        state: ConversationState,
        messages: Sequence[Message],
        members: Sequence[Member],
        rang_at: float | None,
    ) -> None:
        """Decide on a page's new messages, store all of it, then tell."""
        inbox, now = self._store.inbox, self._clock.now()
        fresh = inbox.unseen(state.cid, messages)
        if not fresh:
            return
        persona = self._persona()
        since = now.timestamp() - persona.limits.persona_window_s
        ran = inbox.persona_turns(state.cid, since=since)
        decided: list[tuple[Message, Decision]] = []
        for message in fresh:
            decision = triage(
                message,
                me=self._me,
                members=members,
                first_mark=state.first_mark,
                recent_persona_turns=ran,
                now=now,
                persona=persona,
            )
            decided.append((message, decision))
            if isinstance(decision, Wake) and decision.resets_guard:
                ran = 0
        inbox.take(
            state.cid,
            [self._taken(message, decision) for message, decision in decided],
            cursor=messages[-1].seq,
            keep_seen_from=messages[-1].seq - 2 * persona.limits.overlap_messages,
            now=now.timestamp(),
            rang_at=rang_at,
        )
        self._tell(state.cid, decided)

    def _taken(self, message: Message, decision: Decision) -> Taken:
        wakes = isinstance(decision, Wake)
        return Taken(
            message,
            decision=type(decision).__name__.lower(),
            reason=word(decision),
            wakes=wakes,
            resets_guard=isinstance(decision, Wake) and decision.resets_guard,
            keep=_is_worth_keeping(decision) or names_me(message, self._me),
        )

    def _tell(self, cid: str, decided: Sequence[tuple[Message, Decision]]) -> None:
        missed = 0
        for message, decision in decided:
            match decision:
                case Wake():
                    self._log.info("wakes", cid=cid, message=message.id)
                    self._heard.queued()
                case Obey(command):
                    self._heard.command(message, command)
                    self._store.inbox.obeyed(message.id, now=self._clock.now().timestamp())
                case Skip(Why.STALE):
                    missed += 1
                case _:
                    if names_me(message, self._me):
                        self._log.info("does not wake", cid=cid, message=message.id, reason=word(decision))
        if missed:
            self._heard.missed(cid, missed)

    async def _first_start(self, cid: str) -> ConversationState:
        state = await first_start(
            cid,
            room=self._room,
            store=self._store,
            me=self._me,
            roster=self._roster,
            persona=self._persona(),
            clock=self._clock,
            log=self._log,
        )
        self._heard.queued()
        return state


def _is_worth_keeping(decision: Decision) -> bool:
    """Return whether `sentinel why` may be asked about it although the message does not name the persona."""
    return not (
        isinstance(decision, Skip) and decision.reason in {Why.OWN, Why.BEFORE_START, Why.NOT_MENTIONED}
    )
