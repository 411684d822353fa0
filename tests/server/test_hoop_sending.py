"""What the server makes of a send: nonces for good, filtered mentions, hops, seq, replies."""

import asyncio

import pytest


@pytest.fixture
def stage(house):
    ann, gode = house.person("ann"), house.persona("Gode")
    return ann, gode, house.room(ann, gode)


async def test_a_message_has_the_shape_of_the_wire(stage):
    ann, gode, cid = stage

    reply = await ann.text(cid, "hi", mentions=[gode.uid], nonce="n1")

    message = reply.json()
    assert reply.status_code == 201
    sent_at = message.pop("sent_at")
    assert len(sent_at) == len("2026-01-02T03:04:05.678Z")
    assert sent_at.endswith("Z")
    assert message.pop("id")
    assert message == {
        "cid": cid,
        "seq": 1,
        "sender": ann.account,
        "type": "text",
        "text": "hi",
        "mentions": [gode.uid],
        "broadcast": False,
        "answers": [],
        "nonce": "n1",
        "hops": 0,
    }


async def test_a_repeated_nonce_is_answered_with_the_first_message(stage):
    ann, gode, cid = stage
    first = (await ann.text(cid, "once", nonce="n", mentions=[gode.uid, "u-forged"])).json()

    again = await ann.text(cid, "once", nonce="n", mentions=[gode.uid, "u-forged"])
    async with ann.socket() as ears:
        await ears.send(
            type="message.send", ref=1, cid=cid, text="once", nonce="n", mentions=[gode.uid, "u-forged"]
        )
        by_socket = await ears.until("ack", ref=1)

    assert again.status_code == 200
    assert again.json() == by_socket["message"] == first
    assert len((await ann.history(cid))["messages"]) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"text": "other"},
        {"mentions": []},
        {"mentions": ["u-forged"]},
        {"broadcast": True},
        {"answers": ["m1"]},
        {"hops": 2},
        {"reply_to": "FIRST"},
    ],
    ids=lambda change: "-".join(f"{name}" for name in change) + str(len(str(change))),
)
async def test_a_nonce_with_any_other_field_changed_is_a_conflict(stage, change):
    """The whole input counts, not what filtering left of it: a forged uid more or less is another input."""
    _, gode, cid = stage
    first = (await gode.text(cid, "once")).json()["id"]
    sent = {"text": "once", "nonce": "n", "mentions": ["u-forged2"], "hops": 1}
    assert (await gode.text(cid, **sent)).status_code == 201
    change = {name: first if value == "FIRST" else value for name, value in change.items()}

    reply = await gode.text(cid, **{**sent, **change})

    assert reply.status_code == 409
    assert reply.headers["content-type"] == "application/problem+json"
    assert len((await gode.history(cid))["messages"]) == 2


async def test_a_nonce_belongs_to_its_sender_and_conversation(house, stage):
    ann, gode, cid = stage
    other = house.room(ann, gode)

    replies = [
        await ann.text(cid, nonce="n"),
        await gode.text(cid, nonce="n"),
        await ann.text(other, nonce="n"),
    ]

    assert [one.status_code for one in replies] == [201, 201, 201]


async def test_racing_sends_of_one_nonce_store_one_message(stage):
    ann, _, cid = stage

    replies = await asyncio.gather(*(ann.text(cid, nonce="race") for _ in range(12)))

    assert sorted(one.status_code for one in replies) == [200] * 11 + [201]
    assert len({one.json()["id"] for one in replies}) == 1


async def test_readback_finds_only_the_callers_own(stage):
    ann, gode, cid = stage
    sent = (await gode.text(cid, nonce="n7")).json()
    way = f"/v1/conversations/{cid}/messages/by-nonce/"

    own, foreign, absent = [
        await who.http.get(way + n) for who, n in ((gode, "n7"), (ann, "n7"), (gode, "n8"))
    ]

    assert own.json() == sent
    assert foreign.status_code == absent.status_code == 404


async def test_forged_and_repeated_mentions_are_dropped(house, stage):
    ann, gode, cid = stage
    stranger = house.person("bob")

    message = (await ann.text(cid, mentions=[stranger.uid, gode.uid, "u0", gode.uid])).json()

    assert message["mentions"] == [gode.uid]


async def test_hops_are_set_by_the_server(stage):
    ann, gode, cid = stage
    asked = (await ann.text(cid, hops=9)).json()
    unasked = (await gode.text(cid)).json()
    answer = (await gode.text(cid, reply_to=asked["id"])).json()
    echo = (await gode.text(cid, reply_to=answer["id"])).json()
    stated = (await gode.text(cid, hops=5, reply_to=answer["id"])).json()

    assert [one["hops"] for one in (asked, unasked, answer, echo, stated)] == [0, 1, 1, 2, 5]


async def test_a_reply_must_point_into_the_same_conversation(house, stage):
    ann, gode, cid = stage
    elsewhere = (await ann.text(house.room(ann, gode))).json()["id"]

    for wrong in (elsewhere, "m-none"):
        reply = await ann.text(cid, reply_to=wrong)
        assert reply.status_code == 422
        assert reply.json()["errors"][0]["field"] == "reply_to"
    assert (await ann.history(cid))["messages"] == []


async def test_pages_never_skip_while_many_post(stage):
    """`seq` is the cursor: whoever pages while others post sees 1..N, each once."""
    ann, gode, cid = stage
    count, seen = 150, []
    posting = asyncio.gather(*((ann if n % 2 else gode).text(cid, f"t{n}") for n in range(count)))

    while len(seen) < count:
        page = await ann.history(cid, after=seen[-1] if seen else 0, limit=7)
        seen += [one["seq"] for one in page["messages"]]
        assert page["has_more"] is False or len(page["messages"]) == 7
    await posting

    assert seen == list(range(1, count + 1))


async def test_a_page_says_whether_there_is_more(stage):
    ann, _, cid = stage
    for _ in range(3):
        await ann.text(cid)

    two, rest, none = [await ann.history(cid, after, limit) for after, limit in ((0, 2), (2, 2), (3, 2))]

    assert [one["seq"] for one in two["messages"]] == [1, 2]
    assert (two["has_more"], rest["has_more"], none) == (True, False, {"messages": [], "has_more": False})


async def test_a_conversation_made_by_a_member_holds_its_maker(stage):
    ann, gode, _ = stage

    async with gode.socket() as ears:
        made = (await ann.http.post("/v1/conversations", json={"title": "New", "members": [gode.uid]})).json()
        joined = await ears.until("member.joined", cid=made["cid"], uid=gode.uid)

    assert joined["uid"] == gode.uid
    assert {one["uid"] for one in made["members"]} == {ann.uid, gode.uid}
    assert made["last_seq"] == 0
    listed = (await gode.http.get("/v1/conversations")).json()
    assert made["cid"] in {one["cid"] for one in listed}


async def test_a_conversation_with_an_unknown_member_is_not_made(stage):
    ann, _, _ = stage

    reply = await ann.http.post("/v1/conversations", json={"title": "New", "members": ["u-none"]})

    assert reply.status_code == 422
    assert len((await ann.http.get("/v1/conversations")).json()) == 1


async def test_mentions_resolve_says_whom_a_text_calls(stage):
    ann, gode, cid = stage

    reply = await ann.http.post(
        f"/v1/conversations/{cid}/mentions/resolve", json={"text": f"ask @{gode.name} now"}
    )

    assert reply.json() == {"mentions": [gode.uid], "broadcast": False, "ambiguous": []}
    assert (await ann.history(cid))["messages"] == []
