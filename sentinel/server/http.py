"""From an ASGI request to a handler and back: what every call has in common, written once.

In this order: Host, the address's limit, Origin, the token, the account's limit, then the handler; whatever refuses is
rendered as `application/problem+json`. Plain ASGI, because each layer in between costs on the wake path (spec 08).
"""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from typing import Any, Protocol
from urllib.parse import parse_qsl

from pydantic import BaseModel
from starlette.types import Receive, Scope, Send

from sentinel.server.accounts import Session
from sentinel.server.problem import Problem, too_slow
from sentinel.server.strict_json import parse_object

BODY_LIMIT_BYTES = 1024 * 1024
COOKIE = "hoop_session"

_log = logging.getLogger("sentinel.server")
_ALWAYS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
)


class Access(Enum):
    """Who may make a call, and which limit it counts against. `EITHER`: with a session if its token is good, else without."""

    OPEN = "open"
    EITHER = "either"
    READ = "read"
    POST = "post"


class ClientGone(Exception):
    """The client hung up before its request was whole."""


@dataclass(slots=True)
class Call:
    """One request. `session` is None only on calls that are open to strangers."""

    scope: Scope
    receive: Receive
    session: Session | None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    silence_s: float = 30.0
    """How long a body may pause; a whole one may take ten times as long."""

    @property
    def uid(self) -> str:
        """Return the caller's uid."""
        return self.signed_in.account.uid

    @property
    def signed_in(self) -> Session:
        """Return the caller's session; only calls that are open to strangers may have none, and they do not ask."""
        if self.session is None:
            raise RuntimeError("an open call asked for its session")
        return self.session

    @property
    def address(self) -> str:
        """Return the peer's address."""
        return address_of(self.scope)

    def path(self, name: str) -> str:
        """Return a variable step of the path."""
        return self.scope["path_params"][name]

    def query(self) -> dict[str, str]:
        """Return the query parameters; one that stands twice is refused."""
        pairs = parse_qsl(self.scope["query_string"].decode("latin-1"), keep_blank_values=True)
        query = dict(pairs)
        if len(query) != len(pairs):
            raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid", "a query parameter stands twice")
        return query

    async def chunks(self) -> AsyncGenerator[bytes]:
        """Yield the body as it arrives; `Problem` 408 when it pauses, or drips, for too long."""
        loop, more = asyncio.get_running_loop(), True
        end = loop.time() + 10 * self.silence_s
        while more:
            try:
                async with asyncio.timeout_at(min(end, loop.time() + self.silence_s)):
                    message = await self.receive()
            except TimeoutError:
                raise too_slow() from None
            if message["type"] == "http.disconnect":
                raise ClientGone
            more = message.get("more_body", False)
            if body := message.get("body", b""):
                yield body

    async def body(self, limit_bytes: int = BODY_LIMIT_BYTES) -> bytes:
        """Return the whole body, or raise `Problem` 413 as soon as it is too long."""
        parts: list[bytes] = []
        size = 0
        async for chunk in self.chunks():
            size += len(chunk)
            if size > limit_bytes:
                raise too_large(limit_bytes)
            parts.append(chunk)
        return b"".join(parts)

    async def json(self) -> dict[str, Any]:
        """Return the body as a JSON object, strictly parsed."""
        return parse_object(await self.body())


