"""How commands print: data on standard output, words for people on standard error, no colour but on a terminal."""

import json
import sys
from typing import Any


def print_json(value: Any) -> None:
    """Print one JSON value on one line, ASCII-safe so that lone surrogates of file names survive any locale."""
    sys.stdout.write(json.dumps(value, ensure_ascii=True, separators=(", ", ": ")) + "\n")
    sys.stdout.flush()


def print_line(text: str) -> None:
    """Print one line of data."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def tell(text: str) -> None:
    """Print one line for people."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
