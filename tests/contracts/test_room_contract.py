"""What the Room port promises, asked of the fake and of the real thing alike (spec 01 sections 1 and 2)."""

import asyncio
import io
from dataclasses import replace
from datetime import UTC

import pytest

from sentinel.core.errors import NonceConflict, NotFound, Rejected, Unauthorized
from sentinel.core.model import Media, MessageType, Outgoing, PresenceState
from sentinel.core.ports import Connected, MembersChanged, NonceMemory, Rang, Superseded

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))


async def heard(bells, wanted):
    """Return the doorbells up to the one that is wanted."""
    found = []
    async with asyncio.timeout(10):
        while not found or found[-1] != wanted:
            found.append(await anext(bells))
    return found


async def connected(room):
    bells = room.doorbells()
    assert await anext(bells) == Connected(0)
    return bells


# Who, where, with whom.


async def test_who_am_i(lab):
    assert await lab.room(lab.gode).who_am_i() == lab.gode
    assert await lab.room(lab.ann).who_am_i() == lab.ann


async def test_traits_say_that_nonces_are_kept_for_good_and_mentions_filtered(lab):
    traits = lab.room(lab.gode).traits

    assert traits.nonce_memory is NonceMemory.FOR_GOOD
    assert traits.server_filters_mentions
    assert traits.text_limit_chars == 20_000
    assert traits.media_limit_bytes == 25 * 1024 * 1024


async def test_conversations_are_the_members_own_and_say_their_newest_seq(lab):
    room = lab.room(lab.gode)
    before = {one.cid: one for one in await room.conversations()}
    for n in range(3):
        await lab.room(lab.ann).post(lab.cid, Outgoing(f"t{n}", f"n{n}"))

    after = {one.cid: one for one in await room.conversations()}

    assert before[lab.cid].last_seq == 0
    assert after[lab.cid].last_seq == 3
    assert after[lab.cid].title == "lab"
    assert lab.cid not in {one.cid for one in await lab.room(lab.eve).conversations()}


async def test_members_are_accounts_of_their_kinds(lab):
    members = await lab.room(lab.gode).members(lab.cid)

    assert {(one.uid, one.name, one.kind) for one in members} == {
        (one.uid, one.name, one.kind) for one in (lab.ann, lab.bob, lab.gode)
    }


async def test_presence_is_shown_to_members(lab):
    room = lab.room(lab.gode)
    bells = await connected(room)  # presence belongs to an account that is there

    await room.presence(PresenceState.FAILING, "quota until noon")

    shown = {one.uid: one for one in await lab.room(lab.ann).members(lab.cid)}[lab.gode.uid]
    assert (shown.state, shown.detail) == (PresenceState.FAILING, "quota until noon")
    await bells.aclose()


# Posting and reading back.


async def test_a_post_reads_back_by_id_by_nonce_and_in_history(lab):
    room = lab.room(lab.gode)

    posted = await room.post(lab.cid, Outgoing("hello, 世界 👋\n\n`code`", "n1"))

    assert (posted.cid, posted.seq, posted.sender) == (lab.cid, 1, lab.gode)
    assert (posted.text, posted.nonce, posted.type) == ("hello, 世界 👋\n\n`code`", "n1", MessageType.TEXT)
    assert posted.sent_at.tzinfo is UTC
    assert await room.find(lab.cid, posted.id) == posted
    assert await room.find_by_nonce(lab.cid, "n1") == posted
    assert (await room.history(lab.cid, after=0)).messages == (posted,)
    assert await lab.room(lab.ann).find(lab.cid, posted.id) == posted


async def test_every_field_of_a_post_is_stored(lab):
    ann = await lab.room(lab.ann).post(lab.cid, Outgoing("question", "q"))
    whole = Outgoing(
        text="answer",
        nonce="n1",
        mentions=(lab.bob.uid, lab.ann.uid),
        broadcast=True,
        reply_to=ann.id,
        answers=(ann.id, "m-gone"),
        hops=2,
    )

    posted = await lab.room(lab.gode).post(lab.cid, whole)

    assert posted.mentions == (lab.bob.uid, lab.ann.uid)
    assert posted.broadcast
    assert (posted.reply_to, posted.answers, posted.hops) == (ann.id, (ann.id, "m-gone"), 2)
    assert await lab.room(lab.ann).find(lab.cid, posted.id) == posted


async def test_the_same_nonce_and_body_is_the_same_message_for_ever(lab):
    outgoing = Outgoing("hello", "n1", mentions=(lab.ann.uid,))
    first = await lab.room(lab.gode).post(lab.cid, outgoing)
    await lab.room(lab.ann).post(lab.cid, Outgoing("between", "n2"))

    again = await lab.room(lab.gode).post(lab.cid, outgoing)

    assert again == first
    assert len((await lab.room(lab.ann).history(lab.cid, after=0)).messages) == 2


