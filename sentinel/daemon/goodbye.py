"""The last words of a sentinel that ends for good: an obituary before the socket closes, as far as a post is still possible.

Only a crash loop has them. Where the room says 401, or does not know this account as ours, no post is possible.
Source: spec 02 section 7.
"""

import asyncio

from sentinel.core import notices
from sentinel.core.notices import Notice
from sentinel.core.outcome import FailureClass
from sentinel.daemon.condition import Ended
from sentinel.daemon.log import Log
from sentinel.daemon.postman import Postman
from sentinel.store.store import Store

_MOST_S = 10.0


class Goodbye:
    """Says it for one persona."""

    def __init__(self, store: Store, postman: Postman, log: Log) -> None:
        self._store, self._postman, self._log = store, postman, log
        self._is_said = False

    async def say(self, ended: Ended, locale: notices.Locale) -> None:
        """Tell each conversation where somebody waits, and the one that it ended at; never longer than 10 s."""
        self._is_said = True
        text = notices.text(Notice.ENDS, locale, cause=FailureClass.BUG.value)
        at_it = {one.cid for one in self._store.turns.triggers([ended.place])}
        waiting = {one.cid for one in self._store.inbox.queue()}
        try:
            async with asyncio.timeout(_MOST_S):
                for cid in sorted(at_it | waiting):
                    await self._postman.say_now(cid, f"{ended.key}:{cid}", text)
        except Exception as fault:  # they failed too: what counts is the reason of the end
            why = f"{type(fault).__name__}: {fault}"
            self._log.warning("no goodbye", why=why)

    def still_true(self, key: str) -> bool:
        """Judge a notice again at sending: a goodbye that an earlier process did not get out is untrue by now."""
        return self._is_said or not key.startswith("ends:")
