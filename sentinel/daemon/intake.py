"""From the doorbell to the queue: one pull for a ring, a reconnection and the fallback timer alike.

The doorbell carries no authority: whatever rang, the same pull reads what is newer than the cursor from the server, and
triggers, seen ids and cursor are stored in one transaction per page. At most one pull per conversation is in flight; a
ring during a pull leads to one more. After a (re)connection and at each fallback an overlap behind the cursor is read
again too. Source: spec 02 section 3 points 3 to 5, "First start".
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sentinel.core.commands import Command
from sentinel.core.errors import RoomError, Unauthorized
from sentinel.core.model import Conversation, Member, Message
from sentinel.core.persona import Persona
from sentinel.core.ports import Connected, Disconnected, MembersChanged, Rang, Superseded
from sentinel.core.triage import Decision, Obey, Skip, Wake, names_me, triage, word
from sentinel.core.triage import Reason as Why
from sentinel.daemon.first_start import first_start
from sentinel.daemon.ground import Ground
from sentinel.daemon.guard import STOPPED_BY
from sentinel.daemon.owed import obey_what_is_owed
from sentinel.daemon.pulls import Pulls
from sentinel.daemon.roster import Roster
from sentinel.daemon.watchdog import Pulse
from sentinel.daemon.window import Window
from sentinel.store.inbox import ConversationState, Taken

_CONNECTION = "connection"


@dataclass(frozen=True, slots=True)
class Heard:
    """What the intake tells the rest of the sentinel."""

    queued: Callable[[], None]
    """A trigger was stored."""
    command: Callable[[Message, Command], None]
    """A command was taken in: carry it out, beside the queue; it is noted as obeyed when this returns."""
    missed: Callable[[str, int], None]
    """So many triggers of a conversation were too old."""
    guarded: Callable[[str, Why], None]
    """The loop guard kept a persona's call from waking us: in this conversation, for this reason."""
    link: Callable[[bool], None]
    """The live line is up, or down."""


class Intake:
    """Reads the room for one persona."""

    def __init__(
        self,
        ground: Ground,
        *,
        guarded: frozenset[str] | None,
        roster: Roster,
        window: Window,
        persona: Callable[[], Persona],
        heard: Heard,
        pulse: Pulse,
    ) -> None:
        """`guarded` are the conversations of the command line; None means all that the account is in.

        `pulse` is told of each pull and each ring at work (the watchdog's evidence).
        """
        self._room, self._store, self._me = ground.room, ground.store, ground.me
        self._guarded, self._roster, self._window = guarded, roster, window
        self._persona, self._heard, self._pulse = persona, heard, pulse
        self._clock, self._log = ground.clock, ground.log
        self._pulls = Pulls(self._pull, clock=ground.clock, log=ground.log)

    async def run(self) -> None:
        """Listen until `session.superseded`; raises `Unauthorized` when the room no longer knows us."""
        async with asyncio.TaskGroup() as group:
            fallback = group.create_task(self._fall_back())
            listening = group.create_task(self._listen())
            failing = group.create_task(self._fail())
            await listening
            fallback.cancel()
            failing.cancel()
            self._pulls.cancel()

    async def _fail(self) -> None:
        await self._pulls.fault

    async def _listen(self) -> None:
        async for bell in self._room.doorbells():
            match bell:
                case Connected(reconnects):
                    self._log.info("connected", reconnects=reconnects)
                    self._pulse.on(_CONNECTION)
                    await self._connected()
                    self._pulse.off(_CONNECTION)
                case Disconnected(why, retry_in_s):
                    self._log.warning("disconnected", why=why, retry_in_s=round(retry_in_s, 1))
                    self._window.live = False
                    self._heard.link(False)
                case Rang(cid, _, may_call):
                    self._rang(cid, may_call=may_call)
                case MembersChanged(cid):
                    self._roster.forget(cid)
                case Superseded():
                    self._log.warning("superseded")
                    return

    async def _connected(self) -> None:
        self._window.live = True
        self._heard.link(True)
        self._pulls.back()
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
            conversations = await self._roster.conversations()
            self._rewind(conversations)
            cids = frozenset(one.cid for one in conversations) if self._guarded is None else self._guarded
        except Unauthorized:
            raise
        except RoomError as away:
            self._log.warning("conversations not listed", why=str(away))
            known = frozenset(one.cid for one in self._store.inbox.conversations())
            cids = known if self._guarded is None else self._guarded
        for cid in sorted(cids):
            self._pulls.ring(cid, overlap=True)

    def _rewind(self, conversations: Sequence[Conversation]) -> None:
        """Notice a server that was restored from an older back-up: waiting for its old seqs would be deafness."""
        for one in conversations:
            known = self._store.inbox.conversation(one.cid)
            if known is not None and one.last_seq < known.cursor:
                self._log.error(
                    "the server's history went back", cid=one.cid, cursor=known.cursor, newest=one.last_seq
                )
                self._store.inbox.rewind(one.cid, one.last_seq)
                self._window.forget(one.cid)

    def _rang(self, cid: str, *, may_call: bool) -> None:
        if self._guarded is not None and cid not in self._guarded:
            return
        if may_call or self._roster.is_pair(cid):
            self._pulls.ring(cid, overlap=False)
        else:
            self._pulls.ring_soon(cid)

    async def _pull(self, cid: str, rang_at: float | None) -> None:
        """Read everything newer than the cursor, page by page. `rang_at` None: read the overlap again too."""
        step = f"pull {cid}"
        self._pulse.on(step)
        try:
            await self._read(cid, rang_at, on_page=lambda: self._pulse.on(step))
        finally:
            self._pulse.off(step)

    async def _read(self, cid: str, rang_at: float | None, *, on_page: Callable[[], None]) -> None:
        state = self._store.inbox.conversation(cid) or await self._first_start(cid)
        after = state.cursor if rang_at is not None else self._overlap(state)
        more = True
        while more:
            page = await self._room.history(cid, after=after)
            on_page()
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
        missed, stopped_by = 0, None
        for message, decision in decided:
            match decision:
                case Wake(resets_guard):
                    self._log.info("wakes", cid=cid, message=message.id)
                    stopped_by = None if resets_guard else stopped_by
                    self._heard.queued()
                case Obey(command):
                    self._heard.command(message, command)
                    self._store.inbox.obeyed(message.id, now=self._clock.now().timestamp())
                case Skip(Why.STALE):
                    missed += 1
                case Skip(reason) if reason in STOPPED_BY:
                    self._log.info("loop guard", cid=cid, message=message.id, reason=reason.value)
                    stopped_by = reason
                case _:
                    if names_me(message, self._me):
                        self._log.info("does not wake", cid=cid, message=message.id, reason=word(decision))
        if missed:
            self._heard.missed(cid, missed)
        if stopped_by is not None:
            self._heard.guarded(cid, stopped_by)

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