@pytest.mark.parametrize(
    "change",
    [
        {"text": "hello!"},
        {"broadcast": True},
        {"mentions": ()},
        {"mentions": ("u-forged",)},
        {"answers": ("m1",)},
        {"hops": 5},
    ],
    ids=str,
)
async def test_the_same_nonce_with_anything_else_is_a_conflict(lab, change):
    room = lab.room(lab.gode)
    outgoing = Outgoing("hello", "n1", mentions=(lab.ann.uid,))
    first = await room.post(lab.cid, outgoing)

    with pytest.raises(NonceConflict):
        await room.post(lab.cid, replace(outgoing, **change))

    assert await room.find_by_nonce(lab.cid, "n1") == first


async def test_a_nonce_is_its_senders_own(lab):
    mine = await lab.room(lab.gode).post(lab.cid, Outgoing("mine", "n1"))
    hers = await lab.room(lab.ann).post(lab.cid, Outgoing("hers", "n1"))

    assert mine.id != hers.id
    assert await lab.room(lab.gode).find_by_nonce(lab.cid, "n1") == mine
    assert await lab.room(lab.bob).find_by_nonce(lab.cid, "n1") is None


async def test_a_nonce_that_was_never_used_reads_back_as_none(lab):
    assert await lab.room(lab.gode).find_by_nonce(lab.cid, "n-unused") is None


async def test_of_the_mentions_only_members_stay_once_each(lab):
    posted = await lab.room(lab.ann).post(
        lab.cid,
        Outgoing("x", "n1", mentions=(lab.eve.uid, lab.gode.uid, "u-forged", lab.ann.uid, lab.gode.uid)),
    )

    assert posted.mentions == (lab.gode.uid, lab.ann.uid)


async def test_a_text_is_not_resolved_by_sending(lab):
    posted = await lab.room(lab.ann).post(lab.cid, Outgoing("@Gode @everyone", "n1"))

    assert (posted.mentions, posted.broadcast) == ((), False)


async def test_hops_are_set_by_the_server(lab):
    ann, gode = lab.room(lab.ann), lab.room(lab.gode)
    human = await ann.post(lab.cid, Outgoing("a", "h", hops=7))
    alone = await gode.post(lab.cid, Outgoing("b", "p1"))
    answer = await gode.post(lab.cid, Outgoing("c", "p2", reply_to=human.id))
    second = await gode.post(lab.cid, Outgoing("d", "p3", reply_to=answer.id))
    stated = await gode.post(lab.cid, Outgoing("e", "p4", reply_to=answer.id, hops=9))
    human_again = await ann.post(lab.cid, Outgoing("f", "h2", reply_to=second.id))

    assert [one.hops for one in (human, alone, answer, second, stated, human_again)] == [0, 1, 1, 2, 9, 0]


async def test_a_reply_to_nothing_is_rejected(lab):
    with pytest.raises(Rejected):
        await lab.room(lab.gode).post(lab.cid, Outgoing("x", "n1", reply_to="m-unknown"))

    assert await lab.room(lab.gode).find_by_nonce(lab.cid, "n1") is None


async def test_a_text_at_the_limit_passes_and_one_beyond_it_does_not(lab):
    room = lab.room(lab.gode)
    at_limit = await room.post(lab.cid, Outgoing("界" * 20_000, "n1"))

    with pytest.raises(Rejected) as caught:
        await room.post(lab.cid, Outgoing("x" * 20_001, "n2"))

    assert at_limit.text == "界" * 20_000
    assert caught.value.status == 413
    assert len((await room.history(lab.cid, after=0)).messages) == 1


# Pages.


async def test_pages_are_oldest_first_strictly_newer_and_without_gaps(lab):
    ann, gode = lab.room(lab.ann), lab.room(lab.gode)
    for n in range(7):
        await ann.post(lab.cid, Outgoing(f"t{n}", f"n{n}"))

    pages, after = [], 0
    while True:
        page = await gode.history(lab.cid, after=after, limit=3)
        pages.append([one.seq for one in page.messages])
        if not page.has_more:
            break
        after = page.messages[-1].seq

    assert pages == [[1, 2, 3], [4, 5, 6], [7]]


async def test_pages_may_overlap_what_was_seen(lab):
    ann, gode = lab.room(lab.ann), lab.room(lab.gode)
    for n in range(5):
        await ann.post(lab.cid, Outgoing(f"t{n}", f"n{n}"))
    whole = await gode.history(lab.cid, after=0)

    overlap = await gode.history(lab.cid, after=2)

    assert overlap.messages == whole.messages[2:]
    assert not overlap.has_more


