"""After the turn: every part of a draft onto the server, exactly as drafted, and read back before it counts.

The order of acts is the proof: `sending` is durable before the first byte leaves, the server's id before the readback,
the readback before `verified`. What is ambiguous (a cut, a time-out, a 5xx) is looked up by its nonce, and where it is
not found the *same* nonce and bytes go out again - on a room that keeps our nonce for good, for ever; elsewhere never
twice: a human is asked. Source: spec 02 section 4 "reply"; security facts, section F.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeAlias

from sentinel.core.errors import NonceConflict, NotFound, RateLimited, Rejected, Unavailable
from sentinel.core.journal import State
from sentinel.core.model import Account, Message
from sentinel.core.parts import matches
from sentinel.core.ports import Clock, NonceMemory, Room
from sentinel.store.records import PartRecord, TurnRecord
from sentinel.store.turns import Turns

READBACK_WAITS_S: Sequence[float] = (0.05, 0.25, 1.0)
_SENDS_IN_A_ROW = 3


@dataclass(frozen=True, slots=True)
class Delivered:
    """Every part was read back. `unanswered` are triggers that an adopted answer does not claim to answer."""

    messages: tuple[Message, ...]
    unanswered: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Postponed:
    """Not now: the room is away or says wait. Nothing is lost; the journal knows how far it came."""

    why: str
    retry_after_s: float | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """The room's definite no. The body is kept in the journal."""

    why: str
    status: int


@dataclass(frozen=True, slots=True)
class InDoubt:
    """Only a human can know whether it was said; it is not sent again by itself."""

    why: str


Delivery: TypeAlias = Delivered | Postponed | Refused | InDoubt


@dataclass(frozen=True, slots=True)
class _Adopted:
    message: Message


