"""A back-up taken while people post is one consistent state; what is no back-up is refused and restores nothing."""

import asyncio
import tarfile

import pytest
from hoop_house import house_of

from sentinel.core.errors import ConfigError, Damaged, UsageError
from sentinel.server.backup import back_up, restore


async def test_a_copy_taken_while_posting_is_whole(house, data, tmp_path):
    ann, gode = house.person("ann"), house.persona("Gode")
    cid = house.room(ann, gode)
    posted = []

    async def post_for_ever():
        while True:
            upload = await ann.upload(b"bytes %d" % len(posted))
            send = {"type": "file", "media_id": upload["id"], "text": "x"}
            posted.append((await ann.http.post(f"/v1/conversations/{cid}/media", json=send)).json())

    posting = asyncio.create_task(post_for_ever())
    async with asyncio.timeout(20):
        while len(posted) < 5:
            await asyncio.sleep(0.01)
        before = len(posted)
        await asyncio.to_thread(back_up, house.data, tmp_path / "copy.tar")
    posting.cancel()
    await asyncio.gather(posting, return_exceptions=True)
    restore(tmp_path / "copy.tar", data)

    async with house_of(data) as again:
        ann.url, ann._clients = again.url, []
        kept = (await ann.history(cid))["messages"]
        last = await ann.http.get(kept[-1]["media"]["url"])
        await ann.http.aclose()
    assert len(kept) >= before
    assert kept == posted[: len(kept)]
    assert last.content == b"bytes %d" % (len(kept) - 1)
    assert (tmp_path / "copy.tar").stat().st_mode & 0o777 == 0o600
    assert data.stat().st_mode & 0o777 == 0o700


def test_an_existing_file_is_not_overwritten(server, tmp_path):
    (tmp_path / "copy.tar").write_text("mine")

    with pytest.raises(UsageError, match="exists"):
        back_up(server.data, tmp_path / "copy.tar")

    assert (tmp_path / "copy.tar").read_text() == "mine"


def test_a_used_directory_is_not_restored_into(server, tmp_path):
    back_up(server.data, tmp_path / "copy.tar")

    with pytest.raises(UsageError, match="not empty"):
        restore(tmp_path / "copy.tar", server.data)


@pytest.mark.parametrize("how", ["text", "cut", "no-database", "other-file", "outside", "parent", "link"])
def test_what_is_no_back_up_restores_nothing(server, tmp_path, how):
    file, into = tmp_path / "copy.tar", tmp_path / "into"
    back_up(server.data, tmp_path / "good.tar")
    if how == "text":
        file.write_text("hello")
    elif how == "cut":
        whole = (tmp_path / "good.tar").read_bytes()
        file.write_bytes(whole[: len(whole) // 2])
    else:
        with tarfile.open(file, "w") as tar:
            name = {
                "other-file": "evil",
                "outside": "../evil",
                "parent": "media/..",
                "link": "hoop.db",
                "no-database": "media/x",
            }[how]
            member = tarfile.TarInfo(name)
            if how == "link":
                member.type, member.linkname = tarfile.SYMTYPE, "/etc/hostname"
            tar.addfile(member)

    with pytest.raises(Damaged):
        restore(file, into)

    assert not into.exists() or not any(into.iterdir())
    assert not (tmp_path / "evil").exists()


def test_an_absent_file_is_said(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read"):
        restore(tmp_path / "none.tar", tmp_path / "into")
