"""How often the same error of our own was met at the same place, kept across restarts. Source: spec 02 section 7."""

from collections.abc import Sequence
from dataclasses import dataclass

from sentinel.store.database import Database


@dataclass(frozen=True, slots=True)
class Crash:
    """An error at a place: met `times` times in a row since `since` (epoch seconds)."""

    place: str
    error: str
    times: int
    since: float


class Crashes:
    """Counts per place: the id of a trigger, the key of a notice, or the name of a loop."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def count(self, place: str, error: str, *, now: float) -> Crash:
        """Count one more; another error at the same place begins anew. Durable when this returns."""
        with self._db.transaction() as write:
            row = write.execute(
                "SELECT times, since FROM crashes WHERE place = ? AND error = ?", (place, error)
            ).fetchone()
            times, since = row or (0, now)
            crash = Crash(place, error, times + 1, since)
            write.execute(
                "INSERT OR REPLACE INTO crashes (place, error, times, since) VALUES (?, ?, ?, ?)",
                (place, error, crash.times, crash.since),
            )
        return crash

    def over(self, message_ids: Sequence[str]) -> None:
        """A turn for these triggers came through: they crash no more, and neither do the loops that carried it."""
        if self._db.row("SELECT 1 FROM crashes LIMIT 1") is None:  # nearly always: then nothing is written
            return
        marks = ",".join("?" * len(message_ids))
        with self._db.transaction() as write:
            write.execute(
                f"DELETE FROM crashes WHERE place IN ({marks}) OR place NOT IN (SELECT message_id FROM triggers)",
                tuple(message_ids),
            )
