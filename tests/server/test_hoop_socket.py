"""The WebSocket: log-in, frames, presence, typing, superseding, and clients that are too slow or too loud."""

import asyncio
import json
import socket
from urllib.parse import urlsplit

import pytest
import websockets
from hoop_house import Ears, House, HouseProcess, eventually, house_of


@pytest.fixture
def stage(house):
    ann, gode = house.person("ann"), house.persona("Gode")
    return ann, gode, house.room(ann, gode)


async def test_hello_comes_first(stage):
    ann, _, _ = stage
    async with ann.socket() as ears:
        hello = await ears.next()

    assert (hello["type"], hello["uid"]) == ("hello", ann.uid)
    assert hello["server_time"].endswith("Z")


async def test_a_first_frame_logs_in(house, stage):
    ann, _, _ = stage
    async with Ears(house.url) as ears:
        await ears.send(type="auth", token=ann.token)

        assert (await ears.next())["uid"] == ann.uid


@pytest.mark.parametrize(
    "frame",
    [{"type": "auth", "token": "wrong"}, {"type": "typing", "cid": "c", "on": True}, {"type": "auth"}],
    ids=["bad-token", "another-frame", "no-token"],
)
async def test_a_bad_first_frame_is_unauthorized(house, frame):
    async with Ears(house.url) as ears:
        await ears.send(**frame)

        assert (await ears.closed())[0] == 4401


async def test_a_bad_header_is_unauthorized(house):
    async with Ears(house.url, {"Authorization": "Bearer wrong"}) as ears:
        assert (await ears.closed())[0] == 4401


async def test_silence_is_an_auth_timeout(data):
    async with house_of(data, auth_timeout_s=0.05) as house, Ears(house.url) as ears:
        assert (await ears.closed())[0] == 4408


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{", "malformed-json"),
        ("[]", "invalid"),
        ('{"type":"x"}', "unknown-frame"),
        ('{"type":["x"]}', "unknown-frame"),
        ('{"type":"message.send","text":"no cid"}', "invalid"),
        ('{"type":"message.send","cid":"c","text":"x","text":"y"}', "malformed-json"),
        ('{"type":"message.send","cid":"CID","text":" "}', "invalid"),
        ('{"type":"message.send","cid":"CID","text":NaN}', "malformed-json"),
        ('{"type":"message.send","cid":"CID","text":"\\ud800"}', "invalid"),
        ('{"type":"typing","cid":"CID","on":1}', "invalid"),
        ("[" * 100_000, "malformed-json"),
    ],
)
async def test_a_bad_frame_is_an_error_and_the_socket_lives(stage, text, code):
    ann, _, cid = stage
    async with ann.socket() as ears:
        await ears.ws.send(text.replace("CID", cid))
        error = await ears.until("error")
        await ears.send(type="message.send", ref="ok", cid=cid, text="fine")
        ack = await ears.until("ack")

    assert error["code"] == code
    assert (ack["ref"], ack["message"]["seq"]) == ("ok", 1)


async def test_an_error_names_the_frame_it_is_for(stage):
    ann, _, cid = stage
    async with ann.socket() as ears:
        await ears.send(type="message.send", ref="r7", cid=cid, text="x", reply_to="m-none")

        assert (await ears.until("error"))["ref"] == "r7"


async def test_a_frame_over_one_mebibyte_closes_1009_with_its_reason(stage):
    ann, _, _ = stage
    async with ann.socket() as ears:
        await ears.send(type="x" * 1024 * 1024)
        code, reason = await ears.closed()

    assert code == 1009
    assert "exceeds limit" in reason


async def test_the_server_pings(data):
    async with house_of(data, ping_interval_s=0.05) as house:
        pings = []
        ann = house.person("ann")
        async with ann.socket() as ears:
            await ears.until("hello")
            original = ears.ws.protocol.receive_data
            ears.ws.protocol.receive_data = lambda data: (pings.append(data), original(data))
            await eventually(lambda: any(data[:1] == b"\x89" for data in pings))


