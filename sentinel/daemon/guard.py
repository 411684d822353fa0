"""The line in the room that says why a persona no longer answers personas: once per conversation and guard window.

What stops a loop is `core.triage` (hops, budget); here is only the word about it, through the journal like every notice:
so a restart does not say it again. It mentions nobody, and what calls nobody wakes nobody, so it cannot feed the loop.
Source: spec 02 section 3 "Triage"; law 5.
"""

from collections.abc import Callable

from sentinel.core import notices
from sentinel.core.notices import Notice
from sentinel.core.persona import Persona
from sentinel.core.ports import Clock
from sentinel.core.triage import Reason
from sentinel.daemon.postman import Postman
from sentinel.store.store import Store

STOPPED_BY = frozenset({Reason.HOP_LIMIT, Reason.LOOP_BUDGET})
"""The decisions that end a conversation among personas."""

_KIND = "loop-guard"


class LoopGuard:
    """Says it for one persona."""

    def __init__(
        self, store: Store, postman: Postman, *, persona: Callable[[], Persona], clock: Clock
    ) -> None:
        self._store, self._postman = store, postman
        self._persona, self._clock = persona, clock

    def stopped(self, cid: str, reason: Reason) -> None:
        """A persona's call was skipped for `reason`: say so, unless this window's line stands already.

        A window begins with its line; it ends after `persona_window_s`, and when a human's call resets the guard.
        """
        now, persona = self._clock.now().timestamp(), self._persona()
        limits = persona.limits
        told = self._store.turns.newest_notice(f"{_KIND}:{cid}:")
        if told is not None and told >= self._reset_at(cid) and now - told < limits.persona_window_s:
            return
        if reason is Reason.HOP_LIMIT:
            text = notices.text(Notice.HOP_LIMIT, persona.locale, hops=limits.hop_limit)
        else:
            minutes = max(1, round(limits.persona_window_s / 60))
            text = notices.text(
                Notice.LOOP_GUARD, persona.locale, turns=limits.persona_turns, minutes=minutes
            )
        self._postman.say(cid, f"{_KIND}:{cid}:{now!r}", text)

    def still_true(self, key: str) -> bool:
        """Judge a notice again at sending: a human who has called meanwhile ended what a loop guard's line says."""
        kind, _, rest = key.partition(":")
        if kind != _KIND:
            return True
        cid, _, told = rest.rpartition(":")
        return self._reset_at(cid) <= float(told)

    def _reset_at(self, cid: str) -> float:
        known = self._store.inbox.conversation(cid)
        return known.guard_reset_at if known else 0.0
