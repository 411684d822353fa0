"""Decide where a long text is cut, without breaking a code fence.

Pure. markdown-it-py says where the fences are, in lists and quotes too. A cut inside one happens only when the fence is
longer than a part: then the part ends with a closing line and the next begins with the opening line again, and the two
together hold the same code. Source: spec 02 section 4 "reply".
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from sentinel.core.evidence import is_blank

_PARAGRAPH = re.compile(r"\n[^\S\n]*\n")
_LINE = re.compile(r"\n")
_WORD = re.compile(r"\s")
_SPACES = re.compile(r"[^\S\n]*")
_BLANK_LINES = re.compile(r"(?:[^\S\n]*\n)*")
_CONTAINER = re.compile(r"[^>\s]")
_WIDE = re.compile(r"\s{4,}|\t+")
_JOINER = "\u200d"
_SKIN_TONES = range(0x1F3FB, 0x1F400)


@dataclass(frozen=True, slots=True)
class _Fence:
    """A fenced code block as offsets; `body_end` is where the closing line begins, or `end` when it was never closed.

    `opening` and `closing` are the lines that reopen and close it, without line ends; `indent` is what a line of its
    body begins with (a quote's marks).
    """

    start: int
    body_start: int
    body_end: int
    end: int
    indent: str
    opening: str
    closing: str

    def fits(self, limit: int) -> bool:
        """Say whether its first lines, one character of its body and a closing line fit into one part."""
        longest_head = max(len(self.opening) + 1 + len(self.indent), self.body_start - self.start)
        return longest_head + 2 + len(self.closing) <= limit


def split(text: str, *, limit: int) -> tuple[str, ...]:
    """Cut `text` into parts of at most `limit` code points, none of them blank; nothing for a blank text.

    Cut at paragraph borders, else at lines, else at words, else anywhere but inside a combining sequence. A code fence
    is kept whole; one that is too long is closed and reopened with the same info string. Only white space at a cut is
    lost. A text within the limit is returned as it is.

    Raises ValueError for a limit below 1.
    """
    if limit < 1:
        raise ValueError(f"a part must hold at least 1 character, not {limit}")
    if is_blank(text):
        return ()
    if len(text) <= limit:
        return (text,)
    fences = [one for one in _fences(text) if one.fits(limit)]
    parts: list[str] = []
    at = 0
    while at < len(text):
        part, at = _next_part(text, at, fences=fences, limit=limit)
        if not is_blank(part):
            parts.append(part)
    return tuple(parts)


def _next_part(text: str, at: int, *, fences: Sequence[_Fence], limit: int) -> tuple[str, int]:
    """Return the part that begins at `at`, and where the next one begins (always further on)."""
    inside = next((one for one in fences if one.body_start <= at < one.body_end), None)
    head = ""
    if inside is None:
        at = _content_from(text, at)
    else:
        head = f"{inside.opening}\n" + ("" if text[at - 1] == "\n" else inside.indent)
    stop = at + limit - len(head)
    if inside is not None and inside.body_end == inside.end < len(text):
        # Only the end of its list or quote closed it, and that stands in an earlier part.
        return _broken_fence(text, at, inside, head=head, limit=limit)
    if stop >= len(text):
        return (head + text[at:]).rstrip(), len(text)
    cut = _border(text, at, stop, fences)
    if cut is not None:
        return (head + text[at:cut]).rstrip(), cut
    # Without a border, a fence that reaches into this part has nothing visible before it and ends beyond it.
    broken = inside or next((one for one in fences if one.start <= stop and one.end > at), None)
    if broken is not None:
        return _broken_fence(text, max(at, broken.start), broken, head=head, limit=limit)
    cut = _hard_cut(text, at, stop)
    return text[at:cut].rstrip(), cut


def _content_from(text: str, at: int) -> int:
    """Return where content begins at or after a cut at `at`; the indentation of a line is content."""
    if at > 0 and text[at - 1] != "\n":
        at = _end_of(_SPACES, text, at)
    return _end_of(_BLANK_LINES, text, at)


def _end_of(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at


def _border(text: str, at: int, stop: int, fences: Sequence[_Fence]) -> int | None:
    """Return the best place to cut in (at, stop], outside fences and behind something visible; None if there is none."""
    visible = next((one for one in range(at, stop) if not is_blank(text[one])), stop)
    near = [one for one in fences if one.start <= stop and one.end > at]
    for pattern in (_PARAGRAPH, _LINE, _WORD):
        found = [one.start() for one in pattern.finditer(text, at, min(stop + 2, len(text)))]
        borders = [one for one in found if not any(fence.start <= one < fence.end for fence in near)]
        if pattern is _PARAGRAPH:
            borders += [edge for fence in near for edge in (fence.start, fence.end)]
        good = [one for one in borders if visible < one <= stop]
        if good:
            return max(good)
    return None


def _broken_fence(text: str, at: int, fence: _Fence, *, head: str, limit: int) -> tuple[str, int]:
    """Return as much of a fence as fits with a closing line, cut at a line of its body, else at a word, else anywhere."""
    first = max(at, fence.body_start)
    stop = min(at + limit - len(head) - 1 - len(fence.closing), fence.body_end)
    cut = stop
    if stop < fence.body_end:
        visible = next((one for one in range(first, stop) if not is_blank(text[one])), stop)
        border = text.rfind("\n", visible, stop) + 1 or text.rfind(" ", visible, stop) + 1
        cut = border or _hard_cut(text, first, stop)
    body = text[at:cut].removesuffix("\n")
    return f"{head}{body}\n{fence.closing}", fence.end if cut == fence.body_end else cut


def _hard_cut(text: str, at: int, stop: int) -> int:
    """Return the last place in (at, stop] that is not inside a combining sequence; `stop` if there is none."""
    cut = stop
    while cut > at and _belongs_together(text[cut - 1], text[cut]):
        cut -= 1
    return cut if cut > at else stop


def _belongs_together(one: str, next_one: str) -> bool:
    return (
        unicodedata.category(next_one)[0] == "M"
        or _JOINER in {one, next_one}
        or ord(next_one) in _SKIN_TONES
        or ("\ud800" <= one <= "\udbff" and "\udc00" <= next_one <= "\udfff")
        or one + next_one == "\r\n"
    )


def _fences(text: str) -> list[_Fence]:
    from markdown_it import MarkdownIt  # imported here: only a long answer needs it

    # Line ends as the parser counts them, every offset kept.
    lines = text.replace("\r\n", " \n").replace("\r", "\n")
    starts = [0, *(line.end() for line in _LINE.finditer(lines)), len(lines)]
    tokens = MarkdownIt("commonmark").disable(["inline", "text_join"]).parse(lines)
    fences: list[_Fence] = []
    for token in tokens:
        if token.type == "fence" and token.map:
            first, after = token.map
            start, body_start, end = starts[first], starts[first + 1], starts[min(after, len(starts) - 1)]
            last = lines[starts[after - 1] : end]
            is_closed = after - first > 1 and last.strip("> \t\n").startswith(token.markup)
            opening = text[start:body_start].rstrip()
            indent = _WIDE.sub("   ", _CONTAINER.sub(" ", opening[: opening.index(token.markup)]))
            fences.append(
                _Fence(
                    start=start,
                    body_start=body_start,
                    body_end=starts[after - 1] if is_closed else end,
                    end=end,
                    indent=indent,
                    opening=indent + opening[opening.index(token.markup) :],
                    closing=indent + token.markup,
                )
            )
    return fences
