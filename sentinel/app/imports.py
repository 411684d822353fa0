"""Take in, once, what `persona adopt` found in an older home: a thread and a cursor. Source: spec 02 section 1."""

import json
from pathlib import Path
from typing import Any

from sentinel.core.errors import Damaged
from sentinel.home.adopt import IMPORTS
from sentinel.store.store import Store


def take_imports(home: Path, store: Store) -> None:
    """Move `imports.json` into the state, then out of the way; a second call finds nothing to do."""
    path = home / IMPORTS
    if not path.exists():
        return
    try:
        known: Any = json.loads(path.read_bytes())
        cid, thread, cursor = known["cid"], known["thread"], known["cursor"]
    except (ValueError, KeyError, TypeError) as error:
        raise Damaged(f"{path} is not what `persona adopt` wrote", mend="adopt the old home again") from error
    if cid and cursor is not None:
        # The old sentinel had answered up to here: that is the first-start mark, and nothing before it is replayed.
        store.inbox.take(cid, (), cursor=cursor, keep_seen_from=0, now=0.0, first_mark=cursor)
    if cid and thread:
        store.threads.adopt(cid, thread)
    path.rename(path.with_suffix(".json.imported"))
