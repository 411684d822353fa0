"""The fake room's fault switches do what their names say (its healthy behaviour: tests/contracts)."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from sentinel.core.errors import NonceConflict, RateLimited, Rejected, Unauthorized, Unavailable
from sentinel.core.model import Kind, Outgoing
from sentinel.core.ports import Connected, Disconnected, NonceMemory, Rang, Room, Superseded
from tests.fakes.fake_room import (
    FakeRoom,
    FakeServer,
    delay,
    drop_after,
    drop_before,
    forge,
    late_visibility,
    rate_limited,
    reject,
    unauthorized,
)

HELLO = Outgoing("hello", "n1")


class Lab:
    def __init__(self, **server):
        self.server = FakeServer(**server)
        self.ann = self.server.account("ann")
        self.gode = self.server.account("Gode", Kind.PERSONA)
        self.cid = self.server.conversation("lab", self.ann, self.gode)
        self.room = FakeRoom(self.server, self.gode.uid)


@pytest.fixture
def lab():
    return Lab()


def test_it_is_a_room(lab):
    room: Room = lab.room  # held by whoever runs a type checker over the tests

    assert room.traits.nonce_memory is NonceMemory.FOR_GOOD


@pytest.mark.parametrize(
    ("action", "error", "stored"),
    [
        pytest.param(drop_before(), Unavailable, [], id="drop-before"),
        pytest.param(drop_after(), Unavailable, ["hello"], id="drop-after"),
        pytest.param(rate_limited(2), RateLimited, [], id="429"),
        pytest.param(unauthorized(), Unauthorized, [], id="401"),
        pytest.param(reject(422), Rejected, [], id="422"),
        pytest.param(forge("forged"), NonceConflict, ["forged"], id="forged"),
        pytest.param(forge("forged", answer="lost"), Unavailable, ["forged"], id="forged-lost"),
        pytest.param(late_visibility(1), Unavailable, ["hello"], id="late"),
    ],
)
async def test_a_scripted_fault_happens_once(lab, action, error, stored):
    lab.room.faults.on("post", action)

    with pytest.raises(error):
        await lab.room.post(lab.cid, HELLO)

    assert lab.server.texts(lab.cid) == stored
    assert lab.room.faults.spent()


async def test_a_forged_message_can_be_handed_back_as_ours(lab):
    lab.room.faults.on("post", forge("forged", answer="stored"))

    posted = await lab.room.post(lab.cid, HELLO)

    assert (posted.text, posted.nonce, posted.sender) == ("forged", "n1", lab.gode)


async def test_late_visibility_hides_from_readback_and_history_alike(lab):
    lab.room.faults.on("post", late_visibility(2, lost=False))
    posted = await lab.room.post(lab.cid, HELLO)
    lab.server.say(lab.ann, lab.cid, "later")

    first = await lab.room.history(lab.cid, after=0)
    second = await lab.room.find_by_nonce(lab.cid, "n1")
    third = await lab.room.find_by_nonce(lab.cid, "n1")

    assert first.messages == ()  # a reader never skips a message that comes later
    assert second is None
    assert third == posted
    assert len((await lab.room.history(lab.cid, after=0)).messages) == 2


async def test_a_delay_holds_the_call_before_it_is_applied(lab):
    released = asyncio.Event()
    lab.room.faults.on("post", delay(released))
    posting = asyncio.create_task(lab.room.post(lab.cid, HELLO))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    before = lab.server.texts(lab.cid)

    released.set()
    await posting

    assert before == []
    assert lab.server.texts(lab.cid) == ["hello"]


async def test_gone_until_back(lab):
    lab.room.gone()
    with pytest.raises(Unavailable):
        await lab.room.who_am_i()

    lab.room.back()

    assert await lab.room.who_am_i() == lab.gode


async def test_always_holds_until_cleared(lab):
    lab.room.faults.always("history", rate_limited(1))
    for _ in range(3):
        with pytest.raises(RateLimited):
            await lab.room.history(lab.cid, after=0)

    lab.room.faults.clear("history")

    assert (await lab.room.history(lab.cid, after=0)).messages == ()


def test_a_fault_for_an_unknown_call_is_a_mistake_of_the_test(lab):
    with pytest.raises(ValueError):
        lab.room.faults.on("send", drop_after())


async def test_calls_are_recorded_with_their_arguments(lab):
    lab.room.faults.on("post", drop_before())
    with pytest.raises(Unavailable):
        await lab.room.post(lab.cid, HELLO)

    assert [one.arguments for one in lab.room.called("post")] == [{"cid": lab.cid, "outgoing": HELLO}]


async def test_a_cut_doorbell_loses_rings_and_reconnects_when_mended(lab):
    bells = lab.room.doorbells()
    assert await anext(bells) == Connected(0)
    lab.room.cut_doorbell(stay_down=True)
    lab.server.say(lab.ann, lab.cid, "lost ring")
    assert isinstance(await anext(bells), Disconnected)

    lab.room.mend_doorbell()

    assert await anext(bells) == Connected(1)
    lab.server.say(lab.ann, lab.cid, "heard")
    assert await anext(bells) == Rang(lab.cid, 2)
    await bells.aclose()
    assert not lab.room.connected


async def test_supersede_ends_the_doorbells(lab):
    bells = lab.room.doorbells()
    await anext(bells)

    lab.room.supersede()

    assert [one async for one in bells] == [Superseded()]


@pytest.mark.parametrize(
    ("memory", "texts", "found"),
    [
        (NonceMemory.FOR_GOOD, 1, True),
        (NonceMemory.BOUNDED, 1, True),
        (NonceMemory.STORED, 2, True),
        (NonceMemory.NONE, 2, False),
    ],
)
async def test_nonce_memory_is_a_switch(memory, texts, found):
    lab = Lab(nonce_memory=memory)
    await lab.room.post(lab.cid, HELLO)
    await lab.room.post(lab.cid, HELLO)

    assert len(lab.server.texts(lab.cid)) == texts
    assert (await lab.room.find_by_nonce(lab.cid, "n1") is not None) == found


async def test_a_bounded_nonce_is_forgotten_past_its_window():
    clock = [datetime(2026, 1, 1, tzinfo=UTC)]
    lab = Lab(nonce_memory=NonceMemory.BOUNDED, nonce_window_s=60, now=lambda: clock[0])
    await lab.room.post(lab.cid, HELLO)
    clock[0] += timedelta(seconds=61)

    await lab.room.post(lab.cid, HELLO)

    assert lab.server.texts(lab.cid) == ["hello", "hello"]
