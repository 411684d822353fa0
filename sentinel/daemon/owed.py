"""Commands that were taken in and not carried out before the process was killed: a `/stop` must not get lost.

A command is noted as obeyed after the deed; what it does, and its confirming line, may be done twice without harm.
Source: spec 02 section 3 "Commands"; law 7.
"""

from collections.abc import Callable

from sentinel.core.commands import Command
from sentinel.core.errors import NotFound, RateLimited, Unavailable
from sentinel.core.model import Account, Message
from sentinel.core.persona import Persona
from sentinel.core.ports import Clock, Room
from sentinel.core.triage import Obey, triage
from sentinel.daemon.log import Log
from sentinel.daemon.roster import Roster
from sentinel.store.store import Store


async def obey_what_is_owed(
    command: Callable[[Message, Command], None],
    *,
    room: Room,
    store: Store,
    me: Account,
    roster: Roster,
    persona: Persona,
    clock: Clock,
    log: Log,
) -> None:
    """Judge each owed command again, as the server has it now, and carry it out where it still may be."""
    for owed in store.inbox.owed_commands():
        now = clock.now()
        try:
            message = await room.find(owed.cid, owed.message_id)
            members = await roster.members(owed.cid)
        except NotFound:
            store.inbox.obeyed(owed.message_id, now=now.timestamp())
            continue
        except (RateLimited, Unavailable) as away:
            log.warning("a command waits", message=owed.message_id, why=str(away))
            return
        decision = triage(
            message, me=me, members=members, first_mark=0, recent_persona_turns=0, now=now, persona=persona
        )
        if isinstance(decision, Obey):
            command(message, decision.command)
        store.inbox.obeyed(message.id, now=now.timestamp())
