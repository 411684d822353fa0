"""A `state.db` on a real disk."""

import pytest

from sentinel.store.store import open_store


@pytest.fixture
def store(tmp_path):
    opened = open_store(tmp_path)
    opened.inbox.take("c1", [], cursor=0, keep_seen_from=0, now=0.0, first_mark=0)
    yield opened
    opened.close()
