"""Near launchers with a stand-in for the program that they reach the other side with."""

import contextlib
import os
import signal
import subprocess

from sentinel.home import launcher


class Near:
    """A near launcher of one kind; what it would find on its PATH is `folder/bin`, then the system's."""

    def __init__(self, folder, way, *, system=True):
        self.bin, self.path = folder / "bin", folder / "near launcher"
        self.bin.mkdir()
        text = launcher.near(way).decode()
        assert "PATH=/usr/local/bin:/usr/bin:/bin\n" in text
        path = f"{self.bin}:/usr/bin:/bin" if system else str(self.bin)
        self.path.write_text(text.replace("PATH=/usr/local/bin:/usr/bin:/bin\n", f"PATH='{path}'\n"))
        self.path.chmod(0o700)
        self.started = []

    def stand_in(self, name, script):
        """Put a program of sh on its PATH."""
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def start(self, *words, **options):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        argv = ["/bin/sh", str(self.path), *words]
        child = subprocess.Popen(
            argv, **{**pipes, "env": {}, "start_new_session": True, "bufsize": 0, **options}
        )
        self.started.append(child)
        return child

    def call(self, *words, data=b""):
        child = self.start(*words)
        out, err = child.communicate(data, timeout=20)
        return child.returncode, out.decode(), err.decode()

    def end(self):
        """End what was started, and what that left."""
        for child in self.started:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            for pipe in (child.stdin, child.stdout, child.stderr):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()


def is_gone(pid):
    """Return whether a process is dead, reaped or not."""
    told = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return told.stdout.strip().startswith("Z") or not told.stdout.strip()
