"""An executor's codec, spoken through a launcher to another user's side. Pure.

The inner codec keeps its protocol: the prompt goes in, events come out, only the way there differs. What the launcher itself
says is read from its exit code: 255 is ssh's "not reached", which is an outage; 128 + n is signal n of the executor.
Source: docs/launcher.md; spec 02 section 2 "Launcher protocol".
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from sentinel.core.codec import Codec, EndedBy, Event, ExitStatus, StopStep
from sentinel.core.evidence import evidence_of
from sentinel.core.far import OUT_OF_REACH
from sentinel.core.outcome import Failure, FailureClass, Outcome

_BY_SIGNAL: Final = 128
_STOOD_FOR_255: Final = 254
# The far side ends its own tree by the inner codec's steps; ours only tell it so, and leave it the time that they take.
_GRACE_S: Final = 3.0


class Launched:
    """The inner codec's turn, run as `user` by `launcher`."""

    def __init__(
        self,
        inner: Codec,
        *,
        launcher: str,
        user: str,
        cwd: str,
        env: Mapping[str, str],
        turn: str,
        limit_s: float,
        litter: Sequence[str],
    ) -> None:
        self._inner, self._launcher, self._user, self._cwd = inner, launcher, user, cwd
        steps = [[step.signal, step.wait_s] for step in inner.stop]
        self._header: dict[str, Any] = {
            "argv": list(inner.argv()),
            "cwd": cwd,
            "env": {**inner.env(), **env},
            "turn": turn,
            "user": user,
            "stop": steps,
            "limit_s": limit_s,
            "litter": list(litter),
        }

    def argv(self) -> tuple[str, ...]:
        """Return the launcher's own arguments: nothing of the turn stands in them."""
        return (self._launcher, "--run")

    def meant(self) -> tuple[str, ...]:
        """Return what will run on the far side, for the `exec:` line."""
        return (f"[as {self._user} in {self._cwd}]", *self._inner.argv())

    def env(self) -> Mapping[str, str]:
        """Return nothing: the executor's environment travels in the header, the launcher needs none of it."""
        return {}

    def to_send(self) -> bytes:
        """Return the header's line and then the prompt."""
        return json.dumps(self._header).encode() + b"\n" + self._inner.to_send()

    def receive(self, data: bytes) -> list[Event]:
        """Hand the executor's own output on."""
        return self._inner.receive(data)

    def outcome(self, status: ExitStatus, *, stderr: str, now: datetime) -> Outcome:
        """Decide as the inner codec does, once it is known who it was that ended."""
        code = status.code
        if code == OUT_OF_REACH and status.ended_by is EndedBy.ITSELF:
            why = evidence_of(stderr) or "the launcher said 255"
            return Failure(FailureClass.UNAVAILABLE, f"the other user's side was lost: {why}")
        if code == _STOOD_FOR_255:
            status = replace(status, code=OUT_OF_REACH)
        elif code is not None and _BY_SIGNAL < code < _STOOD_FOR_255:
            status = replace(status, code=_BY_SIGNAL - code)
        return self._inner.outcome(status, stderr=stderr, now=now)

    @property
    def stop(self) -> tuple[StopStep, ...]:
        """Tell the launcher to end; the far side then takes the executor's own steps, and ours wait for them."""
        return (StopStep("SIGTERM", sum(step.wait_s for step in self._inner.stop) + _GRACE_S),)
