"""Uploads that no message carries: removed after a day, at the start and once an hour; all else stays."""

import os
import tarfile

import pytest
from hoop_house import eventually, house_of

from sentinel.server.backup import back_up, restore

DAY_MS = 24 * 60 * 60 * 1000


class Clock:
    def __init__(self):
        self.ms = 1_800_000_000_000

    def __call__(self):
        return self.ms


@pytest.fixture
def clock():
    return Clock()


def files(data):
    return {one.name for one in (data / "media").iterdir()}


async def posted_file(ann, cid):
    upload = await ann.upload(b"carried")
    send = {"type": "file", "media_id": upload["id"]}
    assert (await ann.http.post(f"/v1/conversations/{cid}/media", json=send)).status_code == 201
    return upload["id"]


async def test_after_a_day_it_is_gone_from_disk_and_database(data, clock):
    async with house_of(data, now_ms=clock, media_sweep_s=0.02) as house:
        ann, bob = house.person("ann"), house.person("bob")
        cid = house.room(ann, bob)
        carried = await posted_file(ann, cid)
        forgotten = await ann.upload(b"forgotten")
        clock.ms += DAY_MS
        fresh = await ann.upload(b"fresh")
        at_the_limit = files(data)

        clock.ms += 1
        await eventually(lambda: forgotten["id"] not in files(data))

        send = {"type": "file", "media_id": forgotten["id"]}
        late = await ann.http.post(f"/v1/conversations/{cid}/media", json=send)
        statuses = [
            (await ann.http.get(f"/v1/media/{one}")).status_code
            for one in (carried, forgotten["id"], fresh["id"])
        ]
    assert at_the_limit == {carried, forgotten["id"], fresh["id"]}
    assert files(data) == {carried, fresh["id"]}
    assert (late.status_code, statuses) == (422, [200, 404, 200])


async def test_a_start_removes_what_grew_old_while_nothing_ran(data, clock):
    async with house_of(data, now_ms=clock) as house:
        ann = house.person("ann")
        carried = await posted_file(ann, house.room(ann, house.person("bob")))
        await ann.upload(b"forgotten")
    clock.ms += DAY_MS + 1

    async with house_of(data, now_ms=clock):
        await eventually(lambda: files(data) == {carried})


async def test_a_start_removes_old_files_that_a_crash_left_without_a_row(data, clock):
    async with house_of(data, now_ms=clock) as house:
        ann = house.person("ann")
        carried = await posted_file(ann, house.room(ann, house.person("bob")))
    folder = data / "media"
    for name, age_ms in {"f" + "0" * 32: DAY_MS + 1000, "f" + "1" * 32: 0, "notes.txt": DAY_MS * 9}.items():
        (folder / name).write_bytes(b"x")
        os.utime(folder / name, (0, (clock.ms - age_ms) / 1000))
    os.utime(folder / carried, (0, 0))

    async with house_of(data, now_ms=clock):
        left = files(data)

    assert left == {carried, "f" + "1" * 32, "notes.txt"}


async def test_a_back_up_does_not_lean_on_uploads_that_may_go_meanwhile(data, clock, tmp_path):
    async with house_of(data, now_ms=clock) as house:
        ann = house.person("ann")
        carried = await posted_file(ann, house.room(ann, house.person("bob")))
        forgotten = await ann.upload(b"forgotten")
        (data / "media" / forgotten["id"]).unlink()

        back_up(data, tmp_path / "copy.tar")

    with tarfile.open(tmp_path / "copy.tar") as tar:
        assert tar.getnames() == ["hoop.db", f"media/{carried}"]
    restore(tmp_path / "copy.tar", tmp_path / "again")
