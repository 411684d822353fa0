"""What came in: a page is stored whole, in one transaction, or not at all (spec 02 section 3 point 5)."""

import contextlib
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from sentinel.core.model import Account, Kind, Media, MessageType
from sentinel.store.inbox import Taken
from sentinel.store.store import open_store
from tests.store.state_pieces import message, skip, wake


class Cut(BaseException):
    """The process is gone."""


class Cutting:
    """A connection whose process ends before its statement number `left`."""

    def __init__(self, real, left):
        self.real, self.left, self.committed = real, left, False

    def __getattr__(self, name):
        return getattr(self.real, name)

    def execute(self, *arguments):
        self._count()
        return self.real.execute(*arguments)

    def executemany(self, *arguments):
        self._count()
        return self.real.executemany(*arguments)

    def commit(self):
        self._count()
        self.real.commit()
        self.committed = True

    def rollback(self):
        """A process that is gone tidies nothing up."""

    def _count(self):
        if self.left == 0:
            raise Cut
        self.left -= 1


def _facts(store):
    inbox = store.inbox.conversation("c2")
    return (
        inbox.cursor if inbox else None,
        len(store.database.rows("SELECT 1 FROM seen WHERE cid = 'c2'")),
        len(store.inbox.queue()),
        store.inbox.why("c2-m4") is not None,
    )


@pytest.mark.parametrize("statements", range(14))
def test_a_page_that_is_cut_anywhere_is_there_whole_or_not_at_all(tmp_path, statements):
    store = open_store(tmp_path)
    cutting = store.database._connection = Cutting(store.database._connection, statements)
    page = [wake(3, "c2"), skip(4, "c2"), wake(5, "c2")]
    with contextlib.suppress(Cut):
        store.inbox.take("c2", page, cursor=5, keep_seen_from=0, now=1.0, first_mark=2)
    cutting.real.close()
    again = open_store(tmp_path)

    assert _facts(again) == ((5, 3, 2, True) if cutting.committed else (None, 0, 0, False))
    assert cutting.committed or statements < 13  # the row of cuts does come to the end
    assert not cutting.committed or statements > 5  # and is not at its end from the start
    again.close()


def test_a_page_twice_is_taken_once(store):
    page = [wake(1), wake(2)]
    store.inbox.take("c1", page, cursor=2, keep_seen_from=0, now=1.0)
    store.inbox.take("c1", page, cursor=2, keep_seen_from=0, now=9.0)

    assert [(one.message_id, one.queued_at) for one in store.inbox.queue()] == [
        ("c1-m1", 1.0),
        ("c1-m2", 1.0),
    ]


def test_only_new_ids_are_fresh(store):
    store.inbox.take("c1", [wake(1), skip(3)], cursor=3, keep_seen_from=0, now=1.0)

    fresh = store.inbox.unseen("c1", [message(1), message(2), message(3), message(4)])

    assert [one.seq for one in fresh] == [2, 4]


def test_ids_of_another_conversation_are_not_known_here(store):
    store.inbox.take("c1", [wake(1)], cursor=1, keep_seen_from=0, now=1.0)

    assert len(store.inbox.unseen("c2", [message(1, "c2")])) == 1


def test_a_cursor_never_goes_back(store):
    store.inbox.take("c1", [], cursor=9, keep_seen_from=0, now=1.0)
    store.inbox.take("c1", [wake(3)], cursor=3, keep_seen_from=0, now=1.0)

    assert store.inbox.conversation("c1").cursor == 9


def test_the_first_mark_is_written_once(store):
    store.inbox.take("c9", [], cursor=7, keep_seen_from=0, now=1.0, first_mark=7)
    store.inbox.take("c9", [], cursor=50, keep_seen_from=0, now=1.0, first_mark=50)

    assert store.inbox.conversation("c9").first_mark == 7


def test_a_message_keeps_every_field(store):
    full = replace(
        message(1),
        type=MessageType.VOICE,
        media=Media("f1", "/v1/media/f1", "audio/ogg", 3, "a\n\ud800b".encode("utf-8", "replace").decode()),
        mentions=("u-gode",),
        broadcast=True,
        reply_to="c1-m0",
        answers=("x",),
        nonce="n",
        hops=2,
        reply_mentions=("u-bob",),
        sent_at=datetime(2026, 3, 1, 1, 2, 3, 456789, tzinfo=UTC),
    )
    store.inbox.take(
        "c1", [Taken(full, "wake", "wake", True, False, True)], cursor=1, keep_seen_from=0, now=1.0
    )

    assert store.inbox.messages([full.id]) == (full,)


def test_a_command_is_owed_until_it_is_done(store):
    taken = Taken(message(1), "obey", "obey", wakes=False, resets_guard=False, keep=True)
    store.inbox.take("c1", [taken], cursor=1, keep_seen_from=0, now=1.0)
    assert [one.message_id for one in store.inbox.owed_commands()] == ["c1-m1"]

    store.inbox.obeyed("c1-m1", now=2.0)
    store.inbox.obeyed("c1-m1", now=3.0)
    assert store.inbox.owed_commands() == ()


def test_persona_turns_count_from_the_last_reset(store):
    robo = Account("u-robo", "Robo", Kind.PERSONA)
    for seq in (1, 2, 3):
        store.inbox.take("c1", [wake(seq, sender=robo)], cursor=seq, keep_seen_from=0, now=float(seq))
        triggers = store.turns.triggers([f"c1-m{seq}"])
        store.turns.begin(f"t{seq}", triggers, snapshot=seq, thread=None, now=10.0 * seq)
    assert store.inbox.persona_turns("c1", since=0.0) == 3
    assert store.inbox.persona_turns("c1", since=10.0) == 2

    human = replace(wake(4), resets_guard=True)
    assert isinstance(human, Taken)
    store.inbox.take("c1", [human], cursor=4, keep_seen_from=0, now=25.0)
    assert store.inbox.persona_turns("c1", since=0.0) == 1
