"""Before the turn: the block of messages that the executor is shown, and the files that belong to it.

The block holds every trigger whole and, as context, what was said from the last answer up to a snapshot; only context
is ever dropped, and the block says how much. Media become *local* files in the turn's private folder: an address that
needs our token is no use to an executor. Source: spec 02 section 4 "fetch".
"""

import mimetypes
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sentinel.core.errors import RateLimited, Rejected
from sentinel.core.model import Message
from sentinel.core.persona import Limits
from sentinel.core.ports import Room
from sentinel.core.prompt import Block, Entry, select

_NAME_CHARS = 80
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class Fetched:
    """What a turn is given. `snapshot` is the newest `seq` that the block may hold."""

    block: Block
    snapshot: int


async def fetch(
    room: Room,
    cid: str,
    triggers: Sequence[Message],
    *,
    answered: int,
    folder: Path,
    limits: Limits,
    recent: Callable[[int], Sequence[Message] | None] = lambda _: None,
) -> Fetched:
    """Read the conversation and make the block of a turn.

    Args:
        room: the persona's own view; every call has its time limit.
        cid: the conversation.
        triggers: the batch, as the journal keeps it.
        answered: `seq` of the newest trigger that was answered (the first-start mark before that).
        folder: the turn's private folder; made only when there is a file to put into it.
        limits: block size, media cap.
        recent: seq -> every newer message, where they were read a moment ago; None: ask the server.

    Raises `Unavailable`, `RateLimited`, `Unauthorized`: the turn ends as `room_unavailable`, nothing is counted.
    """
    newest, wanted = triggers[-1].seq, min(answered, triggers[0].seq - 1)
    # Older context than the block can hold is not even read; seqs are gapless, so what is left out is exact.
    after = max(wanted, newest - limits.block_messages - 1)
    known = recent(after)
    history = await _history(room, cid, after, limits.block_messages) if known is None else known
    snapshot = max(newest, history[-1].seq) if history else newest
    block = select(history, triggers, max_messages=limits.block_messages, max_chars=limits.block_chars)
    entries = tuple([await _with_file(room, entry, folder, limits) for entry in block.entries])
    return Fetched(Block(entries, max(0, snapshot - wanted - len(entries))), snapshot)


async def _history(room: Room, cid: str, after: int, most: int) -> Sequence[Message]:
    """Return what is newer than `after`, or, when that is more than a page, at least the newest `most` of it."""
    page = await room.history(cid, after=after)
    history = list(page.messages)
    if page.has_more:  # a trigger that waited long: what came after it may be thousands
        last = next((one.last_seq for one in await room.conversations() if one.cid == cid), 0)
        after = max(history[-1].seq, last - most)
    while page.has_more and page.messages:
        page = await room.history(cid, after=after)
        history.extend(page.messages)
        after = history[-1].seq
    return history


async def _with_file(room: Room, entry: Entry, folder: Path, limits: Limits) -> Entry:
    """Bring a trigger's media here. Media of context stay where they are: the entry names their type."""
    media = entry.message.media
    if media is None or not entry.is_trigger:
        return entry
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / safe_name(entry.message)
    descriptor = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as into:
        try:
            await room.download(media, into, cap_bytes=limits.media_bytes)
        except RateLimited:
            raise
        except Rejected:  # gone, or too large: the entry then says that it could not be fetched
            path.unlink()
            return entry
    return Entry(entry.message, is_trigger=True, file=str(path))


def safe_name(message: Message) -> str:
    """Return a file name for a message's media: unique by its seq, harmless whatever the sender called it."""
    media = message.media
    if media is None:
        raise ValueError("a message without media has no file")
    stem, extension = os.path.splitext(media.name or "")  # noqa: PTH122  # a name from the wire is no path
    extension = extension or mimetypes.guess_extension(media.type.split(";")[0]) or ".bin"
    clean = _UNSAFE.sub("_", f"{stem or message.type.value}").strip("._-")[:_NAME_CHARS] or message.type.value
    return f"{message.seq}-{clean}{_UNSAFE.sub('', extension)[:16]}"
