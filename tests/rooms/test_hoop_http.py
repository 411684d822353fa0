"""The HOOP client against servers that fail: what is repeated, what never is, and what each failure is called."""

import asyncio
import io
import json
import logging
import tempfile

import pytest

from sentinel.core.errors import (
    ConfigError,
    NonceConflict,
    NotFound,
    RateLimited,
    Rejected,
    Unauthorized,
    Unavailable,
)
from sentinel.core.model import Account, Kind, Media, MessageType, Outgoing, PresenceState
from sentinel.core.persona import Secret
from sentinel.rooms.hoop import HoopRoom
from sentinel.rooms.open import open_room
from tests.rooms.conftest import CUT, HANG, TOKEN, reply

ME = {"uid": "u-gode", "name": "Gode", "kind": "persona"}
GODE = Account("u-gode", "Gode", Kind.PERSONA)
MESSAGE = {
    "id": "m1",
    "cid": "c1",
    "seq": 1,
    "sender": ME,
    "sent_at": "2026-01-01T00:00:00.000Z",
    "type": "text",
    "text": "hello",
    "mentions": [],
    "broadcast": False,
    "answers": [],
    "nonce": "n1",
    "hops": 1,
}
POST = Outgoing("hello", "n1")


# Reads are repeated inside a short bound.


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(CUT, id="server-disconnected"),
        pytest.param(HANG, id="read-time-out"),
        pytest.param(reply(500), id="500"),
        pytest.param(reply(503), id="503"),
        pytest.param(reply(429, retry_after="1"), id="429"),
        pytest.param((b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{", "cut"), id="truncated"),
        pytest.param((b"nonsense\r\n\r\n", "cut"), id="no-http"),
    ],
)
async def test_a_read_is_repeated(scripted, fault):
    server, room = await scripted(fault, reply(200, ME))

    assert await room.who_am_i() == GODE
    assert len(server.requests) == 2


async def test_a_read_gives_up_after_three_tries_and_waits_with_jitter(scripted, clock):
    server, room = await scripted(reply(500), reply(500), reply(500), reply(200, ME), draw=lambda: 0.0)

    with pytest.raises(Unavailable):
        await room.who_am_i()

    assert len(server.requests) == 3
    assert clock.slept == [0.05, 0.2]


async def test_a_read_waits_as_long_as_it_is_told(scripted, clock):
    _, room = await scripted(reply(429, retry_after="2"), reply(200, ME))

    await room.who_am_i()

    assert clock.slept == [2.0]


async def test_a_long_retry_after_is_the_callers_business(scripted, clock):
    server, room = await scripted(reply(429, retry_after="30"), reply(200, ME))

    with pytest.raises(RateLimited) as caught:
        await room.who_am_i()

    assert caught.value.retry_after_s == 30
    assert len(server.requests) == 1
    assert clock.slept == []


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413, 422])
async def test_a_definite_refusal_is_not_repeated(scripted, status):
    server, room = await scripted(reply(status), reply(200, ME))

    with pytest.raises((Rejected, Unauthorized)):
        await room.who_am_i()

    assert len(server.requests) == 1


async def test_a_connection_that_died_in_the_pool_is_only_a_retry(scripted):
    server, room = await scripted(reply(200, ME), reply(200, ME))
    await room.who_am_i()
    server.writers[0].transport.abort()

    assert await room.who_am_i() == GODE
    assert server.connections == 2


async def test_connections_are_kept_between_calls(scripted):
    server, room = await scripted(reply(200, ME), reply(200, ME), reply(200, ME))

    for _ in range(3):
        await room.who_am_i()

    assert server.connections == 1


async def test_an_idle_connection_is_dropped_before_the_server_drops_it(scripted):
    server, room = await scripted(reply(200, ME), reply(200, ME), keepalive_s=0.0)

    await room.who_am_i()
    await room.who_am_i()

    assert server.connections == 2


async def test_a_dripping_answer_meets_the_limit_of_the_whole_call(opened):
    async def drip(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n")
        try:
            while True:
                writer.write(b" ")
                await asyncio.sleep(0.01)  # the fault itself, not a wait for something
        finally:
            writer.close()

    from tests.rooms.conftest import listening

    async with listening(drip) as url:
        room = opened(url, call_s=0.3)
        with pytest.raises(Unavailable, match=r"no whole answer in 0\.3 s"):
            await room.who_am_i()
        await room.aclose()


async def test_presence_is_repeated_and_carries_the_detail(scripted):
    server, room = await scripted(CUT, reply(204))

    await room.presence(PresenceState.FAILING, "quota")

    assert [one.method for one in server.requests] == ["PUT", "PUT"]
    assert json.loads(server.requests[1].body) == {"state": "failing", "detail": "quota"}


# A post goes out once.


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(CUT, id="server-disconnected"),
        pytest.param(HANG, id="read-time-out"),
        pytest.param(reply(500), id="500"),
        pytest.param(reply(502), id="502"),
        pytest.param(reply(503), id="503"),
        pytest.param(reply(504), id="504"),
        pytest.param((b"HTTP/1.1 201 C\r\ncontent-length: 500\r\n\r\n{", "cut"), id="truncated"),
        pytest.param(reply(201, b"<html>"), id="not-json"),
        pytest.param(reply(201, {"id": "m1"}), id="not-a-message"),
        pytest.param(reply(302, location="/elsewhere"), id="redirect"),
    ],
)
async def test_a_post_that_may_have_been_applied_is_never_repeated(scripted, fault):
    server, room = await scripted(fault, reply(201, MESSAGE))

    with pytest.raises(Unavailable):
        await room.post("c1", POST)

    assert len(server.requests) == 1


