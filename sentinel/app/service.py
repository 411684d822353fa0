"""`sentinel service`: from a home to a running unit, and back. Source: spec 06 "Services"; spec 09.

The gate is asked first, and nothing is written before it says yes (law 2). A second copy is never started: neither of our own
unit, nor beside a sentinel that somebody runs by hand.
"""

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from sentinel.app.status import status as status_of_persona
from sentinel.core.errors import AlreadyRunning, ConfigError, UsageError
from sentinel.core.executor import declared
from sentinel.core.facts import HomeFacts, ProgramFacts, optional
from sentinel.core.gate import Check, GateRefused
from sentinel.home import shim
from sentinel.home.environment import LANG, PATH
from sentinel.home.examine import examine
from sentinel.home.executors import ADAPTERS
from sentinel.home.facts import read
from sentinel.home.locate import hoop_home
from sentinel.home.write import put
from sentinel.ops.launchd import Launchd
from sentinel.ops.service import Condition, Manager, Service
from sentinel.ops.systemd import Systemd

MANAGERS = ("launchd", "systemd")
_SYSTEMCTL_NEEDS = ("PATH", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "DBUS_SESSION_BUS_ADDRESS")
_LAUNCHER_BYTES = 64 * 1024
_GAINS_PRIVILEGES = re.compile(rb"\b(?:sudo|doas)\b")


@dataclass(frozen=True, slots=True)
class Installed:
    """What a persona's service is now: its files, whether all of them are there, and what the manager knows."""

    paths: tuple[Path, ...]
    installed: bool
    condition: Condition


def manager_of(word: str | None) -> Manager:
    """Return the service manager: the named one, else this system's. Raises `UsageError`."""
    word = word or ("launchd" if sys.platform == "darwin" else "systemd")
    home, environment = Path.home(), os.environ
    if word == "launchd":
        return Launchd(home / "Library" / "LaunchAgents", path=environment.get("PATH", PATH))
    if word == "systemd":
        config = environment.get("XDG_CONFIG_HOME") or str(home / ".config")
        told = {key: environment[key] for key in _SYSTEMCTL_NEEDS if key in environment}
        fixed = {"PATH": PATH, "HOME": str(home), "LANG": LANG, "XDG_RUNTIME_DIR": f"/run/user/{os.getuid()}"}
        return Systemd(Path(config) / "systemd" / "user", environment={**fixed, **told})
    raise UsageError(f"there is no service manager {word!r}", mend=f"choose one of: {', '.join(MANAGERS)}")


def refused(home: Path) -> tuple[Check, ...]:
    """Return the checks that refuse this home as a service; none where it may run, or only another machine is away."""
    verdict = examine(home, guarded=True)
    return verdict.failed if isinstance(verdict, GateRefused) and not verdict.is_passing else ()


def service_of(home: Path, cids: tuple[str, ...]) -> Service:
    """Return the service of a home that the gate lets through. Raises `ConfigError`."""
    home = home.resolve() if ".." in home.parts else home
    if not (home / shim.NAME).is_file():
        raise ConfigError(
            f"{home} has no {shim.NAME} shim, by which a service enters",
            mend=f"run sentinel persona set {home.name} {shim.NAME}",
        )
    environment = {"PATH": PATH}
    if os.environ.get("HOOP_HOME"):
        environment["HOOP_HOME"] = str(hoop_home())
    if state := os.environ.get("XDG_STATE_HOME"):
        environment["XDG_STATE_HOME"] = (
            state  # the account lock lies there: one lock for the service and for us
        )
    return Service(home.name, home, cids, environment, by_sudo=is_by_sudo(read(home)))


def is_by_sudo(facts: HomeFacts) -> bool:
    """Return whether the executor runs as another user whom its launcher reaches by gaining privileges."""
    adapter = declared(facts, ADAPTERS)
    user = optional(facts, f"{adapter.name}_user")
    if user is None or user == facts.user or not isinstance(facts.program, ProgramFacts):
        return False
    with Path(facts.program.path).open("rb") as launcher:
        return _GAINS_PRIVILEGES.search(launcher.read(_LAUNCHER_BYTES)) is not None


def install(manager: Manager, service: Service, *, now: float) -> bool:
    """Write the unit's files and start it; False when it runs already, just as it would be written.

    `now`: epoch seconds. Raises `AlreadyRunning` when another sentinel of the account runs, `ConfigError`, `Unavailable`.
    """
    files = manager.files(service)
    condition = manager.condition(service.name)
    is_same = all(_content(one.path) == one.data for one in files)
    if condition.running and is_same:
        return False
    if not condition.running and status_of_persona(service.home, now=now).running:
        raise AlreadyRunning(
            f"a sentinel of {service.name} runs already, outside this service",
            mend="stop that one first: two would fight for the account",
        )
    service.log_folder.mkdir(mode=0o700, exist_ok=True)
    for one in files:
        one.path.parent.mkdir(parents=True, exist_ok=True)
        put(one.path.parent, one.path.name, one.data)
    manager.load(service.name)
    return True


def uninstall(manager: Manager, name: str) -> bool:
    """Stop the service and remove its files; False when there was nothing."""
    paths = manager.paths(name)
    existed = any(one.exists() for one in paths)
    was_loaded = manager.condition(name).loaded
    manager.unload(name)
    for one in paths:
        one.unlink(missing_ok=True)
    if existed:
        manager.files_are_gone()
    return existed or was_loaded


def restart(manager: Manager, name: str) -> None:
    """Restart an installed service. Raises `ConfigError` when it is not installed."""
    if not manager.condition(name).loaded:
        raise ConfigError(f"{name} has no service", mend=f"run sentinel service install {name}")
    manager.restart(name)


def look(manager: Manager, name: str) -> Installed:
    """Return what is installed of a persona's service, and what the manager says of it."""
    paths = manager.paths(name)
    return Installed(paths, all(one.exists() for one in paths), manager.condition(name))


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
