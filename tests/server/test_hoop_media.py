"""Media: who may fetch it, what a browser may show in place, and how much is taken."""

import errno
import os

import httpx
import pytest
from hoop_house import NO_TLS, house_of

from sentinel.server import media
from sentinel.server.media import MediaFolder, sniff
from sentinel.server.problem import Problem

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 32
LISTED = [
    (PNG, "image/png", "image/png"),
    (b"\xff\xd8\xff\xe0" + b"\0" * 8, "image/jpeg", "image/jpeg"),
    (b"GIF89a" + b"\0" * 8, "image/gif", "image/gif"),
    (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp", "image/webp"),
    (b"OggS\0" + b"\0" * 8, "audio/ogg", "audio/ogg"),
    (b"ID3\x04" + b"\0" * 8, "audio/mpeg", "audio/mpeg"),
    (b"\xff\xfb\x90" + b"\0" * 8, "audio/mpeg", "audio/mpeg"),
    (b"RIFF\0\0\0\0WAVEfmt ", "audio/wav", "audio/wav"),
    (b"\x1aE\xdf\xa3\x9fB\x86\x81\x01B\x82\x84webm", "audio/webm", "audio/webm"),
    (b"\x1aE\xdf\xa3\x9fB\x86\x81\x01B\x82\x84webm", "text/html", "video/webm"),
    (b"\0\0\0\x1cftypM4A \0\0\0\0", "application/octet-stream", "audio/mp4"),
    (b"\0\0\0\x1cftypisom\0\0\0\0", "audio/mp4", "audio/mp4"),
]
UNLISTED = [
    (b"<html><script>alert(1)</script>", "text/html"),
    (b"<html><script>alert(1)</script>", "image/png"),
    (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "image/svg+xml"),
    (b"%PDF-1.7", "application/pdf"),
    (b"\0\0\0\x1cftypisom\0\0\0\0", "video/mp4"),
    (b"RIFF\0\0\0\0AVI ", "image/webp"),
    (b"plain", 'nonsense; " of a type'),
]


@pytest.fixture
def stage(house):
    ann, bob, eve = house.person("ann"), house.person("bob"), house.person("eve")
    return ann, bob, eve, house.room(ann, bob)


@pytest.mark.parametrize(("head", "declared", "expected"), LISTED)
def test_content_decides_the_type(head, declared, expected):
    assert sniff(head, declared) == expected


@pytest.mark.parametrize(("head", "declared"), UNLISTED)
def test_a_type_is_not_believed(head, declared):
    assert sniff(head, declared) is None


async def test_an_upload_is_described(stage):
    ann, *_ = stage

    upload = await ann.upload(PNG, "image/gif", name="图 1.png")

    assert upload == {
        "id": upload["id"],
        "url": f"/v1/media/{upload['id']}",
        "type": "image/png",
        "size": len(PNG),
        "name": "图 1.png",
    }


async def test_a_listed_type_is_shown_in_place(stage):
    ann, *_ = stage
    upload = await ann.upload(PNG, name="a.png")

    reply = await ann.http.get(upload["url"])

    assert reply.content == PNG
    assert reply.headers["content-type"] == "image/png"
    assert reply.headers["content-disposition"] == "inline; filename*=UTF-8''a.png"
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in reply.headers["content-security-policy"]


@pytest.mark.parametrize(("data", "declared"), UNLISTED)
async def test_all_else_is_an_attachment_of_no_type(stage, data, declared):
    ann, *_ = stage
    upload = await ann.upload(data, declared, name='a";\u202e.html')

    reply = await ann.http.get(upload["url"])

    assert reply.content == data
    assert reply.headers["content-type"] == "application/octet-stream"
    assert reply.headers["content-disposition"].startswith("attachment; filename*=UTF-8''a%22%3B")
    assert reply.headers["x-content-type-options"] == "nosniff"


async def test_a_part_of_it_can_be_asked_for(stage):
    """Players of voice messages seek."""
    ann, *_ = stage
    upload = await ann.upload(b"OggS" + b"0123456789")

    reply = await ann.http.get(upload["url"], headers={"range": "bytes=4-7"})

    assert (reply.status_code, reply.content) == (206, b"0123")


async def test_before_posting_only_the_uploader_may_fetch(stage):
    ann, bob, *_ = stage
    upload = await ann.upload()

    assert (await ann.http.get(upload["url"])).status_code == 200
    assert (await bob.http.get(upload["url"])).status_code == 404


async def test_posted_it_is_for_the_members_of_that_conversation(house, stage):
    ann, bob, eve, cid = stage
    upload = await ann.upload()
    send = {"type": "file", "media_id": upload["id"]}
    message = (await ann.http.post(f"/v1/conversations/{cid}/media", json=send)).json()

    statuses = [(await who.http.get(upload["url"])).status_code for who in (ann, bob, eve)]
    with house.operator as opened:
        opened.remove(cid, [ann.name])
    removed = (await ann.http.get(upload["url"])).status_code
    async with httpx.AsyncClient(base_url=house.url, verify=NO_TLS) as web:
        stranger = (await web.get(upload["url"])).status_code

    assert message["media"] == upload
    assert statuses == [200, 200, 404]
    assert (removed, stranger) == (404, 401)


async def test_only_ones_own_upload_can_be_posted(stage):
    ann, bob, _, cid = stage
    upload = await ann.upload()

    for media_id in (upload["id"], "f-none"):
        send = {"type": "file", "media_id": media_id}
        reply = await bob.http.post(f"/v1/conversations/{cid}/media", json=send)
        assert (reply.status_code, reply.json()["errors"][0]["field"]) == (422, "media_id")


@pytest.mark.parametrize(
    "send", [{"text": "x"}, {"type": "image"}, {"type": "text", "text": "x", "media_id": "f1"}]
)
async def test_the_media_call_needs_media(stage, send):
    ann, _, _, cid = stage

    assert (await ann.http.post(f"/v1/conversations/{cid}/media", json=send)).status_code == 422


async def test_too_much_is_413_and_leaves_nothing(data):
    async with house_of(data, media_limit_bytes=1000) as house:
        ann = house.person("ann")
        fits = await ann.upload(b"x" * 1000)
        over = await ann.http.post("/v1/media", content=b"x" * 1001)

        async def drip():
            for _ in range(20):
                yield b"x" * 100

        dripped = await ann.http.post("/v1/media", content=drip())

    assert fits["size"] == 1000
    assert [one.status_code for one in (over, dripped)] == [413, 413]
    assert "1000 bytes" in over.json()["detail"]
    assert [one.name for one in (data / "media").iterdir()] == [fits["id"]]


@pytest.mark.parametrize(
    "query", ["name=", "name=a%2Fb", "name=a%00b", "name=" + "x" * 256, "name=a&name=b", "size=1"]
)
async def test_a_bad_upload_is_refused(stage, query):
    ann, *_ = stage

    assert (await ann.http.post(f"/v1/media?{query}", content=b"x")).status_code == 422
    assert (await ann.http.post("/v1/media", content=b"")).status_code == 422


@pytest.mark.parametrize("media_id", ["..%2fhoop.db", "%2e%2e", "f", "f" * 200])
async def test_no_other_file_is_reached(stage, media_id):
    ann, *_ = stage

    assert (await ann.http.get(f"/v1/media/{media_id}")).status_code == 404


async def test_a_disk_that_does_not_take_it_is_503_and_leaves_nothing(tmp_path, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    async def body():
        yield PNG

    monkeypatch.setattr(media, "sync", full)
    folder = MediaFolder(tmp_path, limit_bytes=1000)

    with pytest.raises(Problem, match="No space left") as fault:
        await folder.take_in(body(), declared="image/png", name=None)

    assert fault.value.status == 503
    assert [one for one in tmp_path.rglob("*") if one.is_file()] == []
