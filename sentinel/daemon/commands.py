"""What a human's command does: by the program, beside the queue; the model never sees it.

Who may say it was decided by `core.triage` from the sender that the server named. Source: spec 02 section 3 "Commands".
"""

from sentinel.core import notices
from sentinel.core.codec import EndedBy
from sentinel.core.commands import Command, CommandKind
from sentinel.core.journal import State
from sentinel.core.model import Message
from sentinel.core.notices import Notice
from sentinel.daemon.condition import Conditions
from sentinel.daemon.ground import Ground
from sentinel.daemon.postman import Postman
from sentinel.daemon.turn import Turner
from sentinel.daemon.worker import Worker
from sentinel.store.records import TriggerChange

_ASIDE = (State.PARKED, State.REJECTED, State.NEEDS_HUMAN)


class Commands:
    """Carries commands out, for the room and for `control.sock` alike."""

    def __init__(
        self, ground: Ground, turner: Turner, worker: Worker, postman: Postman, conditions: Conditions
    ) -> None:
        self._store, self._turner, self._worker = ground.store, turner, worker
        self._postman, self._conditions = postman, conditions
        self._locale: notices.Locale = ground.persona.locale
        self._clock = ground.clock

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
        """Begin the stop sequence of whatever runs, and put aside what it was about; False when nothing runs."""
        running = self._turner.running
        if running is None:
            return False
        about = self._store.turns.in_state(State.RUNNING, running.cid) or self._store.turns.in_state(
            State.SEEN, running.cid
        )
        self._store.turns.change([TriggerChange(one.message_id, State.PARKED) for one in about])
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
        runs_here = running is not None and running.cid == message.cid
        states = (State.SEEN, State.RUNNING) if runs_here else (State.SEEN,)
        waiting = [one for state in states for one in self._store.turns.in_state(state, message.cid)]
        older = [one for one in waiting if one.seq < message.seq]
        # Put aside before anything is said or ended: a restart must not begin again what a human has stopped.
        self._store.turns.change([TriggerChange(one.message_id, State.PARKED) for one in older])
        if runs_here and older:
            self._turner.stop(EndedBy.STOP)
        self._worker.ring()
        return (Notice.STOPPED, {"parked": len(older)}) if older else (Notice.NOTHING_TO_STOP, {})

    def _probe_now(self) -> None:
        """A human asked for it: a dead or held persona tries at once instead of at its next time."""
        self._conditions.probe_now(self._clock.now().timestamp())
        self._worker.ring()
