"""The far program over pipes, as the running user, with a home of the test's own."""

import contextlib
import importlib.machinery
import importlib.util
import json
import os
import subprocess
import sys
import time
import uuid

from sentinel.home import templates

FAR = templates.folder() / "launcher" / "hoop-executor"
GONE_S = 10.0

# The password database's home is the running user's real one, which a test has no business in; and --stop is patient.
_ELSEWHERE = """\
import importlib.machinery, importlib.util, sys
sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("far", {far!r})
far = importlib.util.module_from_spec(importlib.util.spec_from_loader("far", loader))
sys.modules["far"] = far
loader.exec_module(far)
far.real_home = lambda: {home!r}
far.STOP_POLITE_S = 1.0
sys.exit(far.main())
"""


def load():
    """Return the program as a module, for what is decided in it."""
    loader = importlib.machinery.SourceFileLoader("hoop_executor", str(FAR))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("hoop_executor", loader))
    sys.modules["hoop_executor"], was = module, sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    loader.exec_module(module)
    sys.dont_write_bytecode = was
    return module


class Far:
    """Calls of one far side. `turn` is a name that no other test has, and `word` stands in every command that is watched."""

    def __init__(self, folder):
        self.home, self.cwd = folder / "far-home", folder / "far-cwd"
        self.home.mkdir()
        self.cwd.mkdir()
        self.turn = f"t-{uuid.uuid4().hex}"
        self.word = f"w{uuid.uuid4().hex}"
        self.program = folder / "far.py"
        self.program.write_text(_ELSEWHERE.format(far=str(FAR), home=str(self.home)))
        self.started = []

    @property
    def turns(self):
        return self.home / ".hoop-turns"

    @property
    def folder(self):
        return self.turns / self.turn

    def order(self, script="exit 0", **changed):
        """Return the line that runs a script of sh."""
        env = {"PATH": "/usr/bin:/bin"}
        values = {"argv": ["sh", "-c", script], "cwd": str(self.cwd), "env": env, "turn": self.turn}
        values = {key: value for key, value in (values | changed).items() if value is not ...}
        return json.dumps(values).encode() + b"\n"

    def start(self, *words, **options):
        """Begin one call; what comes on its standard input is the test's to write."""
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        env = {"PATH": "/usr/bin:/bin", "FAR_SECRET": "never-seen"}
        argv = [sys.executable, "-IS", str(self.program), *words]
        child = subprocess.Popen(
            argv, **{**pipes, "env": env, "start_new_session": True, "bufsize": 0, **options}
        )
        self.started.append(child)
        return child

    def call(self, *words, data=b"", **options):
        """Make one call and return (code, stdout, stderr)."""
        child = self.start(*words, **options)
        out, err = child.communicate(data, timeout=30)
        return child.returncode, out, err.decode()

    def run(self, script, *, prompt=b"", **changed):
        return self.call("--run", data=self.order(script, **changed) + prompt)

    def put(self, name, data, **changed):
        line = {"name": name, "size_bytes": len(data)} | changed
        return self.call("--put", self.turn, data=json.dumps(line).encode() + b"\n" + data)

    def get(self, name):
        return self.call("--get", self.turn, data=json.dumps({"name": name}).encode() + b"\n")

    def stop(self):
        return self.call("--stop", self.turn)

    def alive(self):
        """Return the processes that have the word in their command."""
        told = subprocess.run(
            ["ps", "-axww", "-o", "pid=,stat=,args="], capture_output=True, text=True, check=True
        )
        lines = (line.split(None, 2) for line in told.stdout.splitlines())
        return [int(pid) for pid, state, args in lines if self.word in args and not state.startswith("Z")]

    def end(self):
        """End whatever a failed test left."""
        if any(child.poll() is None for child in self.started):
            self.stop()
        for child in self.started:
            child.kill()
            child.wait()
            for pipe in (child.stdin, child.stdout, child.stderr):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()
        for pid in self.alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, 9)


def until(condition, within_s=GONE_S):
    """Poll a condition until it holds; return whether it came to."""
    end_s = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > end_s:
            return False
        time.sleep(0.02)  # a look at a condition, within a limit
    return True
