"""Launchers: the near sides filled in for one other user, and what an administrator does once for them.

A near side is a short sh script with the values at its top. What a value may hold is a closed list, narrow enough that the
same text is safe in sh, in sudoers and on the far shell of ssh. Source: docs/launcher.md; spec 02 section 2.
"""

import os
import pwd
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from sentinel.core.errors import Unavailable, UsageError
from sentinel.home import templates

FAR: Final = "/usr/local/libexec/hoop-executor"
NEAR_MODE: Final = 0o700
FAR_MODE: Final = 0o755

_USER: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")
_HOST: Final = re.compile(r"[A-Za-z0-9:][A-Za-z0-9.:-]{0,252}")
_FAR: Final = re.compile(r"/[A-Za-z0-9._/-]{1,255}")
_FILE: Final = re.compile(r"/[\w./@+=,-]{1,1023}")


@dataclass(frozen=True, slots=True)
class Sudo:
    """Another user of this machine."""

    user: str
    far: str = FAR

    def __post_init__(self) -> None:
        """Raise `UsageError` for a value that would not be safe."""
        _must(_USER, self.user, "--user", "letters, digits, . _ and -")
        _must(_FAR, self.far, "--far", "an absolute path of letters, digits, . _ and -")


@dataclass(frozen=True, slots=True)
class Ssh:
    """A user of a machine that ssh reaches; `identity` and `known_hosts` are files of the operator's."""

    user: str
    host: str
    port: int
    identity: str
    known_hosts: str
    far: str = FAR

    def __post_init__(self) -> None:
        """Raise `UsageError` for a value that would not be safe."""
        _must(_USER, self.user, "--user", "letters, digits, . _ and -")
        _must(_FAR, self.far, "--far", "an absolute path of letters, digits, . _ and -")
        _must(_HOST, self.host, "--host", "letters, digits, . : and -")
        # ssh itself takes a space for two files and a percent sign for a variable.
        _must(_FILE, self.identity, "--identity", "an absolute path without spaces, quotes and percent signs")
        _must(
            _FILE,
            self.known_hosts,
            "--known-hosts",
            "an absolute path without spaces, quotes and percent signs",
        )


Way: TypeAlias = Sudo | Ssh


def _must(shape: re.Pattern[str], value: str, flag: str, what: str) -> None:
    if not shape.fullmatch(value):
        raise UsageError(f"{flag} {value[:80]!r} cannot stand in a launcher", mend=f"it may hold {what}")


def near(way: Way) -> bytes:
    """Return the near launcher."""
    match way:
        case Sudo():
            kind, values = "sudo", {"USER": way.user, "FAR": way.far}
        case Ssh():
            kind, values = "ssh", {"USER": way.user, "HOST": way.host, "PORT": str(way.port), "FAR": way.far}
            values |= {"IDENTITY": way.identity, "KNOWN_HOSTS": way.known_hosts}
    text = _shipped(kind).decode()
    for name, value in values.items():
        text = text.replace(f"@{name}@", shlex.quote(value))
    return text.encode()


def far_program() -> bytes:
    """Return the far side, a program that stands alone."""
    return _shipped("hoop-executor")


def once(way: Way) -> str:
    """Return what an administrator does once, as commands with a comment above each."""
    program = shlex.quote(str(templates.folder() / "launcher" / "hoop-executor"))
    folder = os.path.dirname(way.far)  # noqa: PTH120 - a path of the other side's
    install = f"mkdir -p {folder} && install -o root -m 0755 {program} {way.far}"
    match way:
        case Sudo():
            return _ONCE_SUDO.format(
                user=way.user,
                far=way.far,
                install=install,
                operator=_operator(),
                file=way.user.replace(".", "_"),
            )
        case Ssh():
            return _ONCE_SSH.format(
                user=way.user,
                far=way.far,
                install=install,
                host=way.host,
                port=way.port,
                identity=way.identity,
                known_hosts=way.known_hosts,
            )


_ONCE_SUDO: Final = """\
# Once, as root. The user that the executor runs as, whom nobody logs in as (macOS: sysadminctl -addUser {user}):
useradd --create-home --shell /usr/sbin/nologin {user}
# The far side, which that user cannot change:
{install}
# The one thing that {operator} may do as {user}; sudo reads it once it is checked:
printf '%s\\n' '{operator} ALL=({user}) NOPASSWD: {far}' 'Defaults!{far} !use_pty' > /etc/sudoers.d/hoop-{file}.new
chmod 0440 /etc/sudoers.d/hoop-{file}.new && visudo -cf /etc/sudoers.d/hoop-{file}.new \\
  && mv /etc/sudoers.d/hoop-{file}.new /etc/sudoers.d/hoop-{file}
# Then install the executor for {user}, and let it log in there.
"""

_ONCE_SSH: Final = """\
# Once, as yourself. A key that opens nothing else, and the host's own key, which you compare before you trust it:
ssh-keygen -q -t ed25519 -N '' -f {identity}
ssh-keyscan -p {port} {host} >> {known_hosts}
# Once, as root on {host}. The user that the executor runs as (macOS: sysadminctl -addUser {user}):
useradd --create-home --shell /bin/sh {user}
# The far side, which that user cannot change (sentinel persona launcher far --to FILE writes one to carry there):
{install}
# The key may start the far side and nothing else; put what `cat {identity}.pub` says in the place of KEY:
install -d -m 0700 -o {user} ~{user}/.ssh
printf '%s\\n' 'command="{far}",restrict KEY' >> ~{user}/.ssh/authorized_keys
# In sshd_config, so that a broken network ends a turn there too: ClientAliveInterval 5, ClientAliveCountMax 3.
# Then install the executor for {user}, and let it log in there.
"""


def write_new(path: Path, data: bytes, mode: int) -> None:
    """Write a file that must not be there yet. Raises `UsageError` or `Unavailable`."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    except FileExistsError as error:
        raise UsageError(f"{path} exists", mend="name another, or remove it") from error
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}", mend="name another place") from error
    try:
        with os.fdopen(fd, "wb") as file:
            os.fchmod(file.fileno(), mode)  # whatever the umask
            file.write(data)
    except OSError as error:
        path.unlink()
        raise Unavailable(
            f"{path} cannot be written: {error.strerror}", mend="give it a place with room"
        ) from error


def _shipped(name: str) -> bytes:
    return (templates.folder() / "launcher" / name).read_bytes()


def _operator() -> str:
    name = pwd.getpwuid(os.geteuid()).pw_name
    _must(_USER, name, "your own user name", "letters, digits, . _ and -")
    return name
