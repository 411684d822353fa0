"""The HTTP half of the HOOP client: the one module that knows which HTTP library we use.

What may be repeated is repeated here (GET and PUT, three tries, short jittered waits); a POST goes out once, and
whatever breaks it becomes `Unavailable`, because no exception can tell whether it was done. The token stands in a
header and nowhere else; redirects are not followed, cookies are not kept, and no answer is decompressed.

It speaks to httpx's transport, without the client around it: that leaves out cookies, redirects and .netrc by
construction, and a fifth of the time of a call. Source: rooms fact sheet, section 5, numbers 6 to 9.
"""

import asyncio
import ssl
import urllib.request
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import BinaryIO, TypeVar
from urllib.parse import urlsplit

import httpx

from sentinel import __version__
from sentinel.core.errors import RateLimited, Rejected, RoomError, Unavailable
from sentinel.core.persona import Secret
from sentinel.rooms.address import Address
from sentinel.rooms.refusals import refusal
from sentinel.rooms.timing import Timing

USER_AGENT = f"hoop-sentinel/{__version__}"
BODY_LIMIT_BYTES = 32 * 1024 * 1024  # a page of 200 texts of 20,000 characters, each escaped, is 24 MiB
PROBLEM_LIMIT_BYTES = 64 * 1024

T = TypeVar("T")


def tls(address: Address) -> ssl.SSLContext:
    """Return the context for both halves of the client; for plain HTTP one that trusts nobody, as it is never used."""
    return httpx.create_ssl_context() if address.is_secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def proxy(address: Address) -> str | None:
    """Return the proxy of the environment, for https alone: through a plain one it would see the token."""
    host = urlsplit(address.base).netloc
    if not address.is_secure or urllib.request.proxy_bypass(host):
        return None
    return urllib.request.getproxies().get("https")


