"""Linux: a systemd user unit, and a small second one that tries a refused persona again.

`Restart=on-failure` starts again what crashed, was killed or hung; `RestartPreventExitStatus` keeps a refusal (78) and a
second sentinel (75) from being started again at once. `OnFailure` then hands over to the second unit, which waits 60 s and
starts the first: that is launchd's throttle, so a mended home heals by itself. A clean stop ends with 0 and starts nobody.
Source: security facts, section D; spec 06 "Services".
"""

import time
from collections.abc import Mapping
from pathlib import Path

from sentinel.asking import Asked, ask
from sentinel.core.errors import ConfigError, Exit, Unavailable
from sentinel.ops.quoting import argument, is_too_long, quoted, text, unit_name
from sentinel.ops.service import AGAIN_S, STOP_S, Condition, Service, UnitFile, label_of, must_fit

WATCHDOG_S = 180
START_S = 180
RESTART_S = 5

_ASK_S = STOP_S + 30.0
_CAP_BYTES = 1024 * 1024
_SETTLE_S = 10.0
_LOOK_EVERY_S = 0.1

_HARDENED = """\
# Hardening that a user's manager can enforce. PrivateUsers= is what makes the Protect…= lines work there.
NoNewPrivileges=yes
PrivateUsers=yes
ProtectSystem=full
ProtectControlGroups=yes
ProtectKernelModules=yes
ProtectClock=yes
ProtectHostname=yes
CapabilityBoundingSet=
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
SystemCallArchitectures=native
# Absent, since executors need it: RestrictNamespaces=, SystemCallFilter=, ProtectKernelTunables=, ProtectKernelLogs=,
# ProtectProc= (codex walls its tools in with namespaces and a /proc of their own), MemoryDenyWriteExecute= (JIT compilers),
# PrivateDevices= (terminals), PrivateTmp= (a working directory or an agent's socket may lie there), ProtectHome= and
# ProtectSystem=strict (executors write their own state and the persona's directory; a list of paths here would be a second
# copy of the home's files).
"""
_BY_SUDO = """\
# This persona's executor is reached by sudo, which must gain privileges: so NoNewPrivileges= is absent, and with it whatever
# implies it in a user's unit or hides root from it (PrivateUsers=, Protect…=, Restrict…=, LockPersonality=, …). ssh keeps them.
"""


def unit(service: Service) -> str:
    """Return the unit. Raises `ConfigError` for what it cannot hold."""
    must_fit(service)
    name, again = unit_of(service.name), again_of(service.name)
    for one in (name, again):
        if is_too_long(one):
            raise ConfigError(
                f"{service.name} is too long for a unit's name", mend="give its home a shorter name"
            )
    refusals = f"{Exit.CONFIG:d} {Exit.TRY_LATER:d}"
    environment = "\n".join(
        f"Environment={quoted(f'{key}={value}')}" for key, value in service.environment.items()
    )
    return f"""\
# Written by sentinel service install. Change it there: the next install writes it anew.
[Unit]
Description={text(f"Sentinel of the persona {service.name}")}
# Never give up in silence: what fails is tried again for ever.
StartLimitIntervalSec=0
# A refusal (78) or a second sentinel (75) is not started again at once; this unit tries it again after {AGAIN_S} s.
OnFailure={again}

[Service]
Type=notify
NotifyAccess=main
ExecStart={" ".join(argument(one) for one in service.arguments)}
{environment}
Restart=on-failure
RestartSec={RESTART_S}
RestartPreventExitStatus={refusals}
# Extended by the sentinel itself while it waits for its room.
TimeoutStartSec={START_S}
# Fed by the loops that do the work: one that hangs is killed and started again.
WatchdogSec={WATCHDOG_S}
TimeoutStopSec={STOP_S}
KillMode=mixed
UMask=0077
# A dump of its memory would hold the room's token.
LimitCORE=0
{_BY_SUDO if service.by_sudo else _HARDENED}
[Install]
WantedBy=default.target
"""


