"""Talking in a room: calling, sending, hearing, seeing (spec 01 section 3), in a real browser against a real server."""

import json
import struct
import zlib

import pytest
from hoop_process import until
from playwright.sync_api import expect
from websockets.sync.client import connect

pytestmark = pytest.mark.real

CAST = {"ann": "human", "bob": "human", "Echo": "persona", "Gode": "persona", "GodeMini01": "persona"}


@pytest.fixture
def room(hoop):
    """A fresh room of the whole cast."""
    for name, kind in {**CAST, "小明": "persona", "Mary Ann": "human"}.items():
        hoop.account(name, kind)
    return hoop.room("Kitchen", *CAST, "小明", "Mary Ann")


def write(page, text):
    page.locator("#message").focus()
    page.keyboard.type(text)


def sent(hoop, room, count=1):
    """Return the last message once the room holds `count`."""
    return until(lambda: hoop.messages("ann", room)[count - 1 :], f"{count} messages")[-1]


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        pytest.param("@ech", "Echo", id="begun"),
        pytest.param("@gode", "Gode", id="one-name-begins-another"),
        pytest.param("@mini", "GodeMini01", id="within-the-name"),
        pytest.param("@mary a", "Mary Ann", id="with-a-space"),
        pytest.param("@小", "小明", id="cjk"),
        pytest.param("请＠小明", "小明", id="full-width"),
        pytest.param("请@ech", "Echo", id="behind-a-script-without-spaces"),
    ],
)
def test_a_picked_member_is_a_structured_mention(hoop, room, open_page, typed, name):
    page = open_page(hoop, "ann", room)

    write(page, typed)
    expect(page.get_by_role("option").first).to_contain_text(name)
    page.keyboard.press("Tab")
    expect(page.locator("mark.chip")).to_have_text(f"@{name}")
    page.keyboard.type("hello")
    page.keyboard.press("Enter")

    message = sent(hoop, room)
    assert message["mentions"] == [hoop.uid(name)]
    assert message["text"].endswith(f"@{name} hello")
    expect(page.locator("#log .mention")).to_have_text(f"@{name}")


def test_arrows_and_the_mouse_choose(hoop, room, open_page):
    page = open_page(hoop, "ann", room)

    write(page, "@gode")
    expect(page.get_by_role("option")).to_have_count(2)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.keyboard.type("and @gode")
    page.get_by_role("option", name="Gode persona", exact=True).click()
    page.keyboard.type("go")
    page.keyboard.press("Enter")

    assert sent(hoop, room)["mentions"] == [hoop.uid("GodeMini01"), hoop.uid("Gode")]


def test_escape_closes_the_picker_and_the_resolver_still_calls(hoop, room, open_page):
    page = open_page(hoop, "ann", room)

    write(page, "@Echo")
    page.keyboard.press("Escape")
    expect(page.get_by_role("listbox")).to_be_hidden()
    page.keyboard.type(" hi, not `@Gode`")
    page.keyboard.press("Enter")

    assert sent(hoop, room)["mentions"] == [hoop.uid("Echo")]


def test_an_at_inside_a_word_opens_nothing(hoop, room, open_page):
    page = open_page(hoop, "ann", room)

    write(page, "mail me: ann@ech")

    expect(page.get_by_role("listbox")).to_be_hidden()


def test_everybody_is_a_broadcast(hoop, room, open_page):
    page = open_page(hoop, "ann", room)

    write(page, "@every")
    page.get_by_role("option", name="@everyone").click()
    page.keyboard.type("lunch")
    page.keyboard.press("Enter")

    message = sent(hoop, room)
    assert (message["text"], message["broadcast"], message["mentions"]) == ("@everyone lunch", True, [])


def test_backspace_takes_the_whole_chip(hoop, room, open_page):
    page = open_page(hoop, "ann", room)

    write(page, "hey @ech")
    page.keyboard.press("Enter")
    page.keyboard.press("Backspace")
    expect(page.locator("mark.chip")).to_have_count(1)
    page.keyboard.press("Backspace")
    expect(page.locator("mark.chip")).to_have_count(0)
    page.keyboard.type("you")
    page.keyboard.press("Enter")

    message = sent(hoop, room)
    assert (message["text"], message["mentions"]) == ("hey you", [])


