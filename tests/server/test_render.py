"""Nothing that runs, loads or styles leaves the renderer (spec 01 section 3: markdown rendered safely)."""

from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentinel.server.render import LINK_ATTRS, is_safe_link, render

ALLOWED = {
    "a": {"href", "rel", "target", "title"},
    "code": {"class"},
    "ol": {"start"},
    "td": {"class"},
    "th": {"class"},
    **dict.fromkeys(("p", "br", "em", "strong", "s", "pre", "blockquote", "ul", "li", "hr"), frozenset()),
    **dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6"), frozenset()),
    **dict.fromkeys(("table", "thead", "tbody", "tr"), frozenset()),
}

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>",
    "<iframe srcdoc='<script>alert(1)</script>'>",
    "<style>*{display:none}</style>",
    "[a](javascript:alert(1))",
    "[a](JaVaScRiPt:alert(1))",
    "[a](&#106;avascript:alert(1))",
    "[a](java\tscript:alert(1))",
    "[a](\u0001javascript:alert(1))",
    "[a](vbscript:x)",
    "[a](data:text/html,<script>alert(1)</script>)",
    "[a](file:///etc/passwd)",
    "[a](//elsewhere.example/x)",
    "[a](/v1/auth/logout)",
    "[a][b]\n\n[b]: javascript:alert(1)",
    "<javascript:alert(1)>",
    '[a](http://a.example/" onmouseover="alert(1))',
    '[a](http://a.example "t\\" onclick=alert(1) ")',
    '![a" onerror="alert(1)](http://a.example/p.png)',
    "![a](javascript:alert(1))",
    "[![a](http://a.example/p.png)](http://b.example)",
    "![a ![b](http://b.example/q.png)](http://a.example/p.png)",
    '```js" onclick="alert(1)\ncode\n```',
    "```<script>\ncode\n```",
    "|a|\n|:-:|\n|<b onclick=x>|",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "<!-- --><![CDATA[<script>]]>",
    "http://a.example/<script>alert(1)</script>",
    "<http://a.example/?\"onclick='x'>",
]


class Collector(HTMLParser):
    """Gathers every start tag with its attributes."""

    def __init__(self):
        super().__init__()
        self.tags = []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_comment(self, data):
        self.tags.append(("comment", {}))

    def handle_decl(self, decl):
        self.tags.append(("declaration", {}))


def tags_of(html):
    collector = Collector()
    collector.feed(html)
    collector.close()
    return collector.tags


def assert_safe(html):
    for tag, attrs in tags_of(html):
        assert tag in ALLOWED, tag
        assert set(attrs) <= ALLOWED[tag], attrs
        if tag == "a":
            assert is_safe_link(attrs["href"]), attrs
            assert {name: attrs[name] for name in LINK_ATTRS} == LINK_ATTRS


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_leaves_only_allowed_tags_and_attributes(text):
    assert_safe(render(text))


markdown_pieces = st.lists(
    st.one_of(
        st.sampled_from(
            [*HOSTILE, *"[]()<>!`*_~|\\\"'&:#-\n\t ", "http://", "javascript:", "![", "](", "&#", "```"]
        ),
        st.text(max_size=8),
    ),
    max_size=24,
).map("".join)


@settings(deadline=None)
@given(text=markdown_pieces)
def test_any_mixture_leaves_only_allowed_tags_and_attributes(text):
    assert_safe(render(text))


@settings(deadline=None)
@given(text=st.text(max_size=200))
def test_any_text_renders(text):
    assert isinstance(render(text), str)


def test_lone_surrogates_do_not_raise():
    assert render("http://a.example/\ud800 [x](http://b.example/\udfff)")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "*a* **b** ~~c~~ `d`", "<em>a</em> <strong>b</strong> <s>c</s> <code>d</code>", id="inline"
        ),
        pytest.param("one\ntwo", "one<br>\ntwo", id="newline-is-a-break"),
        pytest.param("```py\nx = 1\n```", '<pre><code class="language-py">x = 1\n</code></pre>', id="fence"),
        pytest.param("|a|\n|-:|\n|1|", '<td class="align-right">1</td>', id="alignment-as-class"),
        pytest.param("![pic](http://a.example/p.png)", ">pic</a>", id="image-as-link"),
        pytest.param("![](http://a.example/p.png)", ">http://a.example/p.png</a>", id="image-without-a-name"),
        pytest.param("see example.com", 'href="http://example.com"', id="bare-domain"),
        pytest.param("请@小明 看", "<p>请@小明 看</p>", id="cjk-mention-stays-text"),
    ],
)
def test_markdown_is_rendered(text, expected):
    assert expected in render(text)


@pytest.mark.parametrize(
    ("url", "safe"),
    [
        ("https://a.example/x", True),
        ("http://a.example", True),
        ("mailto:ann@a.example", True),
        ("mailto:", False),
        ("http:javascript", False),
        ("//a.example", False),
        ("/relative", False),
        ("javascript:alert(1)", False),
        ("http://[::1", False),
        ("", False),
    ],
)
def test_only_absolute_web_and_mail_links_are_links(url, safe):
    assert is_safe_link(url) is safe


def test_an_image_is_never_an_element():
    tags = [tag for tag, _ in tags_of(render("![a](http://a.example/p.png) ![b](http://b.example/q.png)"))]

    assert tags == ["p", "a", "a"]


def test_links_are_not_nested():
    html = render("[![a](http://a.example/p.png)](http://b.example)")

    assert html.count("<a ") == 1