class Deliverer:
    """Delivers turns of one persona into one room; one at a time."""

    def __init__(self, room: Room, journal: Turns, me: Account, clock: Clock) -> None:
        self._room = room
        self._journal = journal
        self._me = me
        self._clock = clock

    async def deliver(self, turn: TurnRecord, *, anchor: int = 0) -> Delivery:
        """Bring a drafted turn as far as the room lets it come.

        `anchor` is the newest `seq` known before sending: where a search for our message may begin.
        Raises `Unauthorized`: no later try can heal it.
        """
        said: list[Message] = []
        for part in self._journal.parts(turn.id):
            if part.state in {State.VERIFIED, State.MOOT}:
                continue
            step = await self._part(turn, part, anchor)
            match step:
                case Message():
                    self._journal.read_back(turn.id, part.part)
                    said.append(step)
                case _Adopted(message):
                    unanswered = _not_answered(turn, message)
                    self._journal.adopt(
                        turn.id, part.part, message.id, unanswered=unanswered, now=self._now()
                    )
                    return Delivered((*said, message), unanswered)
                case _:
                    return step
        self._journal.verified(turn.id, now=self._now())
        return Delivered(tuple(said))

    async def _part(
        self, turn: TurnRecord, part: PartRecord, anchor: int
    ) -> Message | _Adopted | Postponed | Refused | InDoubt:
        """Return the message as read back, or why there is none yet."""
        state = part.state
        for _ in range(_SENDS_IN_A_ROW):
            if state is not State.POSTED:
                if state is State.SENDING and not self._may_send_again:
                    return await self._settle_without_memory(turn, part)
                self._journal.sending(turn.id, part.part, anchor=anchor)
                trouble = await self._post(turn, part)
                if trouble is not None:
                    return trouble
            found = await self._read_back(turn, part)
            if found is not None:
                return found
            if not self._may_send_again:
                return InDoubt("the server named the message, and does not show it")
            state = State.DRAFTED  # named by the server, yet not to be found: the same nonce once more
        return Postponed("the server named the message, but does not show it", None)

    @property
    def _may_send_again(self) -> bool:
        return self._room.traits.nonce_memory is NonceMemory.FOR_GOOD

    async def _post(
        self, turn: TurnRecord, part: PartRecord
    ) -> _Adopted | Postponed | Refused | InDoubt | None:
        """Post once; None means that the server named the message (state `posted`)."""
        try:
            message = await self._room.post(turn.cid, part.outgoing)
        except RateLimited as limited:
            if (
                not self._may_send_again
            ):  # nothing is under way, and the journal must know: it may be sent once more
                self._journal.turned_away(turn.id, part.part)
            return Postponed("the room says wait", limited.retry_after_s)
        except Unavailable as away:
            return await self._look(turn, part, absent=Postponed(str(away)))
        except NonceConflict:
            hidden = InDoubt("the room says that another text stands under our nonce, and does not show it")
            return await self._look(turn, part, absent=hidden)
        except Rejected as no:
            refused = Refused(str(no), no.status)
            if part.state is State.DRAFTED:
                return refused
            # An earlier try of these bytes may have been applied before the room changed its mind.
            return await self._look(turn, part, absent=refused)
        self._journal.posted(turn.id, part.part, message.id, now=self._now())
        return None

    async def _settle_without_memory(
        self, turn: TurnRecord, part: PartRecord
    ) -> Message | _Adopted | Postponed | Refused | InDoubt:
        """A room that may forget nonces: what may have been sent is never sent again (at most once)."""
        absent = InDoubt("it may have been posted, and this room cannot tell")
        trouble = await self._look(turn, part, absent=absent)
        if trouble is not None:
            return trouble
        return await self._read_back(turn, part) or absent

    async def _look(
        self, turn: TurnRecord, part: PartRecord, *, absent: Postponed | Refused | InDoubt
    ) -> _Adopted | Postponed | Refused | InDoubt | None:
        """Ask the server whether a post was applied; None: it was, and is `posted` now. `absent`: what it means if not."""
        try:
            found = await self._find(turn, part)
        except (RateLimited, Unavailable) as away:
            return Postponed(str(away))
        if found is None:
            return absent
        if not self._equal(turn, part, found):
            return _Adopted(found)
        self._journal.posted(turn.id, part.part, found.id, now=self._now())
        return None

    async def _read_back(self, turn: TurnRecord, part: PartRecord) -> Message | _Adopted | Postponed | None:
        try:
            found = await self._find(turn, part)
        except (RateLimited, Unavailable) as away:
            return Postponed(str(away))
        if found is None or self._equal(turn, part, found):
            return found
        return _Adopted(found)

    async def _find(self, turn: TurnRecord, part: PartRecord) -> Message | None:
        """Look our message up, a few times: a readback may be late."""
        try:
            found = await self._find_once(turn, part)
            for wait_s in READBACK_WAITS_S:
                if found is not None:
                    break
                await self._clock.sleep(wait_s)
                found = await self._find_once(turn, part)
        except Rejected as no:  # a refused *look* says nothing about the post
            raise Unavailable(f"the readback was refused ({no.status})") from no
        return found

    async def _find_once(self, turn: TurnRecord, part: PartRecord) -> Message | None:
        """Look by our nonce, or, where the room forgets it at once, by the id that it gave."""
        if self._room.traits.nonce_memory is not NonceMemory.NONE:
            return await self._room.find_by_nonce(turn.cid, part.outgoing.nonce)
        server_id = self._journal.parts(turn.id)[part.part].server_id
        try:
            return await self._room.find(turn.cid, server_id) if server_id else None
        except NotFound:
            return None

    def _equal(self, turn: TurnRecord, part: PartRecord, found: Message) -> bool:
        if self._room.traits.nonce_memory is NonceMemory.NONE:
            found = replace(found, nonce=part.outgoing.nonce)
        return found.cid == turn.cid and matches(part.outgoing, found, uid=self._me.uid)

    def _now(self) -> float:
        return self._clock.now().timestamp()


def _not_answered(turn: TurnRecord, adopted: Message) -> tuple[str, ...]:
    """Return the triggers of a batch that an adopted answer leaves open.

    Never the one whose nonce it stands under: that message *is* its answer, and asking again would meet it again.
    """
    return tuple(one for one in turn.batch if one not in adopted.answers and one != turn.key_id)


def retry_at(now: datetime, delivery: Postponed, *, backoff_s: float) -> float:
    """Return when to try a postponed delivery again, in epoch seconds: never earlier than the room said."""
    return now.timestamp() + max(backoff_s, delivery.retry_after_s or 0.0)
