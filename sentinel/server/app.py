"""The ASGI application: the table of operations, and the parts behind it put together."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator
from http import HTTPStatus
from pathlib import Path

from starlette.routing import Route, Router, WebSocketRoute
from starlette.types import ASGIApp

from sentinel.rooms.hoop_wire import (
    SendInput,
    WireAccount,
    WireConversation,
    WireMedia,
    WireMember,
    WireMessage,
    WirePage,
)
from sentinel.server import page
from sentinel.server.calls import Calls
from sentinel.server.clock import Now
from sentinel.server.config import ServerConfig
from sentinel.server.delivery import Console, Mail
from sentinel.server.guard import Gate
from sentinel.server.http import Access, Call, Endpoint, Operation, Reply, answer_json, unknown_path
from sentinel.server.hub import Hub
from sentinel.server.login import Login
from sentinel.server.media import MediaFolder
from sentinel.server.openapi import describe
from sentinel.server.origin import Hosts
from sentinel.server.requests import (
    NewConversation,
    OtpRequest,
    OtpVerify,
    PresenceInput,
    RenderInput,
    ResolveInput,
)
from sentinel.server.store import Store
from sentinel.server.unposted import remove_strays, remove_unposted
from sentinel.server.ws import Socket

_log = logging.getLogger("sentinel.server")
_ROOM = "/v1/conversations/{cid}"


@contextlib.asynccontextmanager
async def application(
    data: Path, config: ServerConfig, hosts: Hosts, *, now_ms: Now
) -> AsyncGenerator[ASGIApp]:
    """Open a data directory and yield the application that serves it; on leaving, sockets and database are closed."""
    store = Store(data)
    hub = Hub(store.reader, now_ms=now_ms, offline_after_s=config.offline_after_s)
    delivery = Mail(config.smtp) if config.smtp else Console()
    folder = MediaFolder(data, limit_bytes=config.media_limit_bytes)
    remove_strays(store.reader, folder, before_ms=now_ms() - round(config.unposted_media_s * 1000))
    login = Login(store, delivery, now_ms=now_ms, session_days=config.session_days)
    calls = Calls(store, hub, login, folder, now_ms)
    tasks = [
        asyncio.create_task(login.deliver_for_ever()),
        asyncio.create_task(_look_for_ever(hub, config.access_look_s)),
        asyncio.create_task(_sweep_for_ever(store, folder, config, now_ms)),
    ]
    try:
        yield _router(calls, Gate(store.reader, config, hosts, now_ms=now_ms), config)
    finally:
        hub.stop()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await store.aclose()


def _router(calls: Calls, gate: Gate, config: ServerConfig) -> Router:
    operations = [*_account_operations(calls), *_room_operations(calls), *_page_operations()]
    described = describe(operations)

    async def openapi(call: Call) -> Reply:
        del call
        return answer_json(described)

    operations.append(Operation("GET", "/v1/openapi.json", Access.OPEN, openapi, "This document"))
    by_path: dict[str, dict[str, Operation]] = {}
    for one in operations:
        by_path.setdefault(one.path, {})[one.method] = one
    routes = [Route(path, Endpoint(gate, methods)) for path, methods in by_path.items()]
    socket = WebSocketRoute("/v1/ws", Socket(calls, gate, config))
    return Router([socket, *routes], redirect_slashes=False, default=unknown_path)


def _account_operations(calls: Calls) -> list[Operation]:
    opened, read, post = Access.OPEN, Access.READ, Access.POST
    none = HTTPStatus.NO_CONTENT
    return [
        Operation("GET", "/v1/health", opened, calls.health, "The server answers"),
        Operation(
            "POST",
            "/v1/auth/otp/request",
            opened,
            calls.otp_request,
            "Ask for a code",
            OtpRequest,
            status=none,
        ),
        Operation("POST", "/v1/auth/otp/verify", opened, calls.otp_verify, "Log in with a code", OtpVerify),
        Operation("POST", "/v1/auth/logout", post, calls.logout, "End this session", status=none),
        Operation("GET", "/v1/me", read, calls.me, "Who am I", gives=WireAccount),
        Operation(
            "PUT", "/v1/presence", post, calls.presence, "State my presence", PresenceInput, status=none
        ),
        Operation(
            *("POST", "/v1/media", post, calls.upload, "Store bytes for a message"),
            gives=WireMedia,
            status=HTTPStatus.CREATED,
            query=("name",),
        ),
        Operation("GET", "/v1/media/{media_id}", read, calls.download, "Fetch media"),
    ]


def _room_operations(calls: Calls) -> list[Operation]:
    read, post, created = Access.READ, Access.POST, HTTPStatus.CREATED
    page_of = f"{_ROOM}/messages"
    return [
        Operation(
            *("GET", "/v1/conversations", read, calls.conversations, "My conversations"),
            gives=WireConversation,
            gives_many=True,
        ),
        Operation(
            *(
                "POST",
                "/v1/conversations",
                post,
                calls.new_conversation,
                "A new conversation",
                NewConversation,
            ),
            gives=WireConversation,
            status=created,
        ),
        Operation(
            "GET", f"{_ROOM}/members", read, calls.members, "Its members", gives=WireMember, gives_many=True
        ),
        Operation(
            "GET", page_of, read, calls.history, "A page of history", gives=WirePage, query=("after", "limit")
        ),
        Operation(
            *(
                "GET",
                f"{page_of}/by-nonce/{{nonce}}",
                read,
                calls.message_of_nonce,
                "My message under a nonce",
            ),
            gives=WireMessage,
        ),
        Operation("GET", f"{page_of}/{{mid}}", read, calls.message, "One message", gives=WireMessage),
        Operation(
            "POST", f"{_ROOM}/text", post, calls.send, "Post", SendInput, gives=WireMessage, status=created
        ),
        Operation(
            *("POST", f"{_ROOM}/media", post, calls.send_media, "Post with media", SendInput),
            gives=WireMessage,
            status=created,
        ),
        Operation(
            "POST", f"{_ROOM}/mentions/resolve", read, calls.resolve, "Whom a text calls", ResolveInput
        ),
    ]


def _page_operations() -> list[Operation]:
    return [
        Operation("GET", "/", Access.OPEN, page.index, "The web page"),
        Operation("GET", "/page/session", Access.EITHER, page.session, "Who is logged in, if anybody"),
        Operation("POST", "/page/render", Access.READ, page.render, "Markdown to safe HTML", RenderInput),
        Operation("GET", "/page/{file}", Access.OPEN, page.asset, "A file of the web page"),
    ]


async def _sweep_for_ever(store: Store, folder: MediaFolder, config: ServerConfig, now_ms: Now) -> None:
    while True:
        try:
            before_ms = now_ms() - round(config.unposted_media_s * 1000)
            if gone := await remove_unposted(store, folder, before_ms=before_ms):
                _log.info("%d uploads that were never posted are removed", gone)
        except Exception:  # the loop's outermost edge: one sweep that fails must not end the sweeping
            _log.exception("uploads that were never posted could not be removed")
        await asyncio.sleep(config.media_sweep_s)


async def _look_for_ever(hub: Hub, every_s: float) -> None:
    while True:
        await asyncio.sleep(every_s)
        try:
            hub.tick()
        except Exception:  # the loop's outermost edge: one look that fails must not end the looking
            _log.exception("sockets could not be held against the database")