async def test_a_page_beyond_the_end_is_empty(lab):
    page = await lab.room(lab.gode).history(lab.cid, after=99)

    assert (page.messages, page.has_more) == ((), False)


async def test_a_limit_beyond_the_servers_is_cut_down(lab):
    await lab.room(lab.ann).post(lab.cid, Outgoing("x", "n1"))

    page = await lab.room(lab.gode).history(lab.cid, after=0, limit=100_000)

    assert len(page.messages) == 1


async def test_posts_at_the_same_time_have_seqs_without_holes(lab):
    rooms = [lab.room(one) for one in (lab.ann, lab.bob, lab.gode)]

    await asyncio.gather(*(room.post(lab.cid, Outgoing(f"{n}", f"n{n}")) for room in rooms for n in range(5)))

    page = await rooms[0].history(lab.cid, after=0)
    assert [one.seq for one in page.messages] == list(range(1, 16))


# Refusals.


async def test_a_message_that_is_not_there_is_not_found(lab):
    with pytest.raises(NotFound):
        await lab.room(lab.gode).find(lab.cid, "m-unknown")


@pytest.mark.parametrize("cid", ["its", "c-unknown"])
async def test_a_conversation_of_others_and_none_at_all_look_alike(lab, cid):
    eve = lab.room(lab.eve)
    cid = lab.cid if cid == "its" else cid
    asked = [
        lambda: eve.history(cid, after=0),
        lambda: eve.members(cid),
        lambda: eve.find(cid, "m1"),
        lambda: eve.post(cid, Outgoing("x", "n1")),
    ]

    for ask in asked:
        with pytest.raises(NotFound):
            await ask()

    assert (await lab.room(lab.ann).history(lab.cid, after=0)).messages == ()


async def test_a_token_that_nobody_knows_is_unauthorized_everywhere(lab):
    room = lab.strangers_room()
    asked = [
        room.who_am_i,
        room.conversations,
        lambda: room.history(lab.cid, after=0),
        lambda: room.members(lab.cid),
        lambda: room.find_by_nonce(lab.cid, "n1"),
        lambda: room.post(lab.cid, Outgoing("x", "n1")),
        lambda: room.presence(PresenceState.IDLE),
        lambda: anext(room.doorbells()),
    ]

    for ask in asked:
        with pytest.raises(Unauthorized):
            await ask()


# Doorbells.


async def test_a_ring_hints_whether_it_may_call_me(lab):
    gode, ann = lab.room(lab.gode), lab.room(lab.ann)
    bells = await connected(gode)

    await ann.post(lab.cid, Outgoing("for bob", "n1", mentions=(lab.bob.uid,)))
    await ann.post(lab.cid, Outgoing("for you", "n2", mentions=(lab.gode.uid,)))
    await ann.post(lab.cid, Outgoing("for all", "n3", broadcast=True))

    rings = [one for one in await heard(bells, Rang(lab.cid, 3)) if isinstance(one, Rang)]
    assert [one.may_call for one in rings] == [False, True, True]
    await bells.aclose()


async def test_it_rings_for_others_and_for_ourselves(lab):
    gode = lab.room(lab.gode)
    bells = await connected(gode)

    await lab.room(lab.ann).post(lab.cid, Outgoing("hers", "n1"))
    await gode.post(lab.cid, Outgoing("mine", "n1"))

    assert [one for one in await heard(bells, Rang(lab.cid, 2)) if isinstance(one, Rang)] == [
        Rang(lab.cid, 1),
        Rang(lab.cid, 2),
    ]
    await bells.aclose()


async def test_it_does_not_ring_again_for_a_repeated_nonce(lab):
    gode = lab.room(lab.gode)
    bells = await connected(gode)

    for _ in range(3):
        await gode.post(lab.cid, Outgoing("once", "n1"))
    await gode.post(lab.cid, Outgoing("twice", "n2"))

    rings = [one for one in await heard(bells, Rang(lab.cid, 2)) if isinstance(one, Rang)]
    assert rings == [Rang(lab.cid, 1), Rang(lab.cid, 2)]
    await bells.aclose()


async def test_a_ringing_message_can_be_pulled_at_once(lab):
    gode = lab.room(lab.gode)
    bells = await connected(gode)

    for n in range(5):
        await lab.room(lab.ann).post(lab.cid, Outgoing(f"{n}", f"n{n}"))
        await heard(bells, Rang(lab.cid, n + 1))
        assert [one.seq for one in (await gode.history(lab.cid, after=n)).messages] == [n + 1]

    await bells.aclose()


