"""The log that the sentinel speaks to: one line per decision, never a message body or a secret."""

from typing import Protocol


class Log(Protocol):
    """What structlog's loggers offer, as far as it is used."""

    def info(self, event: str, **fields: object) -> object:
        """Note a decision or a deed."""
        ...

    def warning(self, event: str, **fields: object) -> object:
        """Note something that degrades, and is dealt with."""
        ...

    def error(self, event: str, **fields: object) -> object:
        """Note something that a human must look at."""
        ...