async def test_presence_is_stated_and_told_to_those_around(house, stage):
    ann, gode, cid = stage
    stranger = house.person("eve")
    async with ann.socket() as near, stranger.socket() as far:
        await far.until("hello")
        async with gode.socket():
            assert (await near.until("presence", uid=gode.uid))["state"] == "idle"
            reply = await gode.http.put("/v1/presence", json={"state": "working", "detail": "12 s"})
            told = await near.until("presence", uid=gode.uid)
            members = (await ann.http.get(f"/v1/conversations/{cid}/members")).json()
        await ann.text(house.room(ann, stranger), "marker")
        before = []
        while (frame := await far.next())["type"] != "message.new":
            before.append(frame)

    assert reply.status_code == 204
    assert (told["state"], told["detail"]) == ("working", "12 s")
    shown = {one["uid"]: (one["state"], one["detail"]) for one in members}
    assert shown[gode.uid] == ("working", "12 s")
    assert all(frame.get("uid") != gode.uid for frame in before)


@pytest.mark.parametrize(
    "body", [{"state": "offline"}, {"state": "happy"}, {}, {"state": "idle", "detail": "x" * 501}]
)
async def test_a_presence_that_is_none_is_refused(stage, body):
    _, gode, _ = stage

    assert (await gode.http.put("/v1/presence", json=body)).status_code == 422


async def state_of(viewer, cid, uid):
    members = (await viewer.http.get(f"/v1/conversations/{cid}/members")).json()
    return next(one["state"] for one in members if one["uid"] == uid)


async def test_offline_is_set_after_the_last_socket_closed(data):
    async with house_of(data, offline_after_s=0.3) as house:
        ann, gode = house.person("ann"), house.persona("Gode")
        cid = house.room(ann, gode)
        never = await state_of(ann, cid, gode.uid)
        async with ann.socket() as ears:
            async with gode.socket() as one, gode.socket() as two:
                await one.until("hello")
                await two.until("hello")
                await gode.http.put("/v1/presence", json={"state": "failing", "detail": "why"})
            just_closed = await state_of(ann, cid, gode.uid)
            gone = await ears.until("presence", uid=gode.uid, state="offline")
        async with gode.socket() as back:
            await back.until("hello")
            again = await state_of(ann, cid, gode.uid)

    assert (never, just_closed, again) == ("offline", "failing", "failing")
    assert gone["detail"] is None


async def test_a_persona_that_reconnects_in_time_never_was_offline(data):
    async with house_of(data, offline_after_s=0.5) as house:
        ann, gode = house.person("ann"), house.persona("Gode")
        cid = house.room(ann, gode)
        async with ann.socket() as ears:
            async with gode.socket() as first:
                await first.until("hello")
            async with gode.socket() as second:
                await second.until("hello")
                await asyncio.sleep(0.6)  # the very time in question
                await ann.text(cid, "marker")
                states = []
                while (frame := await ears.next())["type"] != "message.new":
                    states += [frame["state"]] if frame.get("uid") == gode.uid else []

    assert "offline" not in states


async def test_stated_presence_outlives_the_server(data):
    async with house_of(data) as house:
        ann, gode = house.person("ann"), house.persona("Gode")
        cid = house.room(ann, gode)
        await gode.http.put("/v1/presence", json={"state": "dead", "detail": "401"})
    async with house_of(data) as house:
        ann.url = gode.url = house.url
        ann._clients.clear()
        async with gode.socket() as ears:
            await ears.until("hello")
            state = await state_of(ann, cid, gode.uid)
        await ann.http.aclose()

    assert state == "dead"


async def test_the_older_socket_of_a_persona_is_told_that_it_was_superseded(stage):
    _, gode, _ = stage
    async with gode.socket() as older:
        await older.until("hello")
        async with gode.socket() as newer:
            assert await older.until("session.superseded") == {"type": "session.superseded"}
            await gode.http.put("/v1/presence", json={"state": "working"})
            heard = await newer.until("presence", state="working")

    assert heard["uid"] == gode.uid


