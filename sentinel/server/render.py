"""Markdown as people and models write it -> HTML that a page may show. Pure apart from a lock.

The first of two belts: nothing leaves here but the tags and attributes named below (the page walks the result against
a list of its own). Raw HTML is text; a link goes to http, https or mailto or it is not a link; an image that lies
elsewhere is never fetched, it becomes a link to it (a picture's address tells a stranger who read the message, and
when); no `style` attribute, which the page's Content-Security-Policy would refuse anyway. Source: spec 01 section 3.
"""

import re
from collections.abc import Iterator
from threading import Lock
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

LINK_SCHEMES = frozenset({"http", "https", "mailto"})
LINK_ATTRS = {"rel": "noopener noreferrer", "target": "_blank"}

_ALIGNMENT = re.compile(r"text-align:(left|center|right)")
_LANGUAGE = re.compile(r"[^\w+#.-].*", re.DOTALL)


def render(text: str) -> str:
    """Return `text` (CommonMark, tables, strikethrough, bare links; a newline is a line break) as safe HTML.

    Never raises for any string. Safe to call from several threads.
    """
    with _LOCK:
        return str(_MARKDOWN.render(text))


def is_safe_link(url: str) -> bool:
    """Return whether a message may link to `url`: absolute, and of a scheme that only opens a page or a mail."""
    try:
        parts = urlsplit(url)
    except ValueError:  # such as an IPv6 address that does not end
        return False
    if parts.scheme == "mailto":
        return bool(parts.path)
    return parts.scheme in LINK_SCHEMES and bool(parts.netloc)


def _harden(state: StateCore) -> None:
    """Core rule, last of all: what the renderer will see holds safe tokens only."""
    for token in state.tokens:
        _alignment_as_class(token)
        if token.type == "fence":
            token.info = _LANGUAGE.sub("", token.info.strip())
        if token.children:
            token.children = list(_without_images(token.children))


def _alignment_as_class(token: Token) -> None:
    """Turn the `style` of a table's cell into a class: inline styles are refused by the page's policy."""
    style = str(token.attrs.pop("style", ""))
    if found := _ALIGNMENT.fullmatch(style):
        token.attrs["class"] = f"align-{found[1]}"


def _without_images(tokens: list[Token]) -> Iterator[Token]:
    """Yield the tokens with each image as a link to it, or as its description where a link is open already."""
    depth = 0
    for token in tokens:
        if token.type == "link_open":
            depth += 1
            token.attrs.update(LINK_ATTRS)
        elif token.type == "link_close":
            depth -= 1
        if token.type != "image":
            yield token
            continue
        address = str(token.attrs.get("src", ""))
        description = Token("text", "", 0, content=token.content or address)
        if depth:
            yield description
            continue
        yield Token("link_open", "a", 1, attrs={"href": address, **LINK_ATTRS})
        yield description
        yield Token("link_close", "a", -1)


def _build() -> MarkdownIt:
    markdown = MarkdownIt(
        "js-default", {"html": False, "linkify": True, "breaks": True, "typographer": False}
    )
    markdown.validateLink = is_safe_link
    markdown.core.ruler.push("harden", _harden)
    return markdown


# One parser for the process, since building one takes milliseconds; locked, since its linkifier keeps state per call.
_MARKDOWN = _build()
_LOCK = Lock()
