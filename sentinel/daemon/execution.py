"""One run of an executor: started, recorded, watched, over. Source: spec 02 section 5 ("The runner").

`running` is in the journal before this begins; the pid is there as soon as there is one, so that a later start can find
and stop what outlived us.
"""

import asyncio
import contextlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sentinel import process
from sentinel.core.codec import Codec, EndedBy, Event, ExitStatus, ThreadStarted, TurnRequest, Unknown
from sentinel.core.launched import Launched
from sentinel.core.outcome import Failure, FailureClass, Outcome
from sentinel.core.ports import Clock
from sentinel.daemon.case import Case, secrets_of
from sentinel.daemon.ends import ended_by_us
from sentinel.daemon.far import FarSide, launched
from sentinel.daemon.log import Log
from sentinel.home.environment import child_environment, launcher_environment
from sentinel.home.executors import ADAPTERS
from sentinel.home.show import LAST_RUN
from sentinel.home.write import put
from sentinel.store.store import Store


@dataclass(slots=True)
class Running:
    """The turn that runs now, for `/stop`, `/status` and presence."""

    turn_id: str
    cid: str
    since: float
    child: process.Turn | None = None
    stop_by: EndedBy | None = None


class Execution:
    """Runs executors of one persona, one at a time."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        log: Log,
        *,
        far: FarSide,
        on_running: Callable[[Running], None],
    ) -> None:
        self._store, self._clock, self._log, self._far = store, clock, log, far
        self._on_running = on_running
        self._lingering: process.Turn | None = None
        self._shown: dict[str, str] = {}

    async def gone(self) -> None:
        """Wait until nothing of the last executor's tree lives."""
        if self._lingering is not None:
            await self._lingering.gone()
            self._lingering = None

    async def run(self, case: Case, request: TurnRequest, running: Running) -> Outcome:
        """Start the executor and wait for its outcome, whatever becomes of it."""
        persona = case.persona
        adapter = ADAPTERS[persona.adapter]
        codec = adapter.codec(request)
        clean: tuple[Path, ...] = ()
        await self.gone()  # a thread has one writer: the last executor must be over
        if persona.far is None:
            clean = _absent(adapter.litter, Path(persona.cwd))
        else:
            codec = launched(codec, persona, adapter, case.folder)
            away = await self._far.settled(but=case.turn_id)
            if away is not None:
                return away
            self._far.began(case.turn_id, persona)
        if running.stop_by is not None:  # told to end while the last executor was still going
            return ended_by_us(running.stop_by)
        command: list[str] = []
        try:
            child = await self._start(case, codec, on_exec=command.append)
        except process.SpawnFailed as failed:
            if failed.is_passing:  # this machine is short of something just now: no proof of anything
                return Failure(FailureClass.UNAVAILABLE, str(failed))
            return codec.outcome(ExitStatus(None, EndedBy.SPAWN), stderr=str(failed), now=self._local_now())
        self._lingering = running.child = child
        if running.stop_by is not None:
            child.request_stop(running.stop_by)
        await self._record(case, child, command[0])
        self._on_running(running)
        outcome = await self._watch(case, child, codec)
        if isinstance(outcome, Failure):
            await self._tidy(case, child, clean)
        return outcome

    async def _start(self, case: Case, codec: Codec, *, on_exec: Callable[[str], None]) -> process.Turn:
        persona, limits = case.persona, case.persona.limits
        case.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if persona.far is None and case.outbox is not None:
            Path(case.outbox).mkdir(mode=0o700, exist_ok=True)
        return await process.start(
            codec,
            cwd=persona.cwd if persona.far is None else "/",
            env=child_environment(persona, case.folder) if persona.far is None else launcher_environment(),
            marker=case.turn_id,
            limits=process.RunLimits(
                silence_s=limits.silence_s,
                linger_s=limits.linger_s,
                total_s=limits.turn_s,
                output_bytes=limits.output_bytes,
            ),
            secrets=secrets_of(persona),
            on_event=lambda event: self._on_event(case.turn_id, event),
            on_exec=on_exec,
            meant=codec.meant() if isinstance(codec, Launched) else (),
        )

    async def _record(self, case: Case, child: process.Turn, command: str) -> None:
        """Keep who runs: in the journal, for a start after our own end; in the log; beside the home's settings."""
        self._store.turns.spawned(
            case.turn_id, pid=child.pid, started=child.started, command=command, now=self._now()
        )
        self._log.info("executor started", turn=case.turn_id, cid=case.cid, pid=child.pid, command=command)
        await self._show_run(case, command)

    async def _watch(self, case: Case, child: process.Turn, codec: Codec) -> Outcome:
        finished = await child.result()
        outcome = codec.outcome(finished.status, stderr=finished.stderr, now=self._local_now())
        self._log.info(
            "executor ended",
            turn=case.turn_id,
            code=finished.status.code,
            ended_by=finished.status.ended_by.value,
            unknown=finished.unknown,
            outcome=outcome.kind.value if isinstance(outcome, Failure) else "answer",
        )
        return outcome

    async def _tidy(self, case: Case, child: process.Turn, clean: Sequence[Path]) -> None:
        """Remove the empty folders that a cut-off executor leaves behind: only those that were not there before."""
        await child.gone()
        for folder in clean:
            with contextlib.suppress(OSError):  # absent, or somebody put something into it: then it is theirs
                folder.rmdir()
                self._log.info("tidied", turn=case.turn_id, folder=str(folder))

    def _local_now(self) -> datetime:
        """Return the present in this machine's zone: executors tell their reset times in it."""
        return self._clock.now().astimezone()

    async def _show_run(self, case: Case, command: str) -> None:
        """Leave what was really used for `sentinel persona show` (law 1); written only when it changed."""
        used = {"adapter": case.persona.adapter, "model": case.persona.model, "command": command}
        if used == self._shown:
            return
        self._shown = used
        record = json.dumps({"at": self._clock.now().isoformat(timespec="seconds"), **used}) + "\n"
        with contextlib.suppress(OSError):  # a full disk must not end a turn for the sake of a record
            await asyncio.to_thread(put, case.home, LAST_RUN, record.encode())

    def _on_event(self, turn_id: str, event: Event) -> None:
        match event:
            case ThreadStarted(thread):
                self._store.turns.tentative_thread(turn_id, thread)
            case Unknown(what):
                self._log.info("unknown event", turn=turn_id, what=what[:200])
            case _:
                pass

    def _now(self) -> float:
        return self._clock.now().timestamp()


def _absent(names: Sequence[str], folder: Path) -> tuple[Path, ...]:
    return tuple(folder / name for name in names if not (folder / name).exists())
