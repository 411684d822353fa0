"""What goes wrong at the model: the class is right, nothing false is posted, no message is lost.

Each test asks in a room of its own, and at its end compares everything that the room holds.
"""

import json
from datetime import UTC, datetime

import pytest

from sentinel import proctree
from sentinel.core import notices
from sentinel.core.outcome import FailureClass
from tests.real.sentinel.real_house import until

pytestmark = pytest.mark.real
ASKED, ANSWER = "what of it?", "all is well"
QUOTA = {"codex": "http_429_usage_limit", "claude": "http_400_credit"}
TOLD = {"codex": datetime.fromtimestamp(1893456000, UTC), "claude": None}  # as the model server tells it


@pytest.fixture
def cid(house, request):
    """Return a room of this test's own, and leave a model that works."""
    yield house.new_room(request.node.originalname)
    house.model.always(f"text:text={ANSWER}")


def ask(house, cid, mode):
    """Ask while the model server does `mode`."""
    house.model.always(mode)
    return house.ask(cid, ASKED)


def mend(house):
    house.model.always(f"text:text={ANSWER}")


def condition(house):
    rows = house.rows("SELECT value FROM meta WHERE key = 'condition'")
    return json.loads(rows[0]["value"]) if rows else {"death": None, "hold": None}


@pytest.mark.parametrize(
    ("mode", "kind"),
    [("no_output", "empty"), ("http_400", "input_rejected")],
    ids=["empty", "input_rejected"],
)
def test_a_message_that_fails_is_counted_kept_and_answered_later(house, cid, mode, kind):
    question = ask(house, cid, mode)

    assert house.until_failed(question) == kind
    after = house.texts(cid), house.until_state(question, "seen") and house.trigger(question)["failures"]
    house.until_presence("idle")
    mend(house)
    house.until_answered(question)

    assert after == ([ASKED], 1)
    assert house.classes(question) == [kind, None]
    assert house.texts(cid) == [ASKED, ANSWER]


def test_a_refused_key_is_death_told_once_and_the_oldest_trigger_is_the_probe(house, cid):
    question = ask(house, cid, "http_401")
    until(lambda: house.notices(cid), lambda: house.log()[-3000:])
    later = house.ask(cid, "and what of that?")
    until(lambda: house.trigger(later)["state"] == "seen", "it is kept")
    house.until_presence("dead", "auth")
    asked = len(house.model.requests())
    house.cli("retry", "gode")
    until(lambda: house.classes(question) == ["auth", "auth"], lambda: house.classes(question))
    probes = len(house.model.requests()) - asked

    mend(house)
    house.cli("retry", "gode")
    house.until_answered(question)
    house.until_answered(later)
    until(lambda: len(house.notices(cid)) > 1, "it says that it is back")
    house.until_presence("idle")

    assert probes == 1
    assert house.classes(question) == ["auth", "auth", None]
    assert house.classes(later) == [None]
    assert house.trigger(question)["failures"] == 0
    obituary, back = house.notices(cid)
    assert obituary == notices.obituary(FailureClass.AUTH, None, "en")
    assert back.startswith("I am back")
    assert house.texts(cid)[:3] == [ASKED, obituary, "and what of that?"]
    assert sorted(house.texts(cid)[3:]) == sorted([ANSWER, back, ANSWER])


def test_a_used_up_account_is_death_until_the_reset_that_was_told(house, cid):
    question = ask(house, cid, QUOTA[house.kind])
    until(lambda: house.notices(cid), lambda: house.log()[-3000:])
    death = condition(house)["death"]
    house.until_presence("dead", "quota")

    mend(house)
    house.cli("retry", "gode")
    house.until_answered(question)
    until(lambda: len(house.notices(cid)) > 1, "it says that it is back")

    told = TOLD[house.kind]
    assert death["cause"] == "quota"
    assert death["reset_at"] == (told.timestamp() if told else None)
    assert told is None or death["probe_at"] == told.timestamp()
    assert house.notices(cid)[0] == notices.obituary(FailureClass.QUOTA, told, "en")
    assert house.classes(question) == ["quota", None]
    assert sorted(house.texts(cid)) == sorted([ASKED, ANSWER, *house.notices(cid)])


@pytest.mark.parametrize("mode", ["cut", "http_500"])
def test_an_outage_of_the_model_holds_the_queue_and_counts_nobody(house, cid, mode):
    question = ask(house, cid, mode)
    assert house.until_failed(question) == "unavailable"
    hold = until(lambda: condition(house)["hold"], "the queue is held")
    house.until_presence("failing", "unavailable")

    mend(house)
    house.cli("retry", "gode")
    house.until_answered(question)

    assert hold["cause"] == "unavailable"
    assert house.classes(question) == ["unavailable", None]
    assert house.trigger(question)["failures"] == 0
    assert house.texts(cid) == [ASKED, ANSWER]
    assert condition(house)["hold"] is None


def test_a_model_that_falls_silent_ends_at_our_limit_and_nothing_of_the_turn_lives(house, cid):
    house.write("limits.toml", "silence_s = 2.5\n")
    question = ask(house, cid, "hang_stream")
    pid = house.until_running(question)["pid"]
    among = proctree.everything()
    tree = [among[pid], *proctree.descendants([pid], among)] if pid in among else []
    assert house.until_failed(question) == "timeout"
    until(lambda: all(proctree.look(one.pid) is None for one in tree), "its tree is gone", limit_s=10)
    house.write("limits.toml", "silence_s = 900\n")
    failures = house.trigger(question)["failures"]

    mend(house)
    house.until_answered(question)

    assert tree
    assert failures == 1
    assert house.classes(question) == ["timeout", None]
    assert house.texts(cid) == [ASKED, ANSWER]


def test_an_executor_that_is_gone_at_a_turn_is_death_and_nothing_else_runs(house, cid):
    """What was there at start can be gone at a turn: seen twice, 5 s apart. (The house counts what PATH offers.)"""
    house.write(f"{house.kind}_bin", f"{house.binary}-of-yesterday\n")
    question = ask(house, cid, "text:text=from nowhere")
    until(lambda: house.notices(cid), lambda: house.log()[-3000:])
    turns = house.turns(question)
    house.until_presence("dead", "missing")

    house.write(f"{house.kind}_bin", f"{house.binary}\n")
    mend(house)
    house.cli("retry", "gode")
    house.until_answered(question)
    until(lambda: len(house.notices(cid)) > 1, "it says that it is back")

    assert turns == []
    assert f"gate: executor: {house.kind}_bin is " in house.stderr()
    assert house.notices(cid)[0] == notices.obituary(FailureClass.MISSING, None, "en")
    assert house.planted.runs == 0
    assert sorted(house.texts(cid)) == sorted([ASKED, ANSWER, *house.notices(cid)])


def test_no_word_of_a_provider_and_no_half_answer_was_ever_posted(house):
    """Runs last in its module: the words of every error above, in any room."""
    rooms = [row["cid"] for row in house.rows("SELECT cid FROM conversations")]

    said = json.dumps([house.texts(cid) for cid in rooms])

    for word in (
        "half an ans",
        "mock",
        "Unauthorized",
        "invalid",
        "API Error",
        "credit balance",
        "status",
        "{",
    ):
        assert word not in said.replace("sentinel status", "")
    assert house.rows("SELECT 1 FROM triggers WHERE state != 'verified'") == []
