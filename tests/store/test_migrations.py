"""A `state.db` of any earlier version is brought up to date, and keeps what it held."""

import sqlite3

import pytest

from sentinel.store.schema import MIGRATIONS
from sentinel.store.store import open_store


def old_state(home, version):
    connection = sqlite3.connect(home / "state.db")
    for statements in MIGRATIONS[:version]:
        for statement in statements:
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version={version}")
    connection.execute(
        "INSERT INTO conversations (cid, first_mark, cursor, thread, thread_input) VALUES ('c1', 1, 2, 't-1', 9)"
    )
    connection.commit()
    connection.close()


@pytest.mark.parametrize("version", range(1, len(MIGRATIONS)))
def test_an_older_state_is_brought_up_to_date(tmp_path, version):
    old_state(tmp_path, version)
    store = open_store(tmp_path)

    thread = store.threads.get("c1")
    assert (thread.id, thread.input_tokens) == ("t-1", 9)
    assert store.inbox.conversation("c1").cursor == 2
    assert store.crashes.count("here", "an error", now=1.0).times == 1
    store.close()
    open_store(tmp_path).close()
