"""Bytes that messages carry: taken in, kept on disk, and handed to those who may see them.

A file's name is its id and never the client's word. What a browser may show in place is decided by the file's own first
bytes, not by what the uploader called it; all else is an attachment of no type. Source: spec 01 sections 2 and 3.
"""

import asyncio
import os
import re
import secrets
import sqlite3
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote

from sentinel.server.http import too_large
from sentinel.server.messages import media_url
from sentinel.server.problem import Problem, cannot_store, not_found, unprocessable

FOLDER = "media"
NAME_LIMIT_CHARS = 255
OPAQUE = "application/octet-stream"
HEAD_BYTES = 64
_TYPE = re.compile(r"[a-z0-9][a-z0-9.+-]{0,63}/[a-z0-9][a-z0-9.+-]{0,63}")
STORED = re.compile(r"f[0-9a-f]{32}")
_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"OggS", "audio/ogg"),
    (b"ID3", "audio/mpeg"),
)
_MPEG_SYNC = (b"\xff\xfb", b"\xff\xf3", b"\xff\xf2")
_WEBM = frozenset({"audio/webm", "video/webm"})
_MP4_AUDIO = frozenset({"audio/mp4", "audio/x-m4a", "audio/m4a"})


@dataclass(frozen=True, slots=True)
class Upload:
    """One stored file; `shown_type` is the listed type of its content, or None: an attachment."""

    id: str
    type: str
    size: int
    name: str | None

    def json(self) -> dict[str, Any]:
        """Return `{id, url, type, size, name?}`."""
        value: dict[str, Any] = {
            "id": self.id,
            "url": media_url(self.id),
            "type": self.type,
            "size": self.size,
        }
        return {**value, "name": self.name} if self.name is not None else value


def sniff(head: bytes, declared: str) -> str | None:
    """Return the listed type of which these first bytes are, or None.

    `declared` only chooses between sound and picture where one container holds either (WebM, MP4).
    """
    for magic, kind in _MAGIC:
        if head.startswith(magic):
            return kind
    if head[:4] == b"RIFF" and head[8:12] in {b"WEBP", b"WAVE"}:
        return "image/webp" if head[8:12] == b"WEBP" else "audio/wav"
    if head[:2] in _MPEG_SYNC:
        return "audio/mpeg"
    if head[:4] == b"\x1aE\xdf\xa3" and b"webm" in head:
        return declared if declared in _WEBM else "video/webm"
    if head[4:8] == b"ftyp" and (head[8:11] in {b"M4A", b"M4B"} or declared in _MP4_AUDIO):
        return "audio/mp4"
    return None


def check_name(name: str | None) -> str | None:
    """Return the file name to remember, or raise `Problem` 422: it is shown and offered, never opened."""
    if name is None:
        return None
    if not 1 <= len(name) <= NAME_LIMIT_CHARS or any(ord(one) < 32 or one in "/\\\x7f" for one in name):  # noqa: PLR2004  # 32: the control characters
        raise unprocessable(
            "name", f"a file name has 1 to {NAME_LIMIT_CHARS} characters, no slash, no control character"
        )
    return name


def clean_type(declared: str) -> str:
    """Return a content type without its parameters, or the opaque one where it is none."""
    essence = declared.partition(";")[0].strip().lower()
    return essence if _TYPE.fullmatch(essence) else OPAQUE


class MediaFolder:
    """The files of a data directory's media."""

    def __init__(self, data: Path, *, limit_bytes: int) -> None:
        self._folder = data / FOLDER
        self._folder.mkdir(mode=0o700, exist_ok=True)
        self._limit_bytes = limit_bytes
        for left_over in self._folder.glob("*.part"):  # an upload that a crash cut off
            left_over.unlink()

    def stored(self) -> list[Path]:
        """Return the stored files, one an upload."""
        return [one for one in self._folder.iterdir() if STORED.fullmatch(one.name)]

    def path(self, media_id: str) -> Path:
        """Return where a stored file lies; `media_id` comes from the database, not from a request."""
        return self._folder / media_id

    async def take_in(self, chunks: AsyncIterator[bytes], *, declared: str, name: str | None) -> Upload:
        """Store a body durably (file and folder synced) and return it.

        Raises:
            Problem: 413 past the limit, 422 if empty, 503 when the disk does not take it.

        """
        media_id = "f" + secrets.token_hex(16)
        part = self._folder / f"{media_id}.part"
        head, size = b"", 0
        try:
            with part.open("xb") as file:
                async for chunk in chunks:
                    size += len(chunk)
                    if size > self._limit_bytes:
                        raise too_large(self._limit_bytes)
                    head = (head + chunk)[:HEAD_BYTES] if len(head) < HEAD_BYTES else head
                    await asyncio.to_thread(file.write, chunk)
                if size == 0:
                    raise unprocessable("body", "there are no bytes in it")
                await asyncio.to_thread(self._settle, file, part, media_id)
        except OSError as fault:
            raise cannot_store(fault.strerror or "unknown fault") from fault
        finally:
            part.unlink(missing_ok=True)
        declared = clean_type(declared)
        return Upload(media_id, sniff(head, declared) or declared, size, name)

    def _settle(self, file: BinaryIO, part: Path, media_id: str) -> None:
        file.flush()
        sync(file.fileno())
        part.rename(self._folder / media_id)
        folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def sync(descriptor: int) -> None:
    """Bring a file to the disk itself; macOS needs a stronger word than fsync for that."""
    import fcntl

    full = getattr(fcntl, "F_FULLFSYNC", None)
    if full is None:
        os.fsync(descriptor)
        return
    try:
        fcntl.fcntl(descriptor, full)
    except OSError:  # a file system that does not know it
        os.fsync(descriptor)


def record(db: sqlite3.Connection, upload: Upload, uid: str, *, now_ms: int) -> None:
    """Note an upload whose file is on disk."""
    db.execute(
        "INSERT INTO media (id, uid, type, size, name, created_at) VALUES (?, ?, ?, ?, ?, ?)",
        (upload.id, uid, upload.type, upload.size, upload.name, now_ms),
    )


def find(db: sqlite3.Connection, media_id: str, uid: str) -> Upload:
    """Return an upload that this account may fetch, or raise `Problem` 404.

    Posted: the members of a conversation where it was posted. Not posted yet: its uploader.
    """
    row = db.execute("SELECT uid, type, size, name FROM media WHERE id = ?", (media_id,)).fetchone()
    if row is None or not _may_fetch(db, media_id, uid, row["uid"]):
        raise not_found("media")
    return Upload(media_id, row["type"], row["size"], row["name"])


def _may_fetch(db: sqlite3.Connection, media_id: str, uid: str, uploader: str) -> bool:
    posted = db.execute("SELECT DISTINCT cid FROM messages WHERE media_id = ?", (media_id,)).fetchall()
    if not posted:
        return uid == uploader
    return any(
        db.execute("SELECT 1 FROM members WHERE cid = ? AND uid = ?", (row[0], uid)).fetchone()
        for row in posted
    )


def disposition(upload: Upload, *, is_shown: bool) -> str:
    """Return the Content-Disposition: in place only for a listed type."""
    kind = "inline" if is_shown else "attachment"
    return f"{kind}; filename*=UTF-8''{quote(upload.name or upload.id, safe='')}"


def missing_file() -> Problem:
    """500: the row is there and the file is not; somebody took it from the folder."""
    return Problem(500, "damaged", "the bytes of this media are gone from the server's disk")