async def test_a_lost_answer_says_that_the_post_may_have_been_applied(scripted):
    _, room = await scripted(CUT)

    with pytest.raises(Unavailable, match="may have been applied"):
        await room.post("c1", POST)


async def test_a_post_that_finds_nobody_is_unavailable_too(opened):
    room = opened("http://127.0.0.1:1")

    with pytest.raises(Unavailable, match="no connection"):
        await room.post("c1", POST)


async def test_a_post_meets_429_once_and_tells_the_wait(scripted):
    server, room = await scripted(reply(429, retry_after="1"), reply(201, MESSAGE))

    with pytest.raises(RateLimited) as caught:
        await room.post("c1", POST)

    assert caught.value.retry_after_s == 1
    assert len(server.requests) == 1


async def test_reads_that_hang_do_not_hold_up_a_post(scripted):
    server, room = await scripted(*[HANG] * 8, reply(201, MESSAGE), read_s=2)
    reads = [asyncio.create_task(room.who_am_i()) for _ in range(20)]
    while len(server.requests) < 8:
        await asyncio.sleep(0)

    posted = await room.post("c1", POST)

    assert posted.id == "m1"
    for read in reads:
        read.cancel()
    await asyncio.gather(*reads, return_exceptions=True)


async def test_every_field_of_a_post_goes_out(scripted):
    server, room = await scripted(reply(201, MESSAGE), reply(201, MESSAGE))
    whole = Outgoing(
        text="t",
        nonce="n",
        mentions=("u-a",),
        broadcast=True,
        reply_to="m0",
        answers=("m0", "m-1"),
        hops=2,
    )

    await room.post("c1", whole)
    await room.post("c1", Outgoing(text=None, nonce="n2", type=MessageType.VOICE, media_id="f1"))

    assert [one.target for one in server.requests] == [
        "/v1/conversations/c1/text",
        "/v1/conversations/c1/media",
    ]
    assert json.loads(server.requests[0].body) == {
        "text": "t",
        "nonce": "n",
        "mentions": ["u-a"],
        "broadcast": True,
        "reply_to": "m0",
        "answers": ["m0", "m-1"],
        "hops": 2,
    }
    assert json.loads(server.requests[1].body) == {"type": "voice", "nonce": "n2", "media_id": "f1"}


@pytest.mark.parametrize(
    ("outgoing", "status"),
    [
        pytest.param(Outgoing("x" * 20_001, "n"), 413, id="too-long"),
        pytest.param(Outgoing("  ", "n"), 422, id="blank"),
        pytest.param(Outgoing("x", "a nonce with spaces"), 422, id="nonce"),
        pytest.param(Outgoing("x\ud800", "n"), 422, id="lone-surrogate"),
        pytest.param(Outgoing(None, "n", type=MessageType.IMAGE), 422, id="no-media"),
    ],
)
async def test_a_post_that_cannot_be_right_is_refused_here(scripted, outgoing, status):
    server, room = await scripted()

    with pytest.raises(Rejected) as caught:
        await room.post("c1", outgoing)

    assert caught.value.status == status
    assert server.requests == []


async def test_a_text_at_the_limit_goes_out(scripted):
    server, room = await scripted(reply(201, MESSAGE))

    await room.post("c1", Outgoing("界" * 20_000, "n"))

    assert json.loads(server.requests[0].body)["text"] == "界" * 20_000


# What each answer is called.


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, Rejected),
        (401, Unauthorized),
        (403, Rejected),
        (404, NotFound),
        (409, NonceConflict),
        (413, Rejected),
        (422, Rejected),
        (429, RateLimited),
        (500, Unavailable),
        (599, Unavailable),
    ],
)
async def test_a_post_answered_with_a_status(scripted, status, error):
    _, room = await scripted(reply(status, {"title": "no", "status": status, "detail": "because of this"}))

    with pytest.raises(error, match="because of this") as caught:
        await room.post("c1", POST)

    assert type(caught.value) is error
    if isinstance(caught.value, Rejected):
        assert caught.value.status == status


