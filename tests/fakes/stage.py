"""A whole sentinel in this process, on a stepped clock: a fake room, a real home, a real `state.db`, a scripted executor.

    stage = Stage(tmp_path)
    async with stage.running():
        question = stage.ask("hello")
        await stage.until_answered(question)
    assert stage.answers == ["answer 1"]

The executor is a list of outcomes (an `Answer`, a `Failure`, an exception, a function of the prompt); when the list is
empty it answers. `stage.restart()` is what a `kill -9` and a new start are to the journal.
"""

import asyncio
import contextlib
from dataclasses import dataclass, field

from sentinel import process
from sentinel.core.codec import EndedBy
from sentinel.core.gate import Passed
from sentinel.core.model import Kind
from sentinel.core.outcome import Answer, Failure, FailureClass
from sentinel.core.ports import NonceMemory
from sentinel.daemon.ground import Ground
from sentinel.daemon.sentinel import Sentinel
from sentinel.home.examine import examine
from sentinel.store.store import open_store
from tests.fakes.fake_clock import FakeClock, until
from tests.fakes.fake_room import FakeRoom, FakeServer
from tests.fakes.persona_homes import make_home


class Lines:
    """A log that is kept."""

    def __init__(self):
        self.lines = []

    def _note(self, event, **fields):
        self.lines.append((event, fields))

    info = warning = error = _note

    def of(self, event):
        return [fields for name, fields in self.lines if name == event]


@dataclass
class Child:
    """As much of a running executor as a sentinel sees of one: it may be asked to stop."""

    stopped: asyncio.Event = field(default_factory=asyncio.Event)
    by: EndedBy | None = None

    @property
    def is_judged(self):
        return self.stopped.is_set()

    def request_stop(self, by):
        self.by = self.by or by
        self.stopped.set()


class ScriptedExecutor:
    """Stands where `daemon.execution.Execution` stands."""

    def __init__(self, stage):
        self.stage = stage

    async def run(self, case, request, running):
        stage = self.stage
        stage.runs.append((case, request))
        stage.run_at.append(stage.clock.now())
        running.child = child = Child()
        if running.stop_by is not None:
            child.request_stop(running.stop_by)
        stage.sentinel._show_running(running)
        if stage.works.is_set():
            return self._outcome(case, request)
        works = asyncio.ensure_future(stage.works.wait())
        stops = asyncio.ensure_future(child.stopped.wait())
        try:
            await asyncio.wait({works, stops}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            works.cancel()
            stops.cancel()
        if child.stopped.is_set():
            kind = FailureClass.STOPPED if child.by is EndedBy.STOP else FailureClass.INTERRUPTED
            return Failure(kind, "ended by us")
        return self._outcome(case, request)

    def _outcome(self, case, request):
        stage = self.stage
        now = stage.script.pop(0) if stage.script else Answer(f"answer {len(stage.runs)}", thread="t-1")
        if isinstance(now, BaseException):
            raise now
        return now(case, request) if callable(now) else now

    async def gone(self):
        return


class Stage:
    def __init__(self, root, *, nonce_memory=NonceMemory.FOR_GOOD, members=3, adapter="echo", **files):
        self.clock = FakeClock()
        self.server = FakeServer(nonce_memory=nonce_memory, now=self.clock.now)
        self.ann = self.server.account("ann")
        self.gode = self.server.account("Gode", Kind.PERSONA)
        self.bob = self.server.account("bob")
        people = [self.ann, self.gode, self.bob][:members]
        self.cid = self.server.conversation("lab", *people)
        self.home = make_home(root, adapter=adapter)
        self.home.write("owners", f"{self.ann.uid}\n")
        for name, content in files.items():
            self.home.write(name.replace("limits_toml", "limits.toml"), content)
        self.log = Lines()
        self.script = []
        self.runs = []
        self.run_at = []
        self.works = asyncio.Event()
        self.works.set()
        self.room = self.store = self.sentinel = self.task = None

    # A process's life.

    def open(self, *, guarded=None):
        verdict = examine(self.home.path, guarded=True)
        assert isinstance(verdict, Passed), verdict
        self.room = FakeRoom(self.server, self.gode.uid)
        self.store = open_store(self.home.path)
        self.store.bind("http://127.0.0.1:9", self.gode.uid)
        ground = Ground(
            self.home.path, verdict.persona, self.room, self.gode, self.store, self.clock, self.log
        )
        self.sentinel = Sentinel(ground, guarded=guarded)
        self.sentinel.turner._execution = ScriptedExecutor(self)
        return self

    @contextlib.asynccontextmanager
    async def running(self, *, guarded=None):
        self.start(guarded=guarded)
        try:
            await until(lambda: self.task.done() or self.room.connected)
            yield self
            if self.task is not None and self.task.done():
                self.task.result()
        finally:
            await self.kill()

    def start(self, *, guarded=None):
        if self.store is None:
            self.open(guarded=guarded)
        self.task = asyncio.ensure_future(self.sentinel.run())

    async def kill(self):
        """End this process's life without a word: what is in the journal is all that is left of it."""
        if self.task is not None:
            inner = [one for one in asyncio.all_tasks() if one.get_name() in TASKS]
            for one in inner:
                one.cancel()
            self.task.cancel()
            await asyncio.gather(self.task, *inner, return_exceptions=True)
        if self.store is not None:
            self.store.close()
        self.task = self.store = None

    # What people do and see.

    def say(self, sender, text, *, mention=True, cid=None, **more):
        return self.server.say(
            sender, cid or self.cid, text, mentions=(self.gode,) if mention else (), **more
        )

    def ask(self, text="hello", **more):
        return self.say(self.ann, text, **more)

    @property
    def answers(self):
        return [one.text for one in self.own if one.answers]

    @property
    def notices(self):
        return [one.text for one in self.own if not one.answers]

    @property
    def own(self):
        return [one for one in self.server.messages(self.cid) if one.sender.uid == self.gode.uid]

    def answers_to(self, message):
        return [one for one in self.own if message.id in one.answers]

    async def until_answered(self, *messages):
        await until(lambda: all(self.state_of(one) == "verified" for one in messages))

    def state_of(self, message):
        found = self.trigger(message)
        return found.state.value if found else None

    def trigger(self, message):
        found = self.store.turns.triggers([message.id])
        return found[0] if found else None

    @property
    def condition(self):
        return self.sentinel._conditions.now

    @property
    def shown(self):
        return self.server.presence.get(self.gode.uid, (None, None))


TASKS = {"intake", "worker", "postman", "presence", "heartbeat"}


def never_adopt(monkeypatch):
    """A sentinel becomes the parent of all orphans beneath it; a test process must not."""
    monkeypatch.setattr(process, "adopt_orphans", lambda: None)