class HoopHttp:
    """Calls of one account. Every method raises only the room's taxonomy, and ends within its time limit."""

    def __init__(
        self,
        address: Address,
        token: Secret,
        *,
        context: ssl.SSLContext,
        timing: Timing,
        draw: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self._timing = timing
        self._draw = draw
        self._sleep = sleep
        self._secret = token
        self._prefix = len(address.base)
        self._headers = {
            "user-agent": USER_AGENT,
            "accept-encoding": "identity",
            "authorization": f"Bearer {token.reveal()}",
        }
        limits = {
            "connect": timing.connect_s,
            "read": timing.read_s,
            "write": timing.write_s,
            "pool": timing.pool_s,
        }
        self._extensions = {"timeout": limits}
        # Posts have connections of their own: neither a storm of reads nor a slow download can make one wait.
        self._reads = _transport(address, context, timing, connections=8)
        self._posts = _transport(address, context, timing, connections=4)

    async def get(self, url: str) -> bytes:
        """Return the body of a GET."""
        return await self._repeated("GET", url, lambda: self._exchange(self._reads, "GET", url))

    async def put(self, url: str, body: bytes) -> None:
        """PUT a JSON body: what it says holds afterwards however often it arrives."""
        await self._repeated("PUT", url, lambda: self._exchange(self._reads, "PUT", url, body=body))

    async def post(self, url: str, body: bytes) -> bytes:
        """POST a JSON body, once; `Unavailable` means that it may have been applied."""
        call = self._call("POST", url)
        async with self._in_time(call, self._timing.call_s):
            return await self._exchange(self._posts, "POST", url, body=body)

    async def upload(self, url: str, body: bytes, *, content_type: str) -> bytes:
        """POST bytes as they are, once."""
        async with self._in_time(self._call("POST", url), self._timing.transfer_s):
            return await self._exchange(self._reads, "POST", url, body=body, content_type=content_type)

    async def download(self, url: str, into: BinaryIO, *, cap_bytes: int) -> int:
        """Stream the body of a GET into a seekable file, from its position on; return the number of bytes.

        Raises:
            Rejected: it is longer than `cap_bytes`; the file is then as it was.
        """
        start = into.tell()

        async def attempt() -> int:
            try:
                return await self._stream(url, into, cap_bytes)
            except BaseException:
                into.seek(start)
                into.truncate(start)
                raise

        return await self._repeated("GET", url, attempt, limit_s=self._timing.transfer_s)

    async def aclose(self) -> None:
        """Close every connection."""
        await self._reads.aclose()
        await self._posts.aclose()

    async def _repeated(
        self, method: str, url: str, attempt: Callable[[], Awaitable[T]], *, limit_s: float | None = None
    ) -> T:
        async with self._in_time(self._call(method, url), limit_s or self._timing.call_s):
            try:
                return await attempt()
            except (Unavailable, RateLimited) as error:
                if not self._heals(error):
                    raise
                return await self._again(attempt, error)

    async def _again(self, attempt: Callable[[], Awaitable[T]], first: RoomError) -> T:
        """Repeat what failed once. Most calls do not fail, and are spared the machinery and its import."""
        from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt

        failed: list[RoomError] = [first]

        async def once() -> T:  # tenacity awaits only what is declared as a coroutine
            if failed:
                raise failed.pop()
            return await attempt()

        def wait_s(state: RetryCallState) -> float:
            error = state.outcome.exception() if state.outcome else None
            asked_s = error.retry_after_s if isinstance(error, RateLimited) else 0.0
            return max(asked_s, self._timing.retry_s(state.attempt_number, draw=self._draw()))

        return await AsyncRetrying(
            stop=stop_after_attempt(self._timing.tries),
            retry=retry_if_exception(self._heals),
            wait=wait_s,
            sleep=self._sleep,
            reraise=True,
        )(once)

    def _heals(self, error: BaseException) -> bool:
        if isinstance(error, RateLimited):
            return error.retry_after_s <= self._timing.retry_after_cap_s
        return isinstance(error, Unavailable)

    async def _exchange(
        self,
        transport: httpx.AsyncHTTPTransport,
        method: str,
        url: str,
        *,
        body: bytes | None = None,
        content_type: str = "application/json",
    ) -> bytes:
        async with self._answer(transport, method, url, body=body, content_type=content_type) as answer:
            data = await _at_most(answer, BODY_LIMIT_BYTES)
            if data is None:
                raise Unavailable(f"{self._call(method, url)}: the server's answer has no end")
            return data

    async def _stream(self, url: str, into: BinaryIO, cap_bytes: int) -> int:
        written = 0
        async with self._answer(self._reads, "GET", url) as answer:
            async for chunk in answer.aiter_raw():
                written += len(chunk)
                if written > cap_bytes:
                    what = f"{self._call('GET', url)}: the media is larger than {cap_bytes} bytes"
                    raise Rejected(what, status=413)
                into.write(chunk)
        return written

    @asynccontextmanager
    async def _answer(
        self,
        transport: httpx.AsyncHTTPTransport,
        method: str,
        url: str,
        *,
        body: bytes | None = None,
        content_type: str = "application/json",
    ) -> AsyncGenerator[httpx.Response, None]:
        """Send once and hand the 2xx answer out; everything else that can happen leaves as a `RoomError`."""
        call = self._call(method, url)
        headers = self._headers if body is None else {**self._headers, "content-type": content_type}
        try:
            request = httpx.Request(method, url, headers=headers, content=body, extensions=self._extensions)
            answer = await transport.handle_async_request(request)
            try:
                await self._refuse(call, answer)
                yield answer
            finally:
                await answer.aclose()
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
            raise Unavailable(f"{call}: no connection to the server ({type(error).__name__})") from error
        except (httpx.HTTPError, ssl.SSLError) as error:
            doubt = ": it may have been applied" if method == "POST" else ""
            raise Unavailable(f"{call}: the connection failed ({type(error).__name__}){doubt}") from error

    async def _refuse(self, call: str, answer: httpx.Response) -> None:
        if answer.status_code // 100 == 2:  # noqa: PLR2004  # HTTP's success
            if answer.headers.get("content-encoding", "identity") != "identity":
                raise Unavailable(f"{call}: the server compressed its answer, which nobody asked for")
            return
        try:
            body = await _at_most(answer, PROBLEM_LIMIT_BYTES)
        except httpx.HTTPError:
            body = None  # the status has arrived and decides; only the explanation is lost
        hidden = (body or b"").replace(self._secret.reveal().encode(), b"***")
        error: RoomError | None = refusal(call, answer.status_code, answer.headers, hidden)
        if error is not None:
            raise error

    @asynccontextmanager
    async def _in_time(self, call: str, limit_s: float) -> AsyncGenerator[None, None]:
        try:
            async with asyncio.timeout(limit_s):
                yield
        except TimeoutError as error:
            doubt = ": it may have been applied" if call.startswith("POST") else ""
            raise Unavailable(f"{call}: no whole answer in {limit_s:g} s{doubt}") from error

    def _call(self, method: str, url: str) -> str:
        return f"{method} {url[self._prefix :].partition('?')[0]}"


async def _at_most(answer: httpx.Response, limit_bytes: int) -> bytes | None:
    """Return the whole body, or None when it is longer."""
    data = bytearray()
    async for chunk in answer.aiter_raw():
        data += chunk
        if len(data) > limit_bytes:
            return None
    return bytes(data)


def _transport(
    address: Address, context: ssl.SSLContext, timing: Timing, *, connections: int
) -> httpx.AsyncHTTPTransport:
    limits = httpx.Limits(
        max_connections=connections,
        max_keepalive_connections=connections,
        keepalive_expiry=timing.keepalive_s,
    )
    return httpx.AsyncHTTPTransport(
        verify=context, trust_env=False, limits=limits, retries=0, proxy=proxy(address)
    )
