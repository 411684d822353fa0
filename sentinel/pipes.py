"""The two ends of a child's pipes on an event loop, without a thread and without a buffer that grows.

Source: spec 02 section 5 (the prompt goes out while output comes in; no line limit).
"""

import asyncio
import os
from collections.abc import Callable
from typing import IO, Final

_CHUNK_BYTES: Final = 256 * 1024


class Inflow:
    """Hands every chunk that a child writes to `take`, as it comes."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, pipe: IO[bytes], take: Callable[[bytes], None]
    ) -> None:
        self._loop, self._pipe, self._take = loop, pipe, take
        os.set_blocking(pipe.fileno(), False)
        loop.add_reader(pipe.fileno(), self._read)

    def drain(self) -> None:
        """Take what is there now, without waiting: after the child's end a grandchild may hold the pipe open for ever."""
        while not self._pipe.closed and self._read():
            pass

    def close(self) -> None:
        """Read no more."""
        if not self._pipe.closed:
            self._loop.remove_reader(self._pipe.fileno())
            self._pipe.close()

    def _read(self) -> bool:
        """Read one chunk; return whether there may be more at once."""
        try:
            data = os.read(self._pipe.fileno(), _CHUNK_BYTES)
        except BlockingIOError:
            return False
        if not data:
            self.close()
            return False
        self._take(data)
        return True


class Outflow:
    """Writes `data` as the child reads it, then closes; a child that does not read it is no fault of ours."""

    def __init__(self, loop: asyncio.AbstractEventLoop, pipe: IO[bytes], data: bytes) -> None:
        self._loop, self._pipe, self._left = loop, pipe, memoryview(data)
        os.set_blocking(pipe.fileno(), False)
        self._write()

    def close(self) -> None:
        """Write no more."""
        if not self._pipe.closed:
            self._loop.remove_writer(self._pipe.fileno())
            self._pipe.close()

    def _write(self) -> None:
        fd = self._pipe.fileno()
        try:
            while self._left:
                self._left = self._left[os.write(fd, self._left[:_CHUNK_BYTES]) :]
        except BlockingIOError:
            self._loop.add_writer(fd, self._write)
            return
        except (BrokenPipeError, ConnectionResetError):
            pass  # it closed its standard input, or ended
        self.close()
