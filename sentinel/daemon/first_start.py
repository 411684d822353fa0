"""The very first start in a conversation: begin at the newest message, replay nothing, lose nothing of the last hour.

Source: spec 02 section 3 "First start".
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sentinel.core.errors import NotFound
from sentinel.core.model import Account, Conversation, Message
from sentinel.core.persona import Persona
from sentinel.core.ports import Clock, Room
from sentinel.core.triage import Reason, first_start_triggers, names_me
from sentinel.daemon.log import Log
from sentinel.daemon.roster import Roster
from sentinel.store.inbox import ConversationState, Taken
from sentinel.store.store import Store

BLOCK_MESSAGES = 1_000


async def first_start(
    cid: str,
    *,
    room: Room,
    store: Store,
    me: Account,
    roster: Roster,
    persona: Persona,
    clock: Clock,
    log: Log,
) -> ConversationState:
    """Write the first-start mark, with the open triggers of the last hour, and return the state.

    Raises `NotFound` when the account is not in the conversation.
    """
    newest, now = (await _conversation(cid, roster)).last_seq, clock.now()
    since = now - timedelta(seconds=persona.limits.first_start_window_s)
    history = await _back_to(since, room, cid, newest)
    members = await roster.members(cid)
    triggers = first_start_triggers(history, me=me, members=members, now=now, persona=persona)
    store.inbox.take(
        cid,
        _taken(history, triggers, me),
        cursor=newest,
        keep_seen_from=0,
        now=now.timestamp(),
        first_mark=newest,
    )
    log.info("first start", cid=cid, first_mark=newest, taken=len(triggers))
    return ConversationState(cid, newest, newest, 0, 0.0)


def _taken(history: Sequence[Message], triggers: Sequence[Message], me: Account) -> list[Taken]:
    """Return the triggers, and what named the persona before it was here: `sentinel why` may be asked about that."""
    wake = [Taken(one, "wake", "wake", wakes=True, resets_guard=False, keep=True) for one in triggers]
    known = {one.id for one in triggers}
    past = [
        Taken(one, "skip", Reason.BEFORE_START.value, wakes=False, resets_guard=False, keep=True)
        for one in history
        if one.id not in known and one.sender.uid != me.uid and names_me(one, me)
    ]
    return [*wake, *past]


async def _back_to(since: datetime, room: Room, cid: str, newest: int) -> list[Message]:
    """Return the messages up to `newest` since that time, or a few more: blocks, from the newest backwards."""
    history: list[Message] = []
    begin = newest
    while begin > 0 and (not history or history[0].sent_at >= since):
        end, begin = begin, max(0, begin - BLOCK_MESSAGES)
        block: list[Message] = []
        after = begin
        while after < end:
            page = await room.history(cid, after=after)
            block.extend(one for one in page.messages if one.seq <= end)
            if not page.messages:
                break
            after = page.messages[-1].seq
        if not block:
            break
        history = block + history
    return history


async def _conversation(cid: str, roster: Roster) -> Conversation:
    for one in await roster.conversations():
        if one.cid == cid:
            return one
    raise NotFound(f"{cid} is not a conversation of this account", mend="check the cid on the command line")
