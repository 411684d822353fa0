"""What a failed turn means, carried out: counters per message, outages, death, revival (spec 02 section 7; law 6)."""

import asyncio
import itertools
from datetime import timedelta

import pytest

from sentinel.core.outcome import Answer, Failure, FailureClass
from tests.fakes.fake_clock import pass_time, stepped, until
from tests.fakes.fake_room import delay, drop_before, reject

CRASH = Failure(FailureClass.CRASH, "it fell")
AUTH = Failure(FailureClass.AUTH, "401")
QUOTA = Failure(FailureClass.QUOTA, "limit reached")
AWAY = Failure(FailureClass.UNAVAILABLE, "no connection")
RATE = Failure(FailureClass.RATE, "429")


@stepped
async def test_two_messages_that_fail_once_each_are_not_two_failures_in_a_row(stage):
    stage.script = [CRASH, CRASH]
    async with stage.running():
        first = stage.ask("one")
        await until(lambda: stage.trigger(first) and stage.trigger(first).failures == 1)
        second = stage.ask("two")
        await until(lambda: stage.trigger(second) and stage.trigger(second).failures == 1)

        assert stage.trigger(first).failures == 1
        assert stage.notices == []


@stepped
async def test_a_batch_that_fails_counts_for_nobody_and_then_runs_alone(stage):
    stage.works.clear()
    async with stage.running():
        blocker = stage.ask("first")
        await until(lambda: stage.runs)
        several = [stage.ask(f"q{number}") for number in range(3)]
        await until(lambda: all(stage.state_of(one) == "seen" for one in several))
        stage.script = [Answer("a"), CRASH]
        stage.works.set()
        await stage.until_answered(blocker, *several)

        batches = [[one.id for one in case.messages] for case, _ in stage.runs]
        assert batches[1] == [one.id for one in several]
        assert batches[2:] == [[one.id] for one in several]
        assert [stage.trigger(one).failures for one in several] == [0, 0, 0]


@stepped
async def test_three_failures_are_one_notice_and_twelve_are_parked(stage):
    stage.script = [CRASH] * 12
    async with stage.running():
        question = stage.ask("the hard one")
        await until(lambda: stage.trigger(question) and stage.trigger(question).failures == 2)
        await pass_time(2)
        assert stage.notices == []
        await until(lambda: stage.trigger(question).failures == 3)
        await until(lambda: len(stage.notices) == 1)
        assert "keeps failing" in stage.notices[0]

        await until(lambda: stage.state_of(question) == "parked", within_s=20_000)
        await pass_time(2)

        assert len(stage.runs) == 12
        assert len(stage.notices) == 2


@stepped
async def test_a_parked_message_is_tried_once_more_after_the_next_success(stage):
    stage.script = [CRASH] * 12
    async with stage.running():
        hard = stage.ask("the hard one")
        await until(lambda: stage.state_of(hard) == "parked", within_s=20_000)
        easy = stage.ask("an easy one")
        await stage.until_answered(easy, hard)

        assert len(stage.runs) == 14


@stepped
async def test_waits_between_retries_grow_and_never_shrink(stage):
    stage.script = [CRASH] * 6
    async with stage.running():
        question = stage.ask()
        await stage.until_answered(question)

    waits = [(b - a).total_seconds() for a, b in itertools.pairwise(stage.run_at)]
    assert len(waits) == 6
    assert waits[0] >= 5
    assert all(later >= 2 * earlier - 0.5 for earlier, later in itertools.pairwise(waits))


@stepped
async def test_an_outage_holds_the_queue_counts_nobody_and_is_said_once(stage):
    stage.script = [AWAY] * 9
    async with stage.running():
        question = stage.ask("one")
        other = stage.ask("two")
        await until(lambda: len(stage.runs) >= 6)
        await pass_time(700)

        assert stage.trigger(question).failures == stage.trigger(other).failures == 0
        assert len(stage.notices) == 1
        assert "unavailable" in stage.notices[0]

        await stage.until_answered(question, other)
        assert stage.condition.hold is None
    assert len(stage.notices) == 1


@stepped
async def test_a_short_outage_is_not_said(stage):
    stage.script = [AWAY, AWAY]
    async with stage.running():
        question = stage.ask()
        await stage.until_answered(question)
        await pass_time(1000)

    assert stage.notices == []


@stepped
async def test_the_third_rate_limit_in_a_row_is_a_wall(stage):
    stage.script = [RATE] * 3
    async with stage.running():
        question = stage.ask()
        await until(lambda: stage.condition.death)
        await until(lambda: stage.notices)

        assert len(stage.runs) == 3
        assert "(rate)" in stage.notices[0]
        assert stage.trigger(question).failures == 0


@pytest.mark.parametrize("between", [AWAY, CRASH], ids=["outage", "crash"])
@stepped
async def test_rate_limits_that_are_not_in_a_row_are_no_wall(stage, between):
    stage.script = [RATE, RATE, between, RATE, RATE]
    async with stage.running():
        question = stage.ask()
        await stage.until_answered(question)

    assert stage.notices == []


