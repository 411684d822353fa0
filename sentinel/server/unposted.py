"""Uploads that no message carries: after a day they go, so that what is never posted does not fill the disk.

The row goes first, in the writer's transaction, so that no post can take the upload up meanwhile; its file goes after the
commit. A crash between the two leaves a file without a row, as one between an upload's file and its row does: start-up
removes those, for no upload is under way then. Source: spec 01 section 3 (media on disk).
"""

import sqlite3

from sentinel.server.media import MediaFolder
from sentinel.server.store import Store

UNPOSTED = "NOT EXISTS (SELECT 1 FROM messages WHERE media_id = media.id)"


async def remove_unposted(store: Store, folder: MediaFolder, *, before_ms: int) -> int:
    """Remove the uploads that came before `before_ms` and were never posted; return how many."""

    def work(db: sqlite3.Connection) -> list[str]:
        old = f"created_at < ? AND {UNPOSTED}"
        gone = [row["id"] for row in db.execute(f"SELECT id FROM media WHERE {old}", (before_ms,))]
        db.executemany("DELETE FROM media WHERE id = ?", [(media_id,) for media_id in gone])
        return gone

    gone = await store.write(work)
    for media_id in gone:
        folder.path(media_id).unlink(missing_ok=True)
    return len(gone)


def remove_strays(db: sqlite3.Connection, folder: MediaFolder, *, before_ms: int) -> None:
    """Remove the stored files without a row that were written before `before_ms`; only while nothing is uploaded."""
    known = {row["id"] for row in db.execute("SELECT id FROM media")}
    for file in folder.stored():
        if file.name not in known and file.stat().st_mtime * 1000 < before_ms:
            file.unlink()
