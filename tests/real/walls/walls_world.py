"""Two real users, real sudo and a real sshd on loopback: what the launchers stand between. Needs root.

`with world() as w:` makes `hoopop`, whose workspace is private, and `hoopbox`, whom the executor runs as; installs the far
program for all, allows it in sudoers, and serves ssh with keys made here. All of it is gone afterwards, and what a killed
run left is removed first.
"""

import contextlib
import fcntl
import grp
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from sentinel.cli.main import run as sentinel
from sentinel.home import templates

OPERATOR, BOX = "hoopop", "hoopbox"
KINDS = ("sudo", "ssh")
GONE_S = 10.0
_LOCK = Path("/run/hoop-walls-test.lock")
_SUDOERS = Path("/etc/sudoers.d/hoop-walls-test")
_SSHD_CONFIG = """\
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized_keys
PidFile none
StrictModes no
UsePAM yes
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin no
AllowUsers {box}
"""


@dataclass
class World:
    """`folder` is root's and readable for all; `workspace` is the operator's alone; `box_cwd` is the other user's."""

    folder: Path
    port: int
    operator: str = OPERATOR
    box: str = BOX
    _sshd: subprocess.Popen | None = None
    _launchers: dict = field(default_factory=dict)

    @property
    def far(self):
        """Return the installed far program."""
        return self.folder / "hoop-executor"

    @property
    def workspace(self):
        """Return the operator's private directory; `secret.txt` stands in it."""
        return home_of(OPERATOR) / "workspace"

    @property
    def box_cwd(self):
        """Return a directory of the other user's."""
        return home_of(BOX) / "room"

    def launcher(self, kind):
        """Return the near launcher over `sudo`, `ssh`, or `forced` (ssh whose key allows the far program alone)."""
        return self._launchers[kind]

    def as_operator(self, argv, **options):
        """Start a program as the unprivileged operator, with nothing of our environment; a `Popen`."""
        found = pwd.getpwnam(OPERATOR)
        env = {"HOME": found.pw_dir, "PATH": "/usr/bin:/bin", "OPERATOR_SECRET": "never-seen"}
        return subprocess.Popen(
            [str(one) for one in argv],
            **{
                "env": env,
                "cwd": "/",
                "user": found.pw_uid,
                "group": found.pw_gid,
                "extra_groups": [],
                "start_new_session": True,
                "stdin": subprocess.PIPE,
                "stdout": subprocess.PIPE,
                "stderr": subprocess.PIPE,
                **options,
            },
        )

    def alive_of_box(self):
        """Return the numbers of all processes whose real user is the other one's; zombies are dead."""
        return living_of(pwd.getpwnam(BOX).pw_uid)

    def wait_for_empty_box(self, within_s=GONE_S):
        """Return as soon as nothing of the other user lives; what still does when the time is over."""
        return [] if until(lambda: not self.alive_of_box(), within_s) else self.alive_of_box()

    def end_box(self):
        """Kill whatever the other user still runs."""
        until(lambda: not kill_all(self.alive_of_box()), GONE_S)

    def start_sshd(self):
        """Serve ssh, and return when it listens."""
        with (self.folder / "sshd.log").open("ab") as log:
            self._sshd = subprocess.Popen(
                ["/usr/sbin/sshd", "-D", "-e", "-f", str(self.folder / "sshd_config")],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
            )
        assert until(self._listens, GONE_S), (self.folder / "sshd.log").read_text()

    def stop_sshd(self):
        """Stop serving ssh. Connections that stand go on: they have processes of their own."""
        if self._sshd is not None:
            self._sshd.terminate()
            self._sshd.wait(GONE_S)
            self._sshd = None

    def _listens(self):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            return True
        return False


@contextlib.contextmanager
def world():
    """Make the world, hand it out, and take it away."""
    assert os.geteuid() == 0, "this needs root: it makes a second user; run the real stage as root"
    for program in ("/usr/sbin/sshd", "/usr/bin/ssh", "/usr/bin/sudo", "/usr/sbin/visudo"):
        assert os.access(program, os.X_OK), f"{program} is absent: run tests/real/install.sh"
    with _LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the users are there once a machine
        yield from _world()


