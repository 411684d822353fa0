"""Decide what one message means to this persona: wake, skip, obey or hold. Pure.

Being talked about is not being called (law 5): a call is a fact that the server vouches for (a uid among the
mentions, a human's broadcast, a human alone with me), never a word of the text. Who the sender is, is what the server
says it is (law 8). The text is read for two things only: to see that there is any, and to find the command on the
first line of a human who already called me.

Guards from the top, one exit that wakes, at the end. Source: spec 02 section 3 "Triage", "Commands", "First start".
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final, TypeAlias, assert_never

from sentinel.core.commands import Command, CommandKind, parse
from sentinel.core.model import Account, Kind, Member, Message
from sentinel.core.persona import Persona


class Reason(StrEnum):
    """Why not. The value is the word in the log, in `sentinel why` and in `runbooks/woke-not.md`."""

    OWN = "own"
    BEFORE_START = "before-start"
    EMPTY = "empty"
    NOT_MENTIONED = "not-mentioned"
    REPLY_ONLY = "reply-only"
    PERSONA_BROADCAST = "persona-broadcast"
    NOT_OWNER = "not-owner"
    STALE_COMMAND = "stale-command"
    STALE = "stale"
    PENDING_CARD = "pending-card"
    SENDER_NOT_LISTED = "sender-not-listed"
    PERSONA_NOT_ALLOWED = "persona-not-allowed"
    HOP_LIMIT = "hop-limit"
    LOOP_BUDGET = "loop-budget"


@dataclass(frozen=True, slots=True)
class Wake:
    """It is a trigger. `resets_guard`: a human called, so the count of persona-triggered turns starts again."""

    resets_guard: bool


@dataclass(frozen=True, slots=True)
class Skip:
    """It is no trigger. `Reason.STALE` alone is counted for the line "missed while away"."""

    reason: Reason


@dataclass(frozen=True, slots=True)
class Obey:
    """The program does it, beside the queue; the model never sees the message."""

    command: Command


@dataclass(frozen=True, slots=True)
class Hold:
    """It waits until an owner approves it."""

    reason: Reason


Decision: TypeAlias = Wake | Skip | Obey | Hold


def triage(
    message: Message,
    *,
    me: Account,
    members: Sequence[Member],
    first_mark: int,
    recent_persona_turns: int,
    now: datetime,
    persona: Persona,
) -> Decision:
    """Return what `message` means to the persona `me`.

    - `message`: as the server stored it; its `sender.kind` counts also when the sender has left since.
    - `me`: this persona's account, as the server says. `members`: those of the conversation now.
    - `first_mark`: messages with a `seq` at or below it were there before this persona's first start.
    - `recent_persona_turns`: turns of this conversation that personas triggered in the last `persona_window_s` and
      since the last `Wake` that resets the guard.
    - `now`: aware, our clock. A `sent_at` ahead of it (skewed clocks) is simply new.
    """
    if message.sender.uid == me.uid:
        return Skip(Reason.OWN)
    if message.seq <= first_mark:
        return Skip(Reason.BEFORE_START)
    if message.media is None and not (message.text or "").strip():
        return Skip(Reason.EMPTY)  # redacted since, or nothing at all: there is nothing to answer
    if (uncalled := _why_uncalled(message, me, members, persona)) is not None:
        return Skip(uncalled)
    if message.sender.kind is Kind.HUMAN and (command := parse(message.text or "", members)) is not None:
        return _command(command, message, now=now, persona=persona)
    if _age_s(message, now) > persona.limits.stale_age_s:
        return Skip(Reason.STALE)
    if message.sender.uid in persona.handoff_from:  # before `wake_from`: the owner who approves it allows it
        return Hold(Reason.PENDING_CARD)
    if (unwelcome := _why_unwelcome(message.sender, persona)) is not None:
        return Skip(unwelcome)
    if message.sender.kind is Kind.PERSONA:  # a human's hops are 0, and no number of human calls is a loop
        if message.hops >= persona.limits.hop_limit:
            return Skip(Reason.HOP_LIMIT)
        if recent_persona_turns >= persona.limits.persona_turns:
            return Skip(Reason.LOOP_BUDGET)
    return Wake(resets_guard=message.sender.kind is Kind.HUMAN)


def _why_uncalled(
    message: Message, me: Account, members: Sequence[Member], persona: Persona
) -> Reason | None:
    """Return None if the message calls me: law 5 in one place."""
    if me.uid in message.mentions:
        return None
    by_reply = me.uid in message.reply_mentions
    if by_reply and persona.reply_wakes:
        return None
    # Two means me and the sender. A human who has left is not alone with me: the room may have been a larger one.
    alone_with_me = {member.uid for member in members} == {me.uid, message.sender.uid}
    if message.sender.kind is Kind.HUMAN and (message.broadcast or alone_with_me):
        return None
    if message.broadcast:
        return Reason.PERSONA_BROADCAST
    return Reason.REPLY_ONLY if by_reply else Reason.NOT_MENTIONED


def _command(command: Command, message: Message, *, now: datetime, persona: Persona) -> Decision:
    """Judge a human's command. One that may not be obeyed does nothing at all: the model does not see it either."""
    if command.kind is not CommandKind.STATUS and message.sender.uid not in persona.owners:
        return Skip(Reason.NOT_OWNER)
    if _age_s(message, now) > persona.limits.command_age_s:
        return Skip(Reason.STALE_COMMAND)
    return Obey(command)


