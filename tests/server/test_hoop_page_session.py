"""`GET /page/session`: the page learns who is logged in, and a first visit is not an error."""

import httpx
import pytest
from hoop_house import NO_TLS, house_of

NOBODY = (200, {"user": None})


@pytest.fixture
async def visitor(house):
    async with httpx.AsyncClient(base_url=house.url, verify=NO_TLS) as web:
        yield web


async def session_of(web, **headers):
    reply = await web.get("/page/session", headers=headers)
    return reply.status_code, reply.json()


async def test_a_first_visit_is_nobodys(visitor):
    assert await session_of(visitor) == NOBODY


async def test_a_log_in_is_seen_by_its_cookie_until_it_ends(house, visitor):
    ann = house.person("ann")
    body = {"account": ann.name, "code": house.code(ann)}
    token = (await visitor.post("/v1/auth/otp/verify", json=body)).json()["token"]

    during = await session_of(visitor)
    await visitor.post("/v1/auth/logout", headers={"authorization": f"Bearer {token}"})
    after = await session_of(visitor, cookie=f"hoop_session={token}")

    assert during == (200, {"user": ann.account})
    assert after == NOBODY


@pytest.mark.parametrize("headers", [{"cookie": "hoop_session=guess"}, {"authorization": "Bearer guess"}])
async def test_a_token_that_is_not_good_is_nobodys(visitor, headers):
    assert await session_of(visitor, **headers) == NOBODY


async def test_guessing_tokens_by_it_is_limited_like_elsewhere(data):
    async with (
        house_of(data, reads_per_s=0.01, burst=3) as house,
        httpx.AsyncClient(base_url=house.url, verify=NO_TLS) as web,
    ):
        guesses = [
            (await web.get("/page/session", headers={"authorization": f"Bearer {n}"})).status_code
            for n in range(4)
        ]
        elsewhere = (await web.get("/v1/me", headers={"authorization": "Bearer 5"})).status_code

    assert guesses == [200, 200, 200, 429]
    assert elsewhere == 429


async def test_no_other_site_can_read_it(house, visitor):
    reply = await visitor.get("/page/session", headers={"origin": "http://evil.example"})

    assert not [name for name in reply.headers if name.startswith("access-control-")]
    assert reply.headers["cache-control"] == "no-store"
