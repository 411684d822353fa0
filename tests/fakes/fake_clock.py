"""Time that passes only when nothing else can happen: an event loop that steps its clock instead of waiting.

    @stepped
    async def test_something(tmp_path):
        clock = FakeClock()
        await clock.sleep(3600)      # takes no time

Timers, `asyncio.timeout` and `FakeClock` share one clock. Whenever nobody is ready to run, the loop jumps to the next
timer; so an hour of backoff is over at once, in the right order. Not for tests with real sockets or children: the loop
does not wait for those.
"""

import asyncio
import functools
import itertools
import selectors
from datetime import UTC, datetime, timedelta

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
_LOOKS = 3
"""Real looks at sockets before a jump: a Unix socket's bytes between two tasks of this loop may need a moment."""


class _Stepping(selectors.SelectSelector):
    loop = None
    _idle = 0

    def select(self, timeout=None):
        ready = super().select(0.002 if timeout is None else 0)
        if ready or (timeout is not None and timeout <= 0):
            return ready
        self._idle += 1
        if self._idle % _LOOKS == 0 and timeout is not None:
            self.loop.elapsed += timeout + 1e-6
        return ready


class SteppedLoop(asyncio.SelectorEventLoop):
    def __init__(self):
        self.elapsed = 0.0
        selector = _Stepping()
        selector.loop = self
        super().__init__(selector)

    def time(self):
        return self.elapsed


def stepped(test):
    """Run an async test on a loop whose time is stepped."""

    @functools.wraps(test)
    def run(*arguments, **named):
        with asyncio.Runner(loop_factory=SteppedLoop) as runner:
            return runner.run(test(*arguments, **named))

    return run


class FakeClock:
    """`core.ports.Clock` on the loop's time; `draw` is always `drawn`, tokens count up."""

    def __init__(self, start=START, *, drawn=0.0):
        self.start = start
        self.drawn = drawn
        self._counter = itertools.count(1)
        self._first = None

    def now(self):
        try:
            elapsed = asyncio.get_running_loop().time()
        except RuntimeError:
            return self.start
        if self._first is None:
            self._first = elapsed
        return self.start + timedelta(seconds=elapsed - self._first)

    def draw(self):
        return self.drawn

    def token(self):
        return f"{next(self._counter):032x}"

    async def sleep(self, seconds):
        await asyncio.sleep(seconds)


async def until(claim, *, within_s=7200.0):
    """Let time pass, a little at a time, until `claim()` is true; fail after `within_s` of stepped time."""
    loop = asyncio.get_running_loop()
    begin = loop.time()
    while not (found := claim()):
        passed = loop.time() - begin
        assert passed < within_s, "it never came true"
        await asyncio.sleep(max(0.02, min(passed / 50, 10.0)))
    return found


async def pass_time(seconds):
    """Let time pass."""
    await asyncio.sleep(seconds)
