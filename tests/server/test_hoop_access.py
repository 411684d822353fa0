"""What the operator does beside a running server takes effect there at once."""

import contextlib

import pytest
import websockets


@pytest.fixture
def stage(house):
    ann, gode = house.person("ann"), house.persona("Gode")
    return ann, gode, house.room(ann, gode)


@pytest.mark.parametrize("act", ["disable", "rotate"])
async def test_a_withdrawn_token_ends_calls_and_sockets(house, stage, act):
    ann, gode, _cid = stage
    async with gode.socket() as ears:
        await ears.until("hello")
        with house.operator as opened:
            getattr(opened, act)(gode.name)

        assert (await gode.http.get("/v1/me")).status_code == 401
        assert (await ears.closed())[0] == 4401
    assert (await ann.http.get("/v1/me")).status_code == 200


async def test_a_withdrawn_socket_neither_hears_nor_speaks_from_the_next_message_on(house, stage):
    """The once-a-second look is only for silence: each frame and each fan-out looks for itself."""
    ann, gode, cid = stage
    async with gode.socket() as ears:
        await ears.until("hello")
        with house.operator as opened:
            opened.disable(gode.name)
        await ears.send(type="message.send", ref=1, cid=cid, text="too late")
        await ann.text(cid, "secret")
        heard = []
        with contextlib.suppress(websockets.ConnectionClosed):
            while True:
                heard.append((await ears.next())["type"])

    assert ears.ws.close_code == 4401
    assert {"message.new", "ack"}.isdisjoint(heard)
    assert [one["text"] for one in (await ann.history(cid))["messages"]] == ["secret"]


async def test_rotate_gives_a_token_that_is_good(house, stage):
    _, gode, _ = stage
    with house.operator as opened:
        gode.token = opened.rotate(gode.name).token

    assert (await gode.http.get("/v1/me")).status_code == 200


async def test_members_hear_who_was_invited_and_removed_by_a_command(house, stage):
    ann, _gode, cid = stage
    bob = house.person("bob")
    async with ann.socket() as near, bob.socket() as far:
        await near.until("hello")
        await far.until("hello")
        with house.operator as opened:
            opened.invite(cid, [bob.name])
        joined = [await ears.until("member.joined") for ears in (near, far)]
        with house.operator as opened:
            opened.remove(cid, [bob.name])
        left = [await ears.until("member.left") for ears in (near, far)]

    assert joined == [{"type": "member.joined", "cid": cid, "uid": bob.uid}] * 2
    assert left == [{"type": "member.left", "cid": cid, "uid": bob.uid}] * 2


async def test_a_removed_member_hears_and_sees_nothing_from_then_on(house, stage):
    ann, gode, cid = stage
    other = house.room(ann, gode)
    async with gode.socket() as ears:
        await ears.until("hello")
        with house.operator as opened:
            opened.remove(cid, [gode.name])
        mentioned = (await ann.text(cid, "secret", mentions=[gode.uid])).json()
        await ann.text(other, "open")
        heard = (await ears.until("message.new"))["message"]["text"]

    assert heard == "open"
    assert mentioned["mentions"] == []
    assert (await gode.http.get(f"/v1/conversations/{cid}/messages")).status_code == 404
