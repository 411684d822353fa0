"""macOS: a LaunchAgent of the user's own session.

`KeepAlive={SuccessfulExit: false}` starts again whatever did not end with 0, a refusal (78) too, but at most once in 60 s
(`ThrottleInterval`): a cheap gate that refuses again, or finds itself mended. launchd has no watchdog.
Source: security facts, section D.
"""

import os
import plistlib
import shutil
import time
from pathlib import Path
from typing import Any
from xml.parsers.expat import ExpatError

from sentinel.asking import Asked, ask
from sentinel.core.errors import ConfigError, Unavailable
from sentinel.ops.service import AGAIN_S, STOP_S, Condition, Service, UnitFile, label_of, must_fit

_ASK_S = 30.0
_CAP_BYTES = 1024 * 1024
_GONE_S = STOP_S + 15.0
_LOOK_EVERY_S = 0.2
_NOT_FOUND = 113
_PATH = "/bin:/usr/bin:/usr/sbin:/sbin"


def plist(service: Service) -> bytes:
    """Return the LaunchAgent. Raises `ConfigError` for what a property list cannot hold."""
    must_fit(service)
    value = agent(service)
    try:
        data = plistlib.dumps(value)
        is_same = plistlib.loads(data) == value
    except (ValueError, TypeError, ExpatError) as error:
        raise ConfigError(
            f"no property list can hold this service: {error}", mend="rename the home"
        ) from error
    if not is_same:
        raise ConfigError(
            "no property list can hold this service: it reads back otherwise", mend="rename the home"
        )
    return data


def agent(service: Service) -> dict[str, Any]:
    """Return the LaunchAgent as a dictionary, one string an argument."""
    return {
        "Label": service.label,
        "ProgramArguments": list(service.arguments),
        "EnvironmentVariables": dict(service.environment),
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": AGAIN_S,
        "ExitTimeOut": STOP_S,
        "ProcessType": "Standard",  # Background would slow its timers down
        "Umask": 0o077,  # plist has no octal: 63
        "StandardOutPath": f"{service.log_folder}/service.out.log",
        "StandardErrorPath": f"{service.log_folder}/service.err.log",
    }


class Launchd:
    """`launchctl` for this user's session."""

    word = "launchd"

    def __init__(self, folder: Path, *, path: str = _PATH) -> None:
        """`folder`: the user's LaunchAgents; `path`: where launchctl and plutil are looked for."""
        self._folder = folder
        self._env = {"PATH": path, "HOME": str(Path.home()), "LANG": "C.UTF-8"}
        self._domain = f"gui/{os.getuid()}"

    def files(self, service: Service) -> tuple[UnitFile, ...]:
        """Return the one file."""
        return (UnitFile(self._path(service.name), plist(service)),)

    def paths(self, name: str) -> tuple[Path, ...]:
        """Return where it lies."""
        return (self._path(name),)

    def condition(self, name: str) -> Condition:
        """Ask `launchctl print`."""
        said = self._ask("print", self._target(name))
        if said.code == _NOT_FOUND:
            return Condition(loaded=False, running=False, detail="not loaded")
        self._must(said, "print")
        return told_by_print(said.stdout.decode("utf-8", "replace"))

    def load(self, name: str) -> None:
        """Lint the file where plutil exists, then bootstrap it: `RunAtLoad` starts it."""
        self._lint(self._path(name))
        self.unload(name)
        self._must(self._ask("bootstrap", self._domain, str(self._path(name))), "bootstrap")

    def restart(self, name: str) -> None:
        """Kickstart it; launchd ends the running one first."""
        self._must(self._ask("kickstart", "-k", self._target(name)), "kickstart")

    def unload(self, name: str) -> None:
        """Boot it out, and wait until it is gone: launchctl may return before that."""
        if not self.condition(name).loaded:
            return
        self._must(self._ask("bootout", self._target(name)), "bootout")
        end_s = time.monotonic() + _GONE_S
        while self.condition(name).loaded:
            if time.monotonic() > end_s:
                raise Unavailable(f"{label_of(name)} does not end", mend="look at it with launchctl print")
            time.sleep(_LOOK_EVERY_S)  # launchd tells nobody when it is done

    def files_are_gone(self) -> None:
        """Nothing to do: launchd keeps no file open."""

    def _lint(self, path: Path) -> None:
        plutil = shutil.which("plutil", path=self._env["PATH"])
        if plutil is None:  # no Mac: the file was read back when it was made
            return
        said = ask([plutil, "-lint", str(path)], env=self._env, timeout_s=_ASK_S, cap_bytes=_CAP_BYTES)
        if said.code != 0:
            raise ConfigError(f"plutil refuses {path}", mend=said.stdout.decode("utf-8", "replace").strip())

    def _path(self, name: str) -> Path:
        return self._folder / f"{label_of(name)}.plist"

    def _target(self, name: str) -> str:
        return f"{self._domain}/{label_of(name)}"

    def _ask(self, *words: str) -> Asked:
        return ask(["launchctl", *words], env=self._env, timeout_s=_GONE_S, cap_bytes=_CAP_BYTES)

    def _must(self, said: Asked, verb: str) -> None:
        if said.code != 0:
            why = said.why or said.stderr.strip() or f"it ended with {said.code}"
            raise Unavailable(
                f"launchctl {verb}: {why}", mend="log in on this Mac, launchd keeps agents for a session"
            )


def told_by_print(text: str) -> Condition:
    """Return what `launchctl print` says of a service. Its words: `state`, `pid`, `last exit code`, `job state`."""
    facts: dict[str, str] = {}
    for line in text.splitlines():
        key, equals, value = line.strip().partition(" = ")
        if equals:
            facts.setdefault(key, value)  # the service's own facts come before those of its parts
    last = facts.get("last exit code", "").partition(":")[0]
    pid = facts.get("pid", "")
    state = facts.get("state", "unknown")
    return Condition(
        loaded=True,
        running=pid.isdecimal(),
        detail=facts.get("job state", state) if not pid else state,
        pid=int(pid) if pid.isdecimal() else None,
        last_exit=int(last) if last.isdecimal() else None,
    )
