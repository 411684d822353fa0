"""Log-in, in a real browser against a real server (spec 01 section 3)."""

import httpx
import pytest
from hoop_process import until
from playwright.sync_api import expect

pytestmark = pytest.mark.real


def test_a_code_logs_in_and_the_deep_link_is_kept(hoop, open_page):
    hoop.account("ann")
    hoop.account("Echo", "persona")
    cid = hoop.room("Deep link", "ann", "Echo")
    hoop.room("Another", "ann", "Echo")
    page = open_page(hoop, cid=cid)

    page.get_by_label("Account").fill("ann")
    page.get_by_label("One-time code").fill(hoop.otp("ann"))
    page.get_by_role("button", name="Log in").click()

    expect(page.locator("#room-title")).to_have_text("Deep link")
    expect(page.locator("#room-list")).to_contain_text("Another")
    cookies = {cookie["name"]: cookie for cookie in page.context.cookies()}
    assert cookies["hoop_session"]["httpOnly"]
    assert cookies["hoop_session"]["sameSite"] == "Strict"
    assert page.evaluate("() => document.cookie") == ""


def test_a_wrong_code_is_said_clearly(hoop, open_page):
    hoop.account("ann")
    page = open_page(hoop)
    page.watch.allow(r"401 .*\[.*/v1/auth/otp/verify\]")

    page.get_by_label("Account").fill("ann")
    page.get_by_label("One-time code").fill("000000")
    page.keyboard.press("Enter")

    expect(
        page.get_by_role("alert").filter(has_text="the code is wrong, used or expired: ask for a new one")
    ).to_be_visible()
    expect(page.get_by_label("One-time code")).to_be_focused()
    expect(page.locator("#app")).to_be_hidden()


def test_no_code_asks_for_one_without_bothering_the_server(hoop, open_page):
    page = open_page(hoop)

    page.get_by_label("Account").fill("ann")
    page.keyboard.press("Enter")

    expect(page.get_by_role("alert").filter(has_text="have one sent")).to_be_visible()


def test_a_code_can_be_sent_for(hoop, open_page):
    """The default delivery is the operator's console: the code stands in what the server printed."""
    hoop.account("carol")
    page = open_page(hoop)

    page.get_by_label("Account").fill("carol")
    page.get_by_role("button", name="Send me a code").click()
    line = until(lambda: hoop.line_with("carol"), "the code is delivered")
    expect(page.get_by_role("status").filter(has_text="a code is on its way")).to_be_visible()
    code = next(word for word in line.replace(":", " ").split() if word.isdigit() and len(word) >= 6)
    page.get_by_label("One-time code").fill(code)
    page.keyboard.press("Enter")

    expect(page.locator("#my-name")).to_have_text("carol")
    expect(page.locator("#no-rooms")).to_be_visible()


def test_logging_out_ends_the_session(hoop, open_page):
    hoop.account("dora")
    page = open_page(hoop, "dora")
    token = hoop.sessions.pop("dora")

    page.get_by_role("button", name="Log out").click()

    expect(page.get_by_label("Account")).to_be_visible()
    headers = {"Authorization": f"Bearer {token}"}
    assert httpx.get(f"{hoop.url}/v1/me", headers=headers).status_code == 401


def test_a_session_that_was_ended_elsewhere_leads_to_the_form(hoop, open_page):
    hoop.account("emil")
    page = open_page(hoop, "emil")
    expect(page.locator("#my-name")).to_have_text("emil")
    page.watch.allow("401")
    hoop.sessions.pop("emil")

    hoop.accounts.pop("emil")
    hoop.run("account", "rotate", "emil", "--json")

    expect(page.get_by_role("status").filter(has_text="Your log-in has ended")).to_be_visible()


def test_the_keyboard_alone_is_enough(hoop, open_page):
    hoop.account("ann")
    hoop.account("Echo", "persona")
    cid = hoop.room("Keys only", "ann", "Echo")
    first = hoop.post("Echo", cid, "anything to ask?")
    page = open_page(hoop, cid=cid)
    keys = page.keyboard

    expect(page.get_by_label("Account")).to_be_focused()
    keys.type("ann")
    keys.press("Tab")
    keys.type(hoop.otp("ann"))
    keys.press("Enter")
    expect(page.locator(f"#m-{first['id']}")).to_be_visible()
    expect(page.get_by_label("Message", exact=True)).to_be_focused()
    keys.type("@ec")
    expect(page.get_by_role("option", name="Echo")).to_have_attribute("aria-selected", "true")
    keys.press("Enter")
    keys.type("one")
    keys.press("Enter")
    mine = page.locator("#log article.mine")
    expect(mine).to_contain_text("@Echo one")
    for _ in range(4):  # back over the attach button into the log, which is one stop
        keys.press("Shift+Tab")
        if page.evaluate("() => document.activeElement.closest('#log') !== null"):
            break
    keys.press("Home")
    expect(page.locator(f"#m-{first['id']}")).to_be_focused()
    assert page.evaluate("() => getComputedStyle(document.activeElement).outlineStyle") == "solid"
    keys.press("r")
    keys.type("two")
    keys.press("Enter")

    expect(mine).to_have_count(2)
    one, two = hoop.messages("ann", cid)[1:]
    assert one["mentions"] == [hoop.uid("Echo")]
    assert two["reply_to"] == first["id"]
