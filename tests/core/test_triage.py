"""Triage: each rule of spec 02 section 3, alone and in its order."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.core.codec import Sandbox
from sentinel.core.commands import Command, CommandKind
from sentinel.core.model import Account, Kind, Media, Member, Message, MessageType
from sentinel.core.persona import Limits, Persona, Secret
from sentinel.core.triage import (
    Hold,
    Obey,
    Reason,
    Skip,
    Wake,
    explain,
    first_start_triggers,
    names_me,
    triage,
    word,
)

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
ANN = Account("u-ann", "ann", Kind.HUMAN)
BOB = Account("u-bob", "bob", Kind.HUMAN)
ME = Account("u-gode", "Gode", Kind.PERSONA)
MINI = Account("u-mini", "GodeMini01", Kind.PERSONA)
LIMITS = Limits()


def seen_as_member(account):
    return Member(account.uid, account.name, account.kind)


ROOM = tuple(seen_as_member(one) for one in (ANN, BOB, ME, MINI))
PAIR = tuple(seen_as_member(one) for one in (ANN, ME))
PERSONA_PAIR = tuple(seen_as_member(one) for one in (MINI, ME))


def persona(**changes):
    return replace(
        Persona(
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
        ),
        **changes,
    )


def message(sender=ANN, text="hello", *, age_s=1.0, **changes):
    sent_at = NOW - timedelta(seconds=age_s)
    return Message(
        **{"id": "m1", "cid": "c1", "seq": 10, "sender": sender, "sent_at": sent_at, "text": text} | changes
    )


def decide(one, *, members=ROOM, first_mark=0, recent=0, **home):
    return triage(
        one,
        me=ME,
        members=members,
        first_mark=first_mark,
        recent_persona_turns=recent,
        now=NOW,
        persona=persona(**home),
    )


CALL = {"mentions": ("u-gode",)}
PICTURE = Media("f1", "/v1/media/f1", "image/png", 10)


@pytest.mark.parametrize(
    ("one", "members", "expected"),
    [
        pytest.param(message(**CALL), ROOM, Wake(resets_guard=True), id="mentioned"),
        pytest.param(message(mentions=("u-bob", "u-gode")), ROOM, Wake(resets_guard=True), id="among-others"),
        pytest.param(message(text="@Gode Gode u-gode"), ROOM, Skip(Reason.NOT_MENTIONED), id="name-in-text"),
        pytest.param(message(mentions=("u-mini",)), ROOM, Skip(Reason.NOT_MENTIONED), id="another-mentioned"),
        pytest.param(message(mentions=("U-GODE",)), ROOM, Skip(Reason.NOT_MENTIONED), id="uid-is-exact"),
        pytest.param(message(broadcast=True), ROOM, Wake(resets_guard=True), id="human-broadcast"),
        pytest.param(message(), PAIR, Wake(resets_guard=True), id="alone-with-a-human"),
        pytest.param(
            message(text=None, type=MessageType.IMAGE, media=PICTURE),
            PAIR,
            Wake(resets_guard=True),
            id="media-alone",
        ),
        pytest.param(
            message(text=None, type=MessageType.VOICE, media=PICTURE, **CALL),
            ROOM,
            Wake(resets_guard=True),
            id="voice-mentioning",
        ),
        pytest.param(message(text=None), PAIR, Skip(Reason.EMPTY), id="taken-back"),
        pytest.param(message(text=" \n", **CALL), ROOM, Skip(Reason.EMPTY), id="blank"),
        pytest.param(message(BOB), PAIR, Skip(Reason.NOT_MENTIONED), id="left-and-never-alone-with-me"),
        pytest.param(message(BOB, **CALL), PAIR, Wake(resets_guard=True), id="mentioned-me-and-left"),
        pytest.param(message(), (seen_as_member(ME),), Skip(Reason.NOT_MENTIONED), id="left-me-alone"),
        pytest.param(message(ME, **CALL), ROOM, Skip(Reason.OWN), id="own"),
        pytest.param(message(ME), PAIR, Skip(Reason.OWN), id="own-in-a-pair"),
        pytest.param(message(MINI), PERSONA_PAIR, Skip(Reason.NOT_MENTIONED), id="alone-with-a-persona"),
        pytest.param(
            message(MINI, broadcast=True), ROOM, Skip(Reason.PERSONA_BROADCAST), id="persona-broadcast"
        ),
        pytest.param(message(MINI, **CALL), ROOM, Skip(Reason.PERSONA_NOT_ALLOWED), id="persona"),
    ],
)
def test_who_is_called(one, members, expected):
    assert decide(one, members=members) == expected


@pytest.mark.parametrize("seq", [1, 9, 10])
def test_nothing_at_or_below_the_first_mark_wakes(seq):
    assert decide(message(seq=seq, **CALL), first_mark=10) == Skip(Reason.BEFORE_START)


def test_the_first_message_after_the_mark_wakes():
    assert decide(message(seq=11, **CALL), first_mark=10) == Wake(resets_guard=True)


@pytest.mark.parametrize(
    ("age_s", "expected"),
    [
        pytest.param(86_400, Wake(resets_guard=True), id="just-a-day"),
        pytest.param(86_401, Skip(Reason.STALE), id="older"),
        pytest.param(-3_600, Wake(resets_guard=True), id="from-a-clock-ahead-of-ours"),
    ],
)
def test_the_stale_limit_goes_by_the_servers_time(age_s, expected):
    assert decide(message(age_s=age_s, **CALL)) == expected


def test_an_old_message_that_called_nobody_is_not_counted_as_missed():
    assert decide(message(age_s=90_000)) == Skip(Reason.NOT_MENTIONED)


def test_the_stale_limit_is_a_setting():
    assert decide(message(age_s=11, **CALL), limits=Limits(stale_age_s=10)) == Skip(Reason.STALE)


@pytest.mark.parametrize(
    ("changes", "home", "members", "expected"),
    [
        pytest.param({}, {}, ROOM, Skip(Reason.REPLY_ONLY), id="not-by-default"),
        pytest.param({}, {"reply_wakes": True}, ROOM, Wake(resets_guard=True), id="with-reply-wakes"),
        pytest.param({"mentions": ("u-gode",)}, {}, ROOM, Wake(resets_guard=True), id="mentioned-too"),
        pytest.param({}, {}, PAIR, Wake(resets_guard=True), id="a-pair-needs-no-mention"),
        pytest.param({"broadcast": True}, {}, ROOM, Wake(resets_guard=True), id="broadcast-reply"),
        pytest.param({"text": "/stop"}, {}, ROOM, Skip(Reason.REPLY_ONLY), id="command-in-a-reply"),
    ],
)
def test_a_reply_is_kept_apart_from_a_mention(changes, home, members, expected):
    assert decide(message(reply_mentions=("u-gode",), **changes), members=members, **home) == expected


@pytest.mark.parametrize(
    ("sender", "wake_from", "expected"),
    [
        pytest.param(ANN, "humans", Wake(resets_guard=True), id="humans-human"),
        pytest.param(MINI, "humans", Skip(Reason.PERSONA_NOT_ALLOWED), id="humans-persona"),
        pytest.param(ANN, "members", Wake(resets_guard=True), id="members-human"),
        pytest.param(MINI, "members", Wake(resets_guard=False), id="members-persona"),
        pytest.param(ANN, frozenset({"u-ann"}), Wake(resets_guard=True), id="listed-human"),
        pytest.param(BOB, frozenset({"u-ann"}), Skip(Reason.SENDER_NOT_LISTED), id="unlisted-human"),
        pytest.param(MINI, frozenset({"u-mini"}), Wake(resets_guard=False), id="listed-persona"),
        pytest.param(MINI, frozenset({"u-ann"}), Skip(Reason.PERSONA_NOT_ALLOWED), id="unlisted-persona"),
        pytest.param(ANN, frozenset(), Skip(Reason.SENDER_NOT_LISTED), id="an-empty-list-allows-nobody"),
    ],
)
def test_wake_from(sender, wake_from, expected):
    assert decide(message(sender, **CALL), wake_from=wake_from) == expected


def test_a_list_counts_for_broadcasts_and_pairs_too():
    only_bob = {"wake_from": frozenset({"u-bob"})}

    assert decide(message(broadcast=True), **only_bob) == Skip(Reason.SENDER_NOT_LISTED)
    assert decide(message(), members=PAIR, **only_bob) == Skip(Reason.SENDER_NOT_LISTED)


def test_a_persona_that_left_still_counts_as_a_persona():
    without_mini = tuple(one for one in ROOM if one.uid != "u-mini")

    assert decide(message(MINI, **CALL), members=without_mini) == Skip(Reason.PERSONA_NOT_ALLOWED)


def test_the_senders_kind_is_not_taken_from_the_member_list():
    """A persona that is listed as a human somewhere else is what the message says it is."""
    disguised = (*ROOM[:3], Member("u-mini", "GodeMini01", Kind.HUMAN))

    assert decide(message(MINI, **CALL), members=disguised) == Skip(Reason.PERSONA_NOT_ALLOWED)


@pytest.mark.parametrize(
    ("hops", "recent", "expected"),
    [
        pytest.param(2, 5, Wake(resets_guard=False), id="below-both"),
        pytest.param(3, 0, Skip(Reason.HOP_LIMIT), id="third-hop"),
        pytest.param(99, 0, Skip(Reason.HOP_LIMIT), id="far-past"),
        pytest.param(1, 6, Skip(Reason.LOOP_BUDGET), id="sixth-turn"),
        pytest.param(3, 6, Skip(Reason.HOP_LIMIT), id="both"),
    ],
)
def test_personas_cannot_keep_each_other_awake(hops, recent, expected):
    assert decide(message(MINI, hops=hops, **CALL), recent=recent, wake_from="members") == expected


def test_a_human_is_never_held_by_the_guards_and_resets_them():
    assert decide(message(hops=50, **CALL), recent=500) == Wake(resets_guard=True)


def test_a_personas_broadcast_that_also_mentions_me_is_a_mention():
    assert decide(message(MINI, broadcast=True, **CALL), wake_from="members") == Wake(resets_guard=False)


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        pytest.param(message(MINI, **CALL), Hold(Reason.PENDING_CARD), id="card"),
        pytest.param(message(MINI), Skip(Reason.NOT_MENTIONED), id="not-to-me"),
        pytest.param(message(MINI, age_s=90_000, **CALL), Skip(Reason.STALE), id="old-card"),
        pytest.param(message(ANN, **CALL), Wake(resets_guard=True), id="somebody-else"),
    ],
)
def test_a_limbs_post_waits_for_an_owner(one, expected):
    assert decide(one, handoff_from=frozenset({"u-mini"})) == expected


def test_a_limbs_post_waits_even_where_personas_may_wake_me():
    assert decide(message(MINI, **CALL), handoff_from=frozenset({"u-mini"}), wake_from="members") == Hold(
        Reason.PENDING_CARD
    )


STOP = Obey(Command(CommandKind.STOP))
STATUS = Obey(Command(CommandKind.STATUS))


@pytest.mark.parametrize(
    ("one", "members", "expected"),
    [
        pytest.param(message(text="@Gode /stop", **CALL), ROOM, STOP, id="owner-mentions"),
        pytest.param(message(text="/stop", broadcast=True), ROOM, STOP, id="owner-calls-everybody"),
        pytest.param(message(text="/stop"), PAIR, STOP, id="owner-alone-with-me"),
        pytest.param(message(text="/stop"), ROOM, Skip(Reason.NOT_MENTIONED), id="owner-not-to-me"),
        pytest.param(message(BOB, "@Gode /stop", **CALL), ROOM, Skip(Reason.NOT_OWNER), id="not-an-owner"),
        pytest.param(
            message(BOB, "@Gode /task x", **CALL), ROOM, Skip(Reason.NOT_OWNER), id="task-of-a-non-owner"
        ),
        pytest.param(message(BOB, "@Gode /status", **CALL), ROOM, STATUS, id="anybody-may-ask-how-it-is"),
        pytest.param(message(text="@Gode /stop", age_s=600, **CALL), ROOM, STOP, id="ten-minutes-old"),
        pytest.param(
            message(text="@Gode /stop", age_s=601, **CALL), ROOM, Skip(Reason.STALE_COMMAND), id="older"
        ),
        pytest.param(message(text="@Gode /stop", age_s=-999, **CALL), ROOM, STOP, id="clock-ahead"),
        pytest.param(
            message(BOB, "/status", age_s=601, **CALL), ROOM, Skip(Reason.STALE_COMMAND), id="old-status"
        ),
        pytest.param(
            message(text="what does\n/stop do?", **CALL), ROOM, Wake(resets_guard=True), id="talk-about-it"
        ),
        pytest.param(message(text="@Gode `/stop`", **CALL), ROOM, Wake(resets_guard=True), id="quoted"),
        pytest.param(message(text="/approve", **CALL), ROOM, Wake(resets_guard=True), id="no-code"),
        pytest.param(
            message(text="/stop", seq=0, **CALL), ROOM, Skip(Reason.BEFORE_START), id="before-the-start"
        ),
    ],
)
def test_commands(one, members, expected):
    assert decide(one, members=members) == expected


def test_an_owner_is_obeyed_even_if_wake_from_does_not_list_them():
    assert decide(message(text="/stop", **CALL), wake_from=frozenset({"u-bob"})) == STOP


def test_a_personas_message_is_never_a_command():
    """Not even one whose uid was written into `owners` by mistake."""
    decision = decide(message(MINI, "/stop", **CALL), owners=frozenset({"u-mini"}), wake_from="members")

    assert decision == Wake(resets_guard=False)


def test_first_start_takes_the_unanswered_calls_of_the_last_hour():
    history = [
        message(id="old", seq=1, age_s=3_601, **CALL),
        message(id="answered", seq=2, age_s=3_000, **CALL),
        message(id="open", seq=3, age_s=2_900, **CALL),
        message(ME, id="mine", seq=4, age_s=2_800, answers=("answered",)),
        message(MINI, id="false-claim", seq=5, age_s=2_700, answers=("open",)),
        message(id="talk", seq=6, age_s=2_000, text="Gode"),
        message(id="command", seq=7, age_s=60, text="/stop", **CALL),
        message(id="newest", seq=8, age_s=1, **CALL),
    ]

    taken = first_start_triggers(history, me=ME, members=ROOM, now=NOW, persona=persona())

    assert [one.id for one in taken] == ["open", "newest"]


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        pytest.param(message(**CALL), True, id="mention"),
        pytest.param(message(reply_mentions=("u-gode",)), True, id="reply"),
        pytest.param(message(broadcast=True), True, id="broadcast"),
        pytest.param(message(text="ask GODE about it"), True, id="name-in-any-case"),
        pytest.param(message(text="ask somebody"), False, id="not-named"),
        pytest.param(message(text=None, media=PICTURE), False, id="media-alone"),
        pytest.param(message(text=None, media=PICTURE, **CALL), True, id="media-mentioning"),
    ],
)
def test_which_decisions_are_kept(one, expected):
    assert names_me(one, ME) is expected


def test_names_are_compared_in_one_unicode_form():
    """An e with an accent is the same name whether it was typed as one code point or as two."""
    composed = Account("u-x", "Andr\u00e9", Kind.PERSONA)

    assert names_me(message(text="ask ANDRE\u0301 about it"), composed)


def test_an_account_without_a_name_is_not_named_by_every_text():
    assert not names_me(message(text="hello"), Account("u-x", "", Kind.PERSONA))


@pytest.mark.parametrize(
    ("decision", "expected"),
    [
        (Wake(resets_guard=True), "wake"),
        (STOP, "obey"),
        (Skip(Reason.NOT_MENTIONED), "not-mentioned"),
        (Hold(Reason.PENDING_CARD), "pending-card"),
    ],
)
def test_one_word_stands_for_a_decision(decision, expected):
    assert word(decision) == expected


@pytest.mark.parametrize("reason", Reason)
def test_each_reason_is_one_word_and_explained_in_one_line(reason):
    what, cure = explain(reason)

    assert reason.value == reason.value.lower()
    assert " " not in reason.value
    assert what
    assert cure
    assert "\n" not in what + cure
    assert explain(reason)[0] not in [explain(other)[0] for other in Reason if other is not reason]


@given(
    text=st.text(min_size=1).filter(str.strip),
    sender=st.sampled_from([ANN, BOB, ME, MINI]),
    mentions=st.lists(st.sampled_from(["u-ann", "u-gode", "u-mini"]), max_size=3).map(tuple),
    broadcast=st.booleans(),
    age_s=st.floats(min_value=-1e6, max_value=1e6),
    hops=st.integers(min_value=0, max_value=5),
    recent=st.integers(min_value=0, max_value=9),
    wake_from=st.sampled_from(["humans", "members", frozenset({"u-bob"}), frozenset()]),
)
def test_what_a_persona_says_never_outruns_the_guards(  # hypothesis fills them by name
    text, sender, mentions, broadcast, age_s, hops, recent, wake_from
):
    """Over all inputs: a wake has a call, an allowed sender, an age and hops below the limits."""
    one = message(sender, text, mentions=mentions, broadcast=broadcast, age_s=age_s, hops=hops)

    decision = decide(one, recent=recent, wake_from=wake_from)

    if isinstance(decision, Wake):
        human = sender.kind is Kind.HUMAN
        assert sender is not ME
        assert "u-gode" in mentions or (human and broadcast)
        assert age_s <= LIMITS.stale_age_s + 1e-3
        assert human or (hops < LIMITS.hop_limit and recent < LIMITS.persona_turns and wake_from == "members")
        assert decision.resets_guard is human
