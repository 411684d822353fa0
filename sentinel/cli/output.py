"""How commands print: data on standard output, words for people on standard error, no colour but on a terminal."""

import contextlib
import json
import sys
from typing import Any, TextIO

from sentinel.core.errors import Unavailable, UsageError


def print_json(value: Any) -> None:
    """Print one JSON value on one line, ASCII-safe so that lone surrogates of file names survive any locale."""
    print_line(json.dumps(value, ensure_ascii=True, separators=(", ", ": ")))


def print_line(text: str) -> None:
    """Print one line of data. Raises `Unavailable` when standard output is closed or its disk is full."""
    try:
        print(text, file=_standard_output(), flush=True)
    except BrokenPipeError:  # a reader that has enough is no fault: the caller of the verb knows it
        raise
    except OSError as error:
        raise Unavailable(
            f"standard output cannot be written: {error.strerror}", mend="give it a place with room"
        ) from error


def _standard_output() -> TextIO:
    if sys.stdout is None:  # so Python finds a closed one
        raise Unavailable("standard output is closed", mend="leave it open, or send it to /dev/null")
    return sys.stdout


def read_text() -> str:
    """Return standard input, whole. Raises `UsageError` when it is not UTF-8."""
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError("standard input is not UTF-8 text", mend="convert it to UTF-8") from error


def must_be_text(text: str, what: str) -> str:
    """Return an argument that is proper text. Raises `UsageError` for bytes that were none (lone surrogates)."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise UsageError(f"{what} is not UTF-8 text", mend="convert it to UTF-8") from error
    return text


def tell(text: str) -> None:
    """Print one line for people; where nobody can read it, the exit code still says it."""
    with contextlib.suppress(OSError):
        sys.stderr.write(text + "\n")
        sys.stderr.flush()
