"""Persona homes on a real disk for tests, and a planted default executor that counts its runs."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

TOKEN = "tok-4d1f-very-secret"
TASK = "You are Gode, a colleague in the team's rooms.\n"


@dataclass(frozen=True)
class HomeOnDisk:
    """One home; `folder` is its HOOP_HOME, `binary` and `cwd` what its executor files name."""

    path: Path
    binary: Path
    cwd: Path

    @property
    def folder(self):
        return self.path.parent

    def write(self, name, content, mode=0o600):
        file = self.path / name
        file.unlink(missing_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        file.chmod(mode)

    def remove(self, name):
        (self.path / name).unlink()


def make_home(root, *, adapter="codex", name="gode"):
    """Return a home under `root` that the gate lets pass, with an executor that does nothing."""
    path, cwd, binary = root / "hoop" / name, root / "work", root / "bin" / "executor"
    for folder in (path, cwd, binary.parent):
        folder.mkdir(parents=True, exist_ok=True)
    path.chmod(0o700)
    binary.write_text("#!/bin/sh\nexit 0\n")
    binary.chmod(0o755)
    home = HomeOnDisk(path, binary, cwd)
    values = {
        "server": "http://127.0.0.1:9",
        "account": "Gode",
        "token": TOKEN,
        "adapter": adapter,
        "model": "m-1",
    }
    if adapter != "echo":
        values |= {
            f"{adapter}_bin": str(binary),
            f"{adapter}_cwd": str(cwd),
            f"{adapter}_sandbox": "read-only",
            f"{adapter}_network": "off",
        }
    for file, value in values.items():
        home.write(file, f"{value}\n")
    home.write("task.md", TASK)
    return home


@dataclass(frozen=True)
class Planted:
    """A `codex`, `claude` and `cat` first on PATH, each of which leaves a mark when it runs."""

    folder: Path
    marks: Path

    @property
    def path(self):
        return f"{self.folder}{os.pathsep}/usr/bin{os.pathsep}/bin"

    @property
    def runs(self):
        return len(self.marks.read_text().splitlines()) if self.marks.exists() else 0


def plant(root):
    """Return the planted executors: a sentinel that fell back on a default from PATH would run one of them."""
    folder, marks = root / "planted", root / "marks"
    folder.mkdir()
    for name in ("codex", "claude", "cat"):
        program = folder / name
        program.write_text(f'#!/bin/sh\necho "$0" >>"{marks}"\n')
        program.chmod(0o755)
    return Planted(folder, marks)


def run_sentinel(*arguments, home, path="/usr/bin:/bin", stdin=""):
    """Run the real command line in a process of its own; the result has returncode, stdout and stderr."""
    environment = {
        "PATH": path,
        "HOME": str(home.folder.parent),
        "HOOP_HOME": str(home.folder),
        "LANG": "C.UTF-8",
    }
    return subprocess.run(
        [sys.executable, "-m", "sentinel.cli.main", *arguments],
        env=environment,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
