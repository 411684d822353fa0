"""A stand-in for launchd and systemd: it reads the very files that we install, and obeys their keys.

    with Supervisor(plist_or_unit, home=tmp_path, scale=1 / 60) as supervisor:   # a minute takes a second
        supervisor.until(lambda: supervisor.pid)

Obeyed of a LaunchAgent: ProgramArguments, EnvironmentVariables, KeepAlive.SuccessfulExit, ThrottleInterval, ExitTimeOut, Umask,
StandardOutPath, StandardErrorPath. Of a unit: ExecStart, Environment, Type, NotifyAccess, Restart, RestartSec,
RestartPreventExitStatus, WatchdogSec, TimeoutStopSec, KillMode, UMask, and the unit of OnFailure (a `sleep`, then a `start`).
What it does not know raises. As a program it answers as `systemctl --user` and `launchctl` do, as far as we ask them:

    supervisor.py systemctl|launchctl FOLDER …     FOLDER: where this stand-in keeps what runs
"""

import contextlib
import json
import os
import plistlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

WAIT_S = 30.0
CLEAN_SIGNALS = {signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGPIPE}
IGNORED = {"Description", "StartLimitIntervalSec", "PartOf", "WantedBy", "TimeoutStartSec", "LimitCORE"} | {
    "NoNewPrivileges", "PrivateUsers", "ProtectSystem", "ProtectControlGroups", "ProtectKernelModules", "ProtectClock",
    "ProtectHostname", "CapabilityBoundingSet", "RestrictAddressFamilies", "RestrictRealtime", "RestrictSUIDSGID",
    "LockPersonality", "SystemCallArchitectures",
}  # fmt: skip


def words(text):
    """Split as systemd.syntax(7) says: white space, quotes, backslash escapes; then `%%` is `%`."""
    found, at = [], 0
    escapes = {"n": "\n", "t": "\t", "s": " ", "\\": "\\", '"': '"', "'": "'"}
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        word, quote = "", None
        while at < len(text) and (quote or text[at] not in " \t"):
            one = text[at]
            if one == "\\":
                at += 1
                word += escapes[text[at]]
            elif quote is None and one in "\"'":
                quote = one
            elif one == quote:
                quote = None
            else:
                word += one
            at += 1
        assert quote is None, f"unbalanced: {text}"
        found.append(word)
    return [specified(one) for one in found]


def specified(word):
    assert not re.search(r"(?<!%)(?:%%)*%(?!%)", word), f"a specifier: {word}"
    return word.replace("%%", "%")


def command(text):
    """Return the argv of an ExecStart line: words in which `$$` is `$`."""
    found = words(text)
    for one in found:
        assert not re.search(r"(?<!\$)(?:\$\$)*\$(?!\$)", one), f"a variable: {one}"
    return [one.replace("$$", "$") for one in found]


def read_unit(path):
    """Return a unit's keys: name -> list of values."""
    keys = {}
    for line in path.read_text("utf-8").split("\n"):
        if line and not line.startswith(("#", "[")):
            name, _, value = line.partition("=")
            keys.setdefault(name, []).append(value)
    return keys


@dataclass
class Rules:
    """What the file says. Times in seconds, as written."""

    argv: list
    env: dict
    umask: int
    stop_s: float
    throttle_s: float | None = None
    restart_s: float | None = None
    prevented: frozenset = frozenset()
    again_s: float | None = None
    watchdog_s: float | None = None
    outputs: tuple = (None, None)

    def wait_s(self, code, *, bitten, ran_s):
        """Return how long until it is started again; None: not by itself."""
        if self.throttle_s is not None:
            return None if code == 0 else max(0.0, self.throttle_s - ran_s)
        if code in self.prevented:
            return self.again_s
        clean = code == 0 or (code < 0 and -code in CLEAN_SIGNALS)
        return None if clean and not bitten else self.restart_s


def rules_of(path):
    return rules_of_plist(path) if path.suffix == ".plist" else rules_of_unit(path)


def rules_of_plist(path):
    agent = plistlib.loads(path.read_bytes())
    assert path.stat().st_mode & 0o777 == 0o600
    assert agent.pop("Label") == path.stem
    assert agent.pop("KeepAlive") == {"SuccessfulExit": False}
    assert agent.pop("RunAtLoad") is True
    assert agent.pop("ProcessType") == "Standard"
    rules = Rules(
        argv=agent.pop("ProgramArguments"),
        env=agent.pop("EnvironmentVariables"),
        umask=agent.pop("Umask"),
        stop_s=agent.pop("ExitTimeOut"),
        throttle_s=agent.pop("ThrottleInterval"),
        outputs=(agent.pop("StandardOutPath"), agent.pop("StandardErrorPath")),
    )
    assert not agent, f"keys that this stand-in does not know: {agent}"
    return rules


