"""The newest messages of each conversation, as the intake has just read them from the server.

A turn that begins a moment after the pull need not ask for the same messages again. The window answers only for an
unbroken run of seqs that reaches from the asked one to the newest that was pulled, and only while the live line is up:
otherwise the server is asked, and a room that is away ends the turn as `room_unavailable`. Bounded per conversation.
"""

from collections import deque
from collections.abc import Sequence

from sentinel.core.model import Message


class Window:
    """A bounded, contiguous tail per conversation."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._tails: dict[str, deque[Message]] = {}
        self.live = False

    def add(self, cid: str, messages: Sequence[Message]) -> None:
        """Take a page in, oldest first; a hole in the seqs begins the tail anew."""
        tail = self._tails.setdefault(cid, deque(maxlen=self._size))
        for message in messages:
            if tail and message.seq <= tail[-1].seq:
                continue
            if tail and message.seq != tail[-1].seq + 1:
                tail.clear()
            tail.append(message)

    def forget(self, cid: str) -> None:
        """Begin anew: what was read of this conversation no longer holds."""
        self._tails.pop(cid, None)

    def since(self, cid: str, after: int) -> tuple[Message, ...] | None:
        """Return every message newer than `after`, or None when the tail does not reach back that far."""
        tail = self._tails.get(cid)
        if not self.live or not tail or tail[0].seq > after + 1:
            return None
        return tuple(one for one in tail if one.seq > after)
