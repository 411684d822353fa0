"""Messages, decisions and posts to put into a `state.db`."""

from datetime import UTC, datetime

from sentinel.core.model import Account, Kind, Message, Outgoing
from sentinel.store.inbox import Taken

ANN = Account("u-ann", "ann", Kind.HUMAN)


def message(seq, cid="c1", *, sender=ANN, text="hello"):
    return Message(f"{cid}-m{seq}", cid, seq, sender, datetime(2026, 3, 1, tzinfo=UTC), text=text)


def wake(seq, cid="c1", **more):
    return Taken(message(seq, cid, **more), "wake", "wake", wakes=True, resets_guard=False, keep=True)


def skip(seq, cid="c1", reason="not-mentioned"):
    return Taken(message(seq, cid), "skip", reason, wakes=False, resets_guard=False, keep=True)


def outgoing(nonce, text="an answer", **more):
    return Outgoing(text, nonce, **more)
