"""One simulated world: a machine whose sentinel dies and starts again, a lossy server, people, and an oracle.

    outcome = simulate(123)
    assert not outcome.broken, outcome.trace

The sentinel in it is the real one: `daemon.sentinel.Sentinel` with its intake, worker, postman and journal, the real codec
and the real store classes. Replaced are only the edges: the network (`lossy_room`), the disk (`disk`), processes
(`executor`), the home's files, the control socket and time. Nothing in it reads a clock, a dice or a socket of this machine.
"""

import asyncio
import contextlib
import random
import shutil
import tempfile
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

from sentinel import process
from sentinel.core.errors import SentinelError
from sentinel.core.gate import Check, GateRefused, Passed
from sentinel.core.model import Kind
from sentinel.core.ports import NonceMemory
from sentinel.daemon import execution, sentinel, turn
from sentinel.daemon.ground import Ground
from sentinel.home.examine import examine
from tests.fakes.persona_homes import make_home
from tests.simulation.disk import Disk
from tests.simulation.executor import BEHAVIOURS, POISON, Executors
from tests.simulation.life import Killed, Life
from tests.simulation.lossy_room import CALM, WEATHERS, SimRoom, SimServer
from tests.simulation.oracle import ENDS, Oracle
from tests.simulation.people import People
from tests.simulation.plan import plan
from tests.simulation.trace import Trace
from tests.simulation.virtual_time import Stalled, VirtualClock, VirtualLoop

HEAL_WITHIN_S = 6 * 3600.0
_CALM_S = 5.0


@dataclass(frozen=True)
class Outcome:
    """What became of a seed. `drawn` counts the kinds of what happened."""

    seed: int
    broken: tuple[str, ...]
    drawn: Counter
    trace: Trace
    steps: int


def simulate(seed):
    """Run the world of a seed to its end and judge it."""
    loop = VirtualLoop()
    world = World(plan(seed), loop, home_on_disk())
    with world.edges():
        try:
            loop.run(world.run())
        except Stalled as stalled:
            world.oracle.breaks("time goes on", why=str(stalled))
    world.close()
    return Outcome(seed, tuple(world.oracle.broken), world.drawn, world.trace, world.steps)


