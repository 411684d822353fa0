"""The live line against servers that close, refuse, freeze, talk nonsense or hand the account to somebody else."""

import asyncio
import json
import logging
import random

import pytest
from websockets.asyncio.server import serve

from sentinel.core.errors import Unauthorized
from sentinel.core.persona import Secret
from sentinel.core.ports import Connected, Disconnected, MembersChanged, Rang, Superseded
from sentinel.rooms.hoop import HoopRoom
from sentinel.rooms.timing import Timing
from tests.rooms.conftest import HELLO, TOKEN, listening, never_ponging


def letter(cid="c1", seq=1):
    return json.dumps({"type": "message.new", "message": {"id": "m", "cid": cid, "seq": seq, "text": "x"}})


async def greet(socket, n):
    await socket.send(HELLO)
    await socket.wait_closed()


async def take(bells, count):
    return [await anext(bells) for _ in range(count)]


async def until(condition):
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.001)


# What is heard.


async def test_connected_comes_after_hello_and_before_the_first_ring(live):
    async def talk(socket, n):
        await socket.send(HELLO)
        await socket.send(letter(seq=7))
        await socket.wait_closed()

    server, room = await live(talk)

    assert await take(room.doorbells(), 2) == [Connected(0), Rang("c1", 7)]
    assert server.handshakes[0].headers["Authorization"] == f"Bearer {TOKEN}"
    assert server.handshakes[0].path == "/v1/ws"
    assert "Sec-WebSocket-Extensions" not in server.handshakes[0].headers


async def test_members_who_come_and_go_are_told(live):
    async def talk(socket, n):
        await socket.send(HELLO)
        await socket.send(json.dumps({"type": "member.joined", "cid": "c1", "uid": "u"}))
        await socket.send(json.dumps({"type": "member.left", "cid": "c2", "uid": "u"}))
        await socket.wait_closed()

    _, room = await live(talk)

    assert (await take(room.doorbells(), 3))[1:] == [MembersChanged("c1"), MembersChanged("c2")]


async def test_what_is_no_use_is_ignored_and_garbage_is_counted(live):
    garbage = [
        "",
        "{",
        "[]",
        "[" * 100_000,
        b"\x00\xff",
        '{"type": 7}',
        '{"type": "message.new"}',
        '{"type": "message.new", "message": {"cid": "c1"}}',
        '{"type": "message.new", "message": {"cid": "c1", "seq": "many"}}',
        '{"type": "member.left"}',
        '{"type": "from.the.future", "cid": "c1"}',
        '{"type": "ack", "ref": 1}',
        '{"type": "error", "code": "x", "detail": "y"}',
    ]

    async def talk(socket, n):
        await socket.send(HELLO)
        await socket.send('{"type": "presence", "uid": "u", "state": "idle", "detail": null}')
        await socket.send('{"type": "typing", "cid": "c1", "uid": "u", "on": true}')
        for frame in garbage:
            await socket.send(frame)
        await socket.send(letter())
        await socket.wait_closed()

    _, room = await live(talk)

    assert (await take(room.doorbells(), 2))[1] == Rang("c1", 1)
    assert room.ignored_frames == len(garbage)


async def test_a_frame_at_the_limit_is_taken_and_one_beyond_it_only_costs_the_line(live):
    async def talk(socket, n):
        await socket.send(HELLO)
        await socket.send(letter()[:-1] + ", " + '"pad": "' + "x" * (1024 * 1024 - 200) + '"}')
        await socket.send('{"type": "typing", "pad": "' + "x" * (2 * 1024 * 1024) + '"}')
        await socket.wait_closed()

    _, room = await live(talk)

    assert [type(one) for one in await take(room.doorbells(), 4)] == [
        Connected,
        Rang,
        Disconnected,
        Connected,
    ]


# Lost lines.


@pytest.mark.parametrize("code", [1000, 1001, 1011, 4408, 4429])
async def test_a_closed_line_reconnects(live, code):
    async def talk(socket, n):
        await socket.send(HELLO)
        if n == 1:
            await socket.close(code)
        await socket.wait_closed()

    _, room = await live(talk)
    bells = await take(room.doorbells(), 3)

    assert bells[0] == Connected(0)
    assert isinstance(bells[1], Disconnected)
    assert str(code) in bells[1].why
    assert bells[2] == Connected(1)


async def test_a_cut_line_reconnects(live):
    async def talk(socket, n):
        await socket.send(HELLO)
        if n == 1:
            socket.transport.abort()
        await socket.wait_closed()

    _, room = await live(talk)
    bells = await take(room.doorbells(), 3)

    assert [type(one) for one in bells] == [Connected, Disconnected, Connected]
    assert "1006" in bells[1].why


