"""A small script of faults for the fake room: what goes wrong at which call.

`faults.on("post", drop_after(), rate_limited(2))` spends one action on each following call of `post`, in order; the
calls after them are healthy. `faults.always("history", unauthorized())` holds until `faults.clear("history")`.
`faults.gone()` makes every call `Unavailable` until `faults.back()`. Nothing here waits by the clock.
"""

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import Literal

from sentinel.core.errors import NotFound, RateLimited, Rejected, RoomError, Unauthorized, Unavailable

CALLS = frozenset(
    {
        "who_am_i",
        "doorbells",
        "conversations",
        "history",
        "members",
        "find",
        "find_by_nonce",
        "post",
        "typing",
        "presence",
        "download",
        "upload",
    }
)


@dataclass(frozen=True, slots=True)
class Refuse:
    """Raise `error`; the call was never applied."""

    error: RoomError


@dataclass(frozen=True, slots=True)
class DropAfter:
    """Apply the call, then lose the answer."""


@dataclass(frozen=True, slots=True)
class Delay:
    """Hold the call until `released` is set: before it is applied, or (with `applied`) after."""

    released: asyncio.Event
    applied: bool = False


@dataclass(frozen=True, slots=True)
class LateVisibility:
    """Apply the post, but the first `reads` readings that would show it do not; `lost` loses the answer too."""

    reads: int
    lost: bool = True


@dataclass(frozen=True, slots=True)
class Forge:
    """Store `text` instead of ours under our nonce, as our own message, before our post arrives.

    `answer`: "natural" lets our post then meet it (409 on a server that keeps nonces for good), "stored" answers with
    the forged message as if it were ours, "lost" loses the answer.
    """

    text: str
    answer: Literal["natural", "stored", "lost"] = "natural"


Action = Refuse | DropAfter | Delay | LateVisibility | Forge


def drop_before() -> Refuse:
    """Cut the line before anything is applied. To the caller it looks just like `drop_after`."""
    return Refuse(Unavailable("the fake cut the line: it may have been applied"))


def drop_after() -> DropAfter:
    """Apply, then lose the answer."""
    return DropAfter()


def rate_limited(seconds: float) -> Refuse:
    """429."""
    return Refuse(RateLimited("the fake is busy", retry_after_s=seconds))


def unauthorized() -> Refuse:
    """401."""
    return Refuse(Unauthorized("the fake refused the token"))


def reject(status: int) -> Refuse:
    """A 4xx that will not heal."""
    what = f"the fake refused it with {status}"
    return Refuse(NotFound(what) if status == 404 else Rejected(what, status=status))


def delay(released: asyncio.Event, *, applied: bool = False) -> Delay:
    """Hold the call until the test sets the event."""
    return Delay(released, applied)


def late_visibility(reads: int, *, lost: bool = True) -> LateVisibility:
    """Store at once, show after `reads` readings."""
    return LateVisibility(reads, lost)


def forge(text: str, *, answer: Literal["natural", "stored", "lost"] = "natural") -> Forge:
    """Put another text under our nonce."""
    return Forge(text, answer)


class Faults:
    """What will go wrong. One object belongs to one `FakeRoom`, or is shared by several."""

    def __init__(self) -> None:
        self._next: dict[str, deque[Action]] = {}
        self._always: dict[str, Action] = {}
        self.is_gone = False

    def on(self, call: str, *actions: Action) -> None:
        """Spend one action on each of the following calls."""
        self._next.setdefault(_known(call), deque()).extend(actions)

    def always(self, call: str, action: Action) -> None:
        """Do `action` at every call (after those of `on` are spent) until `clear`."""
        self._always[_known(call)] = action

    def clear(self, call: str) -> None:
        """Make `call` healthy again."""
        self._next.pop(_known(call), None)
        self._always.pop(call, None)

    def gone(self) -> None:
        """Let every call meet `Unavailable` until `back()`."""
        self.is_gone = True

    def back(self) -> None:
        """End `gone()`."""
        self.is_gone = False

    def spent(self) -> bool:
        """Return whether every action of `on` was used: a test that scripts a fault may assert that it happened."""
        return not any(self._next.values())

    def take(self, call: str) -> Action | None:
        """Return what goes wrong at this call, and spend it."""
        if self.is_gone:
            return Refuse(Unavailable("the fake is gone"))
        waiting = self._next.get(call)
        return waiting.popleft() if waiting else self._always.get(call)


def _known(call: str) -> str:
    if call not in CALLS:
        raise ValueError(f"the Room port has no call {call!r}")
    return call
