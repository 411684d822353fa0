"""Question in the room, answer in the room, by the real executor; and what the executor was given to do it."""

import json
import shlex

import pytest

from sentinel import proctree
from sentinel.app.wake import LEGS
from tests.real.sentinel.real_house import KEY, command_line, environment, until

pytestmark = pytest.mark.real
ALLOWED = {"PATH", "HOME", "USER", "LANG", "TMPDIR", "HOOP_TURN"}
SETTINGS = {  # of the codec; beside these and the allow-list only `<adapter>_env` speaks
    "codex": set(),
    "claude": {
        *("DISABLE_TELEMETRY", "DISABLE_ERROR_REPORTING", "DISABLE_AUTOUPDATER"),
        *("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "CLAUDE_CODE_MAX_RETRIES", "API_TIMEOUT_MS"),
    },
}
TOKENS = {  # of one turn, as the model server tells them
    "codex": {"input_tokens": 120, "cached_tokens": 20, "output_tokens": 30, "reasoning_tokens": 5},
    "claude": {"input_tokens": 150, "cached_tokens": 20, "output_tokens": 30, "reasoning_tokens": 0},
}


def usage(house):
    (row,) = json.loads(house.cli("usage", "gode", "--json"))
    return row


def test_a_question_gets_its_answer_exactly_once(house):
    house.model.does("text:text=It is done. @bob please look.")

    question = house.ask(house.room, "what of it?")
    answer = house.until_answered(question)

    assert house.texts(house.room) == ["what of it?", "It is done. @bob please look."]
    assert answer["reply_to"] == question["id"]
    assert answer["answers"] == [question["id"]]
    assert answer["mentions"] == [house.hoop.uid("bob")]


def test_why_names_the_decision(house):
    woke = house.ask(house.room, "you")
    did_not = house.ask(house.room, "not Gode", mention=False)
    house.until_answered(woke)
    until(lambda: house.rows("SELECT 1 FROM decisions WHERE message_id = ?", did_not["id"]), "it is decided")

    said = json.loads(house.cli("why", "gode", woke["id"], "--json"))
    also = json.loads(house.cli("why", "gode", did_not["id"], "--json"))

    assert (said["decision"], said["reason"], said["state"]) == ("wake", "wake", "verified")
    assert (also["decision"], also["reason"], also["state"]) == ("skip", "not-mentioned", None)


def test_usage_counts_the_tokens_of_each_turn_and_not_the_thread_again(house):
    """codex tells a running total of the thread: the second turn must cost as much as the first."""
    cid = house.new_room("count")
    for text in ("one", "two"):
        before = usage(house)
        house.until_answered(house.ask(cid, text))
        after = usage(house)

        assert after["turns"] - before["turns"] == 1
        assert {key: after[key] - before[key] for key in TOKENS[house.kind]} == TOKENS[house.kind]


def test_wake_reports_all_legs(house):
    token = house.base / "ann.token"
    token.touch(mode=0o600)
    token.write_text(house.hoop.account("ann")["token"])

    woken = json.loads(house.cli("wake", "gode", house.room, "--token-file", str(token), "--json"))

    assert [one["leg"] for one in woken["legs"]] == list(LEGS)
    times = [one["at_ms"] for one in woken["legs"]]
    assert None not in times
    assert times[4:] == sorted(times[4:])
    assert woken["answer_id"] in [one["id"] for one in house.own(house.room)]


def test_the_executor_gets_its_allow_list_and_its_exec_line_is_its_argv(house):
    """Law 1 and spec 02 section 5, read from the kernel: no room token, no room text, nothing of our own environment."""
    house.model.does("slow:secs=4")
    question = house.ask(house.room, "a question with the word marmot-81 in it")
    turn = house.until_running(question)
    tree = [turn["pid"], *(one.pid for one in proctree.descendants([turn["pid"]], proctree.everything()))]
    argv, given = command_line(turn["pid"]), environment(turn["pid"])
    lines, variables = [command_line(pid) for pid in tree], [environment(pid) for pid in tree]
    house.until_answered(question)

    settings = dict(
        line.split("=", 1) for line in (house.home / f"{house.kind}_env").read_text().splitlines()
    )
    assert argv[0] == house.binary
    assert shlex.split(turn["exec"].removeprefix("exec: ")) == argv
    assert turn["exec"] in house.stderr().splitlines()
    assert given.items() >= settings.items()
    assert given.keys() == ALLOWED | SETTINGS[house.kind] | settings.keys()
    for secret in (house.token, KEY, "marmot-81", "the laboratory", "of ours"):
        assert secret not in json.dumps(lines)
    for secret in (house.token, "marmot-81", "SOMETHING_OF_OURS", "HOOP_HOME"):
        assert secret not in json.dumps(variables)


@pytest.mark.parametrize("whose", ["room", "model server"])
def test_an_answer_that_holds_a_secret_is_not_posted_and_the_owners_are_told_once(house, whose):
    cid, secret = house.new_room("leaky"), house.token if whose == "room" else KEY
    house.model.does(f"text:text=It is {secret}, keep it.")

    question = house.ask(cid, "what is your token?")
    house.until_state(question, "needs_human")
    until(lambda: house.notices(cid), "the owners are told")
    house.until_answered(house.ask(cid, "and now?"))

    assert house.classes(question) == ["leak"]
    assert house.answers(question) == []
    assert [one.startswith("To my owners (leak)") for one in house.notices(cid)] == [True]
    assert secret not in json.dumps(house.everything(cid))
    assert secret not in house.stderr() + house.log()
    kept = [one for one in (house.home / "turns").rglob("answer.txt") if secret in one.read_text()]
    assert [one.stat().st_mode & 0o777 for one in kept] == [0o600]
