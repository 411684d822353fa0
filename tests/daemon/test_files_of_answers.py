"""Files in a turn's outbox are posted after the answer: once, judged like it, and never silently dropped."""

import pytest

from sentinel.core.model import MessageType
from sentinel.core.outcome import Answer
from tests.fakes.fake_clock import pass_time, stepped, until
from tests.fakes.fake_room import drop_after, drop_before, rate_limited, reject


@pytest.fixture
def stage(make_stage):
    return make_stage(
        adapter="codex",
        codex_sandbox="workspace-write\n",
        limits_toml="outbox_files = 2\nmedia_bytes = 1000\n",
    )


def leaving(text="Here it is.", **files):
    def outcome(case, request):
        outbox = case.folder / "outbox"
        assert request.outbox == str(outbox)
        outbox.mkdir(parents=True)
        for name, content in files.items():
            (outbox / name.replace("_", ".")).write_text(content)
        return Answer(text, thread="t-1")

    return outcome


def media_of(stage):
    own = [one for one in stage.own if one.media]
    return [(one.media.name, stage.server.media_bytes(stage.gode.uid, one.media)) for one in own]


@stepped
async def test_they_follow_the_answer_and_name_what_they_answer(stage):
    stage.script = [leaving("Look, @bob: two files.", a_txt="one", b_txt="two")]
    async with stage.running():
        question = stage.ask("files, please")
        await stage.until_answered(question)

    assert [one.type for one in stage.own] == [MessageType.TEXT, MessageType.FILE, MessageType.FILE]
    assert media_of(stage) == [("a.txt", b"one"), ("b.txt", b"two")]
    assert all(one.answers == (question.id,) for one in stage.own)
    assert [one.mentions for one in stage.own] == [(), (), (stage.bob.uid,)]  # the last part calls
    assert not list((stage.home.path / "turns").iterdir())


@stepped
async def test_the_prompt_names_the_folder_where_there_is_one(stage):
    async with stage.running():
        await stage.until_answered(stage.ask("one"))
        stage.home.write("codex_sandbox", "read-only\n")
        await stage.until_answered(stage.ask("two"))

    (_, writes), (_, reads) = stage.runs
    assert f'"{writes.outbox}"' in writes.prompt
    assert "at most 2 plain files" in writes.prompt
    assert writes.prompt.index(writes.outbox) < writes.prompt.index(" begin\n")
    assert reads.outbox is None
    assert "outbox" not in reads.prompt


@stepped
async def test_what_a_read_only_executor_left_is_not_even_looked_at(stage):
    def sneaks(case, request):
        (case.folder / "outbox").mkdir(parents=True)
        (case.folder / "outbox" / "x").write_text("hello")
        return Answer("fine", thread="t-1")

    stage.home.write("codex_sandbox", "read-only\n")
    stage.script = [sneaks]
    async with stage.running():
        await stage.until_answered(stage.ask())

    assert media_of(stage) == []


@stepped
async def test_a_secret_in_a_file_keeps_everything_back(stage):
    secret = (stage.home.path / "token").read_text().strip()
    stage.script = [leaving(a_txt="fine", b_txt=f"the token is {secret}")]
    async with stage.running():
        question = stage.ask()
        await until(lambda: stage.notices)
        await pass_time(5)

        assert stage.state_of(question) == "needs_human"
    assert media_of(stage) == []
    assert stage.answers == []
    assert not stage.room.called("upload")
    (kept,) = (stage.home.path / "turns").iterdir()
    assert (kept / "answer.txt").read_text() == "Here it is."
    assert (kept / "outbox" / "a.txt").exists()


@stepped
async def test_what_is_left_is_one_line(stage):
    stage.script = [leaving(a_txt="one", b_txt="x" * 2000, c_txt="three", d_txt="four")]
    async with stage.running():
        await stage.until_answered(stage.ask())
        await until(lambda: stage.notices)
        await pass_time(5)

    assert [name for name, _ in media_of(stage)] == ["a.txt", "c.txt"]
    assert [one.split(". ")[0] for one in stage.notices] == [
        "Files that I made for this answer and could not send: 2"
    ]


@stepped
async def test_a_file_that_the_room_refuses_does_not_cost_the_answer(stage):
    stage.script = [leaving(a_txt="one", b_txt="two")]
    async with stage.running():
        await until(lambda: stage.room.connected)
        stage.room.faults.on("upload", reject(413))
        await stage.until_answered(stage.ask())
        await until(lambda: stage.notices)

    assert media_of(stage) == [("b.txt", b"two")]
    assert stage.answers[0] == "Here it is."


@stepped
async def test_a_room_that_is_away_gets_each_file_once(stage):
    """An upload is not made again because the one after it met an absent room."""
    stage.script = [leaving(a_txt="one", b_txt="two")]
    async with stage.running():
        await until(lambda: stage.room.connected)
        stage.room.faults.on("upload", None, drop_before(), rate_limited(2.0), drop_before())
        await stage.until_answered(stage.ask())

    assert len(stage.room.called("upload")) == 5
    assert media_of(stage) == [("a.txt", b"one"), ("b.txt", b"two")]


@pytest.mark.parametrize("at", range(3))
@stepped
async def test_a_post_whose_reply_is_lost_is_there_once(stage, at):
    stage.script = [leaving(a_txt="one", b_txt="two")]
    async with stage.running():
        await until(lambda: stage.room.connected)
        stage.room.faults.on("post", *[None] * at, drop_after())
        await stage.until_answered(stage.ask())
        await pass_time(60)

    assert media_of(stage) == [("a.txt", b"one"), ("b.txt", b"two")]
    assert stage.answers == ["Here it is.", None, None]


@stepped
async def test_a_name_that_fits_several_members_is_told(stage):
    stage.server.join(stage.cid, stage.server.account("Bob", uid="u-bob-2"))
    stage.script = [Answer("what do you say, @bob?", thread="t-1")]
    async with stage.running():
        await stage.until_answered(stage.ask())
        await until(lambda: stage.notices)

    assert stage.notices == ["These names fit several members, so I have called none of them: bob."]
