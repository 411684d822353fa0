"""What the hands must be able to do: the Room port. Pure (a Protocol and the values it speaks of).

The sentinel, the bridge and the commands know rooms only by this page; no backend's name appears here.
Source: spec 01 section 1.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import BinaryIO, Protocol, TypeAlias

from sentinel.core.model import Account, Conversation, Media, Member, Message, Outgoing, Page, PresenceState


class NonceMemory(StrEnum):
    """How long a backend remembers our nonce: it decides the rule of recovery (security facts, section F)."""

    FOR_GOOD = "for-good"  # rule (i): send again with the same nonce, whenever
    BOUNDED = "bounded"  # rule (i) inside the window, (ii) outside
    STORED = "stored"  # rule (ii): kept and found, not deduplicated
    NONE = "none"  # rule (iii)


@dataclass(frozen=True, slots=True)
class RoomTraits:
    """What the core must know of a backend. `nonce_window_s` counts only with `BOUNDED`."""

    nonce_memory: NonceMemory
    text_limit_chars: int
    media_limit_bytes: int
    server_filters_mentions: bool
    nonce_window_s: float | None = None


@dataclass(frozen=True, slots=True)
class Connected:
    """The live line is up (again): pull what was missed. `reconnects` counts from 0."""

    reconnects: int


@dataclass(frozen=True, slots=True)
class Disconnected:
    """The live line is down; the iterator is already trying again after `retry_in_s`."""

    why: str
    retry_in_s: float


@dataclass(frozen=True, slots=True)
class Rang:
    """Something is new in `cid`, up to `seq` at least. It knocks; it carries no letter and no authority.

    `may_call` False: it addresses somebody else. That is a hint how soon to look, never whether: what wakes is decided
    on what is pulled.
    """

    cid: str
    seq: int
    may_call: bool = field(default=True, compare=False)


@dataclass(frozen=True, slots=True)
class MembersChanged:
    """Who is in `cid`, or who they are, changed: forget what was known of its members."""

    cid: str


@dataclass(frozen=True, slots=True)
class Superseded:
    """Another socket of this account took over: stop, do not reconnect (spec 02 section 3)."""


Doorbell: TypeAlias = Connected | Disconnected | Rang | MembersChanged | Superseded


class Clock(Protocol):
    """Time and chance, as arguments: only `sentinel/app/clock.py` reads the real ones."""

    def now(self) -> datetime:
        """Return the present, aware, in UTC."""
        ...

    def draw(self) -> float:
        """Return a uniform number in [0, 1), for jitter."""
        ...

    def token(self) -> str:
        """Return 128 fresh random bits as 32 hex digits, for ids and fences."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class Room(Protocol):
    """One account's view of a chat backend.

    Every call has a time limit and raises only the taxonomy of `core/errors.py` (`Unauthorized`, `RateLimited`,
    `Unavailable`, `Rejected`, `NotFound`, `NonceConflict`). Reads are retried inside a short bound; `post` never is.
    """

    @property
    def traits(self) -> RoomTraits:
        """What this backend can do."""
        ...

    async def who_am_i(self) -> Account:
        """Return the account that the token belongs to, as the server says."""
        ...

    def doorbells(self) -> AsyncIterator[Doorbell]:
        """Yield doorbells for ever, reconnecting with jittered backoff; `Connected` after each (re)connection.

        Raises `Unauthorized` at once when the token is refused (that never heals); ends after `Superseded`.
        """
        ...

    async def conversations(self) -> tuple[Conversation, ...]:
        """Return the conversations that this account is a member of."""
        ...

    async def history(self, cid: str, *, after: int, limit: int = 200) -> Page:
        """Return messages with `seq` > `after`, oldest first, at most `limit` (and at most 200)."""
        ...

    async def members(self, cid: str) -> tuple[Member, ...]:
        """Return the members of a conversation, this account among them."""
        ...

    async def find(self, cid: str, message_id: str) -> Message:
        """Return one message, or raise `NotFound`."""
        ...

    async def find_by_nonce(self, cid: str, nonce: str) -> Message | None:
        """Return *our own* message that stands under `nonce`, or None: the readback."""
        ...

    async def post(self, cid: str, outgoing: Outgoing) -> Message:
        """Post once. `Unavailable` means that it may have been applied: read back by nonce before anything else."""
        ...

    async def typing(self, cid: str, *, on: bool) -> None:
        """Show or hide "is typing". Best effort: loses nothing when it fails."""
        ...

    async def presence(self, state: PresenceState, detail: str | None = None) -> None:
        """Say how this persona is; members see it."""
        ...

    async def download(self, media: Media, into: BinaryIO, *, cap_bytes: int) -> int:
        """Write the media's bytes into `into`, return how many; `Rejected` past `cap_bytes`."""
        ...

    async def upload(self, data: bytes, *, content_type: str, name: str) -> Media:
        """Store media for a following `post` of type voice, image or file."""
        ...

    async def aclose(self) -> None:
        """Close every connection."""
        ...
