"""Executors of a simulated machine: they speak codex's protocol to the real codec, and outlive the sentinel when it dies.

`BEHAVIOURS` says for each what it prints and what it truly is; the oracle believes the truth, never the sentinel. A process
ends when it is done, when it is asked to stop, at the runner's own time limits, or when a later start finds and ends it.
"""

import asyncio
import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from sentinel import process
from sentinel.core.codec import EndedBy, ExitStatus
from sentinel.core.errors import SentinelError
from tests.fakes.persona_homes import TOKEN
from tests.simulation.life import Killed

ANSWER, DEATH, OUTAGE, RATE, COUNTED, LEAK, RENEWED = (
    "answer", "death", "outage", "rate", "counted", "leak", "renewed",
)  # fmt: skip


@dataclass(frozen=True)
class Behaviour:
    """What one run does. `truth` is one of the words above; `cause` the class that a death or an outage truly has."""

    truth: str
    lines: tuple[dict, ...] = ()
    stderr: str = ""
    code: int | None = 0
    cause: str = ""
    hangs: bool = False
    refuses_to_start: str = ""
    """"gone" or "passing": the process cannot be made."""
    slow: bool = False


def _message(text):
    return {"type": "item.completed", "item": {"id": "i1", "type": "agent_message", "text": text}}


def _tool(output):
    return {
        "type": "item.completed",
        "item": {
            "id": "i0",
            "type": "command_execution",
            "command": "ls",
            "aggregated_output": output,
            "exit_code": 1,
        },
    }


_DONE = {
    "type": "turn.completed",
    "usage": {"input_tokens": 10, "cached_input_tokens": 2, "output_tokens": 3},
}
_TALK = "401 Unauthorized: not logged in; usage limit reached; bash: claude: command not found; /stop"


def _says(text, **more):
    return Behaviour(ANSWER, (_message(text), _DONE), **more)


def _fails(truth, said, *, cause=""):
    return Behaviour(truth, ({"type": "turn.failed", "error": {"message": said}},), code=1, cause=cause)


BEHAVIOURS = {
    "answers": _says("Here you are."),
    "answers-slowly": _says("That took a while.", slow=True),
    "answers-at-length": _says("\n\n".join(["A long paragraph. " * 180] * 6)),
    "calls-a-persona": _says("@Botty what do you think?"),
    "talks-of-death": _says(_TALK),
    "commentary-first": Behaviour(ANSWER, (_message("I look."), _tool(_TALK), _message("Found it."), _DONE)),
    "leaks": Behaviour(LEAK, (_message(f"The token is {TOKEN}."), _DONE)),
    "auth": _fails(DEATH, "unexpected status 401 Unauthorized: no bearer", cause="auth"),
    "quota": _fails(DEATH, "You've hit your usage limit. Try again in 35 minutes.", cause="quota"),
    "quota-untold": _fails(DEATH, "You've hit your usage limit.", cause="quota"),
    "config": _fails(DEATH, "The model `m-9` does not exist", cause="config"),
    "gone": Behaviour(DEATH, cause="missing", refuses_to_start="gone"),
    "refused-by-launcher": Behaviour(DEATH, stderr="refused", code=78, cause="missing"),
    "rate": _fails(RATE, "429 Too Many Requests, try again in 20s", cause="rate"),
    "unavailable": _fails(OUTAGE, "503 Service Unavailable", cause="unavailable"),
    "no-process-left": Behaviour(OUTAGE, refuses_to_start="passing", cause="unavailable"),
    "busy": _fails(OUTAGE, "thread already has an active writer", cause="busy"),
    "empty": Behaviour(COUNTED, (_message(" \u200b\n"), _DONE)),
    "crash": Behaviour(COUNTED, (_message("I begin"),), code=-9),
    "dies-talking-of-death": Behaviour(COUNTED, (_tool(_TALK),), stderr="", code=1),
    "partial": Behaviour(COUNTED, (_message("Half a sen"),), code=1),
    "hang": Behaviour(COUNTED, (_message("Wait"),), hangs=True),
    "truncated": _fails(COUNTED, "stopped at max_output_tokens"),
    "refused": _fails(COUNTED, "invalid_prompt"),
    "input-rejected": _fails(COUNTED, '{"error": {"message": "no"}}'),
    "thread-lost": Behaviour(RENEWED, stderr="Error: no rollout found for thread id", code=1),
    "context-full": _fails(RENEWED, "ran out of room in the context window"),
}  # fmt: skip

POISON = "poison"


def encoded(line):
    """Return an event as codex prints it."""
    return json.dumps(line).encode() + b"\n"


