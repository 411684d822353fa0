"""`sentinel demo`, as a person meets it: a real process, and the system's Chromium with nothing but the keyboard."""

import signal

import pytest
from playwright.sync_api import expect

from tests.fakes.demo_process import DemoProcess, until

pytestmark = pytest.mark.real


@pytest.fixture
def demo(tmp_path):
    made = DemoProcess(tmp_path)
    yield made
    made.close()
    assert made.family() == []


def log_in(page, demo):
    """Type what the demo printed into the page that it named."""
    page.goto(demo.address)
    expect(page.get_by_label("Account")).to_be_focused()
    page.keyboard.type("ann")
    page.keyboard.press("Tab")
    page.keyboard.type(demo.code)
    page.keyboard.press("Enter")
    expect(page.get_by_label("Message", exact=True)).to_be_focused()


def ask_echo(page, words):
    """Pick `@Echo` in the picker, write, send."""
    page.keyboard.type("@ec")
    expect(page.get_by_role("option", name="Echo")).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")
    expect(page.locator("mark.chip")).to_have_text("@Echo")
    page.keyboard.type(words)
    page.keyboard.press("Enter")


def articles(page, words):
    return page.locator("#log article").filter(has_text=words)


def test_somebody_types_one_command_and_talks_to_a_persona(demo, new_page):
    demo.start()
    page = new_page()
    log_in(page, demo)
    expect(page.locator("#room-title")).to_have_text("Demo")
    echo = page.locator("#members li").filter(has_text="Echo")
    expect(echo).to_contain_text("idle")

    ask_echo(page, "what broke the build?")

    expect(articles(page, "what broke the build?")).to_have_count(
        2
    )  # the question, and the answer that quotes it
    answer = page.locator("#log article:not(.mine)")
    expect(answer).to_have_count(1)
    expect(answer).to_contain_text("not an AI")
    expect(echo).to_contain_text("idle")  # it shows that it worked, and rests again

    page.close()
    assert demo.end(signal.SIGTERM) == 0
    assert demo.family() == []
    demo.start()
    page = new_page()
    log_in(page, demo)
    expect(articles(page, "what broke the build?")).to_have_count(2)
    ask_echo(page, "and what mended it?")
    expect(articles(page, "and what mended it?")).to_have_count(2)
    expect(page.locator("#log article:not(.mine)")).to_have_count(2)

    page.close()
    assert demo.end(signal.SIGINT) == 0
    assert demo.family() == []
    assert demo.err == ""


def test_the_page_shows_a_persona_at_work_and_tells_when_the_demo_has_gone(demo, new_page):
    """The stand-in takes as long as the test wants, so that what the page shows meanwhile is seen for sure."""
    gate = demo.base / "go-on"
    codex = demo.plant("codex")
    waiting = f"import os, time\nwhile not os.path.exists({str(gate)!r}):\n    time.sleep(0.02)\n"
    codex.write_text(codex.read_text().replace("import json, sys\n", f"import json, sys\n{waiting}", 1))
    demo.start()
    page = new_page()
    page.watch.allow("ERR_CONNECTION_REFUSED")
    log_in(page, demo)
    gode = page.locator("#members li").filter(has_text="Gode")
    expect(gode).to_contain_text("idle")

    page.keyboard.type("@god")
    page.keyboard.press("Enter")
    page.keyboard.type("go")
    page.keyboard.press("Enter")
    expect(gode).to_contain_text("working")
    gate.touch()
    expect(articles(page, "codex was here")).to_have_count(1)
    expect(gode).to_contain_text("idle")

    assert demo.end(signal.SIGINT) == 0
    expect(page.locator("#banner")).to_contain_text("Disconnected")
    until(lambda: demo.family() == [], demo.family)