def rules_of_unit(path):
    keys = read_unit(path)

    def one(name):
        return keys.pop(name)[0]

    assert (one("Type"), one("NotifyAccess"), one("KillMode")) == ("notify", "main", "mixed")
    assert one("Restart") == "on-failure"
    assert keys["StartLimitIntervalSec"] == ["0"]
    again = read_unit(path.with_name(one("OnFailure")))
    sleep, start = map(command, again.pop("ExecStart"))
    assert (sleep[0], start) == ("sleep", ["systemctl", "--user", "--no-block", "start", path.name])
    rules = Rules(
        argv=command(one("ExecStart")),
        env=dict(word.split("=", 1) for line in keys.pop("Environment") for word in words(line)),
        umask=int(one("UMask"), 8),
        stop_s=float(one("TimeoutStopSec")),
        restart_s=float(one("RestartSec")),
        prevented=frozenset(map(int, one("RestartPreventExitStatus").split())),
        again_s=float(sleep[1]),
        watchdog_s=float(one("WatchdogSec")),
    )
    assert set(keys) <= IGNORED, f"keys that this stand-in does not know: {set(keys) - IGNORED}"
    return rules


@dataclass
class Run:
    """One start. `at`: when, in real seconds; `code` None while it runs."""

    at: float
    pid: int
    code: int | None = None
    bitten: bool = False
    told: str = ""


class Supervisor:
    """Runs one service in a thread."""

    def __init__(self, path, *, home, scale=1.0, env=None, errors=None):
        self.rules, self.scale, self.runs = rules_of(Path(path)), scale, []
        self._env = {"HOME": str(home), "LANG": "C.UTF-8", **(env or {}), **self.rules.env}
        self._errors = errors or self.rules.outputs[1] or os.devnull
        self._stopping = threading.Event()
        self._folder = Path(tempfile.mkdtemp(prefix="sv-"))
        self._thread = threading.Thread(target=self._live)
        self.fault = None

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.stop()

    @property
    def pid(self):
        """The running one's; None while none runs."""
        return self.runs[-1].pid if self.runs and self.runs[-1].code is None else None

    @property
    def is_ready(self):
        return bool(self.pid) and "READY=1" in self.runs[-1].told

    def stop(self):
        """Stop the service, as `bootout` and `systemctl stop` do."""
        self._stopping.set()
        self._thread.join(WAIT_S)
        shutil.rmtree(self._folder, ignore_errors=True)
        assert not self._thread.is_alive()
        assert self.fault is None, self.fault

    def _live(self):
        try:
            while not self._stopping.is_set():
                run = self._run_once()
                ran_s = (time.monotonic() - run.at) / self.scale
                wait_s = self.rules.wait_s(run.code, bitten=run.bitten, ran_s=ran_s)
                self._stopping.wait(None if wait_s is None else wait_s * self.scale)
        except BaseException as fault:
            self.fault = fault

    def _run_once(self):
        env, line = dict(self._env), None
        if self.rules.watchdog_s is not None:
            line = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            address = self._folder / f"notify-{len(self.runs)}"
            line.bind(str(address))
            line.settimeout(0.02)
            env |= {
                "NOTIFY_SOCKET": str(address),
                "WATCHDOG_USEC": str(int(self.rules.watchdog_s * self.scale * 1e6)),
            }
        with open(self._errors, "ab") as errors:
            child = subprocess.Popen(
                self.rules.argv, env=env, cwd="/", umask=self.rules.umask, start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=errors, stderr=errors,
            )  # fmt: skip
        self.runs.append(run := Run(time.monotonic(), child.pid))
        try:
            self._watch(child, run, line)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(
                    child.pid, signal.SIGKILL
                )  # what is left of it: KillMode=mixed, and launchd's process group
            code = child.wait()
            if line is not None:
                line.close()
        run.code = code
        return run

    def _watch(self, child, run, line):
        fed = None
        while child.poll() is None:
            if self._stopping.is_set():
                return self._end(child, signal.SIGTERM)
            if line is None:
                time.sleep(0.02)  # the rhythm of this stand-in
                continue
            with contextlib.suppress(TimeoutError):
                told = line.recv(4096).decode()
                run.told += told + "\n"
                if "WATCHDOG=1" in told or "READY=1" in told:
                    fed = time.monotonic()
            if fed is not None and time.monotonic() - fed > self.rules.watchdog_s * self.scale:
                run.bitten = True
                return self._end(child, signal.SIGABRT)
        return None

    def _end(self, child, number):
        child.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(self.rules.stop_s if number == signal.SIGTERM else self.rules.stop_s * self.scale)


