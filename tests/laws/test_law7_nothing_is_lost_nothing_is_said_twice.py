"""Law 7: whatever is killed, cut or restarted, at any instant: exactly once on a room that keeps our nonce for good;
elsewhere at most once, and a human is asked.

Here a whole sentinel lives, is killed and starts again on a stepped clock, with faults drawn by hypothesis. The same
with real processes: tests/faults. One delivery, act by act: tests/bridge/test_deliver.py.
"""

import asyncio
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sentinel import process
from sentinel.core.outcome import Failure, FailureClass
from sentinel.core.ports import NonceMemory
from tests.fakes.fake_clock import pass_time, stepped, until
from tests.fakes.fake_room import drop_after, drop_before, late_visibility, rate_limited
from tests.fakes.stage import Stage

CRASH = Failure(FailureClass.CRASH, "x")
FAULTS = {
    "drop_after": drop_after,
    "drop_before": drop_before,
    "late": lambda: late_visibility(3),
    "rate": lambda: rate_limited(1.0),
}
EVENTS = st.one_of(
    st.tuples(st.just("ask"), st.integers(1, 3)),
    st.tuples(st.just("wait"), st.floats(0.0, 20.0)),
    st.tuples(st.just("kill"), st.booleans()),
    st.tuples(st.just("line"), st.none()),
    st.tuples(st.just("post"), st.sampled_from(sorted(FAULTS))),
    st.tuples(st.just("read"), st.sampled_from(["history", "find_by_nonce", "members", "conversations"])),
    st.tuples(st.just("fail"), st.none()),
)


@pytest.fixture(autouse=True)
def _no_adoption(monkeypatch):
    monkeypatch.setattr(process, "adopt_orphans", lambda: None)


async def live(stage, events):
    """Play the events; return the questions."""
    asked = []
    stage.start()
    await until(lambda: stage.room.connected)
    for kind, what in events:
        match kind:
            case "ask":
                asked += [stage.ask(f"question {len(asked) + one}") for one in range(what)]
            case "wait":
                await pass_time(what)
            case "kill":
                await stage.kill()
                await (pass_time(30) if what else asyncio.sleep(0))
                stage.start()
            case "line":
                stage.room.cut_doorbell()
            case "post":
                stage.room.faults.on("post", FAULTS[what]())
            case "read":
                stage.room.faults.on(what, drop_before())
            case "fail":
                stage.script.append(CRASH)
    return asked


@given(events=st.lists(EVENTS, max_size=14))
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@stepped
async def test_every_question_is_answered_exactly_once(events):
    with tempfile.TemporaryDirectory() as folder:
        stage = Stage(Path(folder))
        asked = await live(stage, events)
        await until(lambda: all(stage.state_of(one) == "verified" for one in asked))
        await stage.kill()

        assert [len(stage.answers_to(one)) for one in asked] == [1] * len(asked)


@given(
    events=st.lists(EVENTS, max_size=14),
    memory=st.sampled_from([NonceMemory.BOUNDED, NonceMemory.STORED, NonceMemory.NONE]),
)
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@stepped
async def test_on_a_room_that_may_forget_at_most_once_and_a_human_is_asked(events, memory):
    with tempfile.TemporaryDirectory() as folder:
        stage = Stage(Path(folder), nonce_memory=memory)
        asked = await live(stage, events)
        await until(lambda: all(stage.state_of(one) in {"verified", "needs_human"} for one in asked))
        doubtful = [one for one in asked if stage.state_of(one) == "needs_human"]
        await stage.kill()

        counts = {one.id: len(stage.answers_to(one)) for one in asked}
        assert max(counts.values(), default=0) <= 1
        assert all(counts[one.id] == 1 for one in asked if one not in doubtful)


@stepped
async def test_late_and_doubled_pages_change_nothing():
    with tempfile.TemporaryDirectory() as folder:
        stage = Stage(Path(folder))
        async with stage.running():
            questions = [stage.ask(f"q{number}") for number in range(5)]
            await stage.until_answered(*questions)
            for _ in range(4):
                stage.room.cut_doorbell()
                stage.room.ring(stage.cid, 1)
                await pass_time(3)

        assert [len(stage.answers_to(one)) for one in questions] == [1] * 5