class Reply(Protocol):
    """An answer: any ASGI response will do."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        ...


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer whose bytes are at hand."""

    status: int
    body: bytes = b""
    content_type: bytes = b"application/json"
    headers: tuple[tuple[bytes, bytes], ...] = ()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it: a 204 without a body, everything else with its length."""
        del scope, receive
        headers = [*_ALWAYS, *self.headers]
        if self.status != HTTPStatus.NO_CONTENT:
            headers += [(b"content-type", self.content_type), (b"content-length", b"%d" % len(self.body))]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})


def answer_json(
    value: Any, status: int = HTTPStatus.OK, *, headers: tuple[tuple[bytes, bytes], ...] = ()
) -> Answer:
    """Return a JSON answer."""
    return Answer(status, json.dumps(value, separators=(",", ":")).encode(), headers=headers)


def nothing(*, headers: tuple[tuple[bytes, bytes], ...] = ()) -> Answer:
    """Return 204."""
    return Answer(HTTPStatus.NO_CONTENT, headers=headers)


def answer_problem(problem: Problem) -> Answer:
    """Return a refusal as RFC 9457 problem details, with `Retry-After` where waiting helps."""
    headers: list[tuple[bytes, bytes]] = []
    if problem.retry_after_s is not None:
        headers.append((b"retry-after", b"%d" % max(1, -int(-problem.retry_after_s // 1))))
    if problem.status == HTTPStatus.UNAUTHORIZED:
        headers.append((b"www-authenticate", b"Bearer"))
    body = json.dumps(problem.body()).encode()
    return Answer(problem.status, body, b"application/problem+json", tuple(headers))


Handler = Callable[[Call], Awaitable[Reply]]


@dataclass(frozen=True, slots=True)
class Operation:
    """One call of the API: how it is reached, who may, what it does, and how `/v1/openapi.json` describes it."""

    method: str
    path: str
    access: Access
    handler: Handler
    summary: str
    takes: type[BaseModel] | None = None
    gives: type[BaseModel] | None = None
    gives_many: bool = False
    status: int = HTTPStatus.OK
    query: tuple[str, ...] = ()


class Guard(Protocol):
    """Lets a request through as a `Call`, or raises `Problem`."""

    def admit(self, scope: Scope, receive: Receive, access: Access) -> Call:
        """Check Host, limits, Origin and token."""
        ...


class Endpoint:
    """The ASGI application of one path: its operations by method."""

    def __init__(self, guard: Guard, operations: Mapping[str, Operation]) -> None:
        self._guard = guard
        self._operations = operations

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; a fault of ours is logged with its trace and told as a bare 500."""
        try:
            reply = await self._reply(scope, receive)
        except Problem as problem:
            reply = answer_problem(problem)
        except ClientGone:
            return
        except Exception:  # the outermost edge: one request that fails must not end the server
            _log.exception("%s %s failed", scope["method"], scope["path"])
            reply = answer_problem(
                Problem(HTTPStatus.INTERNAL_SERVER_ERROR, "bug", "the server failed; its log says where")
            )
        await reply(scope, receive, send)

    async def _reply(self, scope: Scope, receive: Receive) -> Reply:
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        operation = self._operations.get(method)
        if operation is None:
            allowed = ", ".join(sorted(self._operations))
            problem = Problem(HTTPStatus.METHOD_NOT_ALLOWED, "method", f"this path takes {allowed}")
            refusal = answer_problem(problem)
            return Answer(refusal.status, refusal.body, refusal.content_type, ((b"allow", allowed.encode()),))
        return await operation.handler(self._guard.admit(scope, receive, operation.access))


async def unknown_path(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer what no route takes: 404 over HTTP, a refused handshake over WebSocket."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 4404, "reason": "no such path"})
        return
    await answer_problem(Problem(HTTPStatus.NOT_FOUND, "not-found", "there is no such path"))(
        scope, receive, send
    )


def headers_of(scope: Scope) -> dict[str, str]:
    """Return the headers, names in lower case; of several by one name the last counts."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}


def address_of(scope: Scope) -> str:
    """Return the address of the connection itself; no header is believed about it."""
    client = scope.get("client")
    return client[0] if client else ""


def cookie_token(headers: Mapping[str, str]) -> str | None:
    """Return the token of the session cookie, if there is one."""
    if "cookie" not in headers:
        return None
    try:
        morsel = SimpleCookie(headers["cookie"]).get(COOKIE)
    except CookieError:
        return None
    return morsel.value if morsel is not None else None


def bearer_token(headers: Mapping[str, str]) -> str | None:
    """Return the token of the `Authorization` header: None without one, "" for one that is no bearer token."""
    value = headers.get("authorization")
    if value is None:
        return None
    scheme, _, token = value.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def too_large(limit_bytes: int) -> Problem:
    """413, which names the limit."""
    return Problem(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too-large", f"the body is longer than {limit_bytes} bytes"
    )
