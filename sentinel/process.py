"""The one place that starts child processes: an executor's turn, and programs of our own.

A turn is driven by callbacks on the running event loop: pipes are read and written as they get ready, the executor's end
shows on its pidfd. What it says goes straight into the codec, so nothing piles up. Whatever ends a turn, its whole tree
ends: the executor by the codec's signals, then its group, then what fled from it (`reaper.py`).
Source: spec 02 section 5 "The runner".
"""

import asyncio
import contextlib
import errno
import os
import shlex
import signal
import subprocess  # noqa: TID251 - the one module that may
import sys
from asyncio.subprocess import Process
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Final, cast

from sentinel import proctree, reaper
from sentinel.core.codec import Codec, Ended, EndedBy, Event, ExitStatus, Progress, Unknown
from sentinel.core.errors import Exit, SentinelError
from sentinel.core.evidence import masked, without_controls
from sentinel.pipes import Inflow, Outflow
from sentinel.reaper import MARKER, adopt_orphans, reap_orphans, stop_stranger

__all__ = [
    "MARKER",
    "Finished",
    "RunLimits",
    "SpawnFailed",
    "Turn",
    "adopt_orphans",
    "reap_orphans",
    "start",
    "start_program",
    "stop_stranger",
]

_STDERR_BYTES: Final = 16 * 1024
_LACKS: Final = frozenset({errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE})


@dataclass(frozen=True, slots=True)
class RunLimits:
    """The limits of one turn: seconds of silence before the result, after it, and in total; bytes of output."""

    silence_s: float
    linger_s: float
    total_s: float
    output_bytes: int


@dataclass(frozen=True, slots=True)
class Finished:
    """What there is to judge. `status.code` is None when the executor said its last word and still lingers.

    `stderr` is the last 16 KiB, secrets masked, control characters gone. Times are seconds since the executor began.
    """

    status: ExitStatus
    stderr: str
    unknown: int
    output_bytes: int
    first_output_s: float | None
    elapsed_s: float


class SpawnFailed(SentinelError):
    """The executor never started. `is_passing`: this machine lacks something just now (memory, processes, files)."""

    exit_code = Exit.CONFIG

    def __init__(self, what: str, *, mend: str, is_passing: bool) -> None:
        super().__init__(what, mend=mend)
        self.is_passing = is_passing