@stepped
async def test_a_rate_limit_is_waited_out_as_told(stage):
    told = stage.clock.start + timedelta(seconds=120)
    stage.script = [Failure(FailureClass.RATE, "429", retry_at=told)]
    async with stage.running():
        question = stage.ask()
        await stage.until_answered(question)

        assert stage.clock.now() >= told


# Death.


@stepped
async def test_an_obituary_is_said_once_per_cause_and_conversation(stage):
    other = stage.server.conversation("other", stage.ann, stage.gode, stage.bob)
    stage.script = [AUTH] * 20
    async with stage.running():
        stage.ask("one")
        await until(lambda: stage.notices)
        stage.ask("two")
        await pass_time(3600)
        assert len(stage.notices) == 1
        assert stage.server.messages(other) == ()

        stage.ask("three", cid=other)
        await pass_time(3600)
        said = [one for one in stage.server.messages(other) if one.sender.uid == stage.gode.uid]

        assert len(stage.notices) == len(said) == 1
        assert all(one.mentions == () and not one.broadcast for one in said)
        assert stage.shown[0] == "dead"


@stepped
async def test_another_cause_is_another_obituary(stage):
    stage.script = [AUTH, QUOTA] + [QUOTA] * 9
    async with stage.running():
        stage.ask()
        await until(lambda: len(stage.notices) == 2, within_s=2000)

    assert "(auth)" in stage.notices[0]
    assert "(quota)" in stage.notices[1]


@stepped
async def test_a_dead_persona_probes_with_the_oldest_says_back_once_and_goes_on(stage):
    stage.script = [AUTH, AUTH]
    async with stage.running():
        first = stage.ask("one")
        await until(lambda: stage.condition.death)
        second = stage.ask("two")
        await stage.until_answered(first, second)
        await pass_time(10)

        assert [[one.id for one in case.messages] for case, _ in stage.runs[:3]] == [[first.id]] * 3
        assert [text for text in stage.notices if "back" in text] == [stage.notices[-1]]
        assert len(stage.notices) == 2
        assert stage.condition.death is None
        await until(lambda: stage.shown[0] == "idle")


@stepped
async def test_the_probe_waits_for_the_told_reset(stage):
    reset = stage.clock.start + timedelta(hours=5)
    stage.script = [Failure(FailureClass.QUOTA, "limit", retry_at=reset)]
    async with stage.running():
        question = stage.ask()
        await until(lambda: stage.notices)
        assert "17:00 UTC" in stage.notices[0]
        await until(lambda: stage.answers_to(question), within_s=6 * 3600)

        assert stage.clock.now() >= reset
    assert len(stage.runs) == 2


@pytest.mark.parametrize("failure", [CRASH, AWAY, RATE], ids=["crash", "outage", "rate"])
@stepped
async def test_a_probe_that_fails_otherwise_is_not_repeated_in_a_storm(stage, failure):
    stage.script = [AUTH] + [failure] * 40
    async with stage.running():
        stage.ask()
        await until(lambda: stage.condition.death)
        await until(lambda: len(stage.runs) == 2, within_s=2000)
        await pass_time(60)

        assert len(stage.runs) <= 3


@stepped
async def test_death_survives_a_restart_and_is_shown(stage):
    stage.script = [AUTH] * 3
    async with stage.running():
        stage.ask()
        await until(lambda: stage.notices)
    stage.server.presence.clear()

    async with stage.running():
        await pass_time(5)

        assert stage.shown[0] == "dead"
        assert len(stage.runs) == 1
    assert len(stage.notices) == 1


@stepped
async def test_an_obituary_whose_cause_is_over_before_it_was_sent_is_moot(stage):
    stage.script = [AUTH]
    async with stage.running():
        await pass_time(1)
        stage.room.faults.always("post", drop_before())
        stage.sentinel._postman._busy = _Held()
        question = stage.ask()
        await until(lambda: stage.condition.death)
        await pass_time(1)
        stage.room.faults.clear("post")
        stage.sentinel.commands.retry()
        await until(lambda: len(stage.runs) == 2)
        stage.sentinel._postman._busy.free.set()
        await stage.until_answered(question)
        await pass_time(5)

    assert stage.notices == []


class _Held:
    """The postman's lock, held until the test lets go."""

    def __init__(self):
        self.free = asyncio.Event()
        self._lock = asyncio.Lock()

    async def __aenter__(self):
        await self.free.wait()
        await self._lock.acquire()

    async def __aexit__(self, *_):
        self._lock.release()


# The gate at a turn.


@stepped
async def test_a_refusal_that_is_over_at_the_second_look_is_nothing(stage):
    async with stage.running():
        await pass_time(1)
        (stage.home.path / "model").rename(stage.home.path / "model.new")
        question = stage.ask()
        await pass_time(2)
        (stage.home.path / "model.new").rename(stage.home.path / "model")
        await stage.until_answered(question)

    assert stage.notices == []


@stepped
async def test_a_refusal_that_is_still_there_after_5_s_is_death(stage):
    async with stage.running():
        await pass_time(1)
        stage.home.remove("model")
        question = stage.ask()
        await pass_time(4)
        assert stage.condition.death is None
        await until(lambda: stage.condition.death, within_s=5)
        await until(lambda: stage.notices)
        assert "(missing)" in stage.notices[0]
        assert stage.runs == []

        stage.home.write("model", "m-1\n")
        stage.sentinel.commands.retry()
        await stage.until_answered(question)


