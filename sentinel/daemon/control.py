"""`control.sock`: how other commands speak to the running sentinel. One JSON object a line, in and out.

It lies in the persona's home with mode 0600: who can open it is the operator. Source: spec 02 section 1.
"""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sentinel.core.errors import Exit, SentinelError, Unavailable, UsageError

NAME = "control.sock"
_LINE_BYTES = 1024 * 1024
_ANSWER_S = 60.0
_ADDRESS_BYTES = 100

Handler = Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]]


class Control:
    """Serves the verbs that the sentinel offers; an unknown verb or a bad line gets a clear answer."""

    def __init__(self, home: Path, verbs: Mapping[str, Handler]) -> None:
        self._path, self._verbs = home / NAME, verbs
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        """Listen; a socket that an earlier sentinel left is replaced (we hold the account lock)."""
        self._path.unlink(missing_ok=True)
        before = os.umask(0o177)
        try:
            with _address(self._path) as address:
                self._server = await asyncio.start_unix_server(self._serve, path=address, limit=_LINE_BYTES)
        finally:
            os.umask(before)

    async def close(self) -> None:
        """Stop listening and take the socket away."""
        if self._server is not None:
            self._server.close()
        self._path.unlink(missing_ok=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_ANSWER_S):
                line = await reader.readline()
                answer = await self._answer(line)
                writer.write(json.dumps(answer).encode() + b"\n")
                await writer.drain()
        except (OSError, ValueError, TimeoutError):
            return  # the caller went away, or sent no line: it learns nothing, and nothing was done
        finally:
            await _hang_up(writer)

    async def _answer(self, line: bytes) -> Mapping[str, Any]:
        try:
            request: Any = json.loads(line)
            verb = request["verb"]
            handler = self._verbs[verb]
        except (ValueError, KeyError, TypeError, RecursionError):
            return {"error": "not a verb of this sentinel", "code": int(Exit.USAGE)}
        try:
            return {"ok": dict(await handler(request))}
        except SentinelError as fault:
            return {"error": str(fault), "code": int(fault.exit_code)}
        except Exception as bug:  # a caller's request must not end the sentinel, nor stay without an answer
            return {"error": f"a bug of ours: {type(bug).__name__}: {bug}", "code": int(Exit.BUG)}


async def ask(home: Path, verb: str, **fields: object) -> Mapping[str, Any]:
    """Ask the running sentinel of `home`; raises `Unavailable` when none listens, or what it answered."""
    path = home / NAME
    try:
        async with asyncio.timeout(_ANSWER_S):
            with _address(path) as address:
                reader, writer = await asyncio.open_unix_connection(path=address, limit=_LINE_BYTES)
            try:
                writer.write(json.dumps({"verb": verb, **fields}).encode() + b"\n")
                await writer.drain()
                line = await reader.readline()
            finally:
                await _hang_up(writer)
        answer: Any = json.loads(line)
    except (OSError, ValueError, TimeoutError) as error:
        raise Unavailable(
            f"no sentinel listens on {path}",
            mend="start it with `sentinel run`, or look at `sentinel status`",
        ) from error
    if "error" in answer:
        if answer.get("code") == Exit.USAGE:
            raise UsageError(str(answer["error"]))
        raise _Answered(str(answer["error"]), int(answer.get("code", Exit.BUG)))
    return answer["ok"]


class _Answered(SentinelError):
    """A fault that the running sentinel reported, with its own exit code."""

    def __init__(self, what: str, code: int) -> None:
        super().__init__(what)
        self.exit_code = Exit(code)  # type: ignore[misc]  # an instance stands for one fault of any class


async def _hang_up(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


@contextmanager
def _address(path: Path) -> Generator[str]:
    """Yield a form of `path` that fits a socket address (108 bytes): through the open folder where it is too long."""
    if len(os.fsencode(path)) <= _ADDRESS_BYTES or not Path("/proc/self/fd").exists():
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
