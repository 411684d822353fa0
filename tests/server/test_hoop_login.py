"""Log-in by one-time code: single-use, five minutes, five tries, limits, and no word on whether an account exists."""

import re
import time

import httpx
import pytest
from hoop_house import NO_TLS, Ears, House, HouseProcess, eventually, house_of


class Clock:
    def __init__(self):
        self.ms = 1_800_000_000_000

    def __call__(self):
        return self.ms


@pytest.fixture
async def stepped(data):
    """A server whose clock the test turns; its requests come without a token."""
    clock = Clock()
    async with (
        house_of(data, now_ms=clock) as house,
        httpx.AsyncClient(base_url=house.url, verify=NO_TLS) as web,
    ):
        yield house, web, clock


def code_from(clock, house, person):
    from sentinel.server.admin import directory

    with directory(house.data, now_ms=clock) as opened:
        return opened.code(person.name)


async def verify(web, person, code):
    return await web.post("/v1/auth/otp/verify", json={"account": person.name, "code": code})


def wrong(code):
    return f"{(int(code) + 1) % 10**6:06}"


async def test_a_code_logs_in_once(stepped):
    house, web, clock = stepped
    ann = house.person("ann")
    code = code_from(clock, house, ann)

    first, second = await verify(web, ann, code), await verify(web, ann, code)

    assert re.fullmatch(r"\d{6}", code)
    assert first.json()["user"] == ann.account
    assert first.json()["expires_at"] == "2027-02-14T08:00:00.000Z"
    me = await web.get("/v1/me", headers={"authorization": f"Bearer {first.json()['token']}"})
    assert me.json() == ann.account
    assert second.status_code == 401


async def test_the_cookie_is_for_the_page_alone(stepped):
    house, web, clock = stepped
    ann = house.person("ann")

    cookie = (await verify(web, ann, code_from(clock, house, ann))).headers["set-cookie"]

    assert cookie.startswith("hoop_session=")
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
    assert "Secure" not in cookie


async def test_a_code_dies_after_five_minutes(stepped):
    house, web, clock = stepped
    ann = house.person("ann")
    code = code_from(clock, house, ann)

    clock.ms += 5 * 60 * 1000

    assert (await verify(web, ann, code)).status_code == 401


async def test_a_code_dies_after_five_wrong_tries(stepped):
    house, web, clock = stepped
    ann, bob = house.person("ann"), house.person("bob")
    code, other = code_from(clock, house, ann), code_from(clock, house, bob)

    tries = [(await verify(web, ann, wrong(code))).status_code for _ in range(5)]
    four = [(await verify(web, bob, wrong(other))).status_code for _ in range(4)]

    assert tries == [401] * 5
    assert (await verify(web, ann, code)).status_code == 401
    assert four == [401] * 4
    assert (await verify(web, bob, other)).status_code == 200


async def test_a_newer_code_replaces_the_older(stepped):
    house, web, clock = stepped
    ann = house.person("ann")
    older, newer = code_from(clock, house, ann), code_from(clock, house, ann)

    statuses = [(await verify(web, ann, code)).status_code for code in (older, newer)]

    assert statuses == [401, 200] or older == newer


async def test_a_session_ends_after_thirty_days(stepped):
    house, web, clock = stepped
    ann = house.person("ann")
    token = (await verify(web, ann, code_from(clock, house, ann))).json()["token"]
    bearer = {"authorization": f"Bearer {token}"}

    clock.ms += 30 * 24 * 60 * 60 * 1000 - 1
    before = await web.get("/v1/me", headers=bearer)
    clock.ms += 1
    after = await web.get("/v1/me", headers=bearer)

    assert (before.status_code, after.status_code) == (200, 401)


async def test_an_open_socket_ends_with_its_session(stepped):
    house, web, clock = stepped
    ann = house.person("ann")
    token = (await verify(web, ann, code_from(clock, house, ann))).json()["token"]
    async with Ears(house.url, {"Authorization": f"Bearer {token}"}) as ears:
        await ears.until("hello")
        clock.ms += 30 * 24 * 60 * 60 * 1000

        assert (await ears.closed())[0] == 4401


async def test_requests_are_answered_alike_for_known_disabled_and_unknown_names(stepped):
    house, web, _ = stepped
    ann, bob = house.person("ann"), house.person("bob")
    with house.operator as opened:
        opened.disable(bob.name)

    replies = [
        await web.post("/v1/auth/otp/request", json={"account": name})
        for name in (ann.name, bob.name, "nobody")
    ]

    assert {(one.status_code, one.content) for one in replies} == {(204, b"")}


