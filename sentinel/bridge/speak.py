"""Say something as a persona outside a turn: `sentinel say`, `sentinel bridge reply`. Same journal, same readback.

Source: spec 02 section 4 (one-shot commands), spec 09.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from sentinel.bridge.deliver import Delivered, Delivery, InDoubt, Postponed, Refused
from sentinel.core.errors import Exit, NotPermitted, SentinelError, UsageError
from sentinel.core.mentions import resolve
from sentinel.core.model import Member
from sentinel.core.parts import Parts, is_blank, leaks, plan, posts
from sentinel.core.persona import Persona
from sentinel.core.ports import Clock, Room
from sentinel.store.turns import Turns


class NothingToSay(SentinelError):
    """The text is blank."""

    exit_code = Exit.NO_ANSWER


class NotDelivered(SentinelError):
    """It was not read back from the room."""

    exit_code = Exit.NOT_DELIVERED


@dataclass(frozen=True, slots=True)
class Spoken:
    """What was said, as the server has it."""

    message_ids: tuple[str, ...]
    mentions: tuple[str, ...]
    broadcast: bool
    ambiguous: tuple[str, ...]
    nonce: str


async def speak(
    room: Room,
    turns: Turns,
    text: str,
    *,
    cid: str,
    number: str | None,
    persona: Persona,
    members: Sequence[Member],
    secrets: Sequence[str],
    clock: Clock,
    deliver: Callable[[str], Awaitable[Delivery | None]],
) -> Spoken:
    """Post `text`, mentions resolved, and read it back.

    `number` is the caller's nonce: the same one again says nothing twice. `deliver` carries a drafted turn out.

    Raises:
        NothingToSay: blank (65).
        NotPermitted: a secret of the persona stands in it (77).
        NotDelivered: not read back (66); it stays in the journal, and the same nonce tries again.
    """
    if is_blank(text):
        raise NothingToSay(
            "there is no text to say", mend="give the text as an argument or on standard input"
        )
    if leaks(text, secrets):
        raise NotPermitted("the text holds a secret of this persona", mend="take it out; nothing was sent")
    planned = plan(text, limit=room.traits.text_limit_chars, max_parts=persona.limits.answer_parts)
    if not isinstance(planned, Parts):
        raise UsageError("the text is too long to be said", mend="shorten it")
    resolution = resolve(text, members, may_broadcast=persona.may_broadcast)
    key = number or clock.token()
    nonces = [key if part == 0 else f"{key}.{part}" for part in range(len(planned.texts))]
    made = posts(planned, nonces=nonces, resolution=resolution, answers=())
    made = tuple(replace(one, reply_to=None) for one in made)
    turn_id = turns.draft_notice(clock.token(), cid, f"say:{key}", made, now=clock.now().timestamp())
    delivery = await deliver(turn_id)
    match delivery:
        case Delivered() | None:
            ids = tuple(part.server_id or "" for part in turns.parts(turn_id))
            return Spoken(ids, resolution.mentions, resolution.broadcast, resolution.ambiguous, key)
        case Postponed(why):
            mend = f"it is kept, and sent when the room is there again; to insist: --nonce {key}"
            raise NotDelivered(f"not read back yet ({why})", mend=mend)
        case Refused(why):
            raise NotDelivered(
                f"the room refused it ({why})", mend="mend the text or the membership; nothing was posted"
            )
        case InDoubt(why):
            raise NotDelivered(
                f"nobody can tell whether it was posted ({why})", mend="look in the room before you repeat it"
            )
