"""A real sentinel that meets the same error of our own again and again, over restarts: 70, an obituary, and life after it."""

import sqlite3

from tests.fakes.town import COMMAND, until

# The sentinel with one broken line in it: what prepares a turn fails, as a bug would make it fail.
_BROKEN = """
import sys
from sentinel.cli import main
from sentinel.daemon.turn import Turner

async def broken(*_):
    raise ZeroDivisionError("a bug")

Turner._prepare = broken
sys.exit(main.run(sys.argv[1:]))
"""


def test_five_times_over_restarts_is_the_end_and_started_again_it_lives(town, monkeypatch):
    place = town.place()
    whole = list(COMMAND)
    monkeypatch.setattr("tests.fakes.town.COMMAND", [COMMAND[0], "-c", _BROKEN])
    place.start()
    question = place.ask("the poison")
    until(lambda: place.rows("SELECT times FROM crashes"), "the first of them")
    place.kill()  # it does not count, and it forgets nothing
    before = place.rows("SELECT times FROM crashes")[0][0]
    for _ in range(5 - before):
        made_ready(place, question)
        place.start(wait=False)
        times = before = before + 1
        until(lambda times=times: times_met(place) >= times, "one more")
        if place.process.poll() is None and times_met(place) < 5:
            place.kill()

    assert place.process.wait(30) == 70
    goodbye = place.own()[-1]
    assert "going offline for good (bug)" in goodbye["text"]
    assert not goodbye["mentions"]
    assert b"offline (crash-loop)" in place.verb("status", str(place.home)).stdout

    monkeypatch.setattr("tests.fakes.town.COMMAND", whole)
    place._connections_before = place._connections()
    place.start()
    other = place.ask("and another one")
    place.until_answered(other)
    until(lambda: "I am back" in place.own()[-1]["text"], "the notice that it is back")
    assert place.state_of(question) == "parked"
    place.close()


def times_met(place):
    rows = place.rows("SELECT times FROM crashes")
    return rows[0][0] if rows else 0


def made_ready(place, question):
    """Do not wait out the backoff: this is the clock that a test with real processes cannot step."""
    with sqlite3.connect(place.home / "state.db") as db:
        db.execute("UPDATE triggers SET ready_at = 0 WHERE message_id = ?", (question,))
    db.close()
