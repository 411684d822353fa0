"""Bad input: the right status, problem+json with a sentence, and nothing stored."""

import json

import pytest

from sentinel.rooms.hoop_wire import TEXT_LIMIT_CHARS

TEXT = "/v1/conversations/CID/text"
BAD_BODIES = [
    ("not-json", b"{", 400),
    ("empty", b"", 400),
    ("not-utf8", b'{"text":"\xff"}', 400),
    ("utf16", '{"text":"x"}'.encode("utf-16"), 400),
    ("twice", b'{"text":"a","text":"b"}', 400),
    ("twice-escaped", b'{"text":"a","te\\u0078t":"b"}', 400),
    ("nan", b'{"text":"a","hops":NaN}', 400),
    ("infinity", b'{"text":"a","hops":Infinity}', 400),
    ("deep", b'{"text":' + b"[" * 100_000 + b"]" * 100_000 + b"}", 400),
    ("many-digits", b'{"text":"a","hops":' + b"1" * 5_000 + b"}", 400),
    ("trailing", b'{"text":"a"} {}', 400),
    ("array", b"[]", 422),
    ("null", b"null", 422),
    ("nothing-in-it", b"{}", 422),
    ("blank", b'{"text":" \\n"}', 422),
    ("surrogate", b'{"text":"\\ud800"}', 422),
    ("number-as-text", b'{"text":1}', 422),
    ("text-as-flag", b'{"text":"a","broadcast":"yes"}', 422),
    ("float-hops", b'{"text":"a","hops":1.0}', 422),
    ("true-hops", b'{"text":"a","hops":true}', 422),
    ("negative-hops", b'{"text":"a","hops":-1}', 422),
    ("string-mentions", b'{"text":"a","mentions":"u1"}', 422),
    ("odd-nonce", b'{"text":"a","nonce":"a b"}', 422),
    ("long-nonce", b'{"text":"a","nonce":"' + b"n" * 129 + b'"}', 422),
    ("odd-type", b'{"type":"video","text":"a"}', 422),
    ("unknown-field", b'{"text":"a","role":"user"}', 422),
    ("sender-claimed", b'{"text":"a","sender":{"uid":"u1"}}', 422),
    ("many-mentions", json.dumps({"text": "a", "mentions": ["u"] * 501}).encode(), 422),
    ("over-a-mebibyte", b'{"text":"' + b"x" * 1024 * 1024 + b'"}', 413),
]


@pytest.fixture
def stage(house):
    ann, bob = house.person("ann"), house.person("bob")
    return ann, house.room(ann, bob)


@pytest.mark.parametrize(("body", "status"), [pytest.param(b, s, id=i) for i, b, s in BAD_BODIES])
async def test_a_bad_send_is_refused_and_not_stored(stage, body, status):
    ann, cid = stage

    reply = await ann.http.post(TEXT.replace("CID", cid), content=body)

    problem = reply.json()
    assert reply.status_code == problem["status"] == status
    assert reply.headers["content-type"] == "application/problem+json"
    assert {"type", "title", "detail"} <= set(problem)
    assert len(reply.content) < 2_000
    assert (await ann.history(cid))["messages"] == []


async def test_text_is_limited_in_characters_and_the_limit_is_named(stage):
    ann, cid = stage

    fits = await ann.text(cid, "界" * TEXT_LIMIT_CHARS)
    over = await ann.text(cid, "x" * (TEXT_LIMIT_CHARS + 1))

    assert fits.status_code == 201
    assert over.status_code == 422
    assert "20000" in over.json()["detail"]
    assert over.json()["errors"][0]["field"] == "text"


@pytest.mark.parametrize(
    "query",
    [
        "after=-1",
        "after=x",
        "after=",
        "after=1.5",
        "after=" + "9" * 30,
        "limit=0",
        "limit=201",
        "limit=%D9%A1",
        "x=1",
        "after=1&after=2",
    ],
)
async def test_a_bad_query_is_refused(stage, query):
    ann, cid = stage

    reply = await ann.http.get(f"/v1/conversations/{cid}/messages?{query}")

    assert reply.status_code == 422


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/conversations", {"title": ""}),
        ("/v1/conversations", {"title": " "}),
        ("/v1/conversations", {"title": "x" * 201}),
        ("/v1/conversations", {"title": "a\x1b[31mb"}),
        ("/v1/conversations", {"title": "a\u202eb"}),
        ("/v1/conversations", {"title": "x", "members": "u1"}),
        ("/v1/conversations", {"title": "x", "cid": "mine"}),
        ("/v1/auth/otp/request", {"account": ""}),
        ("/v1/auth/otp/request", {"account": "ann", "as": "root"}),
        ("/v1/auth/otp/verify", {"account": "ann"}),
        ("/v1/auth/otp/verify", {"account": "ann", "code": 123456}),
        ("/page/render", {"texts": ["x" * 20_001]}),
        ("/page/render", {"texts": "x"}),
    ],
)
async def test_every_other_call_is_as_strict(stage, path, body):
    ann, _ = stage

    reply = await ann.http.post(path, json=body)

    assert reply.status_code == 422
    assert reply.json()["errors"]
    assert len((await ann.http.get("/v1/conversations")).json()) == 1


@pytest.mark.parametrize("path", ["/v2", "/v1/conversations/", "/v1/me/", "/V1/me", "//v1/me", "/v1/nothing"])
async def test_an_unknown_path_is_a_404_problem(house, path):
    reply = await house.person("ann").http.get(house.url + path)

    assert reply.status_code == 404
    assert reply.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("method", "path"), [("DELETE", "/v1/me"), ("GET", TEXT), ("PATCH", "/"), ("TRACE", "/v1/me")]
)
async def test_a_wrong_method_is_told_the_right_ones(stage, method, path):
    ann, cid = stage

    reply = await ann.http.request(method, path.replace("CID", cid))

    assert reply.status_code == 405
    assert reply.headers["allow"] in {"GET", "POST"}
    assert reply.headers["content-type"] == "application/problem+json"


async def test_openapi_describes_every_call(house):
    ann = house.person("ann")

    described = (await ann.http.get("/v1/openapi.json")).json()

    calls = {f"{method} {path}" for path, methods in described["paths"].items() for method in methods}
    assert {
        *("post /v1/auth/otp/request", "post /v1/auth/otp/verify", "post /v1/auth/logout", "get /v1/me"),
        *("get /v1/conversations", "post /v1/conversations", "get /v1/conversations/{cid}/members"),
        *("get /v1/conversations/{cid}/messages", "get /v1/conversations/{cid}/messages/{mid}"),
        *("get /v1/conversations/{cid}/messages/by-nonce/{nonce}", "post /v1/conversations/{cid}/text"),
        *("post /v1/conversations/{cid}/mentions/resolve", "post /v1/media", "get /v1/media/{media_id}"),
        *("post /v1/conversations/{cid}/media", "put /v1/presence", "get /v1/health"),
    } <= calls
    names = {name for name in json.dumps(described).split('"') if name.startswith("#/components/schemas/")}
    assert {name.rsplit("/", 1)[1] for name in names} <= set(described["components"]["schemas"])
    assert "SendInput" in described["components"]["schemas"]
