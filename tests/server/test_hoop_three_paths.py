"""Each field of SendInput, sent by each of the three paths, is stored alike: the fault HOOP v1 was made to end."""

import pytest

from sentinel.rooms.hoop_wire import SendInput

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 16


class Stage:
    def __init__(self, house):
        self.ann, self.gode = house.person("ann"), house.persona("Gode")
        self.cid = house.room(self.ann, self.gode)

    async def send(self, path, sender, send):
        """Post by one path; return what `GET messages/{id}` then shows, without what differs by nature."""
        if path == "socket":
            frame = {("message_type" if name == "type" else name): value for name, value in send.items()}
            async with sender.socket() as ears:
                await ears.send(**{**frame, "type": "message.send", "ref": "r1", "cid": self.cid})
                said = (await ears.until("ack", ref="r1"))["message"]
        else:
            reply = await sender.http.post(f"/v1/conversations/{self.cid}/{path}", json=send)
            assert reply.status_code == 201, reply.text
            said = reply.json()
        kept = (await sender.http.get(f"/v1/conversations/{self.cid}/messages/{said['id']}")).json()
        assert kept == said
        return {name: value for name, value in kept.items() if name not in {"id", "seq", "sent_at", "nonce"}}


async def fields(stage):
    """A value other than the default for each field."""
    first = (await stage.ann.text(stage.cid)).json()["id"]
    upload = await stage.gode.upload(PNG, "image/png")
    return {
        "type": "image",
        "text": "look",
        "media_id": upload["id"],
        "mentions": [stage.ann.uid, "u-forged"],
        "broadcast": True,
        "reply_to": first,
        "answers": [first],
        "nonce": "n",
        "hops": 7,
    }


def test_the_table_knows_every_field_of_the_model():
    known = {"type", "text", "media_id", "mentions", "broadcast", "reply_to", "answers", "nonce", "hops"}

    assert set(SendInput.model_fields) == known


@pytest.mark.parametrize("name", sorted(set(SendInput.model_fields) - {"type", "media_id"}))
async def test_each_field_is_stored_alike(house, name):
    stage = Stage(house)
    every = await fields(stage)
    send = {key: every[key] for key in {"type", "media_id", name}}

    stored = [
        await stage.send(path, stage.gode, {**send, **({"nonce": path} if name == "nonce" else {})})
        for path in ("text", "media", "socket")
    ]

    assert stored[0] == stored[1] == stored[2]
    bare = await stage.send("media", stage.gode, {"type": "image", "media_id": every["media_id"]})
    assert name == "nonce" or stored[0] != bare, "the field did not reach the store at all"


async def test_all_fields_at_once_are_stored_alike(house):
    stage = Stage(house)
    every = await fields(stage)

    stored = [
        await stage.send(path, stage.gode, {**every, "nonce": f"n-{path}"})
        for path in ("text", "media", "socket")
    ]

    assert stored[0] == stored[1] == stored[2]
    assert stored[0]["mentions"] == [stage.ann.uid]
    assert stored[0]["hops"] == 7
    assert stored[0]["media"]["type"] == "image/png"


async def test_a_text_is_stored_alike_by_text_call_and_socket(house):
    stage = Stage(house)
    send = {"text": "@Gode", "mentions": [stage.gode.uid]}

    assert await stage.send("text", stage.ann, send) == await stage.send("socket", stage.ann, send)


@pytest.mark.parametrize(
    ("data", "expected"),
    [(PNG, "image"), (b"OggS" + b"\0" * 30, "voice"), (b"plain", "file")],
    ids=["picture", "sound", "other"],
)
async def test_a_frame_with_media_and_no_type_is_what_the_content_is(house, data, expected):
    stage = Stage(house)
    upload = await stage.ann.upload(data)

    assert (await stage.send("socket", stage.ann, {"media_id": upload["id"]}))["type"] == expected


async def test_an_unknown_field_is_refused_by_name_on_all_three(house):
    stage = Stage(house)
    send = {"text": "x", "colour": "red"}

    by_text = await stage.ann.http.post(f"/v1/conversations/{stage.cid}/text", json=send)
    by_media = await stage.ann.http.post(
        f"/v1/conversations/{stage.cid}/media", json={**send, "media_id": "f1"}
    )
    async with stage.ann.socket() as ears:
        await ears.send(type="message.send", ref=1, cid=stage.cid, **send)
        by_socket = await ears.until("error", ref=1)

    assert by_text.status_code == by_media.status_code == 422
    assert all(
        "colour: unknown field" in said["detail"] for said in (by_text.json(), by_media.json(), by_socket)
    )
    assert (await stage.ann.history(stage.cid))["messages"] == []