def test_a_pasted_name_becomes_a_chip(hoop, room, open_page):
    page = open_page(hoop, "ann", room, permissions=["clipboard-read", "clipboard-write"])

    page.evaluate("() => navigator.clipboard.writeText('@Echo hi, @GodeMini01 too')")
    page.locator("#message").focus()
    page.keyboard.press("Control+V")
    expect(page.locator("mark.chip")).to_have_text(["@Echo", "@GodeMini01"])
    page.keyboard.press("Enter")

    message = sent(hoop, room)
    assert sorted(message["mentions"]) == sorted([hoop.uid("Echo"), hoop.uid("GodeMini01")])
    assert message["text"] == "@Echo hi, @GodeMini01 too"


def test_an_ambiguous_name_is_reported_and_not_sent_silently(hoop, room, open_page):
    """Names are unique on this server; another one behind the same page may have twins, so its answer is played."""
    page = open_page(hoop, "ann", room)
    answer = json.dumps({"mentions": [], "broadcast": False, "ambiguous": ["Sam"]})
    page.route(
        "**/mentions/resolve", lambda route: route.fulfill(body=answer, content_type="application/json")
    )

    write(page, "@Sam hi")
    page.keyboard.press("Enter")
    notice = page.get_by_role("alert").filter(has_text="“@Sam” could mean more than one member")
    expect(notice).to_be_visible()
    assert hoop.messages("ann", room) == []
    assert page.locator("#message").input_value() == "@Sam hi"
    notice.get_by_role("button", name="send without calling").click()

    assert sent(hoop, room)["mentions"] == []


def test_a_resolver_out_of_reach_sends_nothing_and_keeps_the_text(hoop, room, open_page):
    page = open_page(hoop, "ann", room)
    page.watch.allow("ERR_FAILED")
    page.route("**/mentions/resolve", lambda route: route.abort())

    write(page, "@Sam hi")
    page.keyboard.press("Enter")

    expect(page.get_by_role("alert").filter(has_text="nothing was sent")).to_be_visible()
    assert page.locator("#message").input_value() == "@Sam hi"
    assert hoop.messages("ann", room) == []


def test_a_message_of_another_account_appears_live_with_markdown(hoop, room, open_page):
    page = open_page(hoop, "ann", room)

    message = hoop.post("Gode", room, "**done**, @ann\n\n```py\nx = 1\n```", mentions=[hoop.uid("ann")])

    article = page.locator(f"#m-{message['id']}")
    expect(article.locator("strong")).to_have_text("done")
    expect(article.locator("pre code")).to_have_text("x = 1\n")
    expect(article.locator(".sender")).to_have_text("Gode")
    expect(article.locator(".persona")).to_have_text("persona")
    expect(article.locator(".mention")).to_have_text("@ann")
    expect(article).to_have_class("message for-me")


def test_a_mention_that_the_text_does_not_name_is_shown(hoop, room, open_page):
    page = open_page(hoop, "ann", room)

    hoop.post("bob", room, "look at this", mentions=[hoop.uid("Echo")])

    expect(page.locator("#log .called")).to_have_text("calls @Echo")


def test_a_reply_carries_its_message_and_shows_a_snippet(hoop, room, open_page):
    first = hoop.post("Gode", room, "shall I?")
    page = open_page(hoop, "ann", room)

    page.locator(f"#m-{first['id']}").hover()
    page.locator(f"#m-{first['id']}").get_by_role("button", name="Reply").click()
    expect(page.locator("#replying")).to_contain_text("Replying to Gode: shall I?")
    page.keyboard.type("yes")
    page.keyboard.press("Enter")

    assert sent(hoop, room, 2)["reply_to"] == first["id"]
    expect(page.locator("#log article.mine .quote")).to_have_text("Gode shall I?")
    page.locator("#log article.mine .quote").click()
    expect(page.locator(f"#m-{first['id']}")).to_be_focused()


