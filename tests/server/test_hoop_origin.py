"""Host and Origin: against DNS rebinding and cross-site requests, on the WebSocket too."""

import httpx
import pytest
import websockets
from hoop_house import NO_TLS, Ears

from sentinel.server.origin import Hosts, same_origin

LOOPBACK = Hosts.of("127.0.0.1", ())
WIDE = Hosts.of("0.0.0.0", ("chat.example",))


@pytest.mark.parametrize(
    ("hosts", "host", "allowed"),
    [
        (LOOPBACK, "127.0.0.1:8765", True),
        (LOOPBACK, "localhost:8765", True),
        (LOOPBACK, "LOCALHOST", True),
        (LOOPBACK, "[::1]:8765", True),
        (LOOPBACK, "evil.example", False),
        (LOOPBACK, "127.0.0.1.evil.example", False),
        (LOOPBACK, "10.0.0.1:80", False),
        (LOOPBACK, "evil@localhost", False),
        (LOOPBACK, "localhost/evil", False),
        (LOOPBACK, "localhost:x", False),
        (LOOPBACK, "[", False),
        (LOOPBACK, "", False),
        (LOOPBACK, None, False),
        (WIDE, "chat.example:80", True),
        (WIDE, "10.0.0.1:80", True),
        (WIDE, "evil.example", False),
        (WIDE, "0.0.0.0", True),
    ],
)
def test_hosts_table(hosts, host, allowed):
    assert hosts.allows(host) is allowed


@pytest.mark.parametrize(
    ("origin", "host", "same"),
    [
        ("http://localhost:8765", "localhost:8765", True),
        ("https://localhost:8765", "LOCALHOST:8765", True),
        ("http://localhost:8766", "localhost:8765", False),
        ("http://localhost", "localhost:8765", False),
        ("null", "localhost:8765", False),
        ("ftp://localhost:8765", "localhost:8765", False),
        ("http://[", "localhost:8765", False),
        (None, "localhost:8765", False),
        ("http://localhost:8765", None, False),
    ],
)
def test_origin_table(origin, host, same):
    assert same_origin(origin, host) is same


@pytest.fixture
async def browser(house):
    """A browser that logged in: it has the cookie and no token."""
    ann = house.person("ann")
    async with httpx.AsyncClient(base_url=house.url, verify=NO_TLS) as web:
        code = house.code(ann)
        reply = await web.post("/v1/auth/otp/verify", json={"account": ann.name, "code": code})
        assert reply.status_code == 200
        web.headers["cookie"] = f"hoop_session={reply.cookies['hoop_session']}"
        yield ann, web


async def test_a_foreign_host_is_refused_everywhere(house):
    ann = house.person("ann")
    for path in ("/", "/v1/health", "/v1/me"):
        reply = await ann.http.get(path, headers={"host": "evil.example"})
        assert reply.status_code == 421, path


async def test_the_cookie_reads_without_an_origin_and_writes_only_with_ours(house, browser):
    ann, web = browser
    new = {"title": "x"}

    read = await web.get("/v1/me")
    ours = await web.post("/v1/conversations", json=new, headers={"origin": house.url})
    foreign = await web.post("/v1/conversations", json=new, headers={"origin": "http://evil.example"})
    none = await web.post("/v1/conversations", json=new)

    assert read.json() == ann.account
    assert [one.status_code for one in (ours, foreign, none)] == [201, 403, 403]


async def test_a_foreign_origin_cannot_log_a_browser_in(house):
    ann = house.person("ann")
    async with httpx.AsyncClient(base_url=house.url, verify=NO_TLS) as web:
        reply = await web.post(
            "/v1/auth/otp/verify",
            json={"account": ann.name, "code": house.code(ann)},
            headers={"origin": "http://evil.example"},
        )

    assert reply.status_code == 403


async def test_a_browsers_socket_comes_from_our_page_only(house, browser):
    ann, web = browser
    cookie = {"Cookie": web.headers["cookie"]}

    async with Ears(house.url, cookie, origin=house.url) as ears:
        assert (await ears.next())["uid"] == ann.uid
    with pytest.raises(websockets.InvalidStatus, match="403"):
        async with Ears(house.url, cookie, origin="http://evil.example"):
            pass
    upgrade = {"connection": "upgrade", "upgrade": "websocket", "sec-websocket-version": "13"}
    key = {"sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA=="}
    rebound = await web.get("/v1/ws", headers={**upgrade, **key, "host": "evil.example"})
    assert rebound.status_code == 421
    async with Ears(house.url, cookie) as ears:  # no Origin: the cookie does not count, an auth frame would
        await ears.send(type="auth", token="wrong")
        assert (await ears.closed())[0] == 4401


async def test_the_page_stands_under_a_strict_policy(house):
    ann = house.person("ann")

    reply = await ann.http.get("/")

    assert reply.status_code == 200
    policy = reply.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert "unsafe" not in policy
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert reply.headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize(
    "name", ["../serve.py", "..%2fserve.py", "nothing.js", ".", "%2e%2e", "index.html%00"]
)
async def test_only_files_of_the_page_are_served(house, name):
    assert (await house.person("ann").http.get(f"/page/{name}")).status_code == 404


async def test_render_is_for_members_of_this_server(house):
    ann = house.person("ann")

    html = (await ann.http.post("/page/render", json={"texts": ["**b**", "<script>"]})).json()["html"]
    stranger = await ann.http.post(
        "/page/render", json={"texts": ["x"]}, headers={"authorization": "Bearer x"}
    )
    many = await ann.http.post("/page/render", json={"texts": ["x"] * 201})

    assert "<strong>b</strong>" in html[0]
    assert "<script" not in html[1]
    assert (stranger.status_code, many.status_code) == (401, 422)
