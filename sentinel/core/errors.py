"""The exception tree and the exit codes, on one page.

Expected outcomes are values (`Skip`, `Refused`, `Failure`); an exception is a fault. The tree is split by *who
must act*: the operator (configuration), the room (its service), or us (a bug). Pure.
Source: spec 09 (exit codes), spec 01 section 1 (the room's closed taxonomy).
"""

from enum import IntEnum
from typing import ClassVar


class Exit(IntEnum):
    """The one table of exit codes (spec 09)."""

    DONE = 0
    USAGE = 64
    NO_ANSWER = 65
    NOT_DELIVERED = 66
    UNAVAILABLE = 69
    BUG = 70
    TRY_LATER = 75
    DAMAGED = 76
    NOT_PERMITTED = 77
    CONFIG = 78


class SentinelError(Exception):
    """A fault. `mend` says what a human can do about it."""

    exit_code: ClassVar[Exit] = Exit.BUG

    def __init__(self, what: str, *, mend: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.mend = mend

    def __str__(self) -> str:
        return f"{self.what}: {self.mend}" if self.mend else self.what


class UsageError(SentinelError):
    """The command line or its input is wrong; nothing was changed."""

    exit_code = Exit.USAGE


class ConfigError(SentinelError):
    """Something that the operator configured is absent, wrong or unsafe: fail closed (law 2)."""

    exit_code = Exit.CONFIG


class AlreadyRunning(SentinelError):
    """Somebody else holds the lock of this account."""

    exit_code = Exit.TRY_LATER


class Damaged(SentinelError):
    """A record on disk is not what we wrote."""

    exit_code = Exit.DAMAGED


class NotPermitted(SentinelError):
    """The caller may not do this."""

    exit_code = Exit.NOT_PERMITTED


class RoomError(SentinelError):
    """What a room backend can answer instead of the thing asked for. The taxonomy is closed."""

    exit_code = Exit.UNAVAILABLE


class Unauthorized(RoomError):
    """401: the token is not, or no longer, good."""

    exit_code = Exit.NOT_PERMITTED


class RateLimited(RoomError):
    """429: nothing was applied; come back after `retry_after_s` seconds."""

    def __init__(self, what: str, *, retry_after_s: float) -> None:
        super().__init__(what, mend=f"wait {retry_after_s:g} s")
        self.retry_after_s = retry_after_s


class Unavailable(RoomError):
    """No connection, a time-out, a cut or a 5xx. A post that met this may have been applied, or not."""


class Rejected(RoomError):
    """A 4xx that will not heal by waiting: nothing was applied."""

    exit_code = Exit.NOT_DELIVERED

    def __init__(self, what: str, *, status: int, mend: str = "") -> None:
        super().__init__(what, mend=mend)
        self.status = status


class NotFound(Rejected):
    """404: no such thing, or not for this account."""

    def __init__(self, what: str, *, mend: str = "") -> None:
        super().__init__(what, status=404, mend=mend)


class NonceConflict(Rejected):
    """409: another post stands under this nonce; read it back and adopt it."""

    def __init__(self, what: str) -> None:
        super().__init__(what, status=409)
