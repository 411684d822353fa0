"""A restart of everything: the next turn goes on in the same thread, and still knows what was said there."""

import json
import signal
import uuid

import pytest

from tests.real.sentinel.real_house import spoken

pytestmark = pytest.mark.real
RESUME = {"codex": "resume", "claude": "--resume"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["TERM", "KILL"])
def test_after_a_restart_of_everything_the_same_thread_goes_on(house, number):
    cid, word = house.new_room("kept"), f"plover-{uuid.uuid4().hex[:8]}"
    house.model.does("text:text=I shall remember it.")
    house.until_answered(house.ask(cid, f"the code word is {word}"))
    thread, ledgers = house.thread(cid), house.ledgers()

    house.end_everything(number)
    house.start_everything()
    house.model.does("text:text=I know the word.")
    question = house.ask(cid, "do you still know the code word?")
    house.until_answered(question)

    *history, prompt = spoken(house.model.requests()[-1])
    (turn,) = house.turns(question)
    assert any(word in one for one in history)
    assert any("I shall remember it." in one for one in history)
    assert word not in prompt
    assert house.thread(cid) == turn["thread"] == thread
    assert f" {RESUME[house.kind]} {thread} " in turn["exec"]
    assert house.ledgers() == ledgers
    assert [thread in one.name for one in ledgers].count(True) == 1
    (ledger,) = [one for one in ledgers if thread in one.name]
    assert word in ledger.read_text()
    assert "I know the word." in ledger.read_text()
    assert [one["text"] for one in house.own(cid)] == ["I shall remember it.", "I know the word."]


def test_what_was_asked_while_everything_was_down_but_the_server_is_answered_once(house):
    cid = house.new_room("patient")
    house.until_answered(house.ask(cid, "first"))
    house.end(signal.SIGKILL)
    question = house.ask(cid, "are you there?")
    house.start()

    house.until_answered(question)

    assert len(house.own(cid)) == 2


def test_a_first_turn_that_was_cut_off_is_run_again_and_answered_once(house):
    """claude's session has our id before the spawn, codex names its own: killed at once, neither may lose the message."""
    cid = house.new_room("cut at once")
    house.model.always("hang_headers")
    question = house.ask(cid, "hello?")
    house.until_running(question)
    house.end(signal.SIGKILL)
    house.model.always("text:text=here I am")
    house.start()

    house.until_answered(question)

    assert house.classes(question) == ["interrupted", None]
    assert [one["text"] for one in house.own(cid)] == ["here I am"]
    assert "An earlier attempt:" not in json.dumps(spoken(house.model.requests()[-1]))
