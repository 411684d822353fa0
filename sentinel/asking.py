"""Programs of our own that are asked one short question: bytes in, an exit code and two capped outputs back.

A launcher's verbs, `systemctl`, `launchctl`. Each has a time limit, a cap on what it may say, a session of its own, and
exactly the environment it is given. Blocking; `ask_aside` is the same for an event loop, begun on the loop's own thread so
that the runner of turns never takes the child for an orphan of its own.
"""

import contextlib
import errno
import os
import selectors
import signal
import subprocess  # noqa: TID251 - asks, and never runs an executor; turns are process.py's
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Final, cast

from sentinel import reaper

_CHUNK_BYTES: Final = 64 * 1024
_STDERR_BYTES: Final = 8 * 1024
_LEAVE_S: Final = 5.0
_LOOK_AGAIN_S: Final = 0.005
_NOT_STARTED: Final = 126
LACKS: Final = frozenset({errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE})
"""What this machine can be short of just now: no proof of anything."""
_TOO_LATE: Final = "no answer within {limit_s:g} s"


@dataclass(frozen=True, slots=True)
class Asked:
    """What came of it. `code` is None when there is none: over the time, over the cap, no memory (`why` says it).

    A program that cannot be started at all is 126, as in a shell, and `stderr` says why.
    """

    code: int | None
    stdout: bytes
    stderr: str
    """The last 8 KiB."""
    why: str = ""


def ask(
    argv: Sequence[str], *, data: bytes = b"", env: Mapping[str, str], timeout_s: float, cap_bytes: int
) -> Asked:
    """Start `argv`, write `data` to it, and return what it said. It never raises for what the program does."""
    child = _begin(argv, env)
    return child if isinstance(child, Asked) else _finish(child, data, timeout_s, cap_bytes)


async def ask_aside(
    argv: Sequence[str], *, data: bytes = b"", env: Mapping[str, str], timeout_s: float, cap_bytes: int
) -> Asked:
    """Do as `ask` does, while the event loop goes on."""
    child = _begin(argv, env)
    if isinstance(child, Asked):
        return child
    import asyncio  # here, so that a gate that asks nothing starts without it

    return await asyncio.to_thread(_finish, child, data, timeout_s, cap_bytes)


def _begin(argv: Sequence[str], env: Mapping[str, str]) -> "subprocess.Popen[bytes] | Asked":
    try:
        child = subprocess.Popen(
            argv,
            cwd="/",
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        number = error.errno if isinstance(error, OSError) else None
        why = f"{argv[0]} cannot be started: {os.strerror(number) if number else error}"
        return Asked(None, b"", "", why) if number in LACKS else Asked(_NOT_STARTED, b"", why)
    reaper.started(child.pid)
    return child


def _finish(child: "subprocess.Popen[bytes]", data: bytes, timeout_s: float, cap_bytes: int) -> Asked:
    deadline_s = time.monotonic() + timeout_s
    talk = _Talk(child, data, cap_bytes)
    code = None
    try:
        why = talk.until(deadline_s)
        if not why:
            code = child.wait(max(0.0, deadline_s - time.monotonic()))
    except subprocess.TimeoutExpired:
        why = _TOO_LATE
    finally:
        talk.close()
        _end(child)
    return Asked(code, bytes(talk.said), talk.complaint, why.format(limit_s=timeout_s))


def _end(child: "subprocess.Popen[bytes]") -> None:
    """End the program and its group. One that belongs to another user (sudo) ends by itself, for nobody listens any more."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(_LEAVE_S)
    deadline_s = time.monotonic() + _LEAVE_S
    with contextlib.suppress(ChildProcessError):
        while time.monotonic() < deadline_s:  # its orphans, where they come to us
            if os.waitpid(-child.pid, os.WNOHANG)[0] == 0:
                time.sleep(_LOOK_AGAIN_S)  # waitpid has no time limit, and this is a thread of its own


class _Talk:
    """Writes and reads at once, so that neither side can wait for the other for ever."""

    def __init__(self, child: "subprocess.Popen[bytes]", data: bytes, cap_bytes: int) -> None:
        self._in, self._out, self._err = cast(
            "tuple[IO[bytes], ...]", (child.stdin, child.stdout, child.stderr)
        )
        self._left, self._cap = memoryview(data), cap_bytes
        self.said, self._complaint = bytearray(), bytearray()
        self._selector = selectors.DefaultSelector()
        for pipe, event in (
            (self._in, selectors.EVENT_WRITE),
            (self._out, selectors.EVENT_READ),
            (self._err, selectors.EVENT_READ),
        ):
            os.set_blocking(pipe.fileno(), False)
            self._selector.register(pipe, event)

    @property
    def complaint(self) -> str:
        """The tail of standard error."""
        return self._complaint.decode("utf-8", "replace")

    def until(self, deadline_s: float) -> str:
        """Talk until the other side is done; return why that was broken off, or nothing."""
        while self._selector.get_map():
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                return _TOO_LATE
            for key, _ in self._selector.select(left_s):
                self._step(cast("IO[bytes]", key.fileobj))
            if len(self.said) > self._cap:
                return f"it said more than {self._cap} bytes"
        return ""

    def close(self) -> None:
        """Listen no more."""
        self._selector.close()
        for pipe in (self._in, self._out, self._err):
            pipe.close()

    def _step(self, pipe: IO[bytes]) -> None:
        try:
            is_open = self._write() if pipe is self._in else self._read(pipe)
        except BlockingIOError:
            return
        except OSError:  # it closed this end, or is gone
            is_open = False
        if not is_open:
            self._selector.unregister(pipe)
            pipe.close()

    def _write(self) -> bool:
        if self._left:
            self._left = self._left[os.write(self._in.fileno(), self._left[:_CHUNK_BYTES]) :]
        return bool(self._left)

    def _read(self, pipe: IO[bytes]) -> bool:
        data = os.read(pipe.fileno(), _CHUNK_BYTES)
        if pipe is self._out:
            self.said += data
        else:
            self._complaint += data
            del self._complaint[:-_STDERR_BYTES]
        return bool(data)
