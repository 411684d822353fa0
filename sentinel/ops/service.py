"""What a service is, whichever manager runs it: a persona's shim with its home and conversations, and what is said of it.

Pure. A unit holds no fact of the persona but where its home lies and which conversations it guards (law 1); the one
exception, whether sudo is on the executor's way, stands with its reason in `systemd.py`.
Source: spec 06 "Services"; spec 02 section 2 (program arguments).
"""

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from sentinel.core.errors import ConfigError

STOP_S = 45
"""From TERM to SIGKILL: the running turn's grace (10 s), its stop sequence, the goodbye to the room."""

AGAIN_S = 60
"""A refused persona is tried again after so long: a cheap gate, no executor. It heals within this time once it is mended."""

_NONCHARACTERS = frozenset("\ufffe\uffff")


@dataclass(frozen=True, slots=True)
class Service:
    """One persona's sentinel as a service. `cids` may be the one word `all`; `by_sudo`: sudo reaches its executor."""

    name: str
    home: Path
    cids: tuple[str, ...]
    environment: Mapping[str, str]
    by_sudo: bool = False

    @property
    def label(self) -> str:
        """Its name for the service manager."""
        return label_of(self.name)

    @property
    def arguments(self) -> tuple[str, ...]:
        """The program and its arguments: the shim is read by sh, so that its mode and its file system do not matter."""
        return ("/bin/sh", f"{self.home}/launch", str(self.home), *self.cids)

    @property
    def log_folder(self) -> Path:
        """Where its standard output and error go, for a manager without a log of its own."""
        return self.home / "log"


@dataclass(frozen=True, slots=True)
class UnitFile:
    """One file of a service manager, whole."""

    path: Path
    data: bytes


@dataclass(frozen=True, slots=True)
class Condition:
    """What the manager knows: whether it has the unit, whether that runs, and how it last ended.

    `detail` is the manager's own word; `pid` and `last_exit` are None where there is none.
    """

    loaded: bool
    running: bool
    detail: str
    pid: int | None = None
    last_exit: int | None = None


class Manager(Protocol):
    """A service manager of this user: launchd or systemd."""

    word: str

    def files(self, service: Service) -> tuple[UnitFile, ...]:
        """Return the service's files, the unit itself first. Raises `ConfigError` for what no unit can hold."""
        ...

    def paths(self, name: str) -> tuple[Path, ...]:
        """Return where the files of a persona's service lie."""
        ...

    def condition(self, name: str) -> Condition:
        """Ask the manager. Raises `Unavailable` when it cannot be asked."""
        ...

    def load(self, name: str) -> None:
        """Take the files on disk into use and start what they say. Raises `Unavailable`."""
        ...

    def restart(self, name: str) -> None:
        """End the running sentinel, if one runs, and start it again. Raises `Unavailable`."""
        ...

    def unload(self, name: str) -> None:
        """Stop it and forget it; it is no fault when it was not loaded. Raises `Unavailable`."""
        ...

    def files_are_gone(self) -> None:
        """Hear that the caller removed a service's files."""
        ...


def label_of(name: str) -> str:
    """Return the label of a persona's service."""
    return f"com.hoop.{name}.ws"


def must_fit(service: Service) -> None:
    """Raise `ConfigError` for what no unit of any manager can hold: control characters, bytes that are no text."""
    told = {"home": str(service.home), "name": service.name}
    told |= {f"conversation {number}": cid for number, cid in enumerate(service.cids, 1)}
    told |= dict(service.environment)
    for what, value in told.items():
        bad = next((one for one in value if _is_unfit(one)), None)
        if bad is not None:
            raise ConfigError(
                f"the {what} {value!a} holds the character U+{ord(bad):04X}, which no service unit can hold",
                mend="rename it to something without control characters",
            )
        if not value:
            raise ConfigError(f"the {what} is empty", mend="give it a value")


def _is_unfit(one: str) -> bool:
    return unicodedata.category(one) in {"Cc", "Cs"} or one in _NONCHARACTERS
