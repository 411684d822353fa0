"""A structured mention over REST is answered exactly once; being talked about is not being called (law 5)."""

import json
import shlex
from pathlib import Path

import pytest

from sentinel.core.model import Kind
from sentinel.server.admin import directory
from tests.fakes.town import until


@pytest.fixture(scope="module")
def place(town):
    made = town.place()
    made.start()
    with directory(town.data) as opened:
        robo = opened.add_account("Robo", Kind.PERSONA)
        opened.invite(made.cid, ["Robo"])
    made.tokens["Robo"] = robo.token
    return made


def why(place, message_id):
    done = place.verb("why", str(place.home), message_id, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_structured_mention_is_answered_exactly_once_and_why_names_the_decision(place):
    question = place.ask("what broke the build?")
    place.until_answered(question)
    told = json.loads(place.run("why", str(place.home), question, "--json").stdout)

    (answer,) = place.answers_to(question)
    assert "what broke the build?" in answer["text"]
    assert answer["reply_to"] == question
    assert (told["decision"], told["reason"], told["state"]) == ("wake", "wake", "verified")


TALKED_ABOUT = {
    "name in the text": ("bob", "@{name} is great", {}, "not-mentioned"),
    "in code": ("bob", "`@{name}`\n\n    @{name}", {}, "not-mentioned"),
    "in a quote": ("bob", "> @{name} said so", {}, "not-mentioned"),
    "a persona's mention": ("Robo", "hello {name}", {"mentions": True}, "persona-not-allowed"),
    "a persona's broadcast": ("Robo", "hello all, {name} too", {"broadcast": True}, "persona-broadcast"),
    "a command of no owner": ("bob", "/pause {name}", {"mentions": True}, "not-owner"),
}


@pytest.mark.parametrize(("sender", "text", "how", "reason"), TALKED_ABOUT.values(), ids=TALKED_ABOUT)
def test_what_is_no_call_wakes_nobody_and_why_says_so(place, sender, text, how, reason):
    message = place.say(
        sender,
        text.format(name=place.gode.name),
        mention=how.get("mentions", False),
        broadcast=how.get("broadcast", False),
    )
    until(lambda: place.rows("SELECT 1 FROM decisions WHERE message_id = ?", message), "a decision")

    assert why(place, message)["reason"] == reason
    assert place.state_of(message) is None
    assert place.answers_to(message) == []


def test_a_message_that_does_not_name_it_is_not_kept(place):
    silent = place.say("bob", "nothing to do with anybody", mention=False)
    place.until_answered(place.ask())

    done = place.verb("why", str(place.home), silent)

    assert done.returncode == 69
    assert b"nothing is known of" in done.stderr


def test_its_own_post_wakes_nobody(place):
    done = place.verb("say", str(place.home), place.cid, f"I am @{place.gode.name}")
    assert done.returncode == 0, done.stderr
    mine = done.stdout.decode().strip()
    place.until_answered(place.ask())

    assert place.state_of(mine) is None
    assert len(place.rows("SELECT 1 FROM triggers WHERE message_id = ?", mine)) == 0


def test_a_humans_broadcast_is_a_call(place):
    everybody = place.say("bob", "hello all", mention=False, broadcast=True)
    place.until_answered(everybody)

    assert len(place.answers_to(everybody)) == 1


def test_in_a_conversation_of_two_a_humans_message_is_the_call(town):
    two = town.place(members=2)
    two.start()
    message = two.say("ann", "just us", mention=False)
    two.until_answered(message)

    assert len(two.answers_to(message)) == 1
    two.close()


def test_the_executor_gets_no_token_and_the_exec_line_is_what_ran(town, waiting):
    """Law 1: what was really used is logged. The child's own words, from the kernel."""
    place = town.place(adapter="codex", executor=waiting.path)
    place.start()
    place.ask("hello")
    until(lambda: waiting.pids, "the executor")
    until(lambda: "exec: " in place.said)
    pid = waiting.pids[0]

    environ = Path(f"/proc/{pid}/environ").read_bytes()
    cmdline = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:-1]
    waiting.go()

    token = place.tokens["Gode"].encode()
    assert token not in environ
    assert token not in b" ".join(cmdline)
    assert b"HOOP_HOME" not in environ
    line = next(one for one in place.said.splitlines() if one.startswith("exec: "))
    argv = shlex.split(line.removeprefix("exec: "))
    assert [one.encode() for one in argv] == cmdline[-len(argv) :]  # before it: the interpreter of a script
    assert token.decode() not in place.said
    place.close()
