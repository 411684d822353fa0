"""`kill -9` of a real sentinel in every state of its journal: the room holds the answer exactly once (law 7)."""

import random
import time

import pytest

from tests.fakes.town import alive, until


def in_running(place, proxy, waiting):
    question = place.ask()
    until(lambda: place.turn_of(question)[1], "the executor's pid")
    return question, waiting.go


def in_drafted(place, proxy, waiting):
    """While another delivery stands in the way, an answer waits as a draft."""
    status = proxy.stop("POST", "/text")
    place.ask("/status")
    status.wait()
    waiting.go()
    question = place.ask()
    place.until_turn(question, "drafted")
    return question, status.cut


def _at(state, method, part, *, after=False):
    def arrange(place, proxy, waiting):
        waiting.go()
        gate = proxy.stop(method, part, after=after)
        question = place.ask()
        gate.wait()
        assert place.turn_of(question)[0] == state
        return question, gate.cut

    return arrange


def in_verified(place, proxy, waiting):
    waiting.go()
    question = place.ask()
    place.until_turn(question, "verified")
    return question, lambda: None


STATES = {
    "running": in_running,
    "drafted": in_drafted,
    "sending, not arrived": _at("sending", "POST", "/text"),
    "sending, arrived": _at("sending", "POST", "/text", after=True),
    "posted": _at("posted", "GET", "/by-nonce/"),
    "posted, read but not heard": _at("posted", "GET", "/by-nonce/", after=True),
    "verified": in_verified,
}


@pytest.mark.parametrize("arrange", STATES.values(), ids=STATES)
def test_killed_in_any_state_the_room_holds_the_answer_exactly_once(town, proxy, waiting, arrange):
    place = town.place(adapter="codex", executor=waiting.path, server=proxy.url)
    place.start()
    question, release = arrange(place, proxy, waiting)

    place.kill()
    release()
    place.start()
    place.until_answered(question)
    later = place.ask("and another one")
    place.until_answered(later)

    assert len(place.answers_to(question)) == len(place.answers_to(later)) == 1
    place.close()


def test_an_executor_that_outlived_its_sentinel_is_stopped_before_the_rerun(town, waiting):
    """Its child too, which had fled into a session of its own."""
    place = town.place(adapter="codex", executor=waiting.path)
    place.start()
    question = place.ask()
    until(lambda: place.turn_of(question)[1] and len(waiting.pids) == 2, "executor and child")
    place.kill()
    orphans = waiting.pids
    assert all(alive(one) for one in orphans)

    waiting_runs = waiting.runs
    place.start()
    until(lambda: waiting.runs == waiting_runs + 1, "the rerun")
    assert waiting.outlived == []
    assert not any(alive(one) for one in orphans)

    waiting.go()
    place.until_answered(question)
    assert len(place.answers_to(question)) == 1
    place.close()
    assert not any(alive(one) for one in waiting.pids)


def killed_at_random(town, seed, *, questions, kills):
    dice = random.Random(seed)
    place = town.place()
    place.start()
    asked = []
    for _ in range(kills):
        asked += [place.ask(f"question {len(asked)}") for _ in range(dice.randint(1, questions))]
        time.sleep(dice.uniform(0.0, 0.12))  # this is the dice, not a wait for something
        place.kill()
        place.start()
    place.until_answered(*asked)
    assert [len(place.answers_to(one)) for one in asked] == [1] * len(asked)
    place.close()


def test_killed_at_any_time_each_question_is_answered_exactly_once(town):
    killed_at_random(town, 1, questions=3, kills=3)


@pytest.mark.real
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(10, 22))
def test_killed_at_many_more_times(town, seed):
    killed_at_random(town, seed, questions=4, kills=8)
