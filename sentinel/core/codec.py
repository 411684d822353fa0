"""The shape of an adapter: a sans-I/O codec around which one shared runner works. Pure.

A codec is made for one turn. The runner starts `argv()` with `env()` added to the allowed environment, writes
`to_send()` to its standard input and closes it, feeds each chunk of standard output to `receive`, and when the
process is over (or was ended) asks `outcome`. Source: spec 02 section 5.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol, TypeAlias

from sentinel.core.model import Message
from sentinel.core.outcome import Outcome


class Sandbox(StrEnum):
    """The closed list of walls around an executor's tools (spec 02 section 1)."""

    READ_ONLY = "read-only"
    WORKSPACE_WRITE = "workspace-write"
    DANGER_FULL_ACCESS = "danger-full-access"


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """What a codec needs to know of one turn."""

    binary: str
    model: str
    cwd: str
    sandbox: Sandbox
    network: bool
    prompt: str
    triggers: tuple[Message, ...]
    resume: str | None = None
    """The thread to go on with, or None for a new one."""
    new_thread: str = ""
    """A fresh UUID, for executors that let us choose the thread's id (claude)."""
    denied_paths: tuple[str, ...] = ()
    """Absolute paths that the executor's own rules must refuse to read: persona homes, keys, executor state."""
    images: tuple[str, ...] = ()
    """Absolute paths of images of this batch, for executors that take them."""
    outbox: str | None = None
    """Absolute path of the folder for files to be sent: the one place outside `cwd` that a walled executor may write to."""


@dataclass(frozen=True, slots=True)
class ThreadStarted:
    """The executor named its thread: tentative until the turn completes."""

    thread: str


@dataclass(frozen=True, slots=True)
class Progress:
    """A known event that says the executor lives. `open_tools` is the number of tool calls now running."""

    what: str
    open_tools: int = 0


@dataclass(frozen=True, slots=True)
class Ended:
    """The terminal event: the outcome is decided, whatever the process still does."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """An event we do not know, a line that is not protocol, or an absurdly long one: kept and counted."""

    what: str


Event: TypeAlias = ThreadStarted | Progress | Ended | Unknown


class EndedBy(StrEnum):
    """Who ended the process."""

    ITSELF = "itself"
    SILENCE = "silence"  # our limit on silence before the result
    TOTAL = "total"  # our limit on the whole turn
    FLOOD = "flood"  # our cap on bytes
    STOP = "stop"  # a human's /stop
    TERM = "term"  # the sentinel is going down
    SPAWN = "spawn"  # it never started: the binary or its cwd is missing or not executable


@dataclass(frozen=True, slots=True)
class ExitStatus:
    """How the process ended. `code` is negative for a signal and None if it never started or still lingers."""

    code: int | None
    ended_by: EndedBy = EndedBy.ITSELF


@dataclass(frozen=True, slots=True)
class StopStep:
    """One step of a stop sequence: send `signal` (its name) to the process, then wait."""

    signal: str
    wait_s: float


class Codec(Protocol):
    """One turn of one executor, without any I/O."""

    def argv(self) -> tuple[str, ...]:
        """The argument vector, binary first; no secret and no text from the room ever stands in it."""
        ...

    def env(self) -> Mapping[str, str]:
        """Fixed settings for the child (retry bounds, telemetry off), beneath what `<adapter>_env` says."""
        ...

    def to_send(self) -> bytes:
        """What goes to standard input before it is closed."""
        ...

    def receive(self, data: bytes) -> list[Event]:
        """Take a chunk of standard output in; any split of the same bytes gives the same events."""
        ...

    def outcome(self, status: ExitStatus, *, stderr: str, now: datetime) -> Outcome:
        """Decide. The terminal event and a non-empty text come before the exit code (spec 02 section 5)."""
        ...

    @property
    def stop(self) -> tuple[StopStep, ...]:
        """The signals that end this executor most cleanly, in order; the runner sweeps the tree after them."""
        ...


class Adapter(Protocol):
    """A kind of executor: its name, the walls it can really enforce, and its codec."""

    @property
    def name(self) -> str:
        """The word in the `adapter` file."""
        ...

    @property
    def needs_binary(self) -> bool:
        """Whether `<adapter>_bin` and `<adapter>_cwd` must be declared (not for echo)."""
        ...

    @property
    def walls(self) -> Mapping[tuple[Sandbox, bool], tuple[str, ...]]:
        """(sandbox, network) -> the exact flags that enforce the pair. What is not in it cannot be enforced."""
        ...

    @property
    def litter(self) -> tuple[str, ...]:
        """Names of empty folders that this executor may leave in its cwd when it is cut off."""
        ...

    def codec(self, request: TurnRequest) -> Codec:
        """Make the codec of one turn."""
        ...
