"""What people and personas of a simulated world say, and what each message may do: known when it is said, by its kind.

The labels are the oracle's: they come from who says what and how, and share no code with `core.triage`.
"""

from dataclasses import dataclass

from sentinel.core.model import Kind, Message, MessageType, Outgoing
from tests.simulation.executor import POISON

MUST, MAY, NEVER = "must wake", "may wake", "never wakes"


@dataclass(frozen=True)
class Said:
    """A message and what it may do. `command`: the word that must be obeyed, if it is read in time."""

    message: Message
    wakes: str
    command: str | None = None


class People:
    """Everybody but the persona under test."""

    def __init__(self, world):
        self._world = world
        server = world.server
        self.ann, self.bob = server.account("ann"), server.account("bob")
        self.botty, self.bella = server.account("Botty", Kind.PERSONA), server.account("Bella", Kind.PERSONA)
        self.said = {}
        self._number = 0

    def say(self, kind, where, number):
        """Let the kind of message be said in a conversation (in the lab, where only there it makes sense)."""
        getattr(self, "_" + "".join(one if one.isalpha() else "" if one == "/" else "_" for one in kind))(
            where, number
        )

    def botty_answers(self, cid, reply_to):
        """A persona that was called answers, and calls back: a loop, if nobody guards."""
        self._persona(self.botty, cid, "@Gode and you?", reply_to=reply_to)

    def resumes(self):
        """The owner lets a paused persona go on."""
        self._command("resume", "lab", 0)

    # Calls.

    def _mention(self, where, number):
        self._human(self._caller(where), where, f"@Gode question {number}", calls=True)

    def _mention_by_a_non_owner(self, where, number):
        where = "den" if where == "den" else "lab"
        self._human(self.bob, where, f"@Gode question {number}", calls=True)

    def _broadcast(self, _where, _number):
        self._human(self.ann, "lab", "@all good morning", calls=True, mention=False, broadcast=True)

    def _name_in_the_text(self, where, number):
        self._human(
            self._caller(where), where, f"Gode said {number}, ask Gode", calls=where != "lab", mention=False
        )

    def _reply_without_a_mention(self, where, _number):
        own = [
            one
            for one in self._world.server.messages(self._world.cids[where])
            if one.sender == self._world.gode
        ]
        reply_to = own[-1].id if own else None
        self._human(
            self._caller(where), where, "thanks", calls=where != "lab", mention=False, reply_to=reply_to
        )

    def _poison(self, where, _number):
        self._human(self._caller(where), where, f"@Gode {POISON}", calls=True)

    def _three_in_a_row(self, where, number):
        for one in range(3):
            self._mention(where, f"{number}.{one}")

    def _a_dozen_in_a_row(self, where, number):
        for one in range(12):
            self._mention(where, f"{number}.{one}")

    def _mention_seen_late(self, where, number):
        self._human(self._caller(where), where, f"@Gode question {number}", calls=True, hidden_reads=2)

    def _old_mention(self, where, number):
        self._human(self._caller(where), where, f"@Gode question {number}", calls=False, ago_s=25 * 3600.0)

    # Personas.

    def _persona_s_mention(self, _where, number):
        self._persona(self.botty, self._world.cids["lab"], f"@Gode fact {number}")

    def _persona_s_broadcast(self, _where, _number):
        self._persona(self.botty, self._world.cids["lab"], "@all hello", mention=False, broadcast=True)

    def _persona_s_third_hop(self, _where, number):
        self._persona(self.botty, self._world.cids["lab"], f"@Gode fact {number}", hops=3)

    def _persona_names_it_in_the_text(self, _where, number):
        self._persona(self.botty, self._world.cids["lab"], f"Gode knows {number}", mention=False)

    def _personas_ring_and_ring(self, _where, number):
        for one in range(14):
            caller = (self.botty, self.bella)[one % 2]
            self._world.later(
                (number % 20 + 5) * one, self._persona, caller, self._world.cids["lab"], f"@Gode ring {one}"
            )

    # Commands, and what only looks like one.

    def _command(self, word, where, _number):
        where = "pair" if where == "pair" else "lab"
        self._human(self.ann, where, f"@Gode /{word}", calls=False, command=word)

    def _stop(self, where, number):
        self._command("stop", where, number)

    def _retry(self, where, number):
        self._command("retry", where, number)

    def _new(self, where, number):
        self._command("new", where, number)

    def _status(self, where, number):
        self._command("status", where, number)

    def _pause_and_later_resume(self, where, number):
        self._command("pause", where, number)
        self._world.later(number + 5.0, self._command, "resume", where, number)

    def _old_stop(self, _where, _number):
        self._human(self.ann, "lab", "@Gode /stop", calls=False, ago_s=700.0)

    def _stop_by_a_non_owner(self, where, _number):
        self._human(self.bob, "den" if where == "den" else "lab", "@Gode /stop", calls=False)

    def _pause_by_a_non_owner(self, where, _number):
        self._human(self.bob, "den" if where == "den" else "lab", "@Gode /pause", calls=False)

    def _stop_by_a_persona(self, _where, _number):
        self._persona(self.botty, self._world.cids["lab"], "@Gode /stop")

    def _stop_in_a_quote(self, where, _number):
        self._human(self._caller(where), where, "@Gode what is this?\n> /stop", calls=True)

    def _stop_in_a_fence(self, where, _number):
        self._human(self._caller(where), where, "@Gode\n```\n/stop\n```", calls=True)

    def _stop_in_a_file(self, where, _number):
        caller = self._caller(where)
        media = self._world.server.store_media(caller.uid, b"/stop\n", "text/plain", "stop.txt")
        self._human(caller, where, "@Gode see the file", calls=True, type=MessageType.FILE, media_id=media.id)

    def _stop_unaddressed(self, _where, _number):
        self._human(self.ann, "lab", "/stop", calls=False, mention=False)

    # How it is said.

    def _caller(self, where):
        return self.bob if where == "den" else self.ann

    def _human(self, sender, where, text, *, calls, command=None, **more):
        cid, world = self._world.cids[where], self._world
        heard = sender == self.ann or world.plan.settings.wake_from != "listed"
        wakes = (MUST if heard else NEVER) if calls else NEVER
        if not world.server.is_member(cid, world.gode):  # a mention of somebody who is not there is none
            wakes, command = MAY if wakes is MUST else wakes, None
        self._post(sender, cid, text, wakes, command=command, **more)

    def _persona(self, sender, cid, text, *, mention=True, hops=0, **more):
        allowed = {"members": True, "humans": False, "listed": sender == self.botty}
        wakes = MAY if mention and hops < 3 and allowed[self._world.plan.settings.wake_from] else NEVER
        self._post(sender, cid, text, wakes, mention=mention, hops=hops, **more)

    def _post(
        self,
        sender,
        cid,
        text,
        wakes,
        *,
        command=None,
        mention=True,
        ago_s=0.0,
        hidden_reads=0,
        reply_to=None,
        **more,
    ):
        server, world = self._world.server, self._world
        if reply_to is not None and reply_to not in {one.id for one in server.messages(cid)}:
            reply_to = None
        self._number += 1
        mentions = (world.gode.uid,) if mention else ()
        outgoing = Outgoing(text, f"said-{self._number}", mentions=mentions, reply_to=reply_to, **more)
        message = server.say_as(sender, cid, outgoing, ago_s=ago_s, hidden_reads=hidden_reads)
        self.said[message.id] = Said(message, wakes, command)
        world.trace.note("said", id=message.id, by=sender.name, text=text, label=command or wakes)
