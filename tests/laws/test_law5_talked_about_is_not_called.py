"""Law 5: being talked about is not being called.

In a room of more than two, only a structured mention of its user id, or a human's broadcast, wakes a persona; in a
conversation of two a human's message is the call. Text never counts.
"""

from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import assume, example, given
from hypothesis import strategies as st

from sentinel.core.codec import Sandbox
from sentinel.core.commands import parse
from sentinel.core.model import Account, Kind, Member, Message
from sentinel.core.persona import Persona, Secret
from sentinel.core.triage import Skip, Wake, triage

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
ANN = Account("u-ann", "ann", Kind.HUMAN)
ME = Account("u-gode", "Gode", Kind.PERSONA)
MINI = Account("u-mini", "GodeMini01", Kind.PERSONA)
PAIR = tuple(Member(one.uid, one.name, one.kind) for one in (ANN, ME))
ROOM = (*PAIR, Member("u-mini", "GodeMini01", Kind.PERSONA))
OPEN_TO_ALL = Persona(
    name="gode",
    home="/h/gode",
    server="http://127.0.0.1",
    account="Gode",
    token=Secret("t"),
    adapter="echo",
    model="none",
    binary="",
    cwd="",
    sandbox=Sandbox.READ_ONLY,
    network=False,
    user="",
    env={},
    task_md="You are Gode.",
    owners=frozenset({"u-ann"}),
    wake_from="members",
    handoff_from=frozenset({"u-limb"}),
    reply_wakes=True,
    may_broadcast=True,
)

CALLING = [
    "@Gode",
    "＠Gode ",
    "@everyone",
    "@所有人 ",
    "Gode: ",
    "<@u-gode> ",
    "/stop",
    "@Gode /stop",
    "[@Gode](u-gode)",
]
texts = st.text() | st.builds("{}{}".format, st.sampled_from(CALLING), st.text())
visible = texts.filter(str.strip)


def message(text, sender=ANN, **changes):
    return Message(id="m1", cid="c1", seq=5, sender=sender, sent_at=NOW, text=text, **changes)


def decide(one, members=ROOM):
    return triage(
        one, me=ME, members=members, first_mark=0, recent_persona_turns=0, now=NOW, persona=OPEN_TO_ALL
    )


@given(text=texts, sender=st.sampled_from([ANN, MINI]))
@example(text="@Gode /stop", sender=ANN)
@example(text="@everyone @Gode", sender=MINI)
def test_no_text_whatsoever_calls(text, sender):
    """Even in a home that lets everybody wake it: no fact of a call, no wake, no command, no card."""
    assert isinstance(decide(message(text, sender)), Skip)


@given(one=visible, other=visible, sender=st.sampled_from([ANN, MINI]))
def test_a_call_is_a_call_with_any_text(one, other, sender):
    """The same structure gives the same decision; only a command on a human's first line is read at all."""
    assume(parse(one, ROOM) is None)
    assume(parse(other, ROOM) is None)
    mentioned = {"sender": sender, "mentions": ("u-gode",)}

    assert decide(message(one, **mentioned)) == decide(message(other, **mentioned)) == Wake(sender is ANN)


@given(text=visible)
def test_in_a_conversation_of_two_every_message_of_the_human_is_the_call(text):
    assume(parse(text, PAIR) is None)

    assert decide(message(text), members=PAIR) == Wake(resets_guard=True)


@given(text=visible)
def test_a_personas_broadcast_wakes_nobody(text):
    assert isinstance(decide(message(text, MINI, broadcast=True)), Skip)


@given(text=visible, mentions=st.lists(st.text(max_size=8).filter(lambda uid: uid != "u-gode")).map(tuple))
def test_no_other_uid_is_mine(text, mentions):
    assert isinstance(decide(message(text, mentions=mentions)), Skip)


def test_a_name_like_mine_in_the_member_list_changes_nothing():
    namesake = replace(ROOM[2], name="Gode")

    assert isinstance(decide(message("@Gode", mentions=("u-mini",)), (*PAIR, namesake)), Skip)
