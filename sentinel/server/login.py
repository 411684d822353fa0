"""Log-in by one-time code, so that neither answer nor time tells whether an account exists.

A request is answered before its account is looked up: one background task makes and delivers the codes. A failed
verification is always answered the same moment after it came in. The limits count by name, whether an account has it or
not, and by address; they are strict and apart from the others. Source: spec 01 sections 2 and 3.
"""

import asyncio
import logging
import sqlite3
from dataclasses import dataclass
from typing import Any

from sentinel.core.model import Account
from sentinel.server.accounts import (
    account_json,
    end_expired,
    find_by_name,
    is_disabled,
    issue_code,
    issue_token,
    name_key,
    redeem_code,
)
from sentinel.server.clock import Now
from sentinel.server.delivery import Delivery
from sentinel.server.problem import rate_limited, wrong_code
from sentinel.server.ratelimit import Limiter
from sentinel.server.store import Store

_FAILURE_AFTER_S = 0.25
_DAY_MS = 24 * 60 * 60 * 1000
_WAITING = 1_000

_log = logging.getLogger("sentinel.server")


@dataclass(frozen=True, slots=True)
class LoggedIn:
    """A new session: the token is said this once."""

    account: Account
    token: str
    expires_at_ms: int


class Login:
    """The two calls of `/v1/auth/otp`, and the task behind the first."""

    def __init__(self, store: Store, delivery: Delivery, *, now_ms: Now, session_days: int) -> None:
        self._store = store
        self._delivery = delivery
        self._now_ms = now_ms
        self._session_ms = session_days * _DAY_MS
        self._waiting: asyncio.Queue[str] = asyncio.Queue(_WAITING)
        self._requests = (Limiter(1 / 60, 5), Limiter(1 / 5, 30))  # by name, by address
        self._tries = (Limiter(1 / 20, 10), Limiter(1 / 2, 60))

    def request(self, name: str, address: str) -> None:
        """Ask for a code. Says nothing; raises `Problem` 429 past the limit."""
        self._limit(self._requests, name, address)
        if not self._waiting.full():  # a thousand undelivered codes: who asks now asks again
            self._waiting.put_nowait(name)

    async def verify(self, name: str, code: str, address: str) -> LoggedIn:
        """Spend a code on a session, or raise `Problem` 401 (always after the same time) or 429."""
        self._limit(self._tries, name, address)
        loop = asyncio.get_running_loop()
        fails_at = loop.time() + _FAILURE_AFTER_S
        logged_in = await self._store.write(lambda db: self._redeem(db, name, code))
        if logged_in is None:
            await asyncio.sleep(fails_at - loop.time())
            raise wrong_code()
        return logged_in

    async def deliver_for_ever(self) -> None:
        """Make and deliver the codes that were asked for; runs as a task of the server."""
        while True:
            name = await self._waiting.get()
            try:
                made = await self._store.write(lambda db, name=name: self._issue(db, name))
                if made is not None:
                    account, code = made
                    await self._delivery.deliver(account.name, code)
            except Exception:  # the loop's outermost edge: one code that fails must not end log-in for all
                _log.exception("a log-in code could not be made or delivered")

    def _issue(self, db: sqlite3.Connection, name: str) -> tuple[Account, str] | None:
        account = find_by_name(db, name)
        if account is None or is_disabled(db, account.uid):
            return None
        return account, issue_code(db, account.uid, now_ms=self._now_ms())

    def _redeem(self, db: sqlite3.Connection, name: str, code: str) -> LoggedIn | None:
        now_ms = self._now_ms()
        account = find_by_name(db, name)
        if account is None or not redeem_code(db, account.uid, code, now_ms=now_ms):
            return None
        end_expired(db, account.uid, now_ms=now_ms)
        expires_at_ms = now_ms + self._session_ms
        token = issue_token(db, account.uid, "login", now_ms=now_ms, expires_at_ms=expires_at_ms)
        return LoggedIn(account, token, expires_at_ms)

    def _limit(self, limiters: tuple[Limiter, Limiter], name: str, address: str) -> None:
        now_s = asyncio.get_running_loop().time()
        for limiter, key in zip(limiters, (name_key(name), address), strict=True):
            if wait_s := limiter.take(key, now_s=now_s):
                raise rate_limited(wait_s)


def session_json(logged_in: LoggedIn, expires_at: str) -> dict[str, Any]:
    """Return `{token, expires_at, user}`."""
    return {"token": logged_in.token, "expires_at": expires_at, "user": account_json(logged_in.account)}
