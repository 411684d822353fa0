"""A real server process for the tests of the page; the browser is that of all real tests (tests/real/conftest.py).

`hoop` starts `sentinel hoop serve` as an operator would; `open_page` logs an account in and hands out its page.
"""

import pytest
from hoop_process import Hoop


@pytest.fixture(scope="session")
def hoop(tmp_path_factory):
    """One server for all tests that leave it running."""
    server = Hoop(tmp_path_factory.mktemp("hoop"))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def own_hoop(tmp_path):
    """A server that a test may kill."""
    server = Hoop(tmp_path / "hoop")
    server.start()
    yield server
    server.stop()


@pytest.fixture
def open_page(new_page):
    """Return `open_page(server, account=None, cid=None, **context options) -> Page`; `page.watch` hears complaints."""

    def opened(server, account=None, cid=None, **options):
        cookies = []
        if account is not None:
            cookie = {"name": "hoop_session", "value": server.session(account), "url": server.url}
            cookies = [{**cookie, "httpOnly": True, "sameSite": "Strict"}]
        page = new_page(cookies, **options)
        page.goto(f"{server.url}/#cid={cid}" if cid else server.url)
        if cid and account:
            page.locator("#message").wait_for()
            page.locator("#log[aria-busy=false]").wait_for(state="attached")
            page.locator("#members li").first.wait_for()
        return page

    return opened
