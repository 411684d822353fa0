"""Say something as a persona outside a turn: `sentinel say`, `sentinel bridge reply`. Same journal, same readback.

Source: spec 02 section 4 (one-shot commands), spec 09.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from sentinel.bridge.deliver import Delivered, Delivery, InDoubt, Postponed, Refused
from sentinel.core.errors import Exit, NotPermitted, SentinelError, UsageError
from sentinel.core.journal import State
from sentinel.core.mentions import resolve
from sentinel.core.model import Member, Resolution
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
    must_say(text)
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
    # The key holds the conversation: the server keeps nonces per conversation too.
    turn_id = turns.draft_notice(clock.token(), cid, f"say:{cid}:{key}", made, now=clock.now().timestamp())
    delivery = await deliver(turn_id)
    match delivery:
        case Delivered():
            return _spoken(turns, turn_id, resolution, key)
        case None if turns.get(turn_id).state is State.VERIFIED:
            return _spoken(turns, turn_id, resolution, key)
        case None:
            raise NotDelivered(
                f"an earlier try under this nonce ended as {turns.get(turn_id).state.value}",
                mend="look in the room, then say it under another nonce",
            )
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


def must_say(text: str) -> None:
    """Raise `NothingToSay` for a text that holds nothing for a human."""
    if is_blank(text):
        raise NothingToSay(
            "there is no text to say", mend="give the text as an argument or on standard input"
        )


def _spoken(turns: Turns, turn_id: str, resolution: Resolution, key: str) -> Spoken:
    """Say what stands in the room: under a nonce that was used before, that is the text of the first time."""
    parts = turns.parts(turn_id)
    ids = tuple(part.server_id for part in parts if part.server_id)
    last = parts[-1].outgoing
    return Spoken(ids, last.mentions, last.broadcast, resolution.ambiguous, key)
