"""One turn's facts, and the request that its codec gets. Nothing here acts.

Source: spec 02 sections 4 and 5.
"""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sentinel.bridge.fetch import Fetched
from sentinel.bridge.outbox import FOLDER
from sentinel.core.codec import Sandbox, TurnRequest
from sentinel.core.facts import FarFacts
from sentinel.core.model import Account, Message, MessageType
from sentinel.core.parts import secret_values
from sentinel.core.persona import Persona
from sentinel.core.prompt import Outbox, PromptInput, build
from sentinel.store.records import TriggerRecord
from sentinel.store.threads import Thread

EARLIER_ATTEMPT = "an earlier attempt at this was cut off and may have acted already: look at what it did before you do anything again"
# Two rules a path go into one argument, which the kernel caps at 128 KiB.
_LISTED_HOMES = 300
_PRIVATE = (".ssh", ".codex", ".claude")


@dataclass(frozen=True, slots=True)
class Case:
    """Everything about one turn that does not change while it runs."""

    turn_id: str
    persona: Persona
    triggers: tuple[TriggerRecord, ...]
    messages: tuple[Message, ...]
    fetched: Fetched
    thread: Thread
    folder: Path
    home: Path
    me: Account
    title: str

    @property
    def cid(self) -> str:
        """The conversation."""
        return self.triggers[0].cid

    @property
    def outbox(self) -> str | None:
        """The folder for files to be sent, as the executor calls it; None where it may not write or nobody tells its place."""
        if self.persona.sandbox is Sandbox.READ_ONLY:
            return None
        if self.persona.far is None:
            return str(self.folder / FOLDER)
        return f"{self.persona.far.turns}/{self.turn_id}/{FOLDER}" if self.persona.far.turns else None

    @property
    def was_cut(self) -> bool:
        """Whether an earlier run for one of these triggers was cut off, with or without a thread to go on in."""
        return any(one.cuts or one.cut_thread for one in self.triggers)

    @property
    def cut_thread(self) -> str | None:
        """The thread of a run that was cut off and may have acted, to go on in."""
        return next((one.cut_thread for one in self.triggers if one.cut_thread), None)


def request_of(
    case: Case, *, resume: str | None, new_thread: str, boundary: str, notes: tuple[str, ...] = ()
) -> TurnRequest:
    """Return what the codec needs for one run of the executor.

    Args:
        case: the turn.
        resume: the thread to go on in, or None.
        new_thread: a fresh UUID, for executors that let us choose.
        boundary: the random fence of this turn's prompt.
        notes: what a new thread is told about the one before it.
    """
    persona = case.persona
    new_task = resume is None or case.thread.task_hash != task_hash(persona.task_md)
    prompt = build(
        PromptInput(
            persona_name=case.me.name,
            uid=case.me.uid,
            title=case.title,
            block=case.fetched.block,
            task_md=persona.task_md,
            task_is_new=new_task,
            boundary=boundary,
            earlier_attempt=EARLIER_ATTEMPT if case.was_cut and may_have_acted(persona) else None,
            outbox=Outbox(case.outbox, persona.limits.outbox_files, persona.limits.media_bytes)
            if case.outbox
            else None,
            notes=notes,
        )
    )
    images = [
        one.file
        for one in case.fetched.block.entries
        if one.is_trigger and one.file and one.message.type is MessageType.IMAGE
    ]
    return TurnRequest(
        binary=persona.binary if persona.far is None else persona.adapter,
        model=persona.model,
        cwd=persona.cwd,
        sandbox=persona.sandbox,
        network=persona.network,
        prompt=prompt,
        triggers=case.messages,
        resume=resume,
        new_thread=new_thread,
        denied_paths=denied_paths(case.home)
        if persona.far is None
        else far_denied_paths(persona.far, case.home),
        images=tuple(images),
        outbox=case.outbox,
    )


def may_have_acted(persona: Persona) -> bool:
    """Return whether a cut-off run can have changed anything outside itself (spec 02 section 4)."""
    return persona.sandbox is not Sandbox.READ_ONLY or persona.network


def task_hash(task_md: str) -> str:
    """Return what tells one version of `task.md` from another."""
    return hashlib.sha256(task_md.encode()).hexdigest()[:16]


def secrets_of(persona: Persona) -> tuple[str, ...]:
    """Return the values that must never leave in an answer, an argv or a log line."""
    return (persona.token.reveal(), *secret_values(persona.env))


def far_denied_paths(far: FarFacts, home: Path) -> tuple[str, ...]:
    """Return the same for an executor that runs as another user: that user's keys and state, and all homes of personas."""
    theirs = tuple(f"{far.home}/{name}" for name in _PRIVATE) if far.home else ()
    return (str(home.parent), *theirs)


def denied_paths(home: Path, environ: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """Return what an executor's own rules must refuse to read: persona homes, keys, executor state.

    The turn's own folder lies in this home, so of it everything but `turns/` is listed by name. A folder of homes with
    more entries than a command line can hold is refused as a whole: attachments are then out of reach, secrets too.
    """
    user = Path(environ.get("HOME", "/"))
    always = tuple(user / name for name in _PRIVATE)
    others = [one for one in home.parent.iterdir() if one != home]
    if len(others) > _LISTED_HOMES:
        return tuple(str(one) for one in (home.parent, *always))
    mine = [one for one in home.iterdir() if one.name != "turns"]
    return tuple(str(one) for one in (*others, *mine, *always))
