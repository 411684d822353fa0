"""A request that never becomes whole holds no connection for ever, and a giant head is not taken in (time and size limits)."""

import asyncio
import contextlib

from tests.server.hoop_house import house_of


async def asked(url, head, *pieces):
    """Send a request in pieces over a socket of our own; return what came back before the server hung up."""
    host, _, port = url.removeprefix("http://").rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        writer.write(head)
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        async with asyncio.timeout(20):
            return await reader.read()
    except ConnectionResetError:
        return b""
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def test_a_body_that_pauses_is_answered_408_and_hung_up(tmp_path):
    async with house_of(tmp_path, body_silence_s=0.2) as house:
        head = b"POST /v1/auth/otp/request HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n"

        answer = await asked(house.url, head, b'{"account"')

    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"did not arrive in time" in answer


async def test_a_giant_head_is_refused(tmp_path):
    async with house_of(tmp_path) as house:
        head = b"GET /v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Big: "

        answer = await asked(house.url, head, *[b"x" * 65_536] * 4)

    assert answer == b"" or answer.startswith(b"HTTP/1.1 4")
