"""What an executor leaves in the `outbox/` of its turn: found, judged and uploaded, to be posted after the answer.

Only plain files count: no link is followed, at no step of the way, and a file with a second name elsewhere is not taken, for it
may be somebody else's. Number and size are bounded. What is not taken is counted, never silently dropped; names with a leading
dot are nobody's word. A file is uploaded before the draft, and its media id is part of the draft's exact bytes: a process that is killed
between the two has posted nothing, and one that is killed later posts that very upload. Source: spec 02 section 4 "reply".
"""

import mimetypes
import os
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sentinel.core.model import MessageType
from sentinel.core.parts import Attachment, leaks, leaks_bytes
from sentinel.core.persona import Limits
from sentinel.core.ports import Room
from sentinel.whitelist.beneath import Root
from sentinel.whitelist.opened import Entry, Kind
from sentinel.whitelist.refusal import PathRefused

FOLDER: Final = "outbox"
_LISTED: Final = 1_000
_NAME_CHARS: Final = 80
_EXTENSION_CHARS: Final = 16
_UNSAFE: Final = re.compile(r"[^\w.,()+ -]+")
_OPAQUE: Final = "application/octet-stream"
_PICTURES: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
)


@dataclass(frozen=True, slots=True)
class File:
    """A file to be sent: its name as the executor gave it, and its bytes."""

    name: str
    data: bytes

    def __repr__(self) -> str:
        """Return how much it holds, not what: this may end in a log."""
        return f"File({self.name!r}, <{len(self.data)} bytes>)"


@dataclass(frozen=True, slots=True)
class Found:
    """The files to be sent, by name, and how many were left: too many, too large, empty, or no plain files."""

    files: tuple[File, ...] = ()
    left: int = 0


def is_empty(outbox: str) -> bool:
    """Return whether there is nothing to collect, as after most turns: a look that needs no thread of its own."""
    try:
        with os.scandir(outbox) as scan:
            return next(scan, None) is None
    except OSError:
        return True


def collect(home: Path, folder: Path, limits: Limits) -> Found:
    """Read the outbox in a turn's `folder`, which lies in the persona's `home`. Blocking; never raises for what lies there."""
    where = f"{folder.relative_to(home)}/{FOLDER}"
    files: list[File] = []
    left, room_bytes = 0, limits.media_bytes
    try:
        with Root.open(home) as root:
            listing = root.list(where, _LISTED)
            left += listing.is_cut
            for entry in listing.entries:
                if entry.name.startswith("."):
                    continue
                data = _read(root, where, entry, room_bytes) if len(files) < limits.outbox_files else None
                if data is None:
                    left += 1
                else:
                    room_bytes -= len(data)
                    files.append(File(entry.name, data))
    except PathRefused:  # there is none, or it is something else by now: then nothing is sent
        return Found((), left)
    return Found(tuple(files), left)


def _read(root: Root, where: str, entry: Entry, cap_bytes: int) -> bytes | None:
    if entry.kind is not Kind.FILE or entry.encoding != "utf-8":
        return None
    try:
        with root.open_file(f"{where}/{entry.name}", follow=False) as file:
            if os.fstat(file.descriptor).st_nlink > 1:
                return None
            content = file.read(cap_bytes)
    except (PathRefused, OSError):
        return None
    return content.data if content.data and not content.is_cut else None


def holds_secret(files: Sequence[File], secrets: Sequence[str]) -> bool:
    """Say whether a name or a content gives one of `secrets` away. Blocking: a large file takes a while."""
    return any(leaks(one.name, secrets) or leaks_bytes(one.data, secrets) for one in files)


async def upload(room: Room, file: File) -> Attachment:
    """Store a file with the room, for the draft to name. Raises what `Room.upload` raises."""
    content_type = _type_of(file)
    media = await room.upload(file.data, content_type=content_type, name=safe_name(file.name))
    is_picture = content_type in {kind for _, kind in _PICTURES}
    return Attachment(MessageType.IMAGE if is_picture else MessageType.FILE, media.id)


def safe_name(name: str) -> str:
    """Return a file name that is harmless wherever it is shown or stored: letters of any script, and no path."""
    stem, dot, extension = unicodedata.normalize("NFC", name).rpartition(".")
    if not dot:
        stem, extension = extension, ""
    clean = _UNSAFE.sub("_", stem).strip("._- ")[:_NAME_CHARS] or "file"
    tail = _UNSAFE.sub("", extension).strip()[:_EXTENSION_CHARS]
    return f"{clean}.{tail}" if tail else clean


def _type_of(file: File) -> str:
    """Return the content type: a picture by its first bytes, anything else by its name."""
    for magic, kind in _PICTURES:
        if file.data.startswith(magic):
            return kind
    guessed = mimetypes.guess_type(file.name)[0] or _OPAQUE
    return _OPAQUE if guessed.startswith("image/") else guessed
