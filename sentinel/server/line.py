"""The outgoing side of one WebSocket: a bounded queue and the one task that empties it.

A client that reads too slowly must hold up nobody and cost bounded memory: past its bound the queue is dropped and the
socket closes with 4429, and the client pulls what it missed. Source: spec 01 section 2.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

from sentinel.server.accounts import Session

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Close:
    """How a socket ends: a WebSocket close code and the reason that the client is shown."""

    code: int
    reason: str


UNAUTHORIZED = Close(4401, "unauthorized")
AUTH_TIMEOUT = Close(4408, "no auth frame in time")
TOO_SLOW = Close(4429, "too slow: the send queue overflowed; reconnect and pull")


class Line:
    """One open socket of one account."""

    def __init__(self, session: Session, send: Send, *, max_frames: int, max_bytes: int) -> None:
        self.session = session
        self.uid = session.account.uid
        self.typing_in: set[str] = set()
        self._send = send
        self._max_frames = max_frames
        self._max_bytes = max_bytes
        self._frames: deque[str] = deque()
        self._size = 0
        self._close: Close | None = None
        self._wake = asyncio.Event()
        self._ending = asyncio.Event()

    def offer(self, frame: str) -> None:
        """Queue a frame; never waits. Past the bound the socket is closed instead."""
        if self._close is not None:
            return
        self._frames.append(frame)
        self._size += len(frame)
        if len(self._frames) > self._max_frames or self._size > self._max_bytes:
            self._frames.clear()
            self.close(TOO_SLOW)
        self._wake.set()

    def close(self, close: Close) -> None:
        """Close the socket after what is queued."""
        self._close = self._close or close
        self._ending.set()
        self._wake.set()

    @property
    def is_closing(self) -> bool:
        """Whether the socket's end is decided: nothing that comes in is obeyed any more."""
        return self._close is not None

    async def ending(self) -> None:
        """Wait until the socket's end is decided."""
        await self._ending.wait()

    async def carry(self) -> None:
        """Send what is queued until the socket closes; runs as the socket's own task."""
        while True:
            while self._frames:
                frame = self._frames.popleft()
                self._size -= len(frame)
                await self._send({"type": "websocket.send", "text": frame})
            if self._close is not None:
                await self._send(
                    {"type": "websocket.close", "code": self._close.code, "reason": self._close.reason}
                )
                return
            self._wake.clear()
            await self._wake.wait()
