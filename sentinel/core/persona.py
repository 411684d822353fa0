"""A persona as its home declares it: the result of a passed gate, and the numbers that may be changed. Pure.

Source: spec 02 section 1 (one value per file), `limits.toml`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Literal, TypeAlias

from sentinel.core.codec import Sandbox
from sentinel.core.facts import FarFacts


class Secret:
    """A value that must not be seen: `repr` and `str` hide it, `reveal` hands it out where it is used."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the value itself; call it only where it goes out (an HTTP header, a child's environment)."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(***)"

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)


class OnInterrupt(StrEnum):
    """What to do with a run that was cut off and may have acted (spec 02 section 4)."""

    RESUME = "resume"
    ASK = "ask"


@dataclass(frozen=True, slots=True)
class Limits:
    """The numbers of spec 02 that `limits.toml` may change. A field's name is its key; its unit is in its name."""

    stale_age_s: float = 86_400.0
    hop_limit: int = 3
    persona_turns: int = 6
    persona_window_s: float = 600.0
    first_start_window_s: float = 3_600.0
    command_age_s: float = 600.0
    fallback_poll_s: float = 600.0
    overlap_messages: int = 200
    block_messages: int = 200
    block_chars: int = 60_000
    silence_s: float = 900.0
    linger_s: float = 5.0
    turn_s: float = 3_600.0
    output_bytes: int = 64 * 1024 * 1024
    term_grace_s: float = 10.0
    backoff_first_s: float = 5.0
    backoff_cap_s: float = 600.0
    fail_notice_after: int = 3
    park_after: int = 12
    outage_notice_s: float = 600.0
    thread_tokens: int = 400_000
    answer_parts: int = 8
    media_bytes: int = 25 * 1024 * 1024
    outbox_files: int = 8

    @classmethod
    def names(cls) -> frozenset[str]:
        """Return the keys that `limits.toml` may hold."""
        return frozenset(one.name for one in fields(cls))


WakeFrom: TypeAlias = Literal["humans", "members"] | frozenset[str]


@dataclass(frozen=True, slots=True)
class Persona:
    """Everything that one turn needs to know of a persona, read at that turn (law 1). Only a passed gate makes one."""

    name: str
    home: str
    server: str
    account: str
    token: Secret
    adapter: str
    model: str
    binary: str
    cwd: str
    sandbox: Sandbox
    network: bool
    user: str
    env: Mapping[str, Secret]
    task_md: str
    owners: frozenset[str] = frozenset()
    wake_from: WakeFrom = "humans"
    handoff_from: frozenset[str] = frozenset()
    may_broadcast: bool = False
    reply_wakes: bool = False
    on_interrupt: OnInterrupt = OnInterrupt.RESUME
    locale: Literal["en", "zh"] = "en"
    limits: Limits = field(default_factory=Limits)
    far: FarFacts | None = None
    """Of an executor that runs as another user: what is known of its side; `binary` is then its launcher."""