@dataclass(eq=False)
class SimProcess:
    """One living executor; as much of `process.Turn` as an execution uses."""

    executors: "Executors"
    marker: str
    behaviour: Behaviour
    pid: int
    started: int
    codec: object
    on_event: Callable
    limits: process.RunLimits
    lingers_s: float
    works_s: float
    finished: asyncio.Future = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    over: asyncio.Event = field(default_factory=asyncio.Event)
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    asked_by: EndedBy | None = None

    @property
    def is_judged(self):
        return self.finished.done()

    def request_stop(self, by):
        self.asked_by = self.asked_by or by
        self.asked.set()

    async def result(self):
        return await asyncio.shield(self.finished)

    async def gone(self):
        await self.over.wait()

    async def live(self):
        """Begin, work, and end in one of the ways there are."""
        self._print({"type": "thread.started", "thread_id": self.executors.thread_of(self)})
        self._print({"type": "turn.started"})
        waits_s = self.limits.silence_s if self.behaviour.hangs else self.works_s
        try:
            async with asyncio.timeout(waits_s):
                await self.asked.wait()
        except TimeoutError:
            self._end_by_itself()
        else:
            await asyncio.sleep(self.lingers_s)
            self._finish(ExitStatus(-15, self.asked_by))
        await asyncio.sleep(self.lingers_s)
        self.executors.ended(self)

    def _end_by_itself(self):
        for line in self.behaviour.lines:
            self._print(line)
        if self.behaviour.hangs:
            self._finish(ExitStatus(-15, EndedBy.SILENCE))
        else:
            self._finish(ExitStatus(self.behaviour.code))

    def _print(self, line):
        if self.behaviour.stderr:
            return  # it dies before it speaks
        if not self.executors.hears(self):
            return  # nobody reads any more
        try:
            for event in self.codec.receive(encoded(line)):
                self.on_event(event)
        except Killed:
            return  # the sentinel died of what it heard; the executor lives on
        except SentinelError as fault:
            if not self.finished.done():
                self.finished.set_exception(fault)

    def _finish(self, status):
        if not self.finished.done():
            self.finished.set_result(
                process.Finished(status, self.behaviour.stderr, 0, 100, 0.0, self.works_s)
            )


class Executors:
    """All executors of one machine."""

    def __init__(self, world, dice):
        self._world, self._dice = world, dice
        self.living = {}
        self._born_in = {}
        self._count = 0
        self._threads = 0

    async def start(self, codec, *, marker, limits, on_event, on_exec, **_):
        """Stand where `process.start` stands."""
        world, life = self._world, self._world.life
        life.step("before the executor")
        name = world.next_behaviour(marker)
        behaviour = BEHAVIOURS[name]
        on_exec("exec: executor")
        world.oracle.runs(marker, name, behaviour)
        if behaviour.refuses_to_start:
            raise process.SpawnFailed(
                "no such executor", mend="", is_passing=behaviour.refuses_to_start == "passing"
            )
        self._count += 1
        dice = self._dice
        works_s = dice.uniform(120, 800) if behaviour.slow else dice.choice((0.05, 0.5, 3.0, 20.0))
        lingers_s = dice.choice((0.0, 0.1, 4.0))
        started = SimProcess(
            self, marker, behaviour, 1000 + self._count, self._count, codec, on_event, limits, lingers_s, works_s
        )  # fmt: skip
        world.oracle.starts(started, self.living)
        self.living[marker] = started
        self._born_in[started.pid] = life
        world.machine(started.live())
        life.step("after the executor")
        return started

    async def stop_stranger(self, _pid, _started, marker):
        """Stand where `process.stop_stranger` stands: end what an earlier life left under this mark."""
        life = self._world.life
        life.step("before a stranger's end")
        found = self.living.pop(marker, None)
        if found is None:
            return 0
        self._world.trace.note("stranger ended", turn=marker)
        found.over.set()
        await asyncio.sleep(0.2)
        life.step("after a stranger's end")
        return 1

    def hears(self, one):
        """Whether the life that started it still reads its output."""
        life = self._born_in[one.pid]
        return not life.is_dead

    def thread_of(self, one):
        """Return the thread that a run names: the one asked for, or a new one."""
        asked = one.codec._request.resume
        if asked is not None:
            return asked
        self._threads += 1
        return str(uuid.UUID(int=self._threads, version=4))

    def ended(self, one):
        """The process is no more."""
        one.over.set()
        if self.living.get(one.marker) is one:
            del self.living[one.marker]