async def test_a_human_may_have_several_sockets(stage):
    ann, _, cid = stage
    async with ann.socket() as phone, ann.socket() as desk:
        await desk.until("hello")
        await ann.text(cid)
        types = []
        while (frame := await phone.next())["type"] != "message.new":
            types.append(frame["type"])
        assert (await desk.until("message.new"))["message"]["cid"] == cid

    assert "session.superseded" not in types


async def test_typing_is_shown_to_the_others_and_ends_with_the_socket(stage):
    ann, gode, cid = stage
    async with ann.socket() as ears:
        async with gode.socket() as fingers:
            await fingers.send(type="typing", cid=cid, on=True)
            on = await ears.until("typing")
        off = await ears.until("typing")

    assert on == {"type": "typing", "cid": cid, "uid": gode.uid, "on": True}
    assert off == {**on, "on": False}


def narrow(house):
    """A connection that takes in little at a time."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    address = urlsplit(house.url)
    sock.connect((address.hostname, address.port))
    sock.setblocking(False)
    return sock


async def test_a_slow_client_is_closed_with_4429_and_holds_up_nobody(data):
    async with house_of(data, queue_frames=10) as house:
        ann, bob = house.person("ann"), house.person("bob")
        cid = house.room(ann, bob)
        async with bob.socket(max_queue=1, sock=narrow(house)) as slow:
            await slow.until("hello")
            slow.ws.transport.pause_reading()
            for _ in range(60):  # 3.6 MB: more than narrow buffers and the queue hold
                assert (await ann.text(cid, "界" * 20_000)).status_code == 201
            slow.ws.transport.resume_reading()
            code, reason = await slow.closed()
        missed = await bob.history(cid)

    assert code == 4429
    assert "pull" in reason
    assert len(missed["messages"]) == 60


async def test_posts_by_socket_count_against_the_limit(data):
    async with house_of(data, posts_per_s=0.001, burst=3) as house:
        ann = house.person("ann")
        cid = house.room(ann)
        async with ann.socket() as ears:
            for n in range(4):
                await ears.send(type="message.send", ref=n, cid=cid, text="x")
            error = await ears.until("error")
        over = await ann.text(cid)
        reads = await ann.http.get("/v1/me")

    assert (error["ref"], error["code"]) == (3, "rate-limited")
    assert error["retry_after_s"] > 1
    assert over.status_code == 429
    assert int(over.headers["retry-after"]) > 1
    assert reads.status_code == 200


async def test_reads_are_limited_by_account_and_all_by_address(data):
    async with house_of(data, reads_per_s=0.001, burst=2, address_per_s=0.001, address_burst=5) as house:
        ann, bob = house.person("ann"), house.person("bob")
        by_account = [(await ann.http.get("/v1/me")).status_code for _ in range(3)]
        by_address = [(await bob.http.get("/v1/me")).status_code for _ in range(3)]

    assert by_account == [200, 200, 429]
    assert by_address == [200, 200, 429]


async def test_going_down_is_told_and_clean(data):
    running = HouseProcess(data)
    house = House(running.url, data)
    async with house.person("ann").socket() as ears:
        await ears.until("hello")
        assert running.stop() == 0
        assert (await ears.closed())[0] == 1012
    assert running.errors.read_text() == ""


async def test_an_unknown_socket_path_is_refused(house):
    with pytest.raises(websockets.InvalidStatus):
        async with websockets.connect(house.url.replace("http", "ws") + "/v1/other"):
            pass


async def test_binary_frames_are_read_as_text(stage):
    ann, _, cid = stage
    async with ann.socket() as ears:
        await ears.ws.send(json.dumps({"type": "message.send", "ref": 1, "cid": cid, "text": "x"}).encode())

        assert (await ears.until("ack"))["ref"] == 1
