"""`sentinel say` and the one-shot bridge: through the running sentinel, or by ourselves while holding its lock.

Source: spec 02 section 1 (`control.sock`) and section 4 (one-shot commands).
"""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

import structlog

from sentinel.app.ground import identity, passed, standing
from sentinel.bridge.deliver import Deliverer
from sentinel.bridge.speak import must_say, speak
from sentinel.core.errors import Unavailable
from sentinel.core.model import Message
from sentinel.daemon.case import secrets_of
from sentinel.daemon.control import NAME, ask
from sentinel.daemon.ground import Ground
from sentinel.daemon.log import Log
from sentinel.daemon.postman import Postman
from sentinel.rooms.open import open_room
from sentinel.store.store import FILE, look_at_store


async def say(home: Path, cid: str, text: str, *, nonce: str | None) -> Mapping[str, Any]:
    """Post as the persona and return what the server has: `{message_ids, mentions, broadcast, ambiguous, nonce}`."""
    passed(home, guarded=None)
    must_say(text)
    if (home / NAME).exists():
        try:
            return await ask(home, "say", cid=cid, text=text, nonce=nonce)
        except Unavailable:
            pass  # the socket of a sentinel that was killed: the lock below decides
    async with standing(home, _silent(), guarded=None) as ground:
        postman = _postman(ground)
        said = await speak(
            ground.room,
            ground.store.turns,
            text,
            cid=cid,
            number=nonce,
            persona=ground.persona,
            members=await ground.room.members(cid),
            secrets=secrets_of(ground.persona),
            clock=ground.clock,
            deliver=postman.attempt,
        )
        return asdict(said)


def _postman(ground: Ground) -> Postman:
    """Make the one who delivers, and keeps in the journal how that ended; nobody else is to be told."""
    return Postman(
        Deliverer(ground.room, ground.store.turns, ground.me, ground.clock),
        ground.store,
        account=ground.me.uid,
        persona=ground.persona.name,
        clock=ground.clock,
        log=ground.log,
        still_true=lambda _: True,
        on_failure=lambda _turn, _notice: None,
        on_settled=lambda: None,
    )


async def unanswered(home: Path, cid: str) -> tuple[Message, ...]:
    """Return what was said in a conversation since the persona's last answer (or first start), oldest first."""
    persona = passed(home, guarded=None)
    after = 0
    if (home / FILE).exists():
        store = look_at_store(home)
        known = store.inbox.conversation(cid)
        store.close()
        after = max(known.answered, known.first_mark) if known else 0
    room = open_room(persona.server, persona.token)
    try:
        await identity(persona, room)
        found: list[Message] = []
        more = True
        while more:
            page = await room.history(cid, after=after)
            found.extend(page.messages)
            more = page.has_more and bool(page.messages)
            after = found[-1].seq if found else after
        return tuple(found)
    finally:
        await room.aclose()


def _silent() -> Log:
    return cast("Log", structlog.wrap_logger(None, processors=[_drop]))


def _drop(*_: object) -> dict[str, object]:
    raise structlog.DropEvent