def _why_unwelcome(sender: Account, persona: Persona) -> Reason | None:
    """Return None if `wake_from` lets this sender wake me. A list of uids is the whole list: humans too."""
    match persona.wake_from:
        case "members":
            return None
        case "humans":
            return None if sender.kind is Kind.HUMAN else Reason.PERSONA_NOT_ALLOWED
        case listed:
            if sender.uid in listed:
                return None
            return Reason.SENDER_NOT_LISTED if sender.kind is Kind.HUMAN else Reason.PERSONA_NOT_ALLOWED


def _age_s(message: Message, now: datetime) -> float:
    return (now - message.sent_at).total_seconds()


def first_start_triggers(
    history: Sequence[Message], *, me: Account, members: Sequence[Member], now: datetime, persona: Persona
) -> tuple[Message, ...]:
    """Return the triggers that a persona takes on its very first start in a conversation; all else is past.

    `history` holds at least the messages of the last `first_start_window_s`, my own among them. Taken is what would
    wake me, is inside that window, and is listed in no `answers` of mine. Commands are not taken: no replay.
    """
    answered = {one for message in history if message.sender.uid == me.uid for one in message.answers}

    def wakes(message: Message) -> bool:
        decision = triage(
            message, me=me, members=members, first_mark=-1, recent_persona_turns=0, now=now, persona=persona
        )
        return isinstance(decision, Wake)

    return tuple(
        message
        for message in history
        if message.id not in answered
        and _age_s(message, now) <= persona.limits.first_start_window_s
        and wakes(message)
    )


def names_me(message: Message, me: Account) -> bool:
    """Return whether the decision on `message` is worth keeping for `sentinel why`. It decides nothing else."""
    if me.uid in message.mentions or me.uid in message.reply_mentions or message.broadcast:
        return True
    name = _folded(me.name)
    return bool(name) and name in _folded(message.text or "")


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", text.casefold())


def word(decision: Decision) -> str:
    """Return the one word that stands for a decision in the log and in `sentinel why`."""
    match decision:
        case Wake():
            return "wake"
        case Obey():
            return "obey"
        case Skip(reason) | Hold(reason):
            return reason.value
        case _:
            assert_never(decision)


_EXPLAINED: Final[dict[Reason, tuple[str, str]]] = {
    Reason.OWN: (
        "the persona wrote this message itself",
        "nothing to mend; ask from another account",
    ),
    Reason.BEFORE_START: (
        "the message was there before the persona's first start in this conversation",
        "send it again: what came before the first start is never replayed",
    ),
    Reason.EMPTY: (
        "the message holds neither text nor media, or was taken back",
        "send it again with a text",
    ),
    Reason.NOT_MENTIONED: (
        "the persona's user id is not among the message's mentions; its name in the text does not count",
        "send it again and pick the persona from the list that `@` opens",
    ),
    Reason.REPLY_ONLY: (
        "the backend mentioned the persona only because the message replies to one of its own",
        "mention the persona, or write `on` into its `reply_wakes` file",
    ),
    Reason.PERSONA_BROADCAST: (
        "a persona called everybody, and a persona's broadcast wakes nobody",
        "let the other persona mention this one by name",
    ),
    Reason.NOT_OWNER: (
        "the message is a command, and its sender is not in the persona's `owners` file",
        "let an owner send it, or add the sender's uid to `owners`",
    ),
    Reason.STALE_COMMAND: (
        "the command was already older than `command_age_s` when the persona read it",
        "send the command again if it is still meant",
    ),
    Reason.STALE: (
        "the message was already older than `stale_age_s` when the persona read it",
        "send it again, or raise `stale_age_s` in `limits.toml`",
    ),
    Reason.PENDING_CARD: (
        "the sender is in the persona's `handoff_from` file, so an owner has to approve the message first",
        "let an owner write `/approve CODE` with the code of the card",
    ),
    Reason.SENDER_NOT_LISTED: (
        "the persona's `wake_from` file is a list of uids, and the sender is not in it",
        "add the sender's uid to `wake_from`, or write `humans` into it",
    ),
    Reason.PERSONA_NOT_ALLOWED: (
        "the sender is a persona, and the `wake_from` file does not let it wake this one",
        "add the sender's uid to `wake_from`, or write `members` into it",
    ),
    Reason.HOP_LIMIT: (
        "personas have answered each other `hop_limit` times since a human spoke",
        "let a human mention the persona, or raise `hop_limit` in `limits.toml`",
    ),
    Reason.LOOP_BUDGET: (
        "personas have triggered `persona_turns` turns here within `persona_window_s`",
        "let a human mention the persona, which resets the count, or wait",
    ),
}


def explain(reason: Reason) -> tuple[str, str]:
    """Return what `reason` means and what a human can do about it: one English line each."""
    return _EXPLAINED[reason]
