"""`echo`: a built-in, honest stand-in for an AI. A codec; no I/O.

The trigger texts go as JSON to a program that copies its input (`/bin/cat`), and come back through the same runner as
every other executor's answer. Each text stands whole in a code fence of its own: a fence shows it unchanged, and no
`@name` inside one ever calls anybody (spec 02 section 6). Source: spec 02 section 5.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Final, cast

from sentinel.core.classify import ended_by_us, ended_without_result
from sentinel.core.codec import (
    Adapter,
    Codec,
    Ended,
    Event,
    ExitStatus,
    Sandbox,
    StopStep,
    TurnRequest,
    Unknown,
)
from sentinel.core.lines import Json, JsonLines, Noise, well_formed
from sentinel.core.model import Message, MessageType
from sentinel.core.outcome import Answer, Outcome

WALLS: Final[Mapping[tuple[Sandbox, bool], tuple[str, ...]]] = MappingProxyType(
    {(sandbox, network): () for sandbox in Sandbox for network in (False, True)}
)
"""Any pair: a program that only copies its input keeps within every wall."""

_COPIER: Final = "/bin/cat"
_WHO: Final = "I am a built-in echo, not an AI. You wrote:"
_NOTHING: Final = "(no text)"
_BACKTICKS: Final = re.compile(r"`{3,}")


class EchoCodec:
    """One turn of the echo."""

    stop: tuple[StopStep, ...] = (StopStep("SIGTERM", 0.5), StopStep("SIGKILL", 0.5))

    def __init__(self, request: TurnRequest) -> None:
        self._request = request
        self._lines = JsonLines()
        self._echoed: tuple[str, ...] | None = None

    def argv(self) -> tuple[str, ...]:
        """Return the copier, or the binary that the request names."""
        return (self._request.binary or _COPIER,)

    def env(self) -> Mapping[str, str]:
        """Return nothing: the copier has no settings."""
        return {}

    def to_send(self) -> bytes:
        """Return one line of JSON: what each trigger says, in order, once each."""
        once = {trigger.id: _said(trigger) for trigger in self._request.triggers}
        return json.dumps({"echo": list(once.values())}).encode() + b"\n"

    def receive(self, data: bytes) -> list[Event]:
        """Take a chunk of standard output in."""
        return [event for one in self._lines.feed(data) for event in self._on(one)]

    def outcome(self, status: ExitStatus, *, stderr: str, now: datetime) -> Outcome:
        """Decide: the texts that came back make the answer."""
        for one in self._lines.close():
            self._on(one)
        if self._echoed is not None:
            return Answer("\n\n".join((_WHO, *(_fenced(text) for text in self._echoed))))
        by_us = ended_by_us(status, trouble="", stderr=stderr, now=now)
        return by_us or ended_without_result(status, stderr=stderr, began=False, now=now, thread=None)

    def _on(self, event: Json | Noise) -> list[Event]:
        texts = None if isinstance(event, Noise) else _texts(event)
        if texts is None:
            return [Unknown("a line that is not what was sent")]
        self._echoed = texts
        return [Ended()]


def _said(trigger: Message) -> str:
    """Return the whole text of `trigger`; for voice, image and file first the type and name."""
    text = well_formed(trigger.text or "")
    if trigger.type is MessageType.TEXT:
        return text
    name = f" {well_formed(trigger.media.name)}" if trigger.media and trigger.media.name else ""
    return f"({trigger.type.value}{name})\n{text}" if text else f"({trigger.type.value}{name})"


def _texts(event: Json) -> tuple[str, ...] | None:
    value = event.get("echo")
    if not isinstance(value, list):
        return None
    texts = cast("Sequence[object]", value)
    return (
        tuple(one for one in texts if isinstance(one, str))
        if all(isinstance(one, str) for one in texts)
        else None
    )


def _fenced(text: str) -> str:
    """Return `text` as a code block whose fence is longer than any run of backticks in it."""
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{text or _NOTHING}\n{fence}"


@dataclass(frozen=True, slots=True)
class EchoAdapter:
    """The kind of executor `echo`."""

    name: str = "echo"
    needs_binary: bool = False
    litter: tuple[str, ...] = ()

    @property
    def walls(self) -> Mapping[tuple[Sandbox, bool], tuple[str, ...]]:
        """Return the pairs that can be enforced, and how."""
        return WALLS

    def codec(self, request: TurnRequest) -> Codec:
        """Make the codec of one turn."""
        return EchoCodec(request)


ADAPTER: Final[Adapter] = EchoAdapter()