def png():
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + b"\x0d\x6b\x68" * 32 for _ in range(32))
    head = struct.pack(">IIBBBBB", 32, 32, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


def wav():
    samples = bytes(8000)
    head = struct.pack(
        "<4sI4s4sIHHIIHH4sI",
        b"RIFF",
        36 + len(samples),
        b"WAVE",
        b"fmt ",
        16,
        1,
        1,
        8000,
        8000,
        1,
        8,
        b"data",
        len(samples),
    )
    return head + samples


def test_an_image_is_attached_and_shown(hoop, room, open_page):
    page = open_page(hoop, "ann", room)

    page.locator("#file").set_input_files({"name": "chart.png", "mimeType": "image/png", "buffer": png()})
    expect(page.locator("#attached")).to_contain_text("chart.png")
    write(page, "look, @ech")
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")

    message = sent(hoop, room)
    assert (message["type"], message["media"]["name"]) == ("image", "chart.png")
    assert message["mentions"] == [hoop.uid("Echo")]
    picture = page.locator("#log article img")
    expect(picture).to_have_attribute("alt", "chart.png")
    until(lambda: picture.evaluate("image => image.naturalWidth") == 32, "the image is loaded")


def test_a_voice_message_plays(hoop, room, open_page):
    page = open_page(hoop, "ann", room)

    page.locator("#file").set_input_files({"name": "hello.wav", "mimeType": "audio/wav", "buffer": wav()})
    page.get_by_role("button", name="Send").click()

    audio = page.locator("#log article audio")
    until(lambda: audio.count() and audio.evaluate("audio => audio.duration") == 1, "the length is known")
    assert sent(hoop, room)["type"] == "voice"


def test_a_file_is_a_download(hoop, room, open_page):
    page = open_page(hoop, "ann", room)

    page.locator("#file").set_input_files(
        {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"<b>hi</b>"}
    )
    page.get_by_role("button", name="Send").click()
    with page.expect_download() as download:
        page.locator("#log article a.file").click()

    assert download.value.suggested_filename == "notes.txt"
    assert download.value.path().read_bytes() == b"<b>hi</b>"
    assert sent(hoop, room)["type"] == "file"


def test_presence_tells_how_each_persona_is(hoop, room, open_page):
    page = open_page(hoop, "ann", room)
    state = page.locator(f"#members [data-uid='{hoop.uid('Echo')}'] .state")
    expect(state).to_have_text("offline")

    headers = {"Authorization": f"Bearer {hoop.account('Echo')['token']}"}
    with connect(f"ws://127.0.0.1:{hoop.port}/v1/ws", additional_headers=headers) as socket:
        assert json.loads(socket.recv(timeout=5))["type"] == "hello"
        hoop.call("Echo", "PUT", "/v1/presence", json={"state": "idle"})
        expect(state).to_have_text("idle")
        hoop.call("Echo", "PUT", "/v1/presence", json={"state": "working"})
        expect(state).to_have_text("working 0 s")
        expect(state).to_have_text("working 2 s")
        hoop.call(
            "Echo", "PUT", "/v1/presence", json={"state": "dead", "detail": "401 from the model's server"}
        )
        expect(state).to_have_text("dead: 401 from the model's server")
        socket.send(json.dumps({"type": "typing", "cid": room, "on": True}))
        expect(page.locator("#typing")).to_have_text("Echo is typing…")
        socket.send(json.dumps({"type": "typing", "cid": room, "on": False}))
        expect(page.locator("#typing")).to_have_text("")

        write(page, "hm")

        frame = {}
        while frame.get("type") != "typing":
            frame = json.loads(socket.recv(timeout=5))
        assert (frame["uid"], frame["cid"], frame["on"]) == (hoop.uid("ann"), room, True)


def test_unread_messages_of_other_rooms_are_counted(hoop, room, open_page):
    other = hoop.room("Elsewhere", *CAST)
    page = open_page(hoop, "ann", room)
    entry = page.locator(f"#room-list [data-cid='{other}']")

    hoop.post("bob", other, "one")
    hoop.post("bob", other, "two")
    expect(entry.locator(".badge")).to_have_text("2")
    entry.click()

    expect(page.locator("#room-title")).to_have_text("Elsewhere")
    expect(page.locator("#log article")).to_have_count(2)
    expect(entry.locator(".badge")).to_have_count(0)


def test_a_draft_waits_in_its_room(hoop, room, open_page):
    other = hoop.room("Elsewhere", *CAST)
    page = open_page(hoop, "ann", room)

    write(page, "half a th")
    page.locator(f"#room-list [data-cid='{other}']").click()
    expect(page.locator("#room-title")).to_have_text("Elsewhere")
    assert page.locator("#message").input_value() == ""
    page.locator(f"#room-list [data-cid='{room}']").click()

    expect(page.locator("#message")).to_have_value("half a th")
