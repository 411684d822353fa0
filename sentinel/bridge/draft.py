"""An answer -> the exact posts that will carry it: split, mentions resolved, numbered. Source: spec 02 section 4."""

from collections.abc import Sequence
from dataclasses import dataclass

from sentinel.core.mentions import resolve
from sentinel.core.model import Account, Member, Message, Outgoing
from sentinel.core.parts import AsFile, Attachment, nonce, plan, posts
from sentinel.core.persona import Persona
from sentinel.core.ports import Room


@dataclass(frozen=True, slots=True)
class Draft:
    """The posts of an answer, and the names in it that fit several members and so called nobody."""

    posts: tuple[Outgoing, ...]
    ambiguous: tuple[str, ...]


async def draft(
    room: Room,
    text: str,
    *,
    me: Account,
    persona: Persona,
    members: Sequence[Member],
    triggers: Sequence[Message],
    generation: int,
    attached: Sequence[Attachment] = (),
) -> Draft:
    """Make the posts of an answer to `triggers` (by seq, one conversation).

    `attached` are uploaded files that follow it. A text that would need more than `answer_parts` posts is uploaded as a file first. Raises what `Room.upload` raises.
    """
    first, newest = triggers[0], triggers[-1]
    limits = persona.limits
    planned = plan(text, limit=room.traits.text_limit_chars, max_parts=limits.answer_parts)
    resolution = resolve(text, members, may_broadcast=persona.may_broadcast)
    media_id = None
    if isinstance(planned, AsFile):
        data = planned.file_text.encode()
        media_id = (await room.upload(data, content_type="text/markdown", name=f"answer-{newest.seq}.md")).id
    nonces = [
        nonce(
            account=me.uid,
            persona=persona.name,
            cid=first.cid,
            trigger_id=first.id,
            generation=generation,
            part=part,
        )
        for part in range(max(limits.answer_parts, 2) + len(attached))
    ]
    made = posts(
        planned,
        nonces=nonces,
        resolution=resolution,
        answers=tuple(one.id for one in triggers),
        reply_to=newest.id,
        hops=1 + max(one.hops for one in triggers),
        media_id=media_id,
        attached=attached,
    )
    return Draft(made, resolution.ambiguous)
