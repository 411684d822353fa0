"""TERM: no more turns, a grace for the running one, then its tree; interrupted and not failed (spec 02 section 3)."""

import time

from tests.fakes.town import alive, until


def test_a_turn_that_outlasts_its_grace_is_interrupted_and_run_again(town, waiting):
    place = town.place(adapter="codex", executor=waiting.path, grace_s=0.5)
    place.start()
    question = place.ask()
    until(lambda: place.turn_of(question)[1] and len(waiting.pids) == 2, "executor and child")

    begun = time.monotonic()
    assert place.term() == 0
    took_s = time.monotonic() - begun

    assert place.turn_of(question)[0] == "interrupted"
    assert place.rows("SELECT state, failures, cuts FROM triggers") == [("seen", 0, 1)]
    assert took_s >= 0.5
    assert not any(alive(one) for one in waiting.pids)
    assert place.own() == []
    assert not (place.home / "control.sock").exists()

    waiting.go()
    place.start()
    place.until_answered(question)
    assert len(place.answers_to(question)) == 1
    assert waiting.runs == 2
    assert "cut off" in (waiting.folder / "prompt").read_text()
    place.close()


def test_a_turn_that_ends_within_its_grace_is_answered(town, waiting):
    place = town.place(adapter="codex", executor=waiting.path, grace_s=15)
    place.start()
    question = place.ask()
    until(lambda: place.turn_of(question)[1], "the executor")
    place.process.terminate()
    until(lambda: "event='ending'" in place.said)
    late = place.ask("no more turns")
    waiting.go()

    assert place.term() == 0
    assert len(place.answers_to(question)) == 1
    assert place.answers_to(late) == []
    assert waiting.runs == 1


def test_a_second_sentinel_of_the_account_is_turned_away_whatever_its_home_is_called(town):
    place = town.place()
    place.start()
    other = place.root / "another" / "gode"
    other.parent.mkdir()
    other.mkdir(mode=0o700)
    for file in place.home.iterdir():
        if file.is_file() and not file.name.startswith("state.db"):
            (other / file.name).write_bytes(file.read_bytes())
            (other / file.name).chmod(0o600)

    done = place.run("run", str(other), place.cid)

    assert done.returncode == 75, done.stderr
    assert b"another sentinel already speaks for this account" in done.stderr
    question = place.ask()
    place.until_answered(question)
    assert not (other / "state.db").exists()
    place.close()
