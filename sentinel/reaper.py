"""Ends whole trees of processes and leaves no zombie: those of our turns, and those of a dead sentinel's turns.

With `adopt_orphans` the kernel hands every orphan beneath us to us, whatever session it fled into: then what is left of a
tree is exactly the children that nobody here started. Without it, the tree is what descended from the executor while it
lived, what stands in its session, and what carries the turn's marker. Source: spec 02 sections 4 and 5.
"""

import asyncio
import contextlib
import os
import signal
from typing import Final

from sentinel import proctree
from sentinel.core.errors import SentinelError
from sentinel.proctree import Seen

MARKER: Final = "HOOP_TURN"
"""The variable by which the executor of a dead sentinel is found again."""

_LOOK_AGAIN_S: Final = 0.005
_GIVE_UP_S: Final = 15.0
_GRACE_S: Final = 1.0


class _Family:
    """The children of this process; they belong to the process as a whole, so this is the one global of the runner."""

    def __init__(self) -> None:
        self.adopts = False
        self.started: set[int] = set()
        self.trees: set[Tree] = set()
        self.foreign: frozenset[int] = frozenset()

    def orphans(self) -> list[Seen]:
        """Return adopted processes: children that nobody here started."""
        found = proctree.own_children() - self.started - self.foreign
        return [seen for pid in found if (seen := proctree.look(pid)) is not None]


_family = _Family()


def adopt_orphans() -> None:
    """Take in, from now on, every orphan beneath this process. Call it once, when a sentinel starts."""
    _family.adopts = proctree.become_subreaper()


def reap_orphans() -> None:
    """Reap the adopted that have ended: also those of another user, which we could not end ourselves (a sudo)."""
    for one in _family.orphans() if _family.adopts else ():
        if one.is_zombie:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(one.pid, os.WNOHANG)


def started(pid: int) -> None:
    """Say that this process started `pid` itself and will reap it itself."""
    _family.started.add(pid)


class Tree:
    """The processes of one turn. Make it before the spawn, then tell it the `root`: whatever comes up later is its own."""

    def __init__(self, marker: str) -> None:
        self._root = 0
        self._mark = mark_of(marker)
        self._known: dict[int, Seen] = {}
        reap_orphans()
        if _family.adopts and not _family.trees:
            _family.foreign = frozenset(proctree.own_children() - _family.started)
        _family.trees.add(self)

    @property
    def root(self) -> int:
        """The executor's process number, 0 before the spawn."""
        return self._root

    @root.setter
    def root(self, pid: int) -> None:
        self._root = pid
        started(pid)

    def leave(self) -> None:
        """Be done: the executor is reaped, and nothing else is left or it cannot be ended."""
        _family.started.discard(self._root)
        _family.trees.discard(self)

    def remember(self) -> None:
        """Note who descends from the executor while it lives; where all orphans come to us, nothing needs a note."""
        if not _family.adopts or len(_family.trees) > 1:
            self._known.update(
                (one.pid, one) for one in proctree.descendants([self._root], proctree.everything())
            )

    def end(self) -> bool:
        """Kill and reap what is left, the executor itself being reaped; return whether anything was found."""
        _family.started.discard(self._root)
        left = self._left()
        for one in left:
            _kill(one)
        if not left:
            self.leave()
        return bool(left)

    async def end_all(self) -> None:
        """Kill and reap until nothing is left. Raises `SentinelError` when something does not end in 15 s."""
        deadline_s = asyncio.get_running_loop().time() + _GIVE_UP_S
        try:
            while self.end():
                if asyncio.get_running_loop().time() > deadline_s:
                    raise _does_not_end(self._left())
                await asyncio.sleep(_LOOK_AGAIN_S)
        finally:
            self.leave()

    def _left(self) -> list[Seen]:
        if _family.adopts:
            orphans = _family.orphans()
            roots = orphans if len(_family.trees) == 1 else [one for one in orphans if self._is_ours(one)]
            among = proctree.everything() if roots else {}
        else:
            among = proctree.everything()
            roots = [one for one in among.values() if one.pid not in _family.started and self._is_ours(one)]
        return _live([*roots, *proctree.descendants((one.pid for one in roots), among)])

    def _is_ours(self, one: Seen) -> bool:
        known = self._known.get(one.pid)
        is_known = known is not None and known.started == one.started
        return is_known or one.session == self._root or proctree.carries(one.pid, self._mark)


def mark_of(marker: str) -> bytes:
    """Return the environment entry that marks the processes of a turn."""
    return f"{MARKER}={marker}".encode()


async def stop_stranger(pid: int, started: int, marker: str) -> int:
    """End the tree of an executor that outlived its sentinel; return how many processes were ended.

    A process belongs to it if it is `pid` and began at `started` (kernel ticks), or carries the turn's marker, or descends
    from such a one, or stands in its session. Raises `SentinelError` when something does not end in 15 s.
    """
    loop = asyncio.get_running_loop()
    begun_s, ended = loop.time(), dict[int, Seen]()
    while left := _strangers(pid, started, mark_of(marker), ended):
        elapsed_s = loop.time() - begun_s
        if elapsed_s > _GIVE_UP_S:
            raise _does_not_end(left)
        fresh = [one for one in left if one.pid not in ended]
        ended.update((one.pid, one) for one in fresh)
        for one in fresh if elapsed_s < _GRACE_S else left:
            _kill(one, signal.SIGTERM if elapsed_s < _GRACE_S else signal.SIGKILL)
        await asyncio.sleep(_LOOK_AGAIN_S)
    return len(ended)


def _strangers(pid: int, started: int, mark: bytes, ended: dict[int, Seen]) -> list[Seen]:
    among = proctree.everything()
    root = among.get(pid)
    is_root = root is not None and root.started == started
    roots = [
        one
        for one in among.values()
        if one.pid != os.getpid()
        and (
            (is_root and pid in (one.pid, one.session))
            or (one.pid in ended and ended[one.pid].started == one.started)
            or proctree.carries(one.pid, mark)
        )
    ]
    return _live([*roots, *proctree.descendants((one.pid for one in roots), among)])


def _live(found: list[Seen]) -> list[Seen]:
    """Return each once, without ourselves, the dead that somebody else must reap, and what only another user may end.

    The last are what a launcher became, or started; its far side ends them (docs/launcher.md).
    """
    me = os.getpid()
    return [one for one in {one.pid: one for one in found}.values() if one.pid != me and _is_for_us(one, me)]


def _is_for_us(one: Seen, me: int) -> bool:
    return one.parent == me if one.is_zombie else proctree.may_signal(one)


def _kill(one: Seen, number: signal.Signals = signal.SIGKILL) -> None:
    if not one.is_zombie:
        proctree.send(one, number)
    if one.parent == os.getpid() and one.pid not in _family.started:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(one.pid, os.WNOHANG)


def _does_not_end(left: list[Seen]) -> SentinelError:
    pids = ", ".join(str(one.pid) for one in left)
    return SentinelError(
        f"processes {pids} of a turn do not end", mend="look at their state with ps and end them by hand"
    )
