"""Where chips lie in a text and what edits do to them: the page's pure part, run in the page itself."""

import pytest

pytestmark = pytest.mark.real

# In these texts [brackets] are the chips; the brackets are not part of the text.
EDITS = [
    pytest.param("hi [@Echo] there", "oh hi @Echo there", "oh hi [@Echo] there", id="typed-before"),
    pytest.param("hi [@Echo]", "hi @Echo you", "hi [@Echo] you", id="typed-behind"),
    pytest.param("[@Echo] a", "@Echoes a", "[@Echo]es a", id="glued-on"),
    pytest.param("[@Echo]", "@Ecxho", "@Ecxho", id="typed-within"),
    pytest.param("[@Echo] [@Gode]", "@Eco @Gode", "@Eco [@Gode]", id="letter-taken-out"),
    pytest.param("[@Echo] [@Echo]", "@Echo", "[@Echo]", id="one-of-two-alike-taken-out"),
    pytest.param("a [@Echo]", "", "", id="all-gone"),
    pytest.param("a [@Echo] b", "x", "x", id="replaced"),
]

RUN = """async ([before, after, spans]) => {
    const { shifted } = await import('/page/chips.js');
    return shifted(spans.map(([start, end]) => ({ start, end, uid: 'u' })), before, after)
        .map(({ start, end }) => [start, end]);
}"""


def parsed(marked):
    text, spans = "", []
    for at, part in enumerate(marked.replace("]", "[").split("[")):
        if at % 2:
            spans.append([len(text), len(text) + len(part)])
        text += part
    return text, spans


@pytest.fixture(scope="module")
def blank(browser, hoop):
    page = browser.new_page()
    page.goto(f"{hoop.url}/")
    yield page
    page.close()


@pytest.mark.parametrize(("before", "after", "expected"), EDITS)
def test_an_edit_moves_chips_or_cuts_them(blank, before, after, expected):
    text, spans = parsed(before)

    assert blank.evaluate(RUN, [text, after, spans]) == parsed(expected)[1]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("@", ""),
        ("hi @ec", "ec"),
        ("hi ＠小", "小"),
        ("请@小", "小"),
        ("(@ec", "ec"),
        ("@mary a", "mary a"),
        ("ann@ec", None),
        ("x_@ec", None),
        ("\\@ec", None),
        ("@ ec", None),
        ("@a\nb", None),
        ("no", None),
    ],
)
def test_what_is_being_called(blank, text, query):
    script = (
        """async (text) => (await import('/page/chips.js')).queryAt(text, text.length, [])?.query ?? null"""
    )

    assert blank.evaluate(script, text) == query


def test_the_backoff_grows_is_jittered_and_has_a_cap(blank):
    script = """async ([attempt, draw]) => (await import('/page/socket.js')).backoffMs(attempt, draw)"""

    assert blank.evaluate(script, [0, 0]) == 250
    assert blank.evaluate(script, [0, 0.5]) == 375
    assert blank.evaluate(script, [3, 0]) == 2000
    assert blank.evaluate(script, [50, 0]) == 10_000
