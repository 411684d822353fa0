"""The one gate in front of every call and every socket: Host, limits, Origin, token, in this order.

Source: spec 01 section 3 (Host and Origin checked, on the WebSocket too; limits by account and by address).
"""

import asyncio
import sqlite3
from collections.abc import Mapping
from http import HTTPStatus

from starlette.types import Receive, Scope

from sentinel.server.accounts import Session, session_of, token_hash
from sentinel.server.clock import Now
from sentinel.server.config import ServerConfig
from sentinel.server.http import Access, Call, address_of, bearer_token, cookie_token, headers_of
from sentinel.server.origin import Hosts, same_origin
from sentinel.server.problem import Problem, rate_limited, unauthorized
from sentinel.server.ratelimit import Limiter

_SAFE = frozenset({"GET", "HEAD"})


class Gate:
    """Lets requests and sockets in, or raises `Problem`."""

    def __init__(
        self, reader: sqlite3.Connection, config: ServerConfig, hosts: Hosts, *, now_ms: Now
    ) -> None:
        self._reader = reader
        self._silence_s = config.body_silence_s
        self._hosts = hosts
        self._now_ms = now_ms
        self._addresses = Limiter(config.address_per_s, config.address_burst)
        self._strangers = Limiter(config.reads_per_s, config.burst)
        reads = Limiter(config.reads_per_s, config.burst)
        posts = Limiter(config.posts_per_s, config.burst)
        self._limits = {Access.EITHER: reads, Access.READ: reads, Access.POST: posts}

    def admit(self, scope: Scope, receive: Receive, access: Access) -> Call:
        """Return the request as a call, with its session unless the call is open."""
        headers = headers_of(scope)
        self.check_host(headers)
        address = address_of(scope)
        self._take(self._addresses, address)
        is_unsafe = scope["method"] not in _SAFE
        if is_unsafe and "origin" in headers and not same_origin(headers["origin"], headers.get("host")):
            raise _foreign_origin()
        if access is Access.OPEN:
            return Call(scope, receive, None, headers, self._silence_s)
        bearer = bearer_token(headers)
        if bearer is None and is_unsafe and "origin" not in headers:
            self._refuse_bare_cookie(headers)
        session = self._find(bearer if bearer is not None else cookie_token(headers), address)
        if session is not None:
            self.take(session, access)
        elif access is not Access.EITHER:
            raise unauthorized()
        return Call(scope, receive, session, headers, self._silence_s)

    def admit_socket(self, scope: Scope) -> str | None:
        """Return the token that the handshake carries, if any; a browser's handshake must come from our own page."""
        headers = headers_of(scope)
        self.check_host(headers)
        self._take(self._addresses, address_of(scope))
        is_ours = same_origin(headers.get("origin"), headers.get("host"))
        if "origin" in headers and not is_ours:
            raise _foreign_origin()
        bearer = bearer_token(headers)
        if bearer is not None:
            return bearer
        return cookie_token(headers) if is_ours else None

    def check_host(self, headers: Mapping[str, str]) -> None:
        """Raise `Problem` 421 unless the request names this server."""
        if not self._hosts.allows(headers.get("host")):
            raise Problem(
                HTTPStatus.MISDIRECTED_REQUEST,
                "host",
                "this server does not answer under that Host (see --allow-host)",
            )

    def session(self, token: str | None, address: str) -> Session:
        """Return the session of a token, or raise `Problem` 401; guessing counts against the address."""
        session = self._find(token, address)
        if session is None:
            raise unauthorized()
        return session

    def take(self, session: Session, access: Access) -> None:
        """Count one read or post of an account, or raise `Problem` 429."""
        self._take(self._limits[access], session.account.uid)

    def _find(self, token: str | None, address: str) -> Session | None:
        session = session_of(self._reader, token_hash(token), now_ms=self._now_ms()) if token else None
        if session is None:
            self._take(self._strangers, address)
        return session

    def _take(self, limiter: Limiter, key: str) -> None:
        if wait_s := limiter.take(key, now_s=asyncio.get_running_loop().time()):
            raise rate_limited(wait_s)

    def _refuse_bare_cookie(self, headers: Mapping[str, str]) -> None:
        if cookie_token(headers) is not None:
            raise _foreign_origin()


def _foreign_origin() -> Problem:
    return Problem(HTTPStatus.FORBIDDEN, "origin", "the request does not come from this server's own page")
