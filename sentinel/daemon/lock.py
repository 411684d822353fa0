"""One sentinel per account: an exclusive flock in the user's state folder, keyed by (server, uid).

It lies outside `HOOP_HOME`, so that a second home for the same account does not get round it. The lock file is never
deleted: a replaced file would give two holders. Source: spec 02 section 3 point 2; security facts, section C.
"""

import hashlib
import os
from pathlib import Path

from filelock import FileLock, Timeout
from platformdirs import user_state_path

from sentinel.core.errors import AlreadyRunning

# A `sentinel status` that looks whether the lock is held holds it for an instant itself.
_PATIENCE_S = 0.3


def lock_path(server: str, uid: str) -> Path:
    """Return where the lock of an account lies."""
    key = hashlib.sha256(f"{server.rstrip('/')}\n{uid}".encode()).hexdigest()[:32]
    return user_state_path("hoop-sentinel") / "locks" / f"{key}.lock"


class AccountLock:
    """Held from before the first pull until the process ends, however it ends."""

    def __init__(self, server: str, uid: str) -> None:
        self.path = lock_path(server, uid)
        self._lock = FileLock(self.path, mode=0o600, preserve_lock_file=True)

    def acquire(self) -> None:
        """Take the lock, or raise `AlreadyRunning` (nearly) at once."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            self._lock.acquire(timeout=_PATIENCE_S)
        except Timeout:
            raise AlreadyRunning(
                f"another sentinel already speaks for this account (pid {self.holder() or 'unknown'})",
                mend="stop that one first, or leave this account to it",
            ) from None
        self.path.with_suffix(".pid").write_text(f"{os.getpid()}\n", encoding="ascii")

    def holder(self) -> str:
        """Return what the last holder wrote about itself; a hint for people, never a decision."""
        try:
            return self.path.with_suffix(".pid").read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError):
            return ""

    def release(self) -> None:
        """Let go."""
        self._lock.release()


def is_held(server: str, uid: str) -> bool:
    """Return whether some process holds the lock now (`sentinel status`)."""
    path = lock_path(server, uid)
    if not path.exists():
        return False
    probe = FileLock(path, preserve_lock_file=True)
    try:
        probe.acquire(timeout=0)
    except Timeout:
        return True
    probe.release()
    return False
