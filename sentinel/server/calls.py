"""The calls of `/v1`, one method each: parse, ask or store, answer. Decisions lie in the modules they call.

Source: spec 01 section 2, the table of calls.
"""

import sqlite3
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from starlette.responses import FileResponse

from sentinel.core.model import Account, Kind, Member, PresenceState
from sentinel.rooms.hoop_wire import PAGE_LIMIT, SendInput
from sentinel.server import media, messages, rooms
from sentinel.server.accounts import account_json, end_token
from sentinel.server.clock import Now, rfc3339
from sentinel.server.http import COOKIE, Answer, Call, Reply, answer_json, nothing
from sentinel.server.hub import Hub
from sentinel.server.login import Login, session_json
from sentinel.server.media import MediaFolder
from sentinel.server.presence import Shown
from sentinel.server.problem import Problem, unprocessable
from sentinel.server.requests import NewConversation, OtpRequest, OtpVerify, PresenceInput, ResolveInput
from sentinel.server.store import Store
from sentinel.server.strict_json import parse_as

_DIGITS = 15


@dataclass(frozen=True, slots=True)
class Calls:
    """What the calls stand on."""

    store: Store
    hub: Hub
    login: Login
    media: MediaFolder
    now_ms: Now

    async def health(self, call: Call) -> Reply:
        """Say that the server answers and its database can be read."""
        del call
        rooms.change_counters(self.store.reader)
        return answer_json({"status": "ok"})

    async def otp_request(self, call: Call) -> Reply:
        """Ask for a code: always 204."""
        wanted = parse_as(OtpRequest, await call.json())
        self.login.request(wanted.account, call.address)
        return nothing()

    async def otp_verify(self, call: Call) -> Reply:
        """Spend a code on a session: its token in the body for programs, in a cookie for the page."""
        given = parse_as(OtpVerify, await call.json())
        logged_in = await self.login.verify(given.account, given.code, call.address)
        max_age_s = (logged_in.expires_at_ms - self.now_ms()) // 1000
        cookie = _cookie(call, f"{COOKIE}={logged_in.token}; Max-Age={max_age_s}")
        return answer_json(session_json(logged_in, rfc3339(logged_in.expires_at_ms)), headers=cookie)

    async def logout(self, call: Call) -> Reply:
        """End the session that the caller used."""
        session = call.signed_in
        if session.source == "script":
            raise Problem(
                HTTPStatus.FORBIDDEN,
                "script-token",
                "a script's token does not log out; the operator ends it with `sentinel hoop account rotate`",
            )
        await self.store.write(lambda db: end_token(db, session.token_hash), after=lambda _: self.hub.look())
        return nothing(headers=_cookie(call, f"{COOKIE}=; Max-Age=0"))

    async def me(self, call: Call) -> Reply:
        """Return the caller's account, as the server knows it."""
        return answer_json(account_json(call.signed_in.account))

    async def conversations(self, call: Call) -> Reply:
        """Return the caller's conversations with their members."""
        found = rooms.conversations_of(self.store.reader, call.uid)
        return answer_json([self._conversation(one.cid, one.title, one.last_seq) for one in found])

    async def new_conversation(self, call: Call) -> Reply:
        """Make a conversation of the caller and the members it names."""
        wanted = parse_as(NewConversation, await call.json())
        uids = [call.uid, *wanted.members]
        made = await self.store.write(
            lambda db: rooms.add_conversation(db, wanted.title, uids, now_ms=self.now_ms()),
            after=lambda _: self.hub.look(),
        )
        return answer_json(self._conversation(made.cid, made.title, 0), HTTPStatus.CREATED)

    async def members(self, call: Call) -> Reply:
        """Return a conversation's members with their presence."""
        cid = self._cid(call)
        return answer_json(self._members(cid))

    async def history(self, call: Call) -> Reply:
        """Return a page of history."""
        query = call.query()
        after = _number(query.pop("after", "0"), "after", low=0)
        limit = _number(query.pop("limit", str(PAGE_LIMIT)), "limit", low=1, high=PAGE_LIMIT)
        _no_more(query)
        found = messages.page(self.store.reader, call.uid, call.path("cid"), after=after, limit=limit)
        return answer_json(found)

    async def message(self, call: Call) -> Reply:
        """Return one message."""
        return answer_json(messages.find(self.store.reader, call.uid, call.path("cid"), call.path("mid")))

    async def message_of_nonce(self, call: Call) -> Reply:
        """Return the caller's own message under a nonce."""
        found = messages.find_by_nonce(self.store.reader, call.uid, call.path("cid"), call.path("nonce"))
        return answer_json(found)

    async def send(self, call: Call) -> Reply:
        """Store a send: 201 and the message, or 200 and the first message of a repeated nonce."""
        send = parse_as(SendInput, await call.json())
        return await self._post(call, send)

    async def send_media(self, call: Call) -> Reply:
        """Store a send that carries media; the same model, of which `media_id` must be there."""
        value = await call.json()
        if value.get("media_id") is None:
            raise unprocessable("media_id", "this call needs one")
        return await self._post(call, parse_as(SendInput, value))

    async def post(self, sender: Account, cid: str, send: SendInput) -> messages.Posted:
        """Store a send durably and push it: the one way in, for both HTTP calls and the WebSocket."""

        def work(db: sqlite3.Connection) -> messages.Posted:
            return messages.post(db, sender, cid, send, now_ms=self.now_ms())

        return await self.store.write(work, after=self.hub.announce)

    async def resolve(self, call: Call) -> Reply:
        """Say whom the `@name`s of a text mean; nothing is sent by it."""
        from sentinel.core.mentions import resolve

        cid = self._cid(call)
        wanted = parse_as(ResolveInput, await call.json())
        members = [Member(one.uid, one.name, one.kind) for one in rooms.members_of(self.store.reader, cid)]
        may_broadcast = call.signed_in.account.kind is Kind.HUMAN
        found = resolve(wanted.text, members, may_broadcast=may_broadcast)
        return answer_json(
            {"mentions": found.mentions, "broadcast": found.broadcast, "ambiguous": found.ambiguous}
        )

    async def upload(self, call: Call) -> Reply:
        """Take the body in as media; its name is the query parameter `name`."""
        query = call.query()
        name = media.check_name(query.pop("name", None))
        _no_more(query)
        declared = call.headers.get("content-type", media.OPAQUE)
        upload = await self.media.take_in(call.chunks(), declared=declared, name=name)
        await self.store.write(lambda db: media.record(db, upload, call.uid, now_ms=self.now_ms()))
        return answer_json(upload.json(), HTTPStatus.CREATED)

    async def download(self, call: Call) -> Reply:
        """Hand media to somebody who may see it; shown in place only for a listed type of content."""
        upload = media.find(self.store.reader, call.path("media_id"), call.uid)
        path = self.media.path(upload.id)
        try:
            with path.open("rb") as file:
                shown = media.sniff(file.read(media.HEAD_BYTES), upload.type)
        except FileNotFoundError as fault:
            raise media.missing_file() from fault
        headers = {
            "content-disposition": media.disposition(upload, is_shown=shown is not None),
            "x-content-type-options": "nosniff",
            "referrer-policy": "no-referrer",
            "cache-control": "private, no-cache",
            "content-security-policy": "default-src 'none'; sandbox",
            "cross-origin-resource-policy": "same-origin",
        }
        return FileResponse(path, media_type=shown or media.OPAQUE, headers=headers)

    async def presence(self, call: Call) -> Reply:
        """Take in what the caller says of itself."""
        stated = parse_as(PresenceInput, await call.json())
        uid, shown = call.uid, Shown(PresenceState(stated.state), stated.detail)

        def work(db: sqlite3.Connection) -> None:
            db.execute(
                "INSERT OR REPLACE INTO presence (uid, state, detail) VALUES (?, ?, ?)",
                (uid, stated.state, stated.detail),
            )

        await self.store.write(work, after=lambda _: self.hub.presence.state(uid, shown))
        return nothing()

    async def _post(self, call: Call, send: SendInput) -> Answer:
        posted = await self.post(call.signed_in.account, call.path("cid"), send)
        return answer_json(posted.message, HTTPStatus.CREATED if posted.is_new else HTTPStatus.OK)

    def _cid(self, call: Call) -> str:
        cid = call.path("cid")
        rooms.require_member(self.store.reader, cid, call.uid)
        return cid

    def _conversation(self, cid: str, title: str, last_seq: int) -> dict[str, Any]:
        return {"cid": cid, "title": title, "members": self._members(cid), "last_seq": last_seq}

    def _members(self, cid: str) -> list[dict[str, Any]]:
        members: list[dict[str, Any]] = []
        for account in rooms.members_of(self.store.reader, cid):
            shown = self.hub.presence.shown(account.uid)
            members.append({**account_json(account), "state": str(shown.state), "detail": shown.detail})
        return members


def _cookie(call: Call, pair: str) -> tuple[tuple[bytes, bytes], ...]:
    secure = "; Secure" if call.scope["scheme"] == "https" else ""
    return ((b"set-cookie", f"{pair}; Path=/; HttpOnly; SameSite=Strict{secure}".encode()),)


def _number(text: str, field: str, *, low: int, high: int | None = None) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS):
        raise unprocessable(field, f"a whole number from {low} is expected")
    number = int(text)
    if number < low or (high is not None and number > high):
        raise unprocessable(field, f"must be from {low}" + (f" to {high}" if high is not None else ""))
    return number


def _no_more(query: dict[str, str]) -> None:
    for name in query:
        raise unprocessable(name, "unknown query parameter")