async def start(
    codec: Codec,
    *,
    cwd: str,
    env: Mapping[str, str],
    marker: str,
    limits: RunLimits,
    secrets: Sequence[str],
    on_event: Callable[[Event], None],
    on_exec: Callable[[str], None],
    meant: Sequence[str] = (),
) -> "Turn":
    """Start the executor of one turn in a session of its own. Its environment is `env` over the codec's, and the marker.

    `meant` is what a launcher will run elsewhere; it stands behind our own argv in the `exec:` line.
    `on_event` gets each event of the codec. `on_exec` gets the `exec:` line, also written to our stderr, with `secrets`
    masked; it comes after the spawn, for nobody waits for a log line before the executor's first instruction.
    Raises `SpawnFailed`.
    """
    argv, prompt, tree = codec.argv(), codec.to_send(), reaper.Tree(marker)
    try:
        child = subprocess.Popen(  # noqa: ASYNC220 - returns when the executor's first instruction runs, in 0.3 ms
            argv,
            cwd=cwd,
            env={**codec.env(), **env, MARKER: marker},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        tree.leave()
        raise _spawn_failed(argv[0], error) from error
    finally:
        line = without_controls(masked(f"exec: {shlex.join((*argv, *meant))}", secrets))
        with contextlib.suppress(OSError):  # a full disk costs the line, never the turn
            sys.stderr.write(f"{line}\n")
            sys.stderr.flush()
        on_exec(line)
    tree.root = child.pid
    try:
        return Turn(codec, child, tree, prompt, limits=limits, secrets=secrets, on_event=on_event)
    except BaseException:
        child.kill()
        child.wait()
        tree.leave()
        raise


async def start_program(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str,
    stdout: int | IO[bytes] | None = None,
    stderr: int | IO[bytes] | None = None,
) -> Process:
    """Start a program of our own that lives long, in a session of its own, with exactly `env`; the caller ends it."""
    program = await asyncio.create_subprocess_exec(  # noqa: TID251 - the one module that may
        *argv,
        env=env,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        start_new_session=True,
    )
    reaper.started(
        program.pid
    )  # for good: that a number comes again as an orphan of ours is no risk worth a watcher
    return program


def _spawn_failed(binary: str, error: OSError | ValueError) -> SpawnFailed:
    if not isinstance(error, OSError):
        return SpawnFailed(
            f"{binary} cannot be started: {error}", mend="mend the executor's settings", is_passing=False
        )
    named = error.filename if isinstance(error.filename, str) else binary
    why = os.strerror(error.errno) if error.errno else str(error)
    is_passing = error.errno in _LACKS
    mend = (
        "free memory, processes or files on this machine"
        if is_passing
        else "mend the executor's path or its cwd"
    )
    return SpawnFailed(f"{named} cannot be started: {why}", mend=mend, is_passing=is_passing)


class Turn:
    """One running executor. Made by `start`, used on the event loop that made it."""

    def __init__(
        self,
        codec: Codec,
        child: "subprocess.Popen[bytes]",
        tree: reaper.Tree,
        prompt: bytes,
        *,
        limits: RunLimits,
        secrets: Sequence[str],
        on_event: Callable[[Event], None],
    ) -> None:
        self._loop = loop = asyncio.get_running_loop()
        self._codec, self._child, self._limits, self._secrets, self._on_event = (
            codec,
            child,
            limits,
            secrets,
            on_event,
        )
        self.pid = child.pid
        seen = proctree.look(child.pid)
        self.started = seen.started if seen else 0
        self._begun_s = self._heard_s = loop.time()
        self._first_output_s: float | None = None
        self._bytes = self._unknown = self._open_tools = 0
        self._stderr = bytearray()
        self._by = EndedBy.ITSELF
        self._stopping: asyncio.Task[None] | None = None
        self._sweeping: asyncio.Task[None] | None = None
        self._result: asyncio.Future[Finished] = loop.create_future()
        self._exited, self._gone = asyncio.Event(), asyncio.Event()
        self._timers = [
            loop.call_later(limits.total_s, self.request_stop, EndedBy.TOTAL),
            loop.call_later(limits.silence_s, self._check_silence),
        ]
        stdin, stdout, stderr = cast("tuple[IO[bytes], ...]", (child.stdin, child.stdout, child.stderr))
        self._flows = (Outflow(loop, stdin, prompt),)
        self._inflows = (Inflow(loop, stdout, self._take), Inflow(loop, stderr, self._keep))
        self._tree = tree
        self._watch()

    async def result(self) -> Finished:
        """Return what there is to judge: at the terminal event, or at the executor's end."""
        return await asyncio.shield(self._result)

    @property
    def is_judged(self) -> bool:
        """Whether there is a result already: nobody waits for the executor any more."""
        return self._result.done()

    async def gone(self) -> None:
        """Return when nothing of the tree lives and all is reaped. Raises `SentinelError` if something cannot be ended."""
        await self._gone.wait()
        if self._sweeping is not None and self._sweeping.done() and self._sweeping.exception() is not None:
            self._sweeping = self._loop.create_task(self._tree.end_all())  # it may have ended since
        if self._sweeping is not None:
            await asyncio.shield(self._sweeping)

    def request_stop(self, by: EndedBy) -> None:
        """Begin the codec's stop sequence, then the sweep of the tree. The first request names who ended the turn."""
        if self._exited.is_set() or self._stopping is not None:
            return
        if not self._result.done():
            self._by = by
        self._tree.remember()
        self._stopping = self._loop.create_task(self._stop())

    async def _stop(self) -> None:
        for step in self._codec.stop:
            self._signal(signal.Signals[step.signal])
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._exited.wait(), step.wait_s)
                return
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if self._exited.is_set():
            return
        try:
            os.kill(self.pid, number)  # not reaped, so the number is still this process's
        except PermissionError:
            # A launcher that became somebody else (sudo): it ends by itself when nobody listens any more (docs/launcher.md).
            for flow in (*self._flows, *self._inflows):
                flow.close()

    def _take(self, data: bytes) -> None:
        """Take a chunk of standard output; after the decision it counts for nothing."""
        self._heard_s = self._loop.time()
        if self._first_output_s is None:
            self._first_output_s = self._heard_s - self._begun_s
        if self._is_flood(data) or self._result.done():
            return
        try:
            for event in self._codec.receive(data):
                self._on(event)
        except (
            Exception
        ) as error:  # the edge of a callback: the turn's owner must see it, and the tree must end
            if not self._result.done():
                self._result.set_exception(error)
            self.request_stop(EndedBy.TERM)

    def _on(self, event: Event) -> None:
        match event:
            case Progress(open_tools=open_tools):
                self._open_tools = open_tools
            case Unknown():
                self._unknown += 1
            case Ended() if not self._result.done():
                self._decide(None)
                self._tree.remember()
                self._timers.append(self._loop.call_later(self._limits.linger_s, self.request_stop, self._by))
            case _:
                pass
        self._on_event(event)

    def _keep(self, data: bytes) -> None:
        """Keep the tail of standard error, and so much more that no secret is cut in half before it is masked."""
        if not self._is_flood(data):
            self._stderr += data
            spare = max((len(one.encode()) for one in self._secrets), default=0)
            del self._stderr[: -(_STDERR_BYTES + spare)]

    def _is_flood(self, data: bytes) -> bool:
        self._bytes += len(data)
        if self._bytes <= self._limits.output_bytes:
            return False
        for flow in self._inflows:
            flow.close()
        self.request_stop(EndedBy.FLOOD)
        return True

    def _check_silence(self) -> None:
        """Stop the turn if nothing came for the limit and no tool is at work; else look again when that may be so."""
        left_s = self._heard_s + self._limits.silence_s - self._loop.time()
        if self._result.done():
            return
        if left_s <= 0 and not self._open_tools:
            self.request_stop(EndedBy.SILENCE)
            return
        again_s = max(left_s, self._limits.silence_s / 10)
        self._timers.append(self._loop.call_later(again_s, self._check_silence))

    def _watch(self) -> None:
        if hasattr(os, "pidfd_open"):
            pidfd = os.pidfd_open(self.pid)
            self._loop.add_reader(pidfd, self._on_pidfd, pidfd)
        else:
            self._loop.run_in_executor(None, self._child.wait).add_done_callback(lambda _: self._on_exit())

    def _on_pidfd(self, pidfd: int) -> None:
        self._loop.remove_reader(pidfd)
        os.close(pidfd)
        self._on_exit()

    def _on_exit(self) -> None:
        """The executor is dead but not reaped, so its number still names its group: end that, reap it, sweep the rest."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        code = self._child.wait()
        self._exited.set()
        for timer in self._timers:
            timer.cancel()
        for inflow in self._inflows:
            inflow.drain()
        for flow in (*self._flows, *self._inflows):
            flow.close()
        self._decide(code)
        if self._tree.end():
            self._sweeping = self._loop.create_task(self._tree.end_all())
        self._gone.set()

    def _decide(self, code: int | None) -> None:
        if self._result.done():
            return
        text = masked(self._stderr.decode("utf-8", "replace"), self._secrets)
        self._result.set_result(
            Finished(
                status=ExitStatus(code, self._by),
                stderr=without_controls(text, keep="\n\t")[-_STDERR_BYTES:],
                unknown=self._unknown,
                output_bytes=self._bytes,
                first_output_s=self._first_output_s,
                elapsed_s=self._loop.time() - self._begun_s,
            )
        )
