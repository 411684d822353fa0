"""Membership stands on every path, and "not yours" looks like "not there"."""

import pytest

PATHS = [
    ("GET", "/members", None),
    ("GET", "/messages?after=0&limit=5", None),
    ("GET", "/messages/{mid}", None),
    ("GET", "/messages/by-nonce/n1", None),
    ("POST", "/text", {"text": "x"}),
    ("POST", "/media", {"type": "file", "media_id": "{upload}"}),
    ("POST", "/mentions/resolve", {"text": "@x"}),
]


@pytest.fixture
async def stage(house):
    ann, bob, eve = house.person("ann"), house.person("bob"), house.person("eve")
    cid = house.room(ann, bob)
    message = (await bob.text(cid, nonce="n1")).json()
    return ann, bob, eve, cid, message


@pytest.mark.parametrize(("method", "path", "body"), PATHS, ids=[path for _, path, _ in PATHS])
async def test_a_stranger_is_told_what_everybody_is_told_of_nothing(stage, method, path, body):
    ann, _, eve, cid, message = stage
    upload = (await eve.upload())["id"]
    body = {key: value.format(upload=upload) for key, value in body.items()} if body else None
    path = path.format(mid=message["id"])

    foreign = await eve.http.request(method, f"/v1/conversations/{cid}{path}", json=body)
    absent = await eve.http.request(method, f"/v1/conversations/c-none{path}", json=body)

    assert foreign.status_code == 404
    assert foreign.content == absent.content
    assert len((await ann.history(cid))["messages"]) == 1


@pytest.mark.parametrize(("method", "path", "body"), PATHS, ids=[path for _, path, _ in PATHS])
async def test_without_a_good_token_nothing_is_told(house, stage, method, path, body):
    _, bob, _, cid, message = stage
    path = f"/v1/conversations/{cid}{path.format(mid=message['id'])}"

    for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": "Basic eDp5"}):
        reply = await bob.http.request(method, path, json=body, headers={"authorization": "", **headers})
        assert reply.status_code == 401, headers
        assert reply.json()["type"] == "urn:hoop:problem:unauthorized"


async def test_a_stranger_neither_sends_nor_types_by_socket(stage):
    ann, _, eve, cid, _ = stage
    async with eve.socket() as ears:
        await ears.send(type="message.send", ref=1, cid=cid, text="x")
        first = await ears.until("error")
        await ears.send(type="typing", cid=cid, on=True)
        second = await ears.until("error")

    assert first["code"] == second["code"] == "not-found"
    assert len((await ann.history(cid))["messages"]) == 1


async def test_a_message_of_another_conversation_is_not_found(house, stage):
    ann, _, _, _, message = stage
    other = house.room(ann)

    reply = await ann.http.get(f"/v1/conversations/{other}/messages/{message['id']}")

    assert reply.status_code == 404


async def test_only_members_hear_a_message(house, stage):
    ann, bob, eve, cid, _ = stage
    common = house.room(ann, bob, eve)
    async with bob.socket() as near, eve.socket() as far:
        await far.until("hello")
        await ann.text(cid, "secret")
        await ann.text(common, "open")

        assert (await near.until("message.new"))["message"]["text"] == "secret"
        assert (await far.until("message.new"))["message"]["text"] == "open"


async def test_who_was_removed_does_not_even_read_its_own_back(house, stage):
    ann, bob, _, cid, message = stage
    with house.operator as opened:
        opened.remove(cid, [bob.name])

    for path in ("messages/by-nonce/n1", f"messages/{message['id']}", "messages", "members"):
        assert (await bob.http.get(f"/v1/conversations/{cid}/{path}")).status_code == 404
    assert (await bob.text(cid, nonce="n1")).status_code == 404
    assert len((await ann.history(cid))["messages"]) == 1