class World:
    def __init__(self, planned, loop, home):
        self.plan = planned
        self.drawn = Counter()
        self.steps = 0
        self._home, self._persona = home, _persona(home, planned.settings)
        self.clock = VirtualClock(loop, self.dice("jitter"), seed=planned.seed)
        self.trace = Trace(lambda: self.clock.seconds, home=home.path)
        self.server = SimServer(
            nonce_memory=planned.settings.memory,
            nonce_window_s=300.0 if planned.settings.memory is NonceMemory.BOUNDED else None,
            now=self.clock.now,
        )
        self.gode = self.server.account("Gode", Kind.PERSONA)
        self.people = People(self)
        self.cids = {"lab": self.server.conversation("lab", *self._lab())}
        if planned.settings.has_pair:
            self.cids["pair"] = self.server.conversation("pair", self.people.ann, self.gode)
        if planned.settings.has_den:
            self.cids["den"] = self.server.conversation("den", self.people.bob, self.gode)
        self.disk = Disk()
        self.executors = Executors(self, self.dice("executor"))
        self.oracle = Oracle(self)
        self.life = self.sentinel = None
        self._gate, self._era, self._behaving = None, None, self.dice("behaviour")
        self._machine, self._restart_s, self._arms = set(), 2.0, []
        self._up = self._process = None
        self._calm_connections, self._deaths = [], []

    def _lab(self):
        people = self.people
        return people.ann, self.gode, people.bob, people.botty, people.bella

    def dice(self, name):
        """Return dice of their own: what one part draws changes nothing for another."""
        return random.Random(f"{self.plan.seed}/{name}")

    @property
    def look(self):
        """What stands in `state.db`."""
        return self.disk.look()

    def draws(self, kind):
        """Note that something was drawn."""
        self.drawn[kind] += 1
        self.trace.note(kind)

    def machine(self, coroutine):
        """Run something that no death of the sentinel ends."""
        task = asyncio.get_running_loop().create_task(coroutine)
        self._machine.add(task)
        task.add_done_callback(self._machine.discard)
        return task

    def later(self, seconds, act, *arguments):
        """Do something after a while, whoever lives then."""

        async def do():
            await asyncio.sleep(seconds)
            act(*arguments)

        self.machine(do())

    # The course of the world.

    async def run(self):
        self._main = asyncio.current_task()
        self._up = asyncio.Event()
        self.draws(f"memory: {self.plan.settings.memory.value}")
        supervisor = self.machine(self._supervise())
        for one in self.plan.happenings:
            await asyncio.sleep(max(0.0, one.at_s - asyncio.get_running_loop().time()))
            self._happen(one)
        await asyncio.sleep(1.0)
        await self._heal()
        if await self._rests():
            self.oracle.ends()
        else:
            self.oracle.breaks("the world comes to rest", **self._restless())
            self.oracle.ends()
        supervisor.cancel()
        await self._bury()
        for one in sorted(self._machine, key=hash):
            one.cancel()

    def _happen(self, one):
        kind = {"executor": "executor era"}.get(one.what, one.what)
        self.draws(f"{kind}: {one.kind}")
        match one.what:
            case "say":
                self.people.say(one.kind, one.where, one.number)
            case "weather":
                self._weather(one)
            case "executor":
                self._era = one.kind
                self.later(one.for_s, self._era_ends)
            case "trouble":
                getattr(self, "_trouble_" + one.kind.lower().replace(" ", "_"))(one)

    def _weather(self, one):
        self.server.weather = WEATHERS[one.kind]
        if self.server.weather.gone:
            self._trouble_line_cut(one)
        self.later(one.for_s, self._clears_up)

    def _clears_up(self):
        self.server.weather = CALM

    def _era_ends(self):
        self._era = None

    # Troubles.

    def _trouble_crash(self, one):
        self._restart_s = one.wait_s
        self.life.arm(one.number)

    def _trouble_crash_soon_again(self, one):
        self._trouble_crash(one)
        self._arms = [1 + one.number % 23, 1 + one.number % 7]

    def _trouble_power_cut(self, one):
        self._restart_s = one.wait_s
        self.life.arm(one.number)
        self.life.takes_power = True

    def _trouble_term(self, one):
        self._restart_s = one.wait_s
        if self.sentinel is not None and not self.life.is_dead:
            ending = asyncio.get_running_loop().create_task(self.sentinel.end())
            ending.add_done_callback(_seen)

    def _trouble_superseded(self, one):
        self._restart_s = one.wait_s
        if self._room is not None:
            self._room.supersede()

    def _trouble_laptop_sleeps(self, one):
        self.clock.asleep_s += one.for_s * 5
        self._trouble_line_cut(one)

    def _trouble_line_cut(self, _one):
        if self._room is not None:
            self._room.cut_doorbell()

    def _trouble_history_restored(self, one):
        if all(self.look.inbox.conversation(cid) for cid in self.cids.values()):
            newest = len(self.server.messages(self.cids["lab"]))
            self.server.restore(self.cids["lab"], max(0, newest - 1 - one.number % 4))

    def _trouble_leaves_and_comes_back(self, one):
        if self.server.is_member(self.cids["lab"], self.gode):
            self.server.leave(self.cids["lab"], self.gode)
            self.later(one.for_s, self._comes_back)

    def _comes_back(self):
        if not self.server.is_member(self.cids["lab"], self.gode):
            self.server.join(self.cids["lab"], self.gode)

    def _trouble_disk_full(self, one):
        self.disk.is_full, self._restart_s = True, one.wait_s
        self.later(one.for_s, self._disk_has_room)

    def _disk_has_room(self):
        self.disk.is_full = False

    def _trouble_gate_refuses(self, one):
        self._refuses(one.for_s, "missing")

    def _trouble_gate_refuses_for_a_moment(self, _one):
        self._refuses(3.0, "missing")

    def _trouble_gate_cannot_ask(self, one):
        self._refuses(one.for_s, "passing")

    def _refuses(self, for_s, how):
        self._gate = how
        self.later(for_s, self._gate_is_mended)

    def _gate_is_mended(self):
        self._gate = None

    # Healing, and coming to rest.

    async def _heal(self):
        """End all troubles; what is left to do is the sentinel's."""
        self.trace.note("THE WORLD IS HEALED")
        self._clears_up()
        self._era_ends()
        self._disk_has_room()
        self._gate_is_mended()
        self._comes_back()
        self.server.show_everything()
        self.plan = replace(self.plan, steady=1.0)
        self._arms, self._restart_s = [], 2.0
        self.life.disarm()
        self._up.set()
        await asyncio.sleep(60.0)
        self.life.disarm()
        self._clears_up()
        if '"paused":true' in (self.look.meta("condition") or ""):
            self.people.resumes()

    async def _rests(self):
        """Wait until nothing is left to be done; False when it never is."""
        waited_s, wait_s = 0.0, 5.0
        while self._restless():
            if waited_s > HEAL_WITHIN_S:
                return False
            await asyncio.sleep(wait_s)
            waited_s, wait_s = waited_s + wait_s, min(wait_s * 1.5, 300.0)
        return True

    def _restless(self):
        """Return what is still to be done, empty when the world is at rest."""
        look, left = self.look, {}
        if waiting := [
            row[0]
            for row in look.database.rows("SELECT message_id, state FROM triggers")
            if row[1] not in ENDS
        ]:
            left["triggers"] = waiting
        if turns := look.turns.unfinished():
            left["turns"] = [one.turn_id for one in turns]
        for cid in self.server.conversation_ids():
            known, newest = look.inbox.conversation(cid), len(self.server.messages(cid))
            if known is None or known.cursor != newest:
                left[f"unread in {cid}"] = newest
        if len(self._machine) > 1:  # somebody still has something to say
            left["machine"] = len(self._machine) - 1
        if self.life.is_dead:
            left["life"] = "dead"
        return left

    # The sentinel's lives.

    async def _supervise(self):
        while True:
            await self._live()
            self._up.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._restart_s):
                    await self._up.wait()

    async def _live(self):
        """One life, from its start to its end."""
        died = asyncio.Event()
        life = self.life = Life(lambda where: self._dies(where, died))
        if self._arms:
            life.arm(self._arms.pop(0))
        self.trace.note("starts")
        try:
            self._process = asyncio.create_task(self._sentinel(life).run())
        except (Killed, SentinelError) as ended:
            self.trace.note("does not start", why=type(ended).__name__)
        else:
            waits = asyncio.create_task(died.wait())
            await asyncio.wait({self._process, waits}, return_when=asyncio.FIRST_COMPLETED)
            waits.cancel()
        await self._bury()

    def _sentinel(self, life):
        store = self.disk.store(life)
        store.bind("http://127.0.0.1:9", self.gode.uid)
        self._overhear(store)
        self._room = SimRoom(self, life, self.gode.uid)
        log = _Log(self, life)
        ground = Ground(self._home.path, self._persona, self._room, self.gode, store, self.clock, log)
        self.sentinel = sentinel.Sentinel(ground, guarded=None)
        return self.sentinel

    def _overhear(self, store):
        """Let the oracle know what became durable."""
        turns, oracle = store.turns, self.oracle
        draft, adopt, retry = turns.draft, turns.adopt, turns.retry

        def drafts(turn_id, *rest, **more):
            draft(turn_id, *rest, **more)
            oracle.drafted(turns.get(turn_id).batch)

        def adopts(*rest, unanswered, **more):
            adopt(*rest, unanswered=unanswered, **more)
            oracle.unanswered(unanswered)

        def retries(ids, **more):
            oracle.retried(ids)
            return retry(ids, **more)

        turns.draft, turns.adopt, turns.retry = drafts, adopts, retries

    def _dies(self, where, died):
        self.trace.note("DIES", where=where)
        self.drawn[f"dies: {where}"] += 1
        if self.life.takes_power and self.disk.cut_power():
            self.trace.note("power was cut: an unsynced page is taken back")
        if self.life.takes_power:
            for one in sorted(self.executors.living.values(), key=lambda one: one.pid):
                self.executors.ended(one)
        died.set()

    async def _bury(self):
        """Let nothing of a life be left, and nothing of it act."""
        self.life.is_dead = True
        self.steps += self.life.steps
        self._deaths.append(self.clock.now().timestamp())
        everything = asyncio.get_running_loop().tasks()
        left = [one for one in everything if one not in self._machine and one is not self._main]
        for one in left:
            one.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        ended = self._process
        if ended is not None and ended.done() and not ended.cancelled():
            fault = ended.exception()
            if fault is None:
                self.trace.note("ended", exit=ended.result().name)
            elif not isinstance(fault, Killed):
                self.trace.note("ended", fault=f"{type(fault).__name__}: {fault}")
                self._judge_end(fault)
        self._process = self.sentinel = self._room = None

    def _judge_end(self, fault):
        if not isinstance(fault, SentinelError):
            self.oracle.breaks(
                "no fault of our own ends the sentinel", fault=f"{type(fault).__name__}: {fault}"
            )

    _room = None
    _main = None

    # What the edges ask.

    @contextlib.contextmanager
    def edges(self):
        """Put this world where the sentinel reaches out of its own code."""

        async def gate(_home, *, guarded):
            self.oracle.begins()
            await asyncio.sleep(0.02)
            self.life.must_live()
            verdict = self._verdict()
            self.oracle.gate(refused=isinstance(verdict, GateRefused) and not verdict.is_passing)
            return verdict

        async def shows_no_run(*_):
            return

        edges = (
            (sentinel, "examine", lambda _home, **_: self._verdict()),
            (sentinel, "Control", _NoControl),
            (
                sentinel,
                "HEARTBEAT_S",
                600.0,
            ),  # nobody reads it here, and it is most of what an idle day writes
            (turn, "examine_aside", gate),
            (process, "start", self.executors.start),
            (process, "stop_stranger", self.executors.stop_stranger),
            (process, "adopt_orphans", lambda: None),
            (execution.Execution, "_show_run", shows_no_run),
        )
        real = [(where, name, getattr(where, name)) for where, name, _ in edges]
        for where, name, ours in edges:
            setattr(where, name, ours)
        try:
            yield
        finally:
            for where, name, theirs in real:
                setattr(where, name, theirs)

    def _verdict(self):
        if self._gate is None:
            return Passed(self._persona, ())
        check = Check("executor", False, "not there", "put it there", is_passing=self._gate == "passing")
        return GateRefused((check,))

    def next_behaviour(self, turn_id):
        """Say what the executor of this turn does."""
        batch = self.look.turns.get(turn_id).batch
        if any(POISON in (self.people.said[one].message.text or "") for one in batch):
            return "crash"
        if self._era is not None:
            return self._era
        if self._behaving.random() < self.plan.steady:
            return "answers"
        return self._behaving.choice(list(BEHAVIOURS))

    def lands(self, cid, outgoing, hidden_reads):
        """A post of the persona's arrives at the server."""
        before = len(self.server.messages(cid))
        message = self.server.post(self.gode.uid, cid, outgoing, hidden_reads=hidden_reads)
        if len(self.server.messages(cid)) > before:
            self.oracle.lands(message)
            if self.people.botty.uid in message.mentions:
                self.later(15.0, self.people.botty_answers, cid, message.id)
        return message

    def hears(self, event, fields):
        """The sentinel logs something."""
        if event == "connected" and self.server.weather is CALM:
            self._calm_connections.append(self.clock.now().timestamp())
        self.oracle.hears(event, fields)

    def had_a_calm_connection(self, after, before):
        """Whether the sentinel had a good moment between two times (epoch seconds) to do what it owed."""
        return any(
            after < at < before - _CALM_S and not any(at <= death <= at + _CALM_S for death in self._deaths)
            for at in self._calm_connections
        )

    def close(self):
        self.disk.close()
        shutil.rmtree(self._home.path / "turns", ignore_errors=True)