async def test_nobody_there_is_tried_again_and_again(opened, clock):
    room = opened("http://127.0.0.1:1", timing=Timing(), draw=lambda: 1.0)
    bells = await take(room.doorbells(), 8)

    assert [one.retry_in_s for one in bells] == [1, 2, 4, 8, 16, 30, 30, 30]
    assert clock.slept == [1, 2, 4, 8, 16, 30, 30]  # the last wait begins when the next doorbell is asked for


async def test_a_server_that_greets_and_closes_is_not_hammered(live, clock):
    """Facts: the library alone made 554 connections a second against such a server."""

    async def talk(socket, n):
        await socket.send(HELLO)
        await socket.close()

    server, room = await live(talk, draw=random.Random(1).random)

    bells = room.doorbells()
    while sum(clock.slept) < 120:
        await anext(bells)

    assert len(server.handshakes) <= 12


async def test_a_useful_message_makes_the_next_wait_short_again(live, clock):
    async def talk(socket, n):
        await socket.send(HELLO)
        if n == 4:
            await socket.send(letter())
        await socket.close()

    _, room = await live(talk, draw=lambda: 1.0)
    lost = []
    bells = room.doorbells()
    while len(lost) < 5:
        bell = await anext(bells)
        lost += [bell.retry_in_s] if isinstance(bell, Disconnected) else []

    assert lost == [1, 2, 4, 1, 2]


async def test_a_line_that_was_long_up_was_a_good_one(live):
    async def talk(socket, n):
        await socket.send(HELLO)
        await socket.close()

    _, room = await live(talk, draw=lambda: 1.0, steady_s=0.0)
    bells = await take(room.doorbells(), 6)

    assert [one.retry_in_s for one in bells if isinstance(one, Disconnected)] == [1, 1, 1]


async def test_a_frozen_peer_is_noticed(opened):
    async with listening(never_ponging) as url:
        room = opened(url, ping_every_s=0.02, ping_answer_s=0.05)
        bells = room.doorbells()
        first, second = await take(bells, 2)
        await bells.aclose()
        await room.aclose()

    assert first == Connected(0)
    assert isinstance(second, Disconnected)
    assert "keepalive" in second.why


def test_the_longest_deafness_is_well_inside_a_minute():
    timing = Timing()

    assert 2 * timing.ping_every_s + timing.ping_answer_s < 60


async def test_a_server_that_never_greets_is_left(live):
    async def talk(socket, n):
        await socket.wait_closed()

    server, room = await live(talk, hello_s=0.05)
    bells = room.doorbells()

    bell = await anext(bells)

    assert isinstance(bell, Disconnected)
    assert "greet" in bell.why
    await until(lambda: server.open == 0)  # not left half open


async def test_a_server_that_never_answers_the_handshake_is_left(opened):
    async def silent(reader, writer):
        await reader.read()
        writer.close()

    async with listening(silent) as url:
        room = opened(url, open_s=0.05)
        bell = await anext(room.doorbells())
        await room.aclose()

    assert isinstance(bell, Disconnected)


# Refusals.


@pytest.mark.parametrize("status", [401, 403])
async def test_a_refused_token_ends_it_at_once(live, status):
    server, room = await live(greet, before=lambda socket, n: socket.respond(status, "no"))

    with pytest.raises(Unauthorized):
        await anext(room.doorbells())

    assert len(server.handshakes) == 1


@pytest.mark.parametrize("after_hello", [True, False])
async def test_a_token_revoked_on_the_open_line_ends_it_at_once(live, after_hello):
    async def talk(socket, n):
        if after_hello:
            await socket.send(HELLO)
        await socket.close(4401)

    server, room = await live(talk)
    bells = room.doorbells()

    with pytest.raises(Unauthorized):
        await take(bells, 2)

    assert len(server.handshakes) == 1


async def test_429_waits_as_long_as_it_is_told(live, clock):
    def busy(socket, n):
        if n > 1:
            return None
        answer = socket.respond(429, "busy")
        answer.headers["Retry-After"] = "77"
        return answer

    _, room = await live(greet, before=busy)

    first, second = await take(room.doorbells(), 2)

    assert (first.retry_in_s, second) == (77, Connected(0))
    assert clock.slept == [77]


@pytest.mark.parametrize("status", [302, 404, 410, 500, 503])
async def test_other_answers_are_tried_again(live, status):
    def once(socket, n):
        if n > 1:
            return None
        answer = socket.respond(status, "no")
        answer.headers["Location"] = "ws://127.0.0.1:1/v1/ws"
        return answer

    _, room = await live(greet, before=once)

    first, second = await take(room.doorbells(), 2)

    assert isinstance(first, Disconnected)
    assert str(status) in first.why
    assert second == Connected(0)


async def test_a_redirect_of_the_live_line_is_not_followed(live):
    elsewhere, _ = await live(greet)

    def away(socket, n):
        answer = socket.respond(307, "over there")
        answer.headers["Location"] = elsewhere.url.replace("http", "ws") + "/v1/ws"
        return answer

    _, room = await live(greet, before=away)

    assert isinstance(await anext(room.doorbells()), Disconnected)
    assert elsewhere.handshakes == []


