"""Decide whom the `@name`s of a text call: the only place where a text becomes user ids.

Pure. CommonMark (markdown-it-py) says what of a text a reader sees as prose; only there can an `@` call. Inside that
prose, emphasis and links are see-through: `**@Go**de` reads `@Gode` and calls Gode, `**@Gode**l` reads `@Godel` and
calls nobody. Code, images and raw HTML tags are opaque: no name reaches across them, and they are a word border. A bare
URL or an autolink is visible text (so `https://x.example@Gode` has a letter before its `@`), but no `@` in it calls.
An entity is the character that it shows: `&#64;Gode` calls. A line break ends a name. A lazy continuation line belongs
to its block quote.

Names are compared by canonical equivalence and Unicode casefold, one combining sequence at a time, so that a name never
ends between a letter and its accent. `@everyone` and its like are a broadcast unless a member has that very name: then
the member is meant. A broadcast by somebody who may not is not made; its span is consumed like any other.

Source: spec 02 section 6.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol, cast

from sentinel.core.model import Member, Resolution

if TYPE_CHECKING:
    from markdown_it.token import Token

BROADCAST_NAMES = ("所有人", "everyone", "all")

_AT = re.compile("[@＠]")
# An `@` as it is, or an entity that could show one: what is worth parsing at all.
_MAYBE_AT = re.compile("[@＠]|&(?:#|commat;)", re.IGNORECASE)

# Scripts that are written without borders between words: one of their letters beside a name is no part of it.
_BORDERLESS = re.compile(
    "["
    "\u0e00-\u0eff"  # Thai, Lao
    "\u0f00-\u0fff"  # Tibetan
    "\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f"  # Myanmar
    "\u1780-\u17ff"  # Khmer
    "\u1950-\u19df\u1a20-\u1aaf\uaa80-\uaadf"  # Tai Le, New Tai Lue, Tai Tham, Tai Viet
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u303c"  # Han: radicals, iteration marks, numerals
    "\u3040-\u312f\u31a0-\u31bf\u31f0-\u31ff\uff66-\uff9f"  # Hiragana, Katakana, Bopomofo
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Han
    "\ua000-\ua4cf"  # Yi
    "\U00016fe0-\U00018d7f\U0001aff0-\U0001b16f\U0001b170-\U0001b2ff"  # Tangut, Kana extensions, Nushu
    "\U00020000-\U0003ffff"  # Han
    "]"
)
# Joiners and variation selectors show nothing and end nothing: what stands behind them is the neighbour.
_JOINERS = frozenset(
    "\u00ad\u034f\u200c\u200d\u2060\ufeff"
    + "".join(map(chr, range(0xFE00, 0xFE10)))
    + "".join(map(chr, range(0xE0100, 0xE01F0)))
)
_MARKS = frozenset(("Mn", "Mc"))
_LETTERS_AND_DIGITS = frozenset(("Lu", "Ll", "Lt", "Lm", "Lo", "Nd", "Nl"))
_OPAQUE = frozenset(("code_inline", "image", "html_inline"))
_BREAKS = frozenset(("softbreak", "hardbreak"))


class _Url(Protocol):
    """Where linkify found a bare URL or an e-mail address."""

    index: int
    last_index: int


@dataclass(slots=True)
class _Called:
    """What one name stands for: the uids of the members who bear it, or (with none) a broadcast."""

    name: str
    uids: list[str] = field(default_factory=list[str])


class _Node:
    """A node of the trie of folded names; `called` is set where a name ends."""

    __slots__ = ("called", "nodes")

    def __init__(self) -> None:
        self.nodes: dict[str, _Node] = {}
        self.called: _Called | None = None


def resolve(text: str, members: Sequence[Member], *, may_broadcast: bool = True) -> Resolution:
    """Return whom `text` calls.

    Args:
        text: markdown, as it will be posted.
        members: the members of the conversation; only they can be called.
        may_broadcast: False for a persona without the `may_broadcast` setting; then nothing sets broadcast.

    Returns:
        uids in order of first appearance; whether everybody is called; and the names (as the first of their bearers
        spells them) that were called but fit several members, who are therefore not called.
    """
    if not _MAYBE_AT.search(text):
        return Resolution()
    names = _trie(members)
    mentions: dict[str, None] = {}
    ambiguous: dict[str, None] = {}
    broadcast = False
    for shown, ats in _prose(text):
        for called in _calls(shown, ats, names):
            match called.uids:
                case []:
                    broadcast = may_broadcast
                case [uid]:
                    mentions[uid] = None
                case _:
                    ambiguous[called.name] = None
    return Resolution(tuple(mentions), broadcast, tuple(ambiguous))


def strip_leading_mentions(text: str, members: Sequence[Member]) -> str:
    """Return `text` from behind the mentions that it begins with, so that a command's first line comes first.

    White space around them and one comma or colon behind each go too. The text is not read as markdown: whether
    somebody *is* called was decided by the sender's structured mentions. Source: spec 02 section 3 "Commands".
    """
    names = _trie(members)
    rest = text.lstrip()
    while rest and _AT.match(rest):
        found = _longest(rest, 1, names)
        if found is None:
            break
        rest = rest[found[1] :].lstrip()
        if rest[:1] in {",", ":", "，", "："}:
            rest = rest[1:].lstrip()
    return rest


def _trie(members: Sequence[Member]) -> _Node:
    root = _Node()
    for member in members:
        node = _place(root, member.name.strip())
        if node is root:
            continue
        node.called = node.called or _Called(member.name)
        if member.uid not in node.called.uids:
            node.called.uids.append(member.uid)
    for name in BROADCAST_NAMES:
        node = _place(root, name)
        node.called = node.called or _Called(name)
    return root


def _place(root: _Node, name: str) -> _Node:
    """Return the node at which `name` ends, made if it is not there; the root itself for an empty name."""
    node = root
    for character in _folded(name):
        below = node.nodes.get(character)
        if below is None:
            below = node.nodes[character] = _Node()
        node = below
    return node


def _calls(shown: str, ats: Sequence[int], names: _Node) -> Iterator[_Called]:
    """Yield what the `@`s at `ats` of a stretch of prose call, left to right; a match consumes its span."""
    free_from = 0
    for at in ats:
        if at < free_from or _is_inside_word(shown, at):
            continue
        found = _longest(shown, at + 1, names)
        if found is not None:
            called, free_from = found
            yield called


def _longest(shown: str, start: int, names: _Node) -> tuple[_Called, int] | None:
    """Return the longest name that stands at `start` and really ends, with the offset of its end."""
    longest: tuple[_Called, int] | None = None
    node = names
    for end, sequence in _sequences(shown, start):
        for character in _folded(sequence):
            below = node.nodes.get(character)
            if below is None:
                return longest
            node = below
        if node.called is not None and _has_ended(shown, end):
            longest = (node.called, end)
    return longest


def _sequences(text: str, start: int) -> Iterator[tuple[int, str]]:
    """Yield the combining sequences of `text` from `start` on, each with the offset of its end."""
    while start < len(text):
        end = start + 1
        while end < len(text) and unicodedata.combining(text[end]):
            end += 1
        yield end, text[start:end]
        start = end


@lru_cache(maxsize=4096)
def _folded(text: str) -> str:
    """Return the canonical caseless form of whole combining sequences (Unicode 3.13, D145)."""
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", text).casefold())


def _has_ended(shown: str, end: int) -> bool:
    """Say whether a name that stops at `end` really ends there."""
    while end < len(shown) and shown[end] in _JOINERS:
        end += 1
    if end == len(shown):
        return True
    category = unicodedata.category(shown[end])
    if category in _MARKS:  # it changes the letter before it, whatever the script
        return False
    return category not in _LETTERS_AND_DIGITS or _BORDERLESS.match(shown[end]) is not None


def _is_inside_word(shown: str, at: int) -> bool:
    """Say whether the `@` at `at` stands behind a letter, digit or mark of a script with word borders."""
    before = at - 1
    while before >= 0 and shown[before] in _JOINERS:
        before -= 1
    if before < 0 or _BORDERLESS.match(shown[before]):
        return False
    category = unicodedata.category(shown[before])
    return category in _LETTERS_AND_DIGITS or category in _MARKS


def _prose(text: str) -> Iterator[tuple[str, list[int]]]:
    """Yield the stretches of `text` that a reader sees as prose, each with the offsets of the `@`s that may call."""
    # Imported here because they cost more than everything else that an idle sentinel imports.
    from linkify_it import LinkifyIt  # pyright: ignore[reportMissingTypeStubs]
    from markdown_it import MarkdownIt

    linkify = LinkifyIt()
    parser = MarkdownIt("commonmark")
    # Blocks first, and inline markup only where an `@` is. `text_join` would hide which `@` was escaped.
    parser.disable(["inline", "text_join"])
    if "](" not in text and "]:" not in text:  # then nothing can be a link, and many brackets cost nothing
        parser.disable(["link", "image"])
    environment: dict[str, object] = {}
    quotes = 0
    for block in parser.parse(text, environment):
        if block.type in {"blockquote_open", "blockquote_close"}:
            quotes += block.nesting
        elif block.type == "inline" and quotes == 0 and _MAYBE_AT.search(block.content):
            children: list[Token] = []
            parser.inline.parse(block.content, parser, environment, children)
            for shown, ats in _stretches(children):
                # Sought in what is shown, not token by token: a URL in link text or across emphasis is one too.
                found = cast("list[_Url] | None", linkify.match(shown)) if ats else None  # pyright: ignore[reportUnknownMemberType]
                in_url = {at for url in found or () for at in range(url.index, url.last_index)}
                yield shown, [at for at in ats if at not in in_url]


def _stretches(tokens: Sequence["Token"]) -> Iterator[tuple[str, list[int]]]:
    """Cut one block's inline tokens at what is opaque; yield what is shown between, and where its `@`s are."""
    pieces: list[str] = []
    ats: list[int] = []
    length = 0
    in_autolink = False
    for token in tokens:
        if token.type in _OPAQUE:
            yield "".join(pieces), ats
            pieces, ats, length = [], [], 0
            continue
        if token.type in {"link_open", "link_close"}:
            in_autolink = token.type == "link_open" and token.info == "auto"
        piece = "\n" if token.type in _BREAKS else token.content
        is_escaped = token.type == "text_special" and token.info == "escape"
        if not in_autolink and not is_escaped:
            ats.extend(length + at.start() for at in _AT.finditer(piece))
        pieces.append(piece)
        length += len(piece)
    yield "".join(pieces), ats
