"""A journal on disk, a fake room, and a deliverer between them."""

from dataclasses import dataclass, field

import pytest

from sentinel.bridge.deliver import Deliverer
from sentinel.core.model import Kind, Outgoing
from sentinel.core.outcome import Usage
from sentinel.core.ports import NonceMemory
from sentinel.store.inbox import Taken
from sentinel.store.store import open_store
from sentinel.store.threads import Completed
from tests.fakes.fake_clock import FakeClock
from tests.fakes.fake_room import FakeRoom, FakeServer


@dataclass
class Desk:
    """What a turn leaves for the delivery; `restart()` is a killed process and a new one."""

    path: object
    server: FakeServer
    gode: object
    ann: object
    cid: str
    clock: FakeClock = field(default_factory=FakeClock)

    def __post_init__(self):
        self.store = None
        self.restart()

    def restart(self):
        if self.store is not None:
            self.store.close()
        self.store = open_store(self.path)
        self.room = FakeRoom(self.server, self.gode.uid)
        self.deliverer = Deliverer(self.room, self.store.turns, self.gode, self.clock)

    def ask(self, *texts):
        """Let questions come in and wait."""
        asked = [self.server.say(self.ann, self.cid, text, mentions=(self.gode,)) for text in texts]
        taken = [Taken(one, "wake", "wake", wakes=True, resets_guard=False, keep=True) for one in asked]
        self.store.inbox.take(self.cid, taken, cursor=asked[-1].seq, keep_seen_from=0, now=1.0, first_mark=0)
        return asked

    def draft(self, asked, *texts, turn="turn"):
        """Bring a turn for these questions to `drafted`, one post a text."""
        ids = tuple(one.id for one in asked)
        self.store.turns.begin(
            turn, self.store.turns.triggers(ids), snapshot=asked[-1].seq, thread=None, now=1.0
        )
        posts = [
            Outgoing(text, f"nonce-{ids[0]}-{part}", answers=ids, hops=1) for part, text in enumerate(texts)
        ]
        self.store.turns.draft(turn, posts, Completed(None, Usage(), None, "h"), now=2.0)
        return turn

    async def deliver(self, turn="turn"):
        return await self.deliverer.deliver(self.store.turns.get(turn))

    def state(self, turn="turn"):
        return self.store.turns.get(turn).state

    def state_of(self, message):
        return self.store.turns.triggers([message.id])[0].state

    @property
    def said(self):
        return [one.text for one in self.server.messages(self.cid) if one.sender.uid == self.gode.uid]

    def forged(self, asked, text, *, part=0, answers=()):
        """Let another text of ours stand under the turn's nonce already."""
        nonce = f"nonce-{asked[0].id}-{part}"
        return self.server.post(self.gode.uid, self.cid, Outgoing(text, nonce, answers=answers))


@pytest.fixture
def make_desk(tmp_path):
    made = []

    def make(memory=NonceMemory.FOR_GOOD):
        server = FakeServer(nonce_memory=memory, nonce_window_s=60.0)
        ann, gode = server.account("ann"), server.account("Gode", Kind.PERSONA)
        made.append(Desk(tmp_path, server, gode, ann, server.conversation("lab", ann, gode)))
        return made[-1]

    yield make
    for one in made:
        one.store.close()


@pytest.fixture
def desk(make_desk):
    return make_desk()