# As a program.


class Front:
    """What is kept of each service between two calls: its file, and the process that supervises it."""

    def __init__(self, folder, name):
        self.name, self.kept = name, Path(folder) / f"{name}.json"

    @property
    def state(self):
        return json.loads(self.kept.read_text()) if self.kept.exists() else None

    def start(self, path):
        self.kept.parent.mkdir(parents=True, exist_ok=True)
        words = [sys.executable, __file__, "serve", str(path), str(self.kept)]
        null = subprocess.DEVNULL
        server = subprocess.Popen(words, start_new_session=True, stdin=null, stdout=null, stderr=null)
        _until(lambda: self.state and self.state["server"] == server.pid)

    def stop(self):
        state = self.state
        if state:
            os.kill(state["server"], signal.SIGTERM)
            _until(lambda: not self.kept.exists())


def _until(claim):
    end = time.monotonic() + WAIT_S
    while not claim():
        assert time.monotonic() < end
        time.sleep(0.02)  # a look at a condition, within a limit


def serve(path, kept):
    """Supervise until TERM; `kept` tells what runs, and is gone when nothing does."""
    kept, told = Path(kept), threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: told.set())
    with Supervisor(path, home=os.environ["HOME"], scale=1 / 60) as supervisor:
        while not told.wait(0.05):
            ended = [one.code for one in supervisor.runs if one.code is not None]
            state = {
                "server": os.getpid(),
                "path": path,
                "pid": supervisor.pid or 0,
                "ready": supervisor.is_ready,
                "last": ended[-1] if ended else None,
            }
            beside = kept.with_suffix(".new")
            beside.write_text(json.dumps(state))
            beside.rename(kept)
    kept.unlink()


def systemctl(folder, *arguments):
    assert arguments[0] == "--user", arguments
    units = (
        Path(os.environ.get("XDG_CONFIG_HOME") or Path(os.environ["HOME"]) / ".config") / "systemd" / "user"
    )
    verb, *names = [one for one in arguments[1:] if not one.startswith("--")]
    if verb == "show":
        keys, name = names
        return _show(Front(folder, name).state, units / name, keys)
    assert verb in {"daemon-reload", "enable", "disable", "reset-failed", "restart", "stop"}, arguments
    for name in names:
        front = Front(folder, name)
        if verb in {"stop", "restart"}:
            front.stop()
        if verb == "restart":
            front.start(units / name)
    return 0


def _show(state, path, keys):
    state = state or {"pid": 0, "ready": False, "last": None}
    active = "active" if state["ready"] else "activating" if state["pid"] else "inactive"
    facts = {
        "LoadState": "loaded" if path.exists() else "not-found",
        "ActiveState": "failed" if state["last"] and not state["pid"] else active,
        "SubState": "running" if state["ready"] else "dead",
        "MainPID": state["pid"],
        "ExecMainStatus": state["last"] or 0,
        "ExecMainExitTimestampMonotonic": 0 if state["last"] is None else 1,
    }
    assert set(keys.split(",")) == set(facts)
    print(*(f"{key}={value}" for key, value in facts.items()), sep="\n")
    return 0


def launchctl(folder, verb, *names):
    domain = f"gui/{os.getuid()}"
    assert names[-1].startswith(domain) or verb == "bootstrap"
    if verb == "bootstrap":
        assert names[0] == domain
        path = Path(names[1])
        if Front(folder, path.stem).state:
            print("Bootstrap failed: 5: Input/output error", file=sys.stderr)
            return 5
        Front(folder, path.stem).start(path)
        return 0
    front = Front(folder, names[-1].rpartition("/")[2])
    state = front.state
    if not state:
        print("Could not find service", file=sys.stderr)
        return 113
    if verb == "print":
        last = "(never exited)" if state["last"] is None else state["last"]
        pid = f"\tpid = {state['pid']}\n" if state["pid"] else ""
        word = "running" if state["pid"] else "not running"
        print(f"{names[-1]} = {{\n\tstate = {word}\n{pid}\tlast exit code = {last}\n}}")
    elif verb == "bootout":
        front.stop()
    else:
        assert (verb, names[0]) == ("kickstart", "-k")
        front.stop()
        front.start(state["path"])
    return 0


if __name__ == "__main__":
    verb, *rest = sys.argv[1:]
    sys.exit({"serve": serve, "systemctl": systemctl, "launchctl": launchctl}[verb](*rest))
