"""The room of a simulated world: the fake server behind a network that delays, cuts, repeats and forgets.

How bad it is, is the server's `weather`; which call meets what, is drawn. What was sent may arrive long after its sender
died. Every call is a step of the life that makes it, before it is applied and after.
"""

import asyncio
from dataclasses import dataclass, replace
from datetime import timedelta

from sentinel.core.errors import RateLimited, Rejected, Unauthorized, Unavailable
from sentinel.core.model import Page
from sentinel.core.ports import Connected, Disconnected, Rang, Superseded
from sentinel.rooms.hoop_wire import TEXT_LIMIT_CHARS
from tests.fakes.fake_room import FakeRoom
from tests.fakes.fake_server import FakeServer, Line

CALL_LIMIT_S = 30.0


@dataclass
class Weather:
    """Probabilities, in a hundred calls, and switches."""

    lost_before: int = 0
    lost_after: int = 0
    busy: int = 0
    slow: int = 0
    late: int = 0
    echo: int = 0
    deaf: int = 0
    gone: bool = False
    refused: bool = False
    muted: bool = False
    forged: int = 0


CALM = Weather()
WEATHERS = {
    "calm": CALM,
    "lossy": Weather(lost_before=12, lost_after=12, busy=5, slow=15, late=15, echo=15, deaf=15),
    "losing-answers": Weather(lost_after=60, late=20),
    "busy": Weather(busy=60),
    "slow": Weather(slow=70, late=30),
    "deaf": Weather(deaf=90, echo=20),
    "gone": Weather(gone=True),
    "refuses-the-token": Weather(refused=True),
    "muted": Weather(muted=True),
    "two-hosts": Weather(forged=50, lost_after=10),
}


class SimServer(FakeServer):
    """The fake server with a history that can be lost, and messages that were sent a while ago."""

    def __init__(self, **more):
        super().__init__(**more)
        self.weather = CALM
        self.lost_ids = set()

    def restore(self, cid, keep):
        """Go back to an older backup of one conversation: only its first `keep` messages are left."""
        conversation = self._conversations[cid]
        gone = conversation.messages[keep:]
        del conversation.messages[keep:]
        self.lost_ids.update(one.id for one in gone)
        for line in list(self.lines):
            line.queue.put_nowait(Disconnected("the server was restored", 0.0))
        return len(gone)

    def say_as(self, sender, cid, outgoing, *, ago_s=0.0, hidden_reads=0):
        """Post as somebody, `ago_s` seconds ago by the server's clock."""
        message = self.post(sender.uid, cid, outgoing, hidden_reads=hidden_reads)
        if ago_s:
            aged = replace(message, sent_at=message.sent_at - timedelta(seconds=ago_s))
            messages = self._conversations[cid].messages
            messages[messages.index(message)] = message = aged
        return message

    def show_everything(self):
        """Let what is hidden be seen."""
        self._hidden.clear()

    def is_member(self, cid, account):
        return account.uid in self._conversations[cid].members

    def conversation_ids(self):
        return tuple(self._conversations)


class SimRoom(FakeRoom):
    """The sentinel's view of it, in one life."""

    def __init__(self, world, life, uid):
        super().__init__(world.server, uid)
        self._world, self._life, self._dice = world, life, world.dice("network")

    async def doorbells(self):
        reconnects = 0
        while True:
            try:
                await self._do("doorbells", lambda: None)
            except Unauthorized:
                raise
            except (Unavailable, RateLimited) as away:
                yield Disconnected(str(away), 2.0)
                await asyncio.sleep(2.0 + 3.0 * self._dice.random())
                continue
            line = Line(self.uid)
            self.server.connect(line)
            self._line = line
            yield Connected(reconnects)
            reconnects += 1
            while not isinstance(bell := await line.queue.get(), Disconnected):
                for one in self._as_heard(bell):
                    yield one
                if isinstance(bell, Superseded):
                    return
            self.server.disconnect(line)
            yield bell

    def _as_heard(self, bell):
        """A ring may get lost, come twice, or come with nothing behind it."""
        self._life.must_live()
        weather = self.server.weather
        if not isinstance(bell, Rang):
            return [bell]
        if self._draws(weather.deaf, "ring lost"):
            return []
        if self._draws(weather.echo, "ring twice"):
            return [bell, bell]
        return [bell]

    async def history(self, cid, *, after, limit=200):
        page = await self._do(
            "history", lambda: self.server.page(self.uid, cid, after=after, limit=limit), cid=cid, after=after
        )
        if len(page.messages) > 1 and self._draws(self.server.weather.late, "short page"):
            keep = self._dice.randrange(1, len(page.messages))
            return Page(page.messages[:keep], has_more=True)
        return page

    async def post(self, cid, outgoing):
        if len(outgoing.text or "") > TEXT_LIMIT_CHARS:
            raise Rejected("the text is too long", status=413)
        weather = self.server.weather
        hidden = self._dice.randrange(1, 4) if self._draws(weather.late, "seen late") else 0
        if weather.muted:
            await self._arrive("post")
            raise Rejected("you may not post here", status=403)
        if self._draws(weather.forged, "another host was quicker"):
            self._world.lands(cid, replace(outgoing, text=f"{outgoing.text} (from the other host)"), 0)
        return await self._do("post", lambda: self._world.lands(cid, outgoing, hidden), cid=cid)

    async def _do(self, call, apply, /, **arguments):
        """One call: on its way, applied, and on its way back; each may fail, and the caller may die at each."""
        late_s = await self._arrive(call)
        if late_s:
            result = await self._late(apply, late_s)
        else:
            await self._wait(0.01)
            result = apply()
        self._life.step(f"after {call}")
        if self._draws(self.server.weather.lost_after, "answer lost"):
            await self._wait(0.5)
            raise Unavailable("the answer was lost: it may have been applied")
        return result

    async def _late(self, apply, late_s):
        """A call that is long under way arrives even if its caller has given up, or died."""

        async def land():
            await asyncio.sleep(late_s)
            return apply()

        landing = self._world.machine(land())
        await asyncio.wait({landing}, timeout=CALL_LIMIT_S)
        self._life.must_live()
        if not landing.done():
            raise Unavailable("no answer in time: it may have been applied")
        return landing.result()

    async def _arrive(self, call):
        """Raise what the network does to this call, or return how much later than usual it is applied."""
        self._life.step(f"before {call}")
        weather = self.server.weather
        if weather.refused:
            await self._wait(0.01)
            raise Unauthorized("the token is refused")
        if weather.gone or self._draws(weather.lost_before, "5xx before"):
            await self._wait(0.5)
            raise Unavailable("502")
        if self._draws(weather.busy, "429"):
            await self._wait(0.01)
            raise RateLimited("slow down", retry_after_s=self._dice.choice((1.0, 7.0, 40.0)))
        return self._dice.choice((2.0, 20.0, 45.0)) if self._draws(weather.slow, "slow call") else 0.0

    async def _wait(self, seconds):
        await asyncio.sleep(seconds)
        self._life.must_live()

    def _draws(self, in_a_hundred, what):
        if not in_a_hundred or self._dice.random() * 100 >= in_a_hundred:
            return False
        self._world.draws(f"network: {what}")
        return True
