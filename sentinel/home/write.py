"""Put a file into a home, whole or not at all: private, synced, renamed into place. Source: spec 02 section 1."""

import contextlib
import os
from pathlib import Path

from sentinel.core.facts import PRIVATE_MODE

DIRECTORY_MODE = 0o700


def put(folder: Path, name: str, data: bytes, *, mode: int = PRIVATE_MODE) -> None:
    """Replace `folder/name` by `data`: a reader sees the old content or the new, and it outlives a power cut."""
    beside = folder / f".{name}.{os.urandom(6).hex()}"
    fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(fd, "wb") as file:
            os.fchmod(file.fileno(), mode)  # whatever the umask
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.rename(folder / name)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            beside.unlink()
        raise
    sync(folder)


def put_value(folder: Path, name: str, value: str) -> None:
    """Write a one-value file."""
    put(folder, name, f"{value}\n".encode())


def sync(folder: Path) -> None:
    """Make renames, creations and removals in `folder` durable."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
