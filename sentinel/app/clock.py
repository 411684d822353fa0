"""The real clock and the real dice: the one place that reads them."""

import asyncio
import secrets
from datetime import UTC, datetime
from random import SystemRandom


class SystemClock:
    """`core.ports.Clock` of this machine."""

    def __init__(self) -> None:
        self._dice = SystemRandom()

    def now(self) -> datetime:
        """Return the present, aware, in UTC."""
        return datetime.now(UTC)

    def draw(self) -> float:
        """Return a uniform number in [0, 1)."""
        return self._dice.random()

    def token(self) -> str:
        """Return 128 fresh random bits as 32 hex digits."""
        return secrets.token_hex(16)

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)
