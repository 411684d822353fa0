"""What the kernel says about processes: who descends from whom, who carries a mark. Reads /proc; on other systems it sees nothing.

A process is named by its number *and* its start time, for numbers are used again. Source: spec 02 section 5 ("stops the
whole tree, children that left the group included, and reaps").
"""

import contextlib
import os
import signal
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
_TASKS: Final = _PROC / "self" / "task"
_PR_SET_CHILD_SUBREAPER: Final = 36
# Places in /proc/PID/stat, counted from behind the command's name (which may hold spaces and parentheses).
_STATE, _PARENT, _SESSION, _THREADS, _STARTED = 0, 1, 3, 17, 19


@dataclass(frozen=True, slots=True)
class Seen:
    """One process at the moment of looking. `started` is in clock ticks since boot."""

    pid: int
    parent: int
    session: int
    started: int
    is_zombie: bool


def look(pid: int) -> Seen | None:
    """Return what the kernel says of `pid`, or None if there is no such process."""
    try:
        stat = (_PROC / str(pid) / "stat").read_bytes()
    except OSError:
        return None
    rest = stat[stat.rfind(b")") + 2 :].split()
    # A main thread that ended looks like a zombie while its other threads live on.
    is_zombie = rest[_STATE] in (b"Z", b"X") and int(rest[_THREADS]) <= 1
    return Seen(pid, int(rest[_PARENT]), int(rest[_SESSION]), int(rest[_STARTED]), is_zombie)


def everything() -> dict[int, Seen]:
    """Return all processes of this machine by number."""
    try:
        names = os.listdir(_PROC)  # noqa: PTH208 - hundreds of bare names, of which paths would be made for nothing
    except OSError:
        return {}
    return {seen.pid: seen for name in names if name.isdecimal() and (seen := look(int(name)))}


def descendants(roots: Iterable[int], among: Mapping[int, Seen]) -> list[Seen]:
    """Return the processes of `among` that descend from `roots`, without the roots."""
    children: dict[int, list[Seen]] = {}
    for one in among.values():
        children.setdefault(one.parent, []).append(one)
    found: dict[int, Seen] = {}
    waiting = list(roots)
    while waiting:
        for child in children.get(waiting.pop(), ()):
            if child.pid not in found:
                found[child.pid] = child
                waiting.append(child.pid)
    return list(found.values())


def carries(pid: int, entry: bytes) -> bool:
    """Return whether `entry` (`NAME=value`) stands in the environment that `pid` was started with."""
    try:
        return entry in (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:  # gone, or of another user: then it is not ours to end
        return False


def own_children() -> set[int]:
    """Return the numbers of this process's children, adopted and dead ones included."""
    found: set[int] = set()
    try:
        for thread in _TASKS.iterdir():
            found.update(map(int, (thread / "children").read_bytes().split()))
    except OSError:  # no such file in this kernel, or a thread that just ended: look the long way
        return {seen.pid for seen in everything().values() if seen.parent == os.getpid()}
    return found


def send(seen: Seen, number: signal.Signals) -> None:
    """Send a signal to exactly the process that was seen; one that is gone is left alone."""
    with contextlib.suppress(OSError):
        handle = os.pidfd_open(seen.pid)
        try:
            now = look(seen.pid)
            if now is not None and now.started == seen.started:
                signal.pidfd_send_signal(handle, number)
        finally:
            os.close(handle)


def may_signal(seen: Seen) -> bool:
    """Return whether the kernel lets us signal this process: not one of another user."""
    try:
        os.kill(seen.pid, 0)
    except PermissionError:
        return False
    except ProcessLookupError:
        return False
    return True


def become_subreaper() -> bool:
    """Make this process the parent of every orphan beneath it; return whether the kernel can."""
    import ctypes

    try:
        return ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    except (OSError, AttributeError):  # not Linux
        return False
