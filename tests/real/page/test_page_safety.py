"""Nothing that somebody wrote runs, loads or breaks out, in a real browser (spec 01 section 3)."""

import httpx
import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.real

BATTERY = [
    "<script>window.fired = 1</script>",
    "<img src=x onerror='window.fired = 2'>",
    "<svg onload='window.fired = 3'></svg>",
    "<iframe srcdoc='<script>parent.fired = 4</script>'></iframe>",
    "[click](javascript:window.fired=5)",
    "[click](&#106;avascript:window.fired=6)",
    "<a href='javascript:window.fired=7'>x</a>",
    "[click](data:text/html,<script>1</script>)",
    "&lt;script&gt;window.fired = 8&lt;/script&gt;",
    "![pixel](http://elsewhere.example/pixel.png)",
    '![a" onerror="window.fired = 9](http://elsewhere.example/p.png)',
    '[x](http://elsewhere.example/" onmouseover="window.fired = 10)',
    "<style>body { display: none }</style>",
    "<form action=//elsewhere.example><input name=a></form>",
    '```js" onclick="window.fired = 11\nx\n```',
    "|a|\n|:-:|\n|<b onclick='window.fired = 12'>x</b>|",
    "<!-- --><math><mtext></style><img src=x onerror=window.fired=13>",
]

# Every element below the log with its attributes, as `tag[attr,attr]`.
SURVEY = """() => [...document.querySelectorAll('#log .body *')].map(
    (node) => node.localName + '[' + node.getAttributeNames().sort().join() + ']')"""
EXPECTED = {
    "p[]", "br[]", "pre[]", "code[]", "code[class]", "a[href,rel,tabindex,target]", "table[]", "thead[]",
    "tbody[]", "tr[]", "th[class]", "td[class]",
}  # fmt: skip


def test_hostile_texts_leave_nothing_foreign_and_fire_nothing(hoop, open_page):
    for name in ("ann", "bob"):
        hoop.account(name)
    cid = hoop.room("<img src=x onerror='window.fired = 20'>", "ann", "bob")
    for text in BATTERY:
        hoop.post("bob", cid, text)
    addresses = []
    page = open_page(hoop, "ann", cid)
    page.on("request", lambda request: addresses.append(request.url))

    expect(page.locator("#log article")).to_have_count(len(BATTERY))
    for at in range(len(BATTERY)):
        article = page.locator("#log article").nth(at)
        article.scroll_into_view_if_needed()
        expect(article.locator(".body > *").first).to_be_attached()
    for link in page.locator("#log .body a").all():
        link.hover()

    assert page.evaluate("() => window.fired") is None
    assert set(page.evaluate(SURVEY)) <= EXPECTED
    hrefs = page.eval_on_selector_all("#log .body a", "links => links.map((link) => link.href)")
    assert all(href.startswith(("http://", "https://", "mailto:")) for href in hrefs)
    assert [address for address in addresses if not address.startswith(hoop.url)] == []
    expect(page.locator("#room-title")).to_have_text("<img src=x onerror='window.fired = 20'>")


def test_a_hostile_name_is_only_a_name(hoop, open_page):
    hoop.account("ann")
    name = "<b onclick=x>B</b>"
    hoop.account(name, "persona")
    cid = hoop.room("Names", "ann", name)
    first = hoop.post(name, cid, "hi")
    page = open_page(hoop, "ann", cid)

    page.locator("#message").focus()
    page.keyboard.type("@<b")
    expect(page.get_by_role("option").first).to_contain_text(name)
    page.keyboard.press("Enter")

    expect(page.locator("mark.chip")).to_have_text(f"@{name}")
    expect(page.locator(f"#m-{first['id']} .sender")).to_have_text(name)
    assert page.locator("#app b:not(.quote b)").count() == 0


def test_the_second_belt_holds_by_itself(hoop, open_page):
    """Even if the server's renderer let something through, the page's own walk does not."""
    page = open_page(hoop)
    page.watch.allow(
        "Content Security Policy"
    )  # the third belt: the handlers are refused even in the inert document

    html = page.evaluate(
        """async (hostile) => {
            const { allowed } = await import('/page/markdown.js');
            const box = document.createElement('div');
            box.append(allowed(hostile));
            document.body.append(box);
            return box.innerHTML;
        }""",
        "<p onclick=x id=log class='login'>a<script>window.fired=1</script><img src=x onerror=window.fired=2>"
        "<a href='javascript:x'>b</a><a href='https://a.example' target=_self onclick=x>c</a></p>",
    )

    assert html == (
        "<p>awindow.fired=1<a>b</a>"
        '<a href="https://a.example" rel="noopener noreferrer" target="_blank">c</a></p>'
    )
    assert page.evaluate("() => window.fired") is None


def test_the_policy_is_strict_and_the_page_needs_nothing_inline(hoop):
    reply = httpx.get(f"{hoop.url}/")

    policy = reply.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "style-src 'self'" in policy
    assert "unsafe" not in policy
    assert "style=" not in reply.text
    assert "<style" not in reply.text
    assert reply.text.count("<script") == 1
    assert " onclick" not in reply.text
