"""A server that takes a post and dies, says wait, errs, or is gone: the room holds each answer exactly once (law 7)."""

import pytest

from tests.fakes.loopback_proxy import Proxy
from tests.fakes.town import Town, until


@pytest.fixture(scope="module")
def wire(town):
    made = Proxy(town.url)
    yield made
    made.close()


@pytest.fixture(scope="module")
def place(town, wire):
    made = town.place(server=wire.url)
    made.start()
    return made


def test_a_post_that_was_accepted_and_whose_response_is_lost(place, wire):
    gate = wire.stop("POST", "/text", after=True)
    question = place.ask()
    gate.wait()
    gate.cut()
    place.until_answered(question)

    assert len(place.answers_to(question)) == 1


def test_a_post_that_never_arrived(place, wire):
    gate = wire.stop("POST", "/text")
    question = place.ask()
    gate.wait()
    gate.cut()
    place.until_answered(question)

    assert len(place.answers_to(question)) == 1


def test_a_post_that_is_told_to_wait_waits(place, wire):
    gate = wire.stop("POST", "/text")
    question = place.ask()
    gate.wait()
    gate.reply(429, ("retry-after", "1"))
    again = wire.stop("POST", "/text")
    again.wait()
    told, ready = place.rows("SELECT started_at, ready_at FROM turns WHERE batch LIKE ?", f"%{question}%")[0]
    again.go()
    place.until_answered(question)

    assert ready - told >= 1.0
    assert len(place.answers_to(question)) == 1


@pytest.mark.parametrize("after", [False, True], ids=["not applied", "applied"])
def test_a_server_that_errs(place, wire, after):
    gate = wire.stop("POST", "/text", after=after)
    question = place.ask()
    gate.wait()
    gate.reply(500)
    place.until_answered(question)

    assert len(place.answers_to(question)) == 1


def test_a_readback_that_errs(place, wire):
    gates = [wire.stop("GET", "/by-nonce/") for _ in range(3)]
    question = place.ask()
    for gate in gates:
        gate.wait()
        gate.reply(502)
    place.until_answered(question)

    assert len(place.answers_to(question)) == 1


def test_a_server_that_is_gone_for_a_while(tmp_path):
    """Killed between question and answer; the answer is made once and waits for the server."""
    town = Town(tmp_path)
    proxy = Proxy(town.url)
    place = town.place(server=proxy.url)
    place.start()
    gate = proxy.stop("POST", "/text")
    question = place.ask()
    gate.wait()
    town.kill()
    gate.go()
    until(lambda: "delivery postponed" in place.said)
    assert place.turn_of(question)[0] == "sending"

    town.serve()
    later = place.ask("after the restart")
    place.until_answered(question, later)

    assert len(place.answers_to(question)) == len(place.answers_to(later)) == 1
    assert place.said.count("executor started") == 2
    town.close()
    proxy.close()


def test_another_text_under_the_nonce_is_adopted_and_not_joined(place, wire):
    """Another host of the same account was quicker."""
    gate = wire.stop("POST", "/text")
    question = place.ask()
    gate.wait()
    (nonce,) = place.rows(
        "SELECT nonce FROM parts JOIN turns ON turns.id = turn_id WHERE batch LIKE ?", f"%{question}%"
    )[0]
    body = {"text": "from another host", "nonce": nonce, "answers": [question]}
    assert place.person("Gode").post(f"/v1/conversations/{place.cid}/text", json=body).status_code == 201
    gate.go()
    place.until_answered(question)

    assert [one["text"] for one in place.answers_to(question)] == ["from another host"]
