"""Files sent back, and a thread that is rotated, with the real executor behind its own walls."""

import contextlib
import sqlite3

import pytest

from tests.real.sentinel.real_house import ACTING, READ_ONLY

pytestmark = pytest.mark.real


@pytest.fixture
def acting(house):
    """Let the executor use its tools, for this test."""
    house.walls(*ACTING[house.kind])
    yield
    house.walls(*READ_ONLY)
    house.model.always("text")


def test_a_tool_may_write_into_the_outbox_and_nowhere_else_in_the_turns_folder(house, acting):
    cid = house.new_room("files")
    house.model.always(
        'tool:cmd=printf made >"$TMPDIR/outbox/a.txt"; printf no >"$TMPDIR/beside.txt"; ls "$TMPDIR"'
    )
    question = house.ask(cid, "a file, please")
    house.until_state(question, "verified")

    first, file = house.answers(question)
    assert (first["type"], file["type"], file["media"]["name"]) == ("text", "file", "a.txt")
    if house.kind == "codex":  # its sandbox is open to the outbox, and to nothing beside it
        assert not any("beside.txt\\n" in one.read_text() for one in house.ledgers())


def test_a_long_thread_hands_over_to_a_new_one(house):
    cid = house.new_room("long")
    house.model.does("text:text=I shall remember it.")
    house.until_answered(house.ask(cid, "the word is plum"))
    old = house.thread(cid)
    look_long(house, cid)
    house.model.does("text:text=They wait for plum.", "text:text=Here I am.")
    question = house.ask(cid, "and now?")
    answer = house.until_answered(question)

    assert answer["text"] == "Here I am."
    assert house.thread(cid) not in {None, old}
    assert house.notices(cid) == []
    assert any("They wait for plum." in one.read_text() and old not in one.name for one in house.ledgers())
    house.model.does("text:text=I go on.")
    new = house.thread(cid)
    house.until_answered(house.ask(cid, "go on"))
    assert house.thread(cid) == new


def look_long(house, cid):
    """Write what a thread of many turns would have left: each of the mock's is of some hundred tokens."""
    with contextlib.closing(sqlite3.connect(house.home / "state.db", timeout=5)) as db, db:
        db.execute("UPDATE conversations SET thread_input = 500000 WHERE cid = ?", (cid,))