async def test_it_does_not_ring_for_conversations_of_others(lab):
    eve = lab.room(lab.eve)
    bells = await connected(eve)
    ringing = asyncio.create_task(anext(bells))

    ann = lab.room(lab.ann)
    watch = await connected(ann)
    await ann.post(lab.cid, Outgoing("x", "n1"))
    await heard(watch, Rang(lab.cid, 1))

    assert not ringing.done()
    ringing.cancel()
    await asyncio.gather(ringing, return_exceptions=True)
    await watch.aclose()
    await bells.aclose()


async def test_who_comes_and_goes_is_told(lab):
    gode = lab.room(lab.gode)
    bells = await connected(gode)

    lab.invite(lab.mini)
    await heard(bells, MembersChanged(lab.cid))
    joined = {one.uid for one in await gode.members(lab.cid)}
    lab.remove(lab.mini)
    await heard(bells, MembersChanged(lab.cid))

    assert joined == {one.uid for one in (lab.ann, lab.bob, lab.gode, lab.mini)}
    assert lab.mini.uid not in {one.uid for one in await gode.members(lab.cid)}
    await bells.aclose()


async def test_a_second_process_of_a_persona_supersedes_the_first(lab):
    first = await connected(lab.room(lab.gode))
    second = await connected(lab.room(lab.gode))

    assert [one async for one in first] == [Superseded()]

    await lab.room(lab.ann).post(lab.cid, Outgoing("x", "n1"))
    await heard(second, Rang(lab.cid, 1))
    await second.aclose()


async def test_a_human_may_have_several_lines(lab):
    first = await connected(lab.room(lab.ann))
    second = await connected(lab.room(lab.ann))

    await lab.room(lab.bob).post(lab.cid, Outgoing("x", "n1"))

    for bells in (first, second):
        assert Superseded() not in await heard(bells, Rang(lab.cid, 1))
        await bells.aclose()


async def test_typing_is_taken_with_and_without_a_line(lab):
    room = lab.room(lab.gode)
    await room.typing(lab.cid, on=True)
    bells = await connected(room)

    await room.typing(lab.cid, on=True)
    await room.post(lab.cid, Outgoing("still there", "n1"))

    await heard(bells, Rang(lab.cid, 1))
    await bells.aclose()


# Media.


async def test_media_goes_round(lab):
    ann, gode = lab.room(lab.ann), lab.room(lab.gode)
    stored = await ann.upload(PNG, content_type="image/png", name="a b&c.png")

    posted = await ann.post(
        lab.cid, Outgoing("look", "n1", type=MessageType.IMAGE, media_id=stored.id, mentions=(lab.gode.uid,))
    )
    into = io.BytesIO()
    written = await gode.download(posted.media, into, cap_bytes=len(PNG))

    assert (stored.type, stored.size, stored.name) == ("image/png", len(PNG), "a b&c.png")
    assert posted.media == stored
    assert (posted.type, posted.text, posted.mentions) == (MessageType.IMAGE, "look", (lab.gode.uid,))
    assert await gode.find_by_nonce(lab.cid, "n1") is None
    assert (written, into.getvalue()) == (len(PNG), PNG)


async def test_media_past_the_cap_is_rejected_and_leaves_nothing(lab):
    ann = lab.room(lab.ann)
    stored = await ann.upload(PNG, content_type="image/png", name="x.png")
    into = io.BytesIO()

    with pytest.raises(Rejected):
        await ann.download(stored, into, cap_bytes=len(PNG) - 1)

    assert into.getvalue() == b""


async def test_media_is_for_members_of_where_it_was_posted(lab):
    ann = lab.room(lab.ann)
    stored = await ann.upload(PNG, content_type="image/png", name="x.png")
    await ann.post(lab.cid, Outgoing(None, "n1", type=MessageType.IMAGE, media_id=stored.id))

    for media in (stored, replace(stored, id="f-unknown", url="/v1/media/f-unknown")):
        with pytest.raises(NotFound):
            await lab.room(lab.eve).download(media, io.BytesIO(), cap_bytes=10_000)


async def test_media_of_others_cannot_be_posted(lab):
    stored = await lab.room(lab.ann).upload(PNG, content_type="image/png", name="x.png")

    with pytest.raises(Rejected):
        await lab.room(lab.gode).post(
            lab.cid, Outgoing(None, "n1", type=MessageType.IMAGE, media_id=stored.id)
        )


async def test_media_on_another_server_is_rejected(lab):
    foreign = Media("f1", "http://elsewhere.example/v1/media/f1", "image/png", 1)

    with pytest.raises(Rejected):
        await lab.room(lab.gode).download(foreign, io.BytesIO(), cap_bytes=10)
