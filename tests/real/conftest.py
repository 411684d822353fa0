"""The system's Chromium for real tests; one that is absent is a failure, not a skip.

`new_page` hands out a page whose every console error, page error, dialog and policy violation fails the test, unless the
test allowed it beforehand.
"""

import contextlib
import re
import shutil

import pytest
from playwright.sync_api import Page, sync_playwright

CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
CHROMIUM_ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WAIT_S = 15


class Watch:
    """What a page complained of, and what the test said it would."""

    def __init__(self, page: Page):
        self.complaints = []
        self.allowed = []
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.complaints.append(f"page error: {error}"))
        page.on(
            "dialog", lambda dialog: (self.complaints.append(f"dialog: {dialog.message}"), dialog.dismiss())
        )

    def _heard(self, message):
        if message.type == "error":
            self.complaints.append(f"{message.text} [{message.location.get('url', '')}]")

    def allow(self, pattern):
        """Expect complaints that match."""
        self.allowed.append(re.compile(pattern))

    def unexpected(self):
        """Return the complaints that nobody allowed."""
        return [one for one in self.complaints if not any(pattern.search(one) for pattern in self.allowed)]


@pytest.fixture(scope="session")
def chromium_path():
    """Return the system's Chromium; its absence is a failure."""
    found = next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)
    assert found, f"no Chromium on PATH (looked for {', '.join(CHROMIUM_NAMES)}): install one"
    return found


@pytest.fixture(scope="module")
def browser(chromium_path):
    """One Chromium a module: playwright's loop must not stay open while other modules run theirs."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path, args=CHROMIUM_ARGS)
        yield browser
        browser.close()


@pytest.fixture
def new_page(browser):
    """Return `new_page(cookies=(), **context options) -> Page`; `page.watch` hears complaints."""
    pages = []
    with contextlib.ExitStack() as stack:

        def made(cookies=(), **options):
            context = browser.new_context(**{"viewport": {"width": 1200, "height": 760}, **options})
            stack.callback(context.close)
            context.set_default_timeout(WAIT_S * 1000)
            if cookies:
                context.add_cookies(list(cookies))
            page = context.new_page()
            page.watch = Watch(page)
            pages.append(page)
            return page

        yield made
        for page in pages:
            assert page.watch.unexpected() == []