async def test_a_refusal_whose_explanation_is_cut_off_is_still_a_refusal(scripted):
    _, room = await scripted((b"HTTP/1.1 422 X\r\ncontent-length: 500\r\n\r\n{", "cut"))

    with pytest.raises(Rejected) as caught:
        await room.post("c1", POST)

    assert caught.value.status == 422


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>hello</html>",
        b"[]",
        b'{"uid": 7}',
        b'{"uid": "u", "name": "n", "kind": "robot"}',
        b"[" * 100_000,
        b'{"uid": "\xff"}',
    ],
)
async def test_an_answer_that_is_not_hoop(scripted, body):
    _, room = await scripted(reply(200, body))

    with pytest.raises(Unavailable, match="not HOOP v1"):
        await room.who_am_i()


async def test_a_time_that_no_calendar_holds_is_not_hoop(scripted):
    _, room = await scripted(reply(200, MESSAGE | {"sent_at": "0001-01-01T00:00:00+14:00"}))

    with pytest.raises(Unavailable, match="not HOOP v1"):
        await room.find("c1", "m1")


async def test_what_was_received_never_stands_in_the_error(scripted):
    _, room = await scripted(reply(200, MESSAGE | {"seq": "a private word"}))

    with pytest.raises(Unavailable) as caught:
        await room.find("c1", "m1")

    assert "private" not in str(caught.value)
    assert caught.value.__cause__ is None


async def test_unknown_fields_of_a_newer_server_are_ignored(scripted):
    _, room = await scripted(reply(200, ME | {"colour": "blue"}))

    assert await room.who_am_i() == GODE


async def test_a_compressed_answer_is_refused(scripted):
    _, room = await scripted(*[reply(200, b"xx", content_encoding="gzip")] * 3)

    with pytest.raises(Unavailable, match="compressed"):
        await room.who_am_i()


async def test_an_answer_without_end_is_cut_off(scripted, monkeypatch):
    monkeypatch.setattr("sentinel.rooms.hoop_http.BODY_LIMIT_BYTES", 1000)
    _, room = await scripted(*[reply(200, b"x" * 1001)] * 3)

    with pytest.raises(Unavailable, match="no end"):
        await room.who_am_i()


async def test_a_nonce_that_nobody_knows_is_none(scripted):
    _, room = await scripted(reply(404))

    assert await room.find_by_nonce("c1", "n1") is None


@pytest.mark.parametrize(("limit", "asked"), [(200, 200), (5000, 200), (7, 7), (0, 1)])
async def test_history_asks_for_at_most_two_hundred(scripted, limit, asked):
    server, room = await scripted(reply(200, {"messages": [], "has_more": False}))

    await room.history("c1", after=41, limit=limit)

    assert server.requests[0].target == f"/v1/conversations/c1/messages?after=41&limit={asked}"


async def test_an_id_cannot_change_which_call_it_is(scripted):
    server, room = await scripted(reply(200, MESSAGE))

    await room.find("c1/../../me?x=#", "m1")
    with pytest.raises(Rejected):
        await room.find("..", "m1")

    assert [one.target for one in server.requests] == [
        "/v1/conversations/c1%2F..%2F..%2Fme%3Fx%3D%23/messages/m1"
    ]


# Media.


def media(url="/v1/media/f1", size=4):
    return Media("f1", url, "image/png", size)


