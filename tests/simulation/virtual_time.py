"""Time that costs nothing: an event loop without sockets, whose clock jumps to the next timer when nobody is ready.

Unlike `tests.fakes.fake_clock` it never looks at a file descriptor, so a day of heartbeats takes milliseconds and the order
of events depends on nothing outside. Tasks hash by their number: a set of tasks has the same order in every process.
"""

import asyncio
import hashlib
import itertools
import selectors
from datetime import UTC, datetime, timedelta

START = datetime(2026, 3, 1, 6, 0, tzinfo=UTC)
_ROUNDS_MOST = 2_000_000


class Stalled(Exception):
    """Nothing can ever happen again, or time stands still while the loop goes round and round."""


class _NoSockets(selectors.SelectSelector):
    """Instead of waiting for a descriptor, time passes."""

    loop = None
    rounds = 0

    def select(self, timeout=None):
        self.rounds += 1
        if timeout is None:
            raise Stalled("every task waits for something that no timer brings")
        if self.rounds > _ROUNDS_MOST:
            raise Stalled("the loop goes round and round")
        if timeout > 0:
            self.loop.elapsed += timeout
        return []


class _NumberedTask(asyncio.Task):
    def __init__(self, coroutine, *, number, **more):
        self._number = number
        super().__init__(coroutine, **more)

    def __hash__(self):
        return self._number


class VirtualLoop(asyncio.SelectorEventLoop):
    """`run(main)` it, once."""

    def __init__(self):
        self.elapsed = 0.0
        selector = _NoSockets()
        selector.loop = self
        super().__init__(selector)
        self._numbers = itertools.count(1)
        self._tasks = []
        self.set_task_factory(self._new_task)
        self.set_exception_handler(lambda _loop, _context: None)  # what dies with a killed life is no news

    def _new_task(self, loop, coroutine, **more):
        task = _NumberedTask(coroutine, number=next(self._numbers), loop=loop, **more)
        self._tasks.append(task)
        return task

    def tasks(self):
        """Return the tasks that are not done, oldest first."""
        self._tasks = [one for one in self._tasks if not one.done()]
        return tuple(self._tasks)

    def time(self):
        return self.elapsed

    def run(self, main):
        asyncio.set_event_loop(self)
        try:
            return self.run_until_complete(main)
        finally:
            asyncio.set_event_loop(None)
            self.close()


class VirtualClock:
    """`core.ports.Clock` on the loop's time. `asleep_s`: how long the laptop slept, which moves the time but no timer."""

    def __init__(self, loop, dice, *, seed):
        self._loop, self._dice = loop, dice
        self._tokens = (
            hashlib.sha256(f"{seed}/token/{n}".encode()).hexdigest()[:32] for n in itertools.count()
        )
        self.asleep_s = 0.0

    @property
    def seconds(self):
        return self._loop.elapsed + self.asleep_s

    def now(self):
        return START + timedelta(seconds=self.seconds)

    def draw(self):
        return self._dice.random()

    def token(self):
        return next(self._tokens)

    async def sleep(self, seconds):
        await asyncio.sleep(seconds)