class _Log:
    """The sentinel's log, as long as it lives."""

    def __init__(self, world, life):
        self._world, self._life = world, life

    def _note(self, event, **fields):
        if not self._life.is_dead:
            self._world.trace.note(f"| {event}", **fields)
            self._world.hears(event, fields)

    info = warning = error = _note


class _NoControl:
    """Stands where `control.sock` stands: nobody speaks to it here."""

    def __init__(self, *_):
        pass

    async def open(self):
        pass

    async def close(self):
        pass


_HOMES = []


def home_on_disk():
    """Return the one real home of this process; the folders of turns come and go in it."""
    if not _HOMES:
        memory = Path("/dev/shm")  # where there is one: folders of turns come and go by the thousand
        root = tempfile.TemporaryDirectory(prefix="simulation-", dir=memory if memory.is_dir() else None)
        _HOMES.append((root, make_home(Path(root.name))))
    return _HOMES[0][1]


def _persona(home, settings):
    if len(_HOMES[0]) == 2:
        verdict = examine(home.path, guarded=True)
        assert isinstance(verdict, Passed), verdict
        _HOMES[0] = (*_HOMES[0], verdict.persona)
    declared = _HOMES[0][2]
    who = {"humans": "humans", "members": "members", "listed": frozenset({"u-ann", "u-botty"})}
    return replace(
        declared,
        owners=frozenset({"u-ann"}),
        wake_from=who[settings.wake_from],
        on_interrupt=settings.on_interrupt,
        sandbox=settings.sandbox,
        limits=replace(declared.limits, overlap_messages=settings.overlap),
    )


def _seen(task):
    if not task.cancelled():
        task.exception()