def again(service: Service) -> str:
    """Return the second unit: it waits, then starts the first."""
    name = unit_of(service.name)
    return f"""\
# Written by sentinel service install.
[Unit]
Description={text(f"Try the persona {service.name} again")}
# Whoever stops the persona stops this too.
PartOf={name}

[Service]
Type=oneshot
# To be stopped while it waits is no failure.
SuccessExitStatus=SIGTERM
ExecStart=sleep {AGAIN_S}
ExecStart=systemctl --user --no-block start {argument(name)}
"""


def unit_of(name: str) -> str:
    """Return the name of a persona's unit."""
    return f"{unit_name(label_of(name))}.service"


def again_of(name: str) -> str:
    """Return the name of the unit that tries it again."""
    return f"{unit_name(label_of(name))}-again.service"


class Systemd:
    """`systemctl --user`."""

    word = "systemd"

    def __init__(self, folder: Path, *, environment: Mapping[str, str]) -> None:
        """`folder`: the user's units; `environment`: what systemctl needs to find the user's manager."""
        self._folder, self._env = folder, dict(environment)

    def files(self, service: Service) -> tuple[UnitFile, ...]:
        """Return the unit and the one that tries it again."""
        first, second = self.paths(service.name)
        return UnitFile(first, unit(service).encode()), UnitFile(second, again(service).encode())

    def paths(self, name: str) -> tuple[Path, ...]:
        """Return where both lie."""
        return self._folder / unit_of(name), self._folder / again_of(name)

    def condition(self, name: str) -> Condition:
        """Ask `systemctl show`."""
        keys = "LoadState,ActiveState,SubState,MainPID,ExecMainStatus,ExecMainExitTimestampMonotonic"
        said = self._ask("show", "--property", keys, unit_of(name))
        self._must(said, "show")
        return told_by_show(said.stdout.decode("utf-8", "replace"))

    def load(self, name: str) -> None:
        """Read the files anew, enable the unit for the next log-in, and start it now; wait a little for what becomes of it."""
        self._do("daemon-reload")
        self._do("enable", unit_of(name))
        self._do("--no-block", "restart", unit_of(name))
        self._settle(name)

    def restart(self, name: str) -> None:
        """Stop it, start it; wait a little for what becomes of it."""
        self._do("--no-block", "restart", unit_of(name))
        self._settle(name)

    def unload(self, name: str) -> None:
        """Stop both units and forget them."""
        if not self.condition(name).loaded:
            return
        self._do("stop", unit_of(name), again_of(name))
        self._do("disable", unit_of(name))
        self._ask("reset-failed", unit_of(name))  # it is no fault that nothing failed

    def files_are_gone(self) -> None:
        """Let the manager look at its folder anew."""
        self._do("daemon-reload")

    def _settle(self, name: str) -> None:
        """Look until it runs or failed, not for ever: a sentinel whose room is away waits for it."""
        end_s = time.monotonic() + _SETTLE_S
        while "activating" in self.condition(name).detail and time.monotonic() < end_s:
            time.sleep(_LOOK_EVERY_S)  # systemctl's own wait has no end while the room is away

    def _do(self, *words: str) -> None:
        self._must(self._ask(*words), next(one for one in words if not one.startswith("-")))

    def _ask(self, *words: str) -> Asked:
        argv = ["systemctl", "--user", *words]
        return ask(argv, env=self._env, timeout_s=_ASK_S, cap_bytes=_CAP_BYTES)

    def _must(self, said: Asked, verb: str) -> None:
        if said.code != 0:
            why = said.why or said.stderr.strip() or f"it ended with {said.code}"
            raise Unavailable(
                f"systemctl --user {verb}: {why}",
                mend="log in as this user, or let its manager run without: loginctl enable-linger",
            )


def told_by_show(said: str) -> Condition:
    """Return what `systemctl show` says of a unit."""
    facts = {key: value for key, _, value in (line.partition("=") for line in said.splitlines())}
    pid, ended = facts.get("MainPID", "0"), facts.get("ExecMainExitTimestampMonotonic", "0")
    active = facts.get("ActiveState", "unknown")
    return Condition(
        loaded=facts.get("LoadState") == "loaded",
        running=pid != "0" and active in {"active", "activating", "reloading", "deactivating"},
        detail=f"{active} ({facts.get('SubState', 'unknown')})",
        pid=int(pid) if pid != "0" else None,
        last_exit=int(facts.get("ExecMainStatus", "0")) if ended != "0" else None,
    )