async def test_a_download_is_repeated_from_its_start(scripted):
    server, room = await scripted(
        (b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nda", "cut"), reply(200, b"data")
    )
    with tempfile.TemporaryFile() as into:
        into.write(b"before:")

        assert await room.download(media(), into, cap_bytes=4) == 4

        into.seek(0)
        assert into.read() == b"before:data"
    assert len(server.requests) == 2


async def test_a_download_that_fails_for_good_leaves_the_file_as_it_was(scripted):
    cut = (b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nda", "cut")
    _, room = await scripted(cut, cut, cut)
    into = io.BytesIO(b"before:")
    into.seek(7)

    with pytest.raises(Unavailable):
        await room.download(media(), into, cap_bytes=4)

    assert into.getvalue() == b"before:"
    assert into.tell() == 7


@pytest.mark.parametrize("size", [4, 5], ids=["a-lie", "said-so"])
async def test_a_download_past_the_cap_leaves_nothing_behind(scripted, size):
    _, room = await scripted(reply(200, b"12345"))
    into = io.BytesIO()

    with pytest.raises(Rejected) as caught:
        await room.download(media(size=size), into, cap_bytes=4)

    assert caught.value.status == 413
    assert into.getvalue() == b""


async def test_a_full_disk_is_not_taken_for_a_bad_connection(scripted):
    class Full(io.BytesIO):
        def write(self, data):
            raise OSError(28, "No space left on device")

    server, room = await scripted(reply(200, b"data"))

    with pytest.raises(OSError, match="No space left"):
        await room.download(media(), Full(), cap_bytes=4)

    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "url",
    [
        "http://elsewhere.example/v1/media/f1",
        "//elsewhere.example/v1/media/f1",
        "/\\elsewhere.example/f1",
        "http://127.0.0.1:1/v1/media/f1",
        "https://127.0.0.1/v1/media/f1",
        "file:///etc/passwd",
        "http://[::1",
        "",
    ],
)
async def test_the_token_goes_to_no_other_origin(scripted, url):
    server, room = await scripted(reply(200, b"data"))

    with pytest.raises(Rejected, match="another server"):
        await room.download(media(url), io.BytesIO(), cap_bytes=4)

    assert server.requests == []


async def test_an_absolute_address_of_the_same_origin_is_fetched(scripted):
    server, room = await scripted(reply(200, b"data"))

    await room.download(media(server.url + "/v1/media/f1"), io.BytesIO(), cap_bytes=4)

    assert server.requests[0].target == "/v1/media/f1"


async def test_a_redirect_is_not_followed(scripted):
    other, _ = await scripted(reply(200, b"data"))
    _, room = await scripted(*[reply(302, location=other.url)] * 3)

    with pytest.raises(Unavailable, match="points elsewhere"):
        await room.download(media(), io.BytesIO(), cap_bytes=4)

    assert other.requests == []


async def test_an_upload_goes_out_once_with_its_type_and_name(scripted):
    answer = {"id": "f1", "url": "/v1/media/f1", "type": "image/png", "size": 4}
    server, room = await scripted(reply(201, answer), CUT)

    stored = await room.upload(b"\x00\xffab", content_type="image/png", name="a b&c.png")
    with pytest.raises(Unavailable):
        await room.upload(b"x", content_type="image/png", name="x")

    assert stored == media()
    assert server.requests[0].target == "/v1/media?name=a%20b%26c.png"
    assert server.requests[0].headers["content-type"] == "image/png"
    assert server.requests[0].body == b"\x00\xffab"
    assert len(server.requests) == 2


async def test_an_upload_over_the_limit_is_refused_here(scripted):
    server, room = await scripted()

    with pytest.raises(Rejected) as caught:
        await room.upload(bytes(25 * 1024 * 1024 + 1), content_type="image/png", name="x")

    assert caught.value.status == 413
    assert server.requests == []


# The token.


async def test_the_token_stands_in_the_header_alone(scripted, caplog):
    caplog.set_level(logging.DEBUG)
    echo = reply(422, {"detail": f"you sent Bearer {TOKEN}"})
    server, room = await scripted(reply(200, ME), echo, CUT)

    await room.who_am_i()
    texts = []
    for _ in range(2):
        with pytest.raises((Rejected, Unavailable)) as caught:
            await room.post("c1", POST)
        texts.append(f"{caught.value!r} {caught.value}")

    assert server.requests[0].headers["authorization"] == f"Bearer {TOKEN}"
    assert all(TOKEN not in one.target for one in server.requests)
    assert TOKEN not in caplog.text + repr(texts) + repr(vars(room))


async def test_a_proxy_of_the_environment_never_sees_a_plain_call(scripted, monkeypatch):
    proxy, _ = await scripted()
    monkeypatch.setenv("http_proxy", proxy.url)
    monkeypatch.setenv("https_proxy", proxy.url)
    monkeypatch.setenv("all_proxy", proxy.url)
    _, room = await scripted(reply(200, ME))

    await room.who_am_i()

    assert proxy.requests == []


@pytest.mark.parametrize("token", ["", "two words", "line\nbreak", "snöwman", "a\x00b"])
def test_a_token_that_is_none_is_refused_without_being_shown(token):
    with pytest.raises(ConfigError) as caught:
        HoopRoom("http://127.0.0.1:1", Secret(token), draw=lambda: 0.5)

    assert not token or token not in str(caught.value)


@pytest.mark.parametrize(
    "server",
    [
        "",
        "127.0.0.1:8000",
        "ftp://host",
        "http://",
        "http://ann:pw@host",
        "http://host:99999",
        "http://host:0",
        "http://host/?q",
        "http://host/#f",
        "http://ho st",
        "http://höst",
        "http://[::1",
        "matrix+https://host",
    ],
)
def test_an_address_that_cannot_be_used(server):
    with pytest.raises(ConfigError) as caught:
        open_room(server, Secret("t"))

    assert "pw" not in str(caught.value)


async def test_open_room_speaks_hoop_beneath_a_path(scripted):
    server, _ = await scripted(reply(200, ME))
    room = open_room(server.url + "/hoop/", Secret(TOKEN))

    await room.who_am_i()
    await room.aclose()

    assert server.requests[0].target == "/hoop/v1/me"
