"""On a phone, in the dark, without motion (spec 01 section 3)."""

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.real

OVERFLOW = "() => document.documentElement.scrollWidth - window.innerWidth"
LUMINANCE = """(selector) => {
    const [r, g, b] = getComputedStyle(document.querySelector(selector)).backgroundColor.match(/[\\d.]+/g).map(Number);
    return (0.2126 * r + 0.7152 * g + 0.0722 * b) / 255;
}"""
WIDE = (
    "Donaudampfschiffahrtsgesellschaftskapitänskajütenschlüsselbundanhänger" * 2
    + "\n\n```\n" + "x" * 300 + "\n```\n\n|" + "column|" * 12 + "\n|" + "-|" * 12 + "\n|" + "value|" * 12
)  # fmt: skip


@pytest.fixture
def room(hoop):
    for name, kind in {"ann": "human", "bob": "human", "Echo": "persona"}.items():
        hoop.account(name, kind)
    cid = hoop.room("A room with a rather long name for a telephone", "ann", "bob", "Echo")
    hoop.post("Echo", cid, WIDE)
    return cid


def test_a_phone_scrolls_in_one_direction_only(hoop, room, open_page):
    phone = {"viewport": {"width": 375, "height": 720}, "is_mobile": True, "has_touch": True}
    form = open_page(hoop, **phone)
    assert form.evaluate(OVERFLOW) <= 0

    page = open_page(hoop, "ann", room, **phone)
    expect(page.locator("#log table")).to_be_attached()
    assert page.evaluate(OVERFLOW) <= 0
    scroll = page.locator("#scroll")
    assert scroll.evaluate("node => node.scrollWidth - node.clientWidth") <= 0
    page.locator("#message").tap()
    page.keyboard.type("@")
    expect(page.get_by_role("listbox")).to_be_in_viewport(ratio=1)
    page.get_by_role("option", name="Echo").tap()
    expect(page.locator("mark.chip")).to_have_text("@Echo")
    assert page.evaluate(OVERFLOW) <= 0


def test_a_phone_reaches_the_rooms_by_a_button(hoop, room, open_page):
    page = open_page(
        hoop, "ann", room, viewport={"width": 375, "height": 720}, is_mobile=True, has_touch=True
    )
    expect(page.locator("#rooms")).to_be_hidden()

    page.get_by_role("button", name="Rooms", exact=False).first.tap()
    expect(page.locator("#rooms")).to_be_visible()
    page.locator(f"#room-list [data-cid='{room}']").tap()

    expect(page.locator("#rooms")).to_be_hidden()
    expect(page.locator("#message")).to_be_visible()


@pytest.mark.parametrize(("scheme", "is_dark"), [("dark", True), ("light", False)])
def test_the_page_follows_the_readers_scheme(hoop, room, open_page, scheme, is_dark):
    page = open_page(hoop, "ann", room, color_scheme=scheme)

    for selector in ("body", ".room-head", ".composer .row"):
        assert (page.evaluate(LUMINANCE, selector) < 0.3) is is_dark


def test_nothing_moves_for_who_asked_for_that(hoop, room, open_page):
    hoop.call("Echo", "PUT", "/v1/presence", json={"state": "working"})
    page = open_page(hoop, "ann", room, reduced_motion="reduce")

    dot = page.locator("#members [data-state=working] .dot")
    expect(dot).to_be_visible()
    assert dot.evaluate("node => getComputedStyle(node).animationName") == "none"