@stepped
async def test_two_single_refusals_a_day_apart_are_not_two_in_a_row(stage):
    stage.script = [CRASH]
    async with stage.running():
        await pass_time(1)
        stage.home.remove("model")
        first = stage.ask("one")
        await pass_time(2)
        stage.home.write("model", "m-1\n")
        await until(lambda: len(stage.runs) == 1)
        stage.home.remove("model")
        await pass_time(8)

        assert stage.condition.death is None
        stage.home.write("model", "m-1\n")
        await stage.until_answered(first)


# Rooms that are away, or refuse.


@stepped
async def test_a_fetch_that_fails_holds_the_queue_and_counts_nobody(stage):
    async with stage.running():
        await pass_time(1)
        stage.sentinel._window.since = lambda *_: None
        question = stage.ask()
        stage.room.faults.on("history", delay(_set()), *[drop_before()] * 3)
        await until(lambda: stage.condition.hold)
        assert stage.condition.hold.cause is FailureClass.ROOM_UNAVAILABLE
        assert stage.runs == []
        await stage.until_answered(question)

        assert stage.trigger(question).failures == 0
        assert stage.notices == []


@stepped
async def test_a_hold_for_the_room_ends_as_soon_as_the_room_is_back(stage):
    async with stage.running():
        await pass_time(1)
        stage.sentinel._window.since = lambda *_: None
        question = stage.ask()
        stage.room.faults.on("history", delay(_set()), *[drop_before()] * 12)
        await until(lambda: stage.condition.hold and stage.condition.hold.attempts > 5)
        stage.room.faults.clear("history")
        stage.room.cut_doorbell()

        await until(lambda: stage.answers_to(question), within_s=3)


def _set():
    event = asyncio.Event()
    event.set()
    return event


@stepped
async def test_one_room_that_refuses_does_not_starve_the_others(stage):
    other = stage.server.conversation("other", stage.ann, stage.gode, stage.bob)
    stage.works.clear()
    async with stage.running():
        blocker = stage.ask("first")
        await until(lambda: stage.runs)
        lost = stage.ask("in a room that goes away", cid=other)
        await until(lambda: stage.state_of(lost) == "seen")
        stage.server.leave(other, stage.gode)
        stage.sentinel._window._tails.clear()
        waiting = stage.ask("in a room that stays")
        stage.works.set()

        await stage.until_answered(blocker, waiting)
        await until(lambda: stage.state_of(lost) == "rejected")
        assert stage.condition.hold is None


@stepped
async def test_an_answer_waits_for_its_room_and_is_not_made_again(stage):
    """What an executor did is done: a room that is away while the answer is cut into posts is no reason to run again."""
    long_answer = "word " * 40_000
    stage.script = [Answer(long_answer)]
    async with stage.running():
        await pass_time(1)
        stage.room.faults.on("upload", *[drop_before()] * 4)
        question = stage.ask()
        await stage.until_answered(question)

    assert len(stage.runs) == 1
    assert stage.own[-1].media is not None


@stepped
async def test_a_file_that_the_room_refuses_ends_visibly_and_keeps_the_body(stage):
    stage.script = [Answer("word " * 40_000)]
    async with stage.running():
        await pass_time(1)
        stage.room.faults.on("upload", reject(413))
        question = stage.ask()
        await until(lambda: stage.notices)

        assert stage.state_of(question) == "rejected"
        assert "(rejected)" in stage.notices[0]
        kept = list((stage.home.path / "turns").glob("*/answer.txt"))
        assert [one.read_text() for one in kept] == ["word " * 40_000]
        assert kept[0].stat().st_mode & 0o777 == 0o600


@stepped
async def test_a_refused_answer_is_one_notice_and_retry_makes_a_new_generation(stage):
    async with stage.running():
        await pass_time(1)
        stage.room.faults.on("post", reject(422))
        question = stage.ask()
        await until(lambda: stage.state_of(question) == "rejected")
        await until(lambda: len(stage.notices) == 1)
        assert stage.answers == []

        stage.sentinel.commands.retry(message_id=question.id)
        await stage.until_answered(question)

        assert stage.trigger(question).generation == 1
        assert len(stage.answers) == 1


@stepped
async def test_a_secret_in_an_answer_is_not_posted(stage):
    secret = (stage.home.path / "token").read_text().strip()
    stage.script = [Answer(f"the token is {secret}")]
    async with stage.running():
        question = stage.ask()
        await until(lambda: stage.notices)

        assert stage.state_of(question) == "needs_human"
    assert not [one for one in stage.own if secret in (one.text or "")]


@stepped
async def test_a_bug_of_ours_counts_for_the_message_and_ends_nothing(stage):
    stage.script = [ZeroDivisionError("a bug"), Answer("fine")]
    async with stage.running():
        question = stage.ask()
        await stage.until_answered(question)

        assert stage.trigger(question).failures == 1
    assert stage.log.of("a bug of ours")
