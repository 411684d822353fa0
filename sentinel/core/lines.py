"""Bytes -> lines -> JSON objects: the framing that line-based executors share. Pure.

A line ends at a line feed and nowhere else: executors write raw U+2028 inside strings. UTF-8 is decoded
per whole line, so that no split of the stream can break a character. Nothing in here raises on bad input: whatever
a program prints is data. Source: spec 02 section 5 ("incremental UTF-8", "no 64 KiB line limit").
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, cast

ABSURD_LINE_BYTES = 16 * 1024 * 1024
"""A longer line is skipped and reported: a 300 KB tool output on one line is normal, this is not."""

Json: TypeAlias = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Absurd:
    """Stands for a line longer than the limit; its bytes were thrown away."""

    size_bytes: int


@dataclass(slots=True)
class LineSplitter:
    """Cuts a stream of chunks into lines. Memory is bounded by `limit_bytes` and the size of one chunk."""

    limit_bytes: int = ABSURD_LINE_BYTES
    _parts: list[bytes] = field(default_factory=list[bytes])
    _size: int = 0

    def feed(self, data: bytes) -> list[bytes | Absurd]:
        """Return the lines that `data` completes, without their line ends."""
        lines: list[bytes | Absurd] = []
        *ended, rest = data.split(b"\n")
        for piece in ended:
            self._hold(piece)
            lines.append(self._take())
        self._hold(rest)
        return lines

    def close(self) -> bytes | Absurd | None:
        """Return what stood after the last line end, if anything did; the stream is over."""
        return self._take() if self._size else None

    def _hold(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self.limit_bytes:
            self._parts.clear()
        elif piece:
            self._parts.append(piece)

    def _take(self) -> bytes | Absurd:
        line = Absurd(self._size) if self._size > self.limit_bytes else b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        return line


@dataclass(frozen=True, slots=True)
class Noise:
    """Stands for a line that is not protocol: `what` it was, without its content."""

    what: str


@dataclass(slots=True)
class JsonLines:
    """A stream of chunks as JSON objects, one a line; empty lines are left out, all else that is none is `Noise`."""

    _lines: LineSplitter = field(default_factory=LineSplitter)

    def feed(self, data: bytes) -> list[Json | Noise]:
        """Return what the lines that `data` completes hold."""
        return [_object_or_noise(line) for line in self._lines.feed(data) if line != b""]

    def close(self) -> list[Json | Noise]:
        """Return what stood after the last line end; the stream is over."""
        rest = self._lines.close()
        return [] if rest is None else [_object_or_noise(rest)]


def _object_or_noise(line: bytes | Absurd) -> Json | Noise:
    if isinstance(line, Absurd):
        return Noise(f"a line of {line.size_bytes} bytes, skipped")
    return parse_object(line) or Noise(f"a line of {len(line)} bytes that is not a JSON object")


def parse_object(line: bytes) -> Json | None:
    """Return the JSON object on `line`, or None when it holds anything else.

    Broken UTF-8 becomes U+FFFD, and so do lone surrogates, which could not be sent on; of a key that stands twice the
    last value counts.
    """
    try:
        value: object = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return cast("Json", value) if isinstance(value, dict) else None


def text_at(event: Json, key: str) -> str:
    """Return the string at `key`, made fit for UTF-8, or an empty one."""
    value = event.get(key)
    return well_formed(value) if isinstance(value, str) else ""


def object_at(event: Json, key: str) -> Json:
    """Return the object at `key`, or an empty one."""
    value = event.get(key)
    return cast("Json", value) if isinstance(value, dict) else {}


def objects_at(event: Json, key: str) -> list[Json]:
    """Return the objects of the list at `key`; what is not an object is left out."""
    value = event.get(key)
    if not isinstance(value, list):
        return []
    return [cast("Json", one) for one in cast("Sequence[object]", value) if isinstance(one, dict)]


def count_at(event: Json, key: str) -> int:
    """Return the whole number at `key`, or 0."""
    value = event.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def well_formed(text: str) -> str:
    """Return `text` with lone surrogates (legal in JSON, not in UTF-8) replaced by U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
