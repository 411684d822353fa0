"""What the service manager is told: ready, alive, stopping. It hears "alive" only while the loops that do the work get on.

The protocol is systemd's `sd_notify`: datagrams of `KEY=VALUE` lines to `$NOTIFY_SOCKET`. Where there is no such socket (a
terminal, launchd) nothing is said. Feeding is no timer of its own: each round first rings the loops, so that an idle one goes
round once, and then looks whether every step got on (`core/liveness.py`). Source: spec 06 "Services"; security facts, section D.
"""

import asyncio
import contextlib
import socket
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass

from sentinel.core.liveness import feed_every_s, hung, step_limit_s
from sentinel.daemon.log import Log


@dataclass(frozen=True, slots=True)
class Notifier:
    """Speaks to the service manager. `watchdog_s`: it wants a sign of life that often; None: it does not."""

    address: str = ""
    watchdog_s: float | None = None

    @classmethod
    def of(cls, environment: MutableMapping[str, str], *, pid: int) -> "Notifier":
        """Return the notifier of this process, and take its variables away, so that no child ever speaks for us."""
        address = environment.pop("NOTIFY_SOCKET", "")
        period_us, meant = environment.pop("WATCHDOG_USEC", ""), environment.pop("WATCHDOG_PID", "")
        is_ours = meant in {"", str(pid)} and period_us.isdecimal() and int(period_us) > 0
        return cls(address, int(period_us) / 1e6 if address and is_ours else None)

    def tell(self, **fields: object) -> None:
        """Send one datagram; a manager that does not take it changes nothing here."""
        if not self.address:
            return
        text = "\n".join(f"{key}={value}" for key, value in fields.items())
        address = f"\0{self.address[1:]}" if self.address.startswith("@") else self.address
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
            line.setblocking(False)
            line.sendto(text.encode(), address)


class Pulse:
    """The steps that the loops are at, each with the moment it began or last got on."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        """`now_s`: a monotonic clock."""
        self.now_s = now_s
        self.steps: dict[str, float] = {}

    def on(self, step: str) -> None:
        """`step` begins, or got on."""
        self.steps[step] = self.now_s()

    def off(self, step: str) -> None:
        """`step` is over; what comes next may take as long as it likes."""
        self.steps.pop(step, None)


class Watchdog:
    """Feeds the manager's watchdog for one sentinel."""

    def __init__(
        self,
        notifier: Notifier,
        pulse: Pulse,
        *,
        ring: Callable[[], None],
        awaited: Callable[[], str | None],
        log: Log,
    ) -> None:
        """`ring` makes idle loops go round; `awaited` names the step that waits for a running executor, if one does."""
        self._notifier, self._pulse = notifier, pulse
        self._ring, self._awaited, self._log = ring, awaited, log

    async def run(self, period_s: float) -> None:
        """Feed for ever, as long as all get on; `period_s` is what the manager waits for a sign of life."""
        while True:
            self._ring()
            await asyncio.sleep(feed_every_s(period_s))
            self._look(step_limit_s(period_s))

    def _look(self, limit_s: float) -> None:
        awaited = self._awaited()
        if awaited is not None:  # the executor has time limits of its own; the step counts anew from its end
            self._pulse.on(awaited)
        late = hung(self._pulse.steps, now_s=self._pulse.now_s(), limit_s=limit_s)
        if late:
            self._log.error("hangs", steps=list(late))
            self._notifier.tell(STATUS=f"hangs: {', '.join(late)}")
        else:
            self._notifier.tell(WATCHDOG=1)
