"""What is taken from an outbox, and what never is (spec 02 section 4 "reply")."""

import os

import pytest

from sentinel.bridge.outbox import File, Found, collect, holds_secret, safe_name, upload
from sentinel.core.model import Kind, MessageType
from sentinel.core.persona import Limits
from tests.fakes.fake_clock import stepped
from tests.fakes.fake_room import FakeRoom, FakeServer

SECRET = "tok-4d1f-very-secret"
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


@pytest.fixture
def home(tmp_path):
    made = tmp_path / "hoop" / "gode"
    (made / "turns" / "t1" / "outbox").mkdir(parents=True)
    (made / "token").write_text(SECRET)
    return made


@pytest.fixture
def outbox(home):
    return home / "turns" / "t1" / "outbox"


def taken(home, **limits):
    return collect(home, home / "turns" / "t1", Limits(**limits))


def test_plain_files_are_taken_by_name(home, outbox):
    (outbox / "b.txt").write_bytes(b"two")
    (outbox / "a.png").write_bytes(PNG)

    assert taken(home) == Found((File("a.png", PNG), File("b.txt", b"two")), 0)


def test_no_outbox_is_no_file(home, outbox):
    outbox.rmdir()

    assert taken(home) == Found()


def a_link(home, outbox):
    (outbox / "x").symlink_to(home / "token")


def a_link_to_nothing(home, outbox):
    (outbox / "x").symlink_to("/nowhere")


def a_second_name(home, outbox):
    os.link(home / "token", outbox / "x")


def a_folder(home, outbox):
    (outbox / "x").mkdir()
    (outbox / "x" / "in-it").write_text("hello")


def a_fifo(home, outbox):
    os.mkfifo(outbox / "x")


def an_empty_file(home, outbox):
    (outbox / "x").touch()


def too_large(home, outbox):
    (outbox / "x").write_bytes(b"x" * 101)


def no_utf8(home, outbox):
    (outbox / os.fsdecode(b"\xff.txt")).write_text("hello")


LEFT = [a_link, a_link_to_nothing, a_second_name, a_folder, a_fifo, an_empty_file, too_large, no_utf8]


@pytest.mark.parametrize("put", LEFT)
def test_anything_else_is_left_and_counted(home, outbox, put):
    put(home, outbox)
    (outbox / "fine").write_text("fine")

    assert taken(home, media_bytes=100) == Found((File("fine", b"fine"),), 1)


def test_an_outbox_that_is_a_link_gives_nothing_away(home, outbox):
    """Neither one that leads out of the home, nor one that stays in it."""
    outbox.rmdir()
    outbox.symlink_to(home)
    assert taken(home).files == ()

    outbox.unlink()
    outbox.symlink_to("/etc")
    assert taken(home).files == ()


def test_a_folder_on_the_way_that_is_a_link_gives_nothing_away(home, outbox):
    (home / "other" / "outbox").mkdir(parents=True)
    (home / "other" / "outbox" / "x").write_text("hello")
    outbox.rmdir()
    (home / "turns" / "t1").rmdir()
    (home / "turns" / "t1").symlink_to(home / "other")

    assert taken(home).files == ()


def test_number_and_size_of_all_together_are_bounded(home, outbox):
    for number in range(6):
        (outbox / f"f{number}").write_bytes(b"x" * 40)

    assert [one.name for one in taken(home, outbox_files=4).files] == ["f0", "f1", "f2", "f3"]
    assert taken(home, outbox_files=4).left == 2
    assert [one.name for one in taken(home, media_bytes=100).files] == ["f0", "f1"]
    assert taken(home, media_bytes=100).left == 4


def test_hidden_names_are_nobodys_word(home, outbox):
    (outbox / ".DS_Store").write_text("x")

    assert taken(home) == Found()


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("report.pdf", "report.pdf"),
        ("报告 1.pdf", "报告 1.pdf"),
        ("../../etc/passwd", "file.etcpasswd"),
        ("@Gode.txt", "Gode.txt"),
        ("a\u202etxt.exe", "a_txt.exe"),
        ("a\nb.txt", "a_b.txt"),
        ("...", "file"),
        ("x" * 300 + ".txt", "x" * 80 + ".txt"),
        ("noextension", "noextension"),
    ],
)
def test_names_are_made_safe(name, safe):
    assert safe_name(name) == safe


HIDDEN = {
    "plain": SECRET.encode(),
    "in a text": f"the key is {SECRET}.".encode(),
    "utf-16": SECRET.encode("utf-16"),
    "among binary": b"\xff\xfe\0" + SECRET.encode() + b"\xff",
    "with zero-width characters": "\u200b".join(SECRET).encode(),
    "percent-encoded": "".join(f"%{ord(one):02x}" for one in SECRET).encode(),
}


@pytest.mark.parametrize("data", HIDDEN.values(), ids=HIDDEN)
def test_a_secret_is_found_in_a_file(data):
    assert holds_secret([File("fine.txt", b"fine"), File("x.txt", data)], (SECRET,))


def test_a_secret_is_found_in_a_name_and_not_where_there_is_none():
    assert holds_secret([File(f"{SECRET}.txt", b"fine")], (SECRET,))
    assert not holds_secret([File("fine.txt", b"fine"), File("b", b"\xff\0\xfe")], (SECRET, "short"))


@pytest.mark.parametrize(
    ("name", "data", "kind", "content_type"),
    [
        ("a.png", PNG, MessageType.IMAGE, "image/png"),
        ("a.bin", PNG, MessageType.IMAGE, "image/png"),
        ("a.png", b"no picture", MessageType.FILE, "application/octet-stream"),
        ("a.svg", b"<svg/>", MessageType.FILE, "application/octet-stream"),
        ("a.txt", b"hello", MessageType.FILE, "text/plain"),
        ("a", b"hello", MessageType.FILE, "application/octet-stream"),
    ],
)
@stepped
async def test_a_picture_is_told_by_its_bytes(name, data, kind, content_type):
    server = FakeServer()
    gode = server.account("Gode", Kind.PERSONA)
    room = FakeRoom(server, gode.uid)

    attached = await upload(room, File(name, data))

    assert attached.type is kind
    (call,) = room.called("upload")
    assert call.arguments["content_type"] == content_type