async def test_failed_log_ins_look_and_last_alike(stepped):
    """A known account costs a write and an unknown one does not: the answer comes at the same moment all the same."""
    house, web, clock = stepped
    ann = house.person("ann")
    code = code_from(clock, house, ann)
    seen, lasted = set(), []
    for name, given in ((ann.name, wrong(code)), ("nobody", code), (ann.name.upper() + "x", code)):
        began = time.monotonic()
        reply = await web.post("/v1/auth/otp/verify", json={"account": name, "code": given})
        lasted.append(time.monotonic() - began)
        seen.add((reply.status_code, reply.content))

    assert len(seen) == 1
    assert min(lasted) >= 0.25


@pytest.mark.parametrize("name", ["ann", "nobody"])
async def test_a_failed_log_in_speaks_of_the_code_and_not_of_a_token(stepped, name):
    house, web, _ = stepped
    account = house.person("ann").name if name == "ann" else name

    reply = await web.post("/v1/auth/otp/verify", json={"account": account, "code": "no code"})

    assert reply.status_code == 401
    assert reply.json()["detail"] == "the code is wrong, used or expired: ask for a new one"
    assert reply.json()["type"] == "urn:hoop:problem:wrong-code"


async def test_requests_for_one_name_are_limited_whether_it_exists_or_not(stepped):
    house, web, _ = stepped
    ann = house.person("ann")
    for name in (ann.name, "nobody"):
        replies = [await web.post("/v1/auth/otp/request", json={"account": name}) for _ in range(6)]

        assert [one.status_code for one in replies] == [204] * 5 + [429]
        assert int(replies[-1].headers["retry-after"]) >= 1


async def test_a_name_in_other_letters_is_the_same_name_to_the_limit(stepped):
    _, web, _ = stepped

    names = ["nobody", "NOBODY", "Nobody", "nObody", "noBody", "nobOdy"]
    replies = [await web.post("/v1/auth/otp/request", json={"account": name}) for name in names]

    assert replies[-1].status_code == 429


async def test_requests_from_one_address_are_limited(stepped):
    _, web, _ = stepped

    statuses = [
        (await web.post("/v1/auth/otp/request", json={"account": f"nobody{n}"})).status_code
        for n in range(31)
    ]

    assert statuses == [204] * 30 + [429]


async def test_tries_for_one_name_are_limited(stepped):
    house, web, clock = stepped
    ann = house.person("ann")
    right = code_from(clock, house, ann)
    for _ in range(10):
        right = code_from(clock, house, ann)
        assert (await verify(web, ann, right)).status_code == 200
    right = code_from(clock, house, ann)

    reply = await verify(web, ann, right)

    assert reply.status_code == 429
    assert int(reply.headers["retry-after"]) >= 1


async def test_the_operator_sees_the_code_that_was_asked_for(data):
    running = HouseProcess(data)
    house = House(running.url, data)
    ann = house.person("ann")
    async with httpx.AsyncClient(base_url=running.url, verify=NO_TLS) as web:
        await web.post("/v1/auth/otp/request", json={"account": ann.name.upper()})
        await web.post("/v1/auth/otp/request", json={"account": "nobody"})
        shown = await eventually(
            lambda: re.search(rf"log-in code for {ann.name}: (\d+)\n", running.errors.read_text())
        )
        reply = await verify(web, ann, shown[1])

    assert running.stop() == 0
    assert reply.status_code == 200
    assert "nobody" not in running.errors.read_text()


async def test_logout_ends_the_session_and_its_sockets(stepped):
    house, web, clock = stepped
    ann = house.person("ann")
    token = (await verify(web, ann, code_from(clock, house, ann))).json()["token"]
    bearer = {"authorization": f"Bearer {token}"}
    async with Ears(house.url, bearer) as ears:
        await ears.until("hello")

        out = await web.post("/v1/auth/logout", headers=bearer)

        assert (out.status_code, (await web.get("/v1/me", headers=bearer)).status_code) == (204, 401)
        assert (await ears.closed())[0] == 4401
    assert (await ann.http.get("/v1/me")).status_code == 200


async def test_a_scripts_token_does_not_log_out(stepped):
    house, _, _ = stepped
    ann = house.person("ann")

    assert (await ann.http.post("/v1/auth/logout")).status_code == 403
    assert (await ann.http.get("/v1/me")).status_code == 200