def _world():
    _take_away_users()
    folder = Path(tempfile.mkdtemp(prefix="hoop-walls-", dir="/tmp"))
    folder.chmod(0o755)
    made = World(folder, _free_port())
    try:
        _make_users(made)
        _install(made)
        made.start_sshd()
        yield made
    finally:
        made.stop_sshd()
        _take_away_users()
        shutil.rmtree(folder)


def until(condition, within_s):
    """Poll a condition until it holds; return whether it came to."""
    end_s = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > end_s:
            return False
        time.sleep(0.02)  # a look at a condition, within a limit
    return True


def home_of(user):
    """Return a user's home."""
    return Path(pwd.getpwnam(user).pw_dir)


def living_of(uid):
    """Return the numbers of the processes of a real user, zombies left out."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                told = dict(
                    line.split(":\t", 1)
                    for line in (entry / "status").read_text().splitlines()
                    if ":\t" in line
                )
                if int(told["Uid"].split()[0]) == uid and told["State"][0] not in "ZX":
                    found.append(int(entry.name))
    return found


def kill_all(pids):
    """Kill processes; return those that were there."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return pids


def _make_users(made):
    for user in (OPERATOR, BOX):
        _do("useradd", "--create-home", "--shell", "/bin/sh", user)
        home_of(user).chmod(0o700)
    _own(made.workspace, OPERATOR, 0o700)
    (made.workspace / "secret.txt").write_text("the operator's own\n")
    _own(made.box_cwd, BOX, 0o755)


def _own(folder, user, mode):
    folder.mkdir()
    os.chown(folder, pwd.getpwnam(user).pw_uid, pwd.getpwnam(user).pw_gid)
    folder.chmod(mode)


def _install(made):
    folder = made.folder
    shutil.copyfile(templates.folder() / "launcher" / "hoop-executor", made.far)
    made.far.chmod(0o755)
    rule = f"{OPERATOR} ALL=({BOX}) NOPASSWD: {made.far}\n"
    (folder / "sudoers").write_text(rule)
    _do("visudo", "-cqf", folder / "sudoers")
    shutil.copyfile(folder / "sudoers", _SUDOERS)
    _SUDOERS.chmod(0o440)
    for name in ("host_key", "key", "forced_key"):
        _do("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", folder / name)
    public = {name: (folder / f"{name}.pub").read_text() for name in ("host_key", "key", "forced_key")}
    (folder / "authorized_keys").write_text(
        f'{public["key"]}command="{made.far}",restrict {public["forced_key"]}'
    )
    (folder / "known_hosts").write_text(f"[127.0.0.1]:{made.port} {public['host_key']}")
    for name in ("key", "forced_key"):
        os.chown(folder / name, pwd.getpwnam(OPERATOR).pw_uid, -1)
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    (folder / "sshd_config").write_text(_SSHD_CONFIG.format(port=made.port, folder=folder, box=BOX))
    ssh = ("--host", "127.0.0.1", "--port", str(made.port), "--known-hosts", str(folder / "known_hosts"))
    _launch(made, "sudo", "sudo")
    _launch(made, "ssh", "ssh", *ssh, "--identity", str(folder / "key"))
    _launch(made, "forced", "ssh", *ssh, "--identity", str(folder / "forced_key"))


def _launch(made, name, kind, *more):
    path = made.folder / f"near-{name}"
    told = ("--user", BOX, "--far", str(made.far), "--to", str(path), *more)
    assert sentinel(["persona", "launcher", kind, *told]) == 0
    os.chown(path, pwd.getpwnam(OPERATOR).pw_uid, -1)
    made._launchers[name] = path


def _take_away_users():
    """Remove both users, what they run, and their right to sudo; also what a killed run left of them."""
    _SUDOERS.unlink(missing_ok=True)
    for user in (OPERATOR, BOX):
        with contextlib.suppress(KeyError):
            uid = pwd.getpwnam(user).pw_uid
            until(lambda uid=uid: not kill_all(living_of(uid)), GONE_S)
            _do("userdel", "--force", "--remove", user)
        with contextlib.suppress(KeyError):
            grp.getgrnam(user)
            _do("groupdel", user)


def _do(*argv):
    done = subprocess.run([str(one) for one in argv], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.stderr.write(done.stderr)
    assert done.returncode == 0 or argv[0] == "userdel", f"{argv[0]} said {done.returncode}: {done.stderr}"


def _free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]
