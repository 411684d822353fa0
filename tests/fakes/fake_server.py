"""The fake's server half: accounts, conversations, messages and live lines in memory, with HOOP's rules.

Several `FakeRoom`s share one; it outlives them, as a server outlives a client that is killed and started again.
Everything is deterministic: ids count up, and the clock ticks a second a message unless the test hands in its own.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from sentinel.core.errors import NonceConflict, NotFound, Rejected
from sentinel.core.model import (
    Account,
    Conversation,
    Kind,
    Media,
    Member,
    Message,
    MessageType,
    Outgoing,
    Page,
    PresenceState,
)
from sentinel.core.ports import Doorbell, MembersChanged, NonceMemory, Rang, Superseded
from sentinel.rooms.hoop_wire import MEDIA_LIMIT_BYTES, PAGE_LIMIT, TEXT_LIMIT_CHARS

_EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(eq=False, slots=True)
class Line:
    """One live socket."""

    uid: str
    queue: asyncio.Queue[Doorbell] = field(default_factory=asyncio.Queue)
    is_down: bool = False


@dataclass(slots=True)
class _Conversation:
    cid: str
    title: str
    members: list[str]
    messages: list[Message] = field(default_factory=list)


class FakeServer:
    """A chat server in memory.

    Args:
        nonce_memory: how long it remembers nonces; `FOR_GOOD` and `BOUNDED` deduplicate, `STORED` only keeps and finds
            them, `NONE` forgets them (`Message.nonce` is None).
        nonce_window_s: with `BOUNDED`, how old the first message may be to be given back, by the server's clock.
        now: the server's clock; without it, one second passes with each message.
    """

    def __init__(
        self,
        *,
        nonce_memory: NonceMemory = NonceMemory.FOR_GOOD,
        nonce_window_s: float | None = None,
        now: Callable[[], datetime] | None = None,
    ) -> None:
        self.nonce_memory = nonce_memory
        self.nonce_window_s = nonce_window_s
        self._now = now
        self._accounts: dict[str, Account] = {}
        self._conversations: dict[str, _Conversation] = {}
        self._posted: dict[str, Outgoing] = {}
        self._media: dict[str, tuple[Media, bytes, str]] = {}
        self._hidden: dict[str, int] = {}
        self.presence: dict[str, tuple[PresenceState, str | None]] = {}
        self.typing: set[tuple[str, str]] = set()
        self.lines: list[Line] = []

    # What a test arranges.

    def account(self, name: str, kind: Kind = Kind.HUMAN, *, uid: str | None = None) -> Account:
        """Make an account; its uid is `u-name` in small letters unless said."""
        made = Account(uid or f"u-{name.lower()}", name, kind)
        self._accounts[made.uid] = made
        return made

    def conversation(self, title: str, *members: Account, cid: str | None = None) -> str:
        """Make a conversation and return its cid (`c1`, `c2`, ...)."""
        cid = cid or f"c{len(self._conversations) + 1}"
        self._conversations[cid] = _Conversation(cid, title, [one.uid for one in members])
        return cid

    def join(self, cid: str, account: Account) -> None:
        """Add a member; every member's live line says so."""
        self._conversations[cid].members.append(account.uid)
        self._tell(cid, MembersChanged(cid))

    def leave(self, cid: str, account: Account) -> None:
        """Remove a member; every member's live line says so, the leaver's too."""
        self._tell(cid, MembersChanged(cid))
        self._conversations[cid].members.remove(account.uid)

    def say(
        self,
        sender: Account,
        cid: str,
        text: str,
        *,
        mentions: tuple[Account, ...] = (),
        broadcast: bool = False,
        reply_to: str | None = None,
        hops: int = 0,
        nonce: str | None = None,
    ) -> Message:
        """Post as `sender`, without a room and without its faults."""
        uids = tuple(one.uid for one in mentions)
        nonce = nonce or f"said-{sum(len(one.messages) for one in self._conversations.values()) + 1}"
        return self.post(
            sender.uid,
            cid,
            Outgoing(text, nonce, mentions=uids, broadcast=broadcast, reply_to=reply_to, hops=hops),
        )

    def messages(self, cid: str) -> tuple[Message, ...]:
        """Return everything that is stored, hidden or not."""
        return tuple(self._conversations[cid].messages)

    def texts(self, cid: str) -> list[str | None]:
        """Return the texts of everything that is stored."""
        return [one.text for one in self.messages(cid)]

    # What a room calls.

    def who(self, uid: str) -> Account:
        """Return the account."""
        return self._accounts[uid]

    def conversations_of(self, uid: str) -> tuple[Conversation, ...]:
        """Return the conversations of a member."""
        return tuple(
            Conversation(one.cid, one.title, self._visible(one)[-1].seq if self._visible(one) else 0)
            for one in self._conversations.values()
            if uid in one.members
        )

    def members_of(self, uid: str, cid: str) -> tuple[Member, ...]:
        """Return the members, with presence."""
        accounts = [self._accounts[one] for one in self._of(uid, cid).members]
        return tuple(
            Member(one.uid, one.name, one.kind, *self.presence.get(one.uid, (None, None))) for one in accounts
        )

    def page(self, uid: str, cid: str, *, after: int, limit: int) -> Page:
        """Return a page; it stops before a message that is not visible yet, as a reader never skips one."""
        conversation = self._of(uid, cid)
        newer = [one for one in self._visible(conversation) if one.seq > after]
        self._count_read([one for one in conversation.messages if one.seq > after])
        size = max(1, min(limit, PAGE_LIMIT))
        return Page(tuple(newer[:size]), has_more=len(newer) > size)

    def find(self, uid: str, cid: str, message_id: str) -> Message:
        """Return one visible message."""
        found = [one for one in self._of(uid, cid).messages if one.id == message_id]
        hidden = bool(found) and message_id in self._hidden
        self._count_read(found)
        if not found or hidden:
            raise NotFound(f"no message {message_id} in {cid}")
        return found[0]

    def find_by_nonce(self, uid: str, cid: str, nonce: str) -> Message | None:
        """Return the first visible message of `uid` under `nonce`."""
        found = self._under(uid, cid, nonce)
        shown = None if found is None or found.id in self._hidden else found
        self._count_read([found] if found else [])
        return shown

    def post(self, uid: str, cid: str, outgoing: Outgoing, *, hidden_reads: int = 0) -> Message:
        """Store a message by HOOP's rules, or give the first one back."""
        conversation = self._of(uid, cid)
        first = self._remembered(uid, cid, outgoing.nonce)
        if first is not None:
            if self._posted[first.id] != outgoing:
                raise NonceConflict(f"another post stands under the nonce {outgoing.nonce}")
            return first
        message = self._made(self._accounts[uid], conversation, outgoing)
        conversation.messages.append(message)
        self._posted[message.id] = outgoing
        if hidden_reads:
            self._hidden[message.id] = hidden_reads
        else:
            self._ring(message)
        return message

    def store_media(self, uid: str, data: bytes, content_type: str, name: str) -> Media:
        """Keep bytes for a following post."""
        if len(data) > MEDIA_LIMIT_BYTES:
            raise Rejected("the media is too large", status=413)
        media_id = f"f{len(self._media) + 1}"
        media = Media(media_id, f"/v1/media/{media_id}", content_type, len(data), name)
        self._media[media_id] = (media, data, uid)
        return media

    def media_bytes(self, uid: str, media: Media) -> bytes:
        """Return the bytes to the uploader and to members of a conversation where it was posted."""
        stored = self._media.get(media.id)
        if stored is None or not (stored[2] == uid or self._was_shown(uid, media.id)):
            raise NotFound(f"no media {media.id}")
        return stored[1]

    def connect(self, line: Line) -> None:
        """Take a live line on; an older one of the same persona is superseded."""
        for older in [one for one in self.lines if one.uid == line.uid]:
            if self._accounts[line.uid].kind is Kind.PERSONA and older is not line:
                older.queue.put_nowait(Superseded())
                self.disconnect(older)
        self.lines.append(line)

    def disconnect(self, line: Line) -> None:
        """Forget a live line, if it is still known."""
        if line in self.lines:
            self.lines.remove(line)

    # The rules.

    def _of(self, uid: str, cid: str) -> _Conversation:
        found = self._conversations.get(cid)
        if found is None or uid not in found.members:
            raise NotFound(f"no conversation {cid}")
        return found

    def _visible(self, conversation: _Conversation) -> list[Message]:
        for index, one in enumerate(conversation.messages):
            if one.id in self._hidden:
                return conversation.messages[:index]
        return conversation.messages

    def _count_read(self, candidates: list[Message]) -> None:
        for one in candidates:
            if one.id not in self._hidden:
                continue
            self._hidden[one.id] -= 1
            if self._hidden[one.id] <= 0:
                del self._hidden[one.id]
                self._ring(one)

    def _ring(self, message: Message) -> None:
        """Ring at every member, with the hint whether the message may call this one."""
        for line in list(self.lines):
            if line.uid in self._conversations[message.cid].members and not line.is_down:
                may_call = message.broadcast or line.uid in message.mentions
                line.queue.put_nowait(Rang(message.cid, message.seq, may_call))

    def _under(self, uid: str, cid: str, nonce: str) -> Message | None:
        mine = (one for one in self._of(uid, cid).messages if one.sender.uid == uid)
        return next((one for one in mine if one.nonce == nonce), None)

    def _remembered(self, uid: str, cid: str, nonce: str) -> Message | None:
        if self.nonce_memory not in (NonceMemory.FOR_GOOD, NonceMemory.BOUNDED):
            return None
        first = self._under(uid, cid, nonce)
        if first is None or self.nonce_memory is NonceMemory.FOR_GOOD or self.nonce_window_s is None:
            return first
        age = self._time(first.seq) - first.sent_at
        return first if age <= timedelta(seconds=self.nonce_window_s) else None

    def _made(self, sender: Account, conversation: _Conversation, outgoing: Outgoing) -> Message:
        if outgoing.type is MessageType.TEXT and not (outgoing.text or "").strip():
            raise Rejected("a message of type text needs a text that is not blank", status=422)
        if len(outgoing.text or "") > TEXT_LIMIT_CHARS:
            raise Rejected("the text is too long", status=413)
        by_id = {one.id: one for one in conversation.messages}
        if outgoing.reply_to is not None and outgoing.reply_to not in by_id:
            raise Rejected(f"no message {outgoing.reply_to} to reply to", status=422)
        hops = 0
        if sender.kind is Kind.PERSONA:
            parent = by_id.get(outgoing.reply_to or "")
            hops = max(outgoing.hops, parent.hops + 1 if parent else 0, 1)
        seq = len(conversation.messages) + 1
        return Message(
            id=f"{conversation.cid}-m{len(self._posted) + 1}",
            cid=conversation.cid,
            seq=seq,
            sender=sender,
            sent_at=self._time(seq),
            type=outgoing.type,
            text=outgoing.text,
            mentions=tuple(
                dict.fromkeys(one for one in outgoing.mentions if one in conversation.members)
            ),  # law 5: the server keeps real members only
            broadcast=outgoing.broadcast,
            media=self._attached(sender.uid, outgoing),
            reply_to=outgoing.reply_to,
            answers=outgoing.answers,
            nonce=None if self.nonce_memory is NonceMemory.NONE else outgoing.nonce,
            hops=hops,
        )

    def _attached(self, uid: str, outgoing: Outgoing) -> Media | None:
        if outgoing.type is MessageType.TEXT:
            return None
        stored = self._media.get(outgoing.media_id or "")
        if stored is None or stored[2] != uid:
            raise Rejected(f"no media {outgoing.media_id} of this account", status=422)
        return replace(stored[0])

    def _was_shown(self, uid: str, media_id: str) -> bool:
        mine = (one for one in self._conversations.values() if uid in one.members)
        return any(message.media and message.media.id == media_id for one in mine for message in one.messages)

    def _time(self, tick: int) -> datetime:
        return self._now() if self._now else _EPOCH + timedelta(seconds=tick)

    def _tell(self, cid: str, doorbell: Doorbell) -> None:
        for line in self.lines:
            if line.uid in self._conversations[cid].members and not line.is_down:
                line.queue.put_nowait(doorbell)
