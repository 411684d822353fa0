"""Before the turn: every trigger whole, context bounded and counted, media local (spec 02 section 4 "fetch")."""

import pytest

from sentinel.bridge.fetch import fetch, safe_name
from sentinel.core.errors import RateLimited, Unavailable
from sentinel.core.model import Media, Message, MessageType, Outgoing
from sentinel.core.persona import Limits
from tests.fakes.fake_clock import stepped
from tests.fakes.fake_room import drop_before, rate_limited, reject

LIMITS = Limits(block_messages=20, block_chars=2_000)


@pytest.fixture
def chat(desk, tmp_path):
    """`chat(triggers, answered=0)` fetches for the persona of the desk."""

    async def run(triggers, *, answered=0, limits=LIMITS):
        return await fetch(
            desk.room, desk.cid, triggers, answered=answered, folder=tmp_path / "turn", limits=limits
        )

    return run


def say(desk, text, **more):
    return desk.server.say(desk.ann, desk.cid, text, **more)


def attach(desk, name, data=b"bytes", content_type="audio/ogg", kind=MessageType.VOICE, nonce=None):
    media = desk.server.store_media(desk.ann.uid, data, content_type, name)
    return desk.server.post(
        desk.ann.uid, desk.cid, Outgoing(None, nonce or f"n-{media.id}", type=kind, media_id=media.id)
    )


def shown(fetched):
    return [entry.message.seq for entry in fetched.block.entries]


@stepped
async def test_context_reaches_from_the_last_answer_to_the_snapshot(desk, chat):
    for number in range(5):
        say(desk, f"line {number}")
    trigger = say(desk, "the question")
    say(desk, "said afterwards")

    fetched = await chat([trigger], answered=2)

    assert shown(fetched) == [3, 4, 5, 6, 7]
    assert fetched.snapshot == 7
    assert fetched.block.dropped == 0


@stepped
async def test_an_older_trigger_reaches_further_back_than_the_last_answer(desk, chat):
    old = say(desk, "the old question")
    for number in range(4):
        say(desk, f"line {number}")

    fetched = await chat([old], answered=4)

    assert shown(fetched)[0] == 1


@stepped
async def test_only_context_is_dropped_and_it_is_counted(desk, chat):
    triggers = [say(desk, "first question, very old")]
    for number in range(300):
        say(desk, f"line {number}")
    triggers.append(say(desk, "x" * 5_000))

    fetched = await chat(triggers)

    entries = {entry.message.id: entry.message.text for entry in fetched.block.entries}
    assert all(entries[one.id] == one.text for one in triggers)
    assert fetched.block.dropped + len(fetched.block.entries) == 302
    assert len(fetched.block.entries) == 2  # the triggers alone are over the limit of characters


@pytest.mark.parametrize("gap", [250, 1_500])
@stepped
async def test_a_huge_gap_costs_no_more_than_a_small_one(desk, chat, gap):
    old = say(desk, "asked long ago")
    for number in range(gap):
        say(desk, f"line {number}")
    new = say(desk, "asked now")

    before = await chat([old, new])

    assert before.block.dropped + len(before.block.entries) == gap + 2
    assert len(desk.room.called("history")) <= 2


@stepped
async def test_what_was_said_after_an_old_trigger_costs_no_more_either(desk, chat):
    old = say(desk, "asked long ago, and then the service was away")
    for number in range(3_000):
        say(desk, f"line {number}")

    fetched = await chat([old])

    assert fetched.snapshot == 3_001
    assert shown(fetched)[0] == old.seq
    assert shown(fetched)[-1] == 3_001
    assert fetched.block.dropped + len(fetched.block.entries) == 3_001
    assert len(desk.room.called("history")) <= 4


@stepped
async def test_media_of_a_trigger_become_local_files(desk, chat, tmp_path):
    trigger = attach(desk, "../../etc/pass wd.ogg", b"sound")

    fetched = await chat([trigger])

    (entry,) = fetched.block.entries
    assert entry.file is not None
    path = tmp_path / "turn" / safe_name(trigger)
    assert entry.file == str(path)
    assert path.read_bytes() == b"sound"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


@stepped
async def test_files_of_the_same_name_do_not_meet(desk, chat):
    triggers = [attach(desk, "a.ogg", data) for data in (b"one", b"two")]

    fetched = await chat(triggers)

    assert len({entry.file for entry in fetched.block.entries}) == 2


@stepped
async def test_media_of_context_are_named_and_not_fetched(desk, chat):
    attach(desk, "old.ogg")
    trigger = say(desk, "what was that?")

    fetched = await chat([trigger])

    assert [entry.file for entry in fetched.block.entries] == [None, None]
    assert desk.room.called("download") == []


@pytest.mark.parametrize("fault", [reject(404), reject(413)], ids=["gone", "too large"])
@stepped
async def test_media_that_cannot_be_had_are_said_and_no_failure(desk, chat, tmp_path, fault):
    trigger = attach(desk, "a.ogg")
    desk.room.faults.on("download", fault)

    fetched = await chat([trigger])

    assert [entry.file for entry in fetched.block.entries] == [None]
    assert list((tmp_path / "turn").iterdir()) == []


@stepped
async def test_media_over_the_limit_leave_nothing(desk, chat, tmp_path):
    trigger = attach(desk, "a.ogg", b"x" * 100)

    fetched = await chat([trigger], limits=Limits(media_bytes=99))

    assert fetched.block.entries[0].file is None
    assert list((tmp_path / "turn").iterdir()) == []


@pytest.mark.parametrize("call", ["history", "download"])
@pytest.mark.parametrize(
    ("fault", "error"), [(drop_before(), Unavailable), (rate_limited(1), RateLimited)], ids=["cut", "429"]
)
@stepped
async def test_a_room_that_is_away_is_the_callers_business(desk, chat, call, fault, error):
    trigger = attach(desk, "a.ogg")
    desk.room.faults.on(call, fault)

    with pytest.raises(error):
        await chat([trigger])


@pytest.mark.parametrize(
    ("name", "kind", "expected"),
    [
        ("note.ogg", "audio/ogg", "7-note.ogg"),
        (None, "audio/ogg", "7-voice.og"),
        ("", "image/png", "7-voice.png"),
        ("../../../etc/passwd", "x/y", "7-etc_passwd.bin"),
        ("a/b\\c\x00d\n.txt", "x/y", "7-a_b_c_d.txt"),
        ("-rf", "x/y", "7-rf.bin"),
        ("...", "x/y", "7-"),
        ("你好.txt", "x/y", "7-voice.txt"),
        ("x" * 500 + ".txt", "x/y", "7-" + "x" * 80 + ".txt"),
        ("a." + "e" * 400, "x/y", "7-a." + "e" * 15),
    ],
)
def test_names_are_harmless(desk, name, kind, expected):
    message = Message(
        "m", "c", 7, desk.ann, None, type=MessageType.VOICE, media=Media("f", "/f", kind, 1, name)
    )

    found = safe_name(message)

    assert found.startswith(expected)
    assert "/" not in found
    assert len(found) < 120