# Taken over.


async def test_superseded_is_told_and_ends_it(live):
    async def talk(socket, n):
        await socket.send(HELLO)
        await socket.send('{"type": "session.superseded"}')
        await socket.wait_closed()

    server, room = await live(talk)

    assert [one async for one in room.doorbells()] == [Connected(0), Superseded()]
    assert len(server.handshakes) == 1


async def test_a_line_that_we_replaced_ourselves_ends_quietly(live):
    sockets = []

    async def talk(socket, n):
        sockets.append(socket)
        await socket.send(HELLO)
        await socket.wait_closed()

    server, room = await live(talk)
    older, newer = room.doorbells(), room.doorbells()
    await anext(older)
    await anext(newer)

    await sockets[0].send('{"type": "session.superseded"}')
    await sockets[1].send(letter())

    assert [one async for one in older] == []
    assert await anext(newer) == Rang("c1", 1)
    assert len(server.handshakes) == 2


async def test_an_older_line_that_we_replaced_does_not_fight_back(live):
    sockets = []

    async def talk(socket, n):
        sockets.append(socket)
        await socket.send(HELLO)
        await socket.wait_closed()

    server, room = await live(talk)
    older, newer = room.doorbells(), room.doorbells()
    await anext(older)
    await anext(newer)

    await sockets[0].close(1000)

    assert [one async for one in older] == []
    assert len(server.handshakes) == 2


# Typing, the end, the token.


async def test_typing_goes_over_the_line(live):
    heard = []

    async def talk(socket, n):
        await socket.send(HELLO)
        heard.append(json.loads(await socket.recv()))
        await socket.wait_closed()

    _, room = await live(talk)
    await anext(bells := room.doorbells())

    await room.typing("c1", on=True)

    await until(lambda: heard)
    assert heard == [{"type": "typing", "cid": "c1", "on": True}]
    await bells.aclose()


async def test_typing_without_a_line_is_lost_quietly(live):
    async def talk(socket, n):
        await socket.send(HELLO)
        await socket.close()

    _, room = await live(talk)
    await room.typing("c1", on=True)
    bells = room.doorbells()
    await anext(bells)
    await anext(bells)

    await room.typing("c1", on=False)


async def test_cancelling_the_listener_closes_the_socket_promptly(live):
    server, room = await live(greet)

    async def listen():
        async for _ in room.doorbells():
            pass

    listening_task = asyncio.create_task(listen())
    await until(lambda: server.open == 1)
    listening_task.cancel()
    async with asyncio.timeout(1):
        with pytest.raises(asyncio.CancelledError):
            await listening_task

    await until(lambda: server.open == 0)


async def test_cancelling_during_the_wait_between_lines_ends_it(opened):
    released = asyncio.Event()

    async def sleep(seconds):
        released.set()
        await asyncio.Event().wait()

    room = opened("http://127.0.0.1:1")
    room._live._sleep = sleep

    async def listen():
        async for _ in room.doorbells():
            pass

    task = asyncio.create_task(listen())
    await released.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_closing_the_room_ends_its_iterator(live):
    server, room = await live(greet)
    bells = room.doorbells()
    await anext(bells)

    await room.aclose()

    assert [one async for one in bells] == []
    await until(lambda: server.open == 0)


@pytest.mark.parametrize(
    "closed",
    [
        pytest.param(True, id="room-closed"),
        pytest.param(False, id="nothing-closed", marks=pytest.mark.filterwarnings("ignore::ResourceWarning")),
    ],
)
def test_a_loop_that_ends_closes_a_forgotten_iterator_without_complaint(closed):
    complaints = []

    async def main():
        asyncio.get_running_loop().set_exception_handler(lambda _, what: complaints.append(what))
        async with serve(lambda socket: greet(socket, 1), "127.0.0.1", 0) as server:
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            room = HoopRoom(url, Secret(TOKEN), draw=lambda: 0.5)
            bells.append(room.doorbells())
            await anext(bells[0])
            if closed:
                await room.aclose()

    bells = []
    asyncio.run(main())

    assert complaints == []


async def test_the_token_reaches_no_log(live, caplog):
    caplog.set_level(logging.DEBUG)
    _, room = await live(greet, before=lambda socket, n: socket.respond(500, TOKEN) if n == 1 else None)

    first, _ = await take(room.doorbells(), 2)

    client = [one for one in caplog.records if not one.name.startswith("websockets.server")]
    assert TOKEN not in "".join(one.getMessage() for one in client)
    assert TOKEN not in first.why


@pytest.mark.parametrize("failures", [1, 2, 6, 10_000])
def test_backoff_is_jittered_between_half_and_whole(failures):
    timing = Timing()
    whole = min(30.0, 2.0 ** min(failures - 1, 10))

    assert timing.backoff_s(failures, draw=0.0) == whole / 2
    assert timing.backoff_s(failures, draw=1.0) == whole
