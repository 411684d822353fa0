"""How commands print: data on standard output, words for people on standard error, no colour but on a terminal."""

import json
import sys
from typing import Any

from sentinel.core.errors import UsageError


def print_json(value: Any) -> None:
    """Print one JSON value on one line, ASCII-safe so that lone surrogates of file names survive any locale."""
    sys.stdout.write(json.dumps(value, ensure_ascii=True, separators=(", ", ": ")) + "\n")
    sys.stdout.flush()


def print_line(text: str) -> None:
    """Print one line of data."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


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
    """Print one line for people."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
