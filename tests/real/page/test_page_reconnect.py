"""Nothing is lost and nothing shown twice, whatever breaks between page and server (spec 00, law 7)."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from hoop_process import until
from playwright.sync_api import expect

pytestmark = pytest.mark.real

TEXTS = "() => [...document.querySelectorAll('#log .body')].map((node) => node.textContent.trim())"

IN_VIEW = """(selector) => {
    const { top, bottom } = document.querySelector(selector).getBoundingClientRect();
    return top >= 0 && bottom <= window.innerHeight;
}"""


@pytest.fixture
def room(hoop):
    for name, kind in {"ann": "human", "bob": "human", "Echo": "persona"}.items():
        hoop.account(name, kind)
    return hoop.room("Line", "ann", "bob", "Echo")


def shown(page, count):
    """Return the texts of the log once there are `count`."""
    return until(
        lambda: len(found := page.evaluate(TEXTS)) >= count and found,
        f"{count} messages are shown",
        page=page,
    )


def test_a_killed_server_is_caught_up_with_exactly_once(own_hoop, open_page):
    """More than one page of history comes in while the page is blind."""
    for name in ("ann", "bob"):
        own_hoop.account(name)
    cid = own_hoop.room("Killed", "ann", "bob")
    own_hoop.post("bob", cid, "before")
    page = open_page(own_hoop, "ann", cid)
    page.watch.allow("ERR_INTERNET_DISCONNECTED|ERR_CONNECTION_REFUSED|WebSocket|ERR_NETWORK|ERR_CONNECTION")
    assert shown(page, 1) == ["before"]

    page.context.set_offline(True)
    own_hoop.kill()
    expect(page.get_by_role("alert").filter(has_text="Disconnected")).to_be_visible()
    own_hoop.start()
    for number in range(230):
        own_hoop.post("bob", cid, f"blind {number}")
    page.context.set_offline(False)

    assert shown(page, 231) == ["before", *(f"blind {number}" for number in range(230))]
    own_hoop.post("bob", cid, "after")
    assert shown(page, 232)[-1] == "after"
    expect(page.locator("#banner")).to_be_hidden()


def open_dropping(open_page, hoop, cid, drops):
    """Open the room over a socket from which the messages that `drops(message)` names vanish."""

    def between(socket):
        server = socket.connect_to_server()

        def pass_on(text):
            frame = json.loads(text)
            if frame["type"] != "message.new" or not drops(frame["message"]):
                socket.send(text)

        server.on_message(pass_on)

    page = open_page(hoop, "ann")
    page.route_web_socket("**/v1/ws", between)
    page.goto(f"{hoop.url}/#cid={cid}")
    page.reload()
    page.locator("#log[aria-busy=false]").wait_for(state="attached")
    return page


def test_a_frame_that_never_came_leaves_no_hole(hoop, room, open_page):
    page = open_dropping(open_page, hoop, room, lambda message: message["text"] == "one")

    hoop.post("bob", room, "one")
    hoop.post("bob", room, "two")

    assert shown(page, 2) == ["one", "two"]


@pytest.mark.parametrize("is_heard", [True, False], ids=["heard-over-the-socket", "not-heard"])
def test_a_lost_answer_is_one_message(hoop, room, open_page, is_heard):
    """The post was applied, its answer never came: the socket tells, or the same nonce is sent again."""
    page = open_dropping(open_page, hoop, room, lambda message: not is_heard)
    page.watch.allow("ERR_FAILED")
    nonces = []

    def lose_the_first(route):
        nonces.append(route.request.post_data_json["nonce"])
        if len(nonces) > 1:
            route.continue_()
            return
        route.fetch()
        route.abort()

    page.route(f"**/v1/conversations/{room}/text", lose_the_first)
    page.locator("#message").fill("once")
    page.keyboard.press("Enter")

    assert shown(page, 1) == ["once"]
    expect(page.locator("#pending article")).to_have_count(0)
    assert set(nonces) == {nonces[0]}
    assert is_heard or len(nonces) == 2
    assert [message["text"] for message in hoop.messages("ann", room)] == ["once"]


def test_what_could_not_be_sent_is_kept_and_tried_again(hoop, room, open_page):
    page = open_page(hoop, "ann", room)
    page.watch.allow("ERR_FAILED")
    page.clock.install()
    page.route(f"**/v1/conversations/{room}/text", lambda route: route.abort())

    page.locator("#message").fill("later")
    page.keyboard.press("Enter")
    expect(page.locator("#pending")).to_contain_text("Sending…")
    for _ in range(4):  # the waits between the tries
        page.clock.run_for(10_000)
    expect(page.locator("#pending")).to_contain_text("Not sent. The server cannot be reached.")
    page.unroute_all()
    page.get_by_role("button", name="Try again").click()

    expect(page.locator("#pending article")).to_have_count(0)
    assert shown(page, 1) == ["later"]


def test_a_refusal_is_shown_in_the_servers_own_words(hoop, room, open_page):
    page = open_page(hoop, "ann", room)
    page.watch.allow("422")
    problem = json.dumps(
        {"type": "about:blank", "title": "no", "status": 422, "detail": "this room is closed"}
    )
    page.route(
        f"**/v1/conversations/{room}/text",
        lambda route: route.fulfill(status=422, body=problem, content_type="application/problem+json"),
    )

    page.locator("#message").fill("hello")
    page.keyboard.press("Enter")

    expect(page.locator("#pending")).to_contain_text("Not sent. this room is closed")
    page.get_by_role("button", name="Discard").click()
    expect(page.locator("#pending article")).to_have_count(0)


@pytest.mark.timeout(180)
def test_two_thousand_messages_stay_usable(hoop, room, open_page):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: hoop.post("bob", room, f"number **{number}**"), range(2000)))
    texts = [message["text"].replace("*", "") for message in hoop.messages("ann", room)]
    page = open_page(hoop, "ann", room)

    # `expect` describes the whole page whenever it does not hold yet, which takes seconds here: counted instead.
    until(
        lambda: page.locator("#log article").last.locator("strong").count(),
        "the newest is rendered",
        page=page,
    )
    assert page.evaluate(IN_VIEW, "#log article:last-child")
    assert [text.replace("*", "") for text in shown(page, 2000)] == texts
    page.locator("#message").fill("still quick")
    page.keyboard.press("Enter")
    assert shown(page, 2001)[-1] == "still quick"
    page.locator("#log article[tabindex='0']").focus()
    page.keyboard.press("Home")

    until(
        lambda: page.locator("#log article").first.locator("strong").count(),
        "the oldest is rendered",
        page=page,
    )
    assert page.evaluate(IN_VIEW, "#log article")
    assert page.locator("#newest").is_visible()
