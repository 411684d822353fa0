"""What a human's command does: by the program, beside the queue; the model never sees it.

Who may say it was decided by `core.triage` from the sender that the server named. Source: spec 02 section 3 "Commands".
"""

from collections.abc import Sequence

from sentinel.core import notices
from sentinel.core.codec import EndedBy
from sentinel.core.commands import Command, CommandKind
from sentinel.core.journal import State
from sentinel.core.model import Message
from sentinel.core.notices import Notice
from sentinel.core.ports import Clock
from sentinel.daemon.condition import Conditions
from sentinel.daemon.postman import Postman
from sentinel.daemon.turn import Turner
from sentinel.daemon.worker import Worker
from sentinel.store.records import TriggerChange
from sentinel.store.store import Store

_ASIDE = (State.PARKED, State.REJECTED, State.NEEDS_HUMAN)


class Commands:
    """Carries commands out, for the room and for `control.sock` alike."""

    def __init__(
        self,
        store: Store,
        turner: Turner,
        worker: Worker,
        postman: Postman,
        conditions: Conditions,
        *,
        locale: notices.Locale,
        clock: Clock,
    ) -> None:
        self._store, self._turner, self._worker = store, turner, worker
        self._postman, self._conditions = postman, conditions
        self._locale: notices.Locale = locale
        self._clock = clock

    def obey(self, message: Message, command: Command) -> None:
        """Carry out a command from the room and confirm it with one line there."""
        match command.kind:
            case CommandKind.STOP:
                notice, fields = self._stop_here(message)
            case CommandKind.STATUS:
                notice, fields = self.status(message.cid)
            case CommandKind.NEW:
                self._store.threads.drop(message.cid)
                notice, fields = Notice.NEW_THREAD, {}
            case CommandKind.RETRY:
                count = self.retry(cid=message.cid)
                notice, fields = (
                    (Notice.RETRYING, {"count": count}) if count else (Notice.NOTHING_TO_RETRY, {})
                )
            case CommandKind.PAUSE:
                self.pause(on=True)
                notice, fields = Notice.PAUSED, {}
            case CommandKind.RESUME:
                self.pause(on=False)
                notice, fields = Notice.RESUMED, {"waiting": len(self._store.inbox.queue())}
            case CommandKind.APPROVE | CommandKind.DENY:
                notice, fields = Notice.NO_SUCH_CODE, {}
            case CommandKind.TASK:
                notice, fields = Notice.COMMAND_REFUSED, {"command": command.kind.value}
        text = notices.text(notice, self._locale, **fields)
        self._postman.say(message.cid, f"command:{message.id}", text, reply_to=message.id)

    def stop(self) -> bool:
        """Begin the stop sequence of whatever runs; False when nothing does."""
        return self._turner.stop(EndedBy.STOP)

    def retry(self, *, cid: str | None = None, message_id: str | None = None) -> int:
        """Queue what was put aside again: all, one conversation's, or one message. Return how many."""
        aside = [one for state in _ASIDE for one in self._store.turns.in_state(state, cid)]
        wanted = [one.message_id for one in aside if message_id in {None, one.message_id}]
        count = self._store.turns.retry(wanted, now=self._clock.now().timestamp())
        self._probe_now()
        return count

    def pause(self, *, on: bool) -> None:
        """Take no new turns, or take turns again."""
        self._conditions.change(paused=on)
        self._worker.ring()

    def status(self, cid: str | None = None) -> tuple[Notice, dict[str, notices.Field]]:
        """Return the one status line that is true now."""
        counts: dict[str, notices.Field] = {
            "waiting": len(self._store.inbox.queue()),
            "parked": sum(len(self._store.turns.in_state(state, cid)) for state in _ASIDE),
        }
        condition, running = self._conditions.now, self._turner.running
        if running is not None:
            return Notice.STATUS_WORKING, counts | {
                "seconds": int(self._clock.now().timestamp() - running.since)
            }
        if condition.death is not None:
            return Notice.STATUS_DEAD, counts | {"cause": condition.death.cause.value}
        if condition.paused:
            return Notice.STATUS_PAUSED, counts
        if condition.hold is not None:
            return Notice.STATUS_FAILING, counts | {"cause": condition.hold.cause.value}
        return Notice.STATUS_IDLE, counts

    def _stop_here(self, message: Message) -> tuple[Notice, dict[str, notices.Field]]:
        """Stop this conversation's turn and put aside what was asked before the command, and only that."""
        running = self._turner.running
        older = [one for one in self._store.turns.in_state(State.SEEN, message.cid) if one.seq < message.seq]
        self._store.turns.change([TriggerChange(one.message_id, State.PARKED) for one in older])
        stopped: Sequence[str] = ()
        held = self._store.turns.in_state(State.RUNNING, message.cid)
        is_older = not held or held[0].seq < message.seq
        if running is not None and running.cid == message.cid and is_older:
            self._turner.stop(EndedBy.STOP)
            stopped = [one.message_id for one in held]
        self._worker.ring()
        if not stopped and not older:
            return Notice.NOTHING_TO_STOP, {}
        return Notice.STOPPED, {"parked": len(stopped) + len(older)}

    def _probe_now(self) -> None:
        """A human asked for it: a dead or held persona tries at once instead of at its next time."""
        self._conditions.probe_now(self._clock.now().timestamp())
        self._worker.ring()
