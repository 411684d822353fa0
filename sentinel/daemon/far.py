"""The far side of a persona's turns: files brought there, and proof that nothing of a turn is left there.

An executor that runs as another user is not in our process tree, so its end is asked for and confirmed by the launcher's
`--stop`. A turn whose end is not confirmed stays on the list, and nothing new begins there before (one writer a thread).
Source: docs/launcher.md; spec 02 sections 2 and 4.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

from sentinel.bridge.fetch import Fetched
from sentinel.bridge.outbox import FOLDER, File, Found
from sentinel.core.codec import Adapter, Codec
from sentinel.core.launched import Launched
from sentinel.core.outcome import Failure, FailureClass
from sentinel.core.persona import Persona
from sentinel.daemon.log import Log
from sentinel.home import far_side
from sentinel.home.environment import child_environment
from sentinel.process import MARKER, reap_orphans
from sentinel.store.store import Store

_OPEN = "far_open"
_LINGER_S = 6.0
_OVERTIME_S = 60.0
"""How much later than ours the far side's own limit ends a turn, should nobody be left to end it."""


def launched(codec: Codec, persona: Persona, adapter: Adapter, folder: Path) -> Launched:
    """Return the codec as it is spoken through the persona's launcher; `folder` is the turn's own, named after it."""
    return Launched(
        codec,
        launcher=persona.binary,
        user=persona.user,
        cwd=persona.cwd,
        env={**child_environment(persona, folder), MARKER: folder.name},
        turn=folder.name,
        limit_s=persona.limits.turn_s + _OVERTIME_S,
        litter=adapter.litter,
    )


class FarSide:
    """What was begun there and is not known to be over."""

    def __init__(self, store: Store, log: Log) -> None:
        self._store, self._log = store, log
        self._open: dict[str, str] = json.loads(store.meta(_OPEN) or "{}")
        self._settling: asyncio.Task[None] | None = None

    def began(self, turn_id: str, persona: Persona) -> None:
        """Note that something of this turn is, or may be, on the other side."""
        if persona.far is not None and self._open.get(turn_id) != persona.binary:
            self._open[turn_id] = persona.binary
            self._keep()

    def over(self, after: Callable[[], Awaitable[None]]) -> None:
        """The turn has ended here: have its end there confirmed, while other work goes on.

        An executor that answered may linger, so `after` (its end here) is waited for, but not for ever: what keeps it may be there.
        """
        if self._open and (self._settling is None or self._settling.done()):
            self._settling = asyncio.create_task(self._settle_after(after))
            self._settling.add_done_callback(_see)

    async def settled(self, *, but: str = "") -> Failure | None:
        """Return None when nothing of any turn but `but` lives there, else what keeps us from knowing it: an outage."""
        if self._settling is not None:
            await asyncio.wait([self._settling])
            self._settling = None
        return await self._settle(but)

    async def carry(self, fetched: Fetched, turn_id: str, persona: Persona) -> Fetched | Failure:
        """Bring the files of a block to the other side and name them as they are called there."""
        entries = list(fetched.block.entries)
        for place, entry in enumerate(entries):
            if entry.file is None:
                continue
            self.began(turn_id, persona)
            path = await far_side.put(persona, turn_id, Path(entry.file))
            if isinstance(path, Failure):
                return path
            entries[place] = replace(entry, file=path)
        return replace(fetched, block=replace(fetched.block, entries=tuple(entries)))

    async def fetch(self, turn_id: str, persona: Persona) -> Found:
        """Bring here what the executor left in its outbox there, before `--stop` forgets it.

        The answer stands: what the other side does not hand out is left, and never costs the answer.
        """
        names = await far_side.names(persona, turn_id, FOLDER)
        if isinstance(names, Failure):
            self._log.warning("the outbox is out of reach", turn=turn_id, why=names.evidence)
            return Found((), left=1)
        files: list[File] = []
        left, room_bytes = 0, persona.limits.media_bytes
        for name in names:
            data = None
            if len(files) < persona.limits.outbox_files:
                data = await far_side.get(persona, turn_id, f"{FOLDER}/{name}", cap_bytes=room_bytes)
            if not isinstance(data, bytes) or not data:
                left += 1
                continue
            room_bytes -= len(data)
            files.append(File(name, data))
        return Found(tuple(files), left)

    async def _settle_after(self, after: Callable[[], Awaitable[None]]) -> None:
        try:
            async with asyncio.timeout(_LINGER_S):
                await after()
        except TimeoutError:
            pass
        finally:
            await self._settle("")

    async def _settle(self, but: str) -> Failure | None:
        for turn_id, launcher in [one for one in self._open.items() if one[0] != but]:
            failure = await far_side.stop(launcher, turn_id)
            if failure is not None:
                self._log.warning("the end of a turn is not confirmed", turn=turn_id, why=failure.evidence)
                return Failure(FailureClass.UNAVAILABLE, f"turn {turn_id} may live on: {failure.evidence}")
            self._open.pop(turn_id, None)
            self._keep()
            reap_orphans()  # a sudo whose end came from there
        return None

    def _keep(self) -> None:
        """Make the list durable: a turn that outlives this process is ended before the next process begins anything there."""
        self._store.keep(_OPEN, json.dumps(self._open))


def _see(task: "asyncio.Task[None]") -> None:
    """Look at how it ended: what does not end is said by the next turn, which asks again."""
    if not task.cancelled():
        task.exception()
