"""`sentinel wake`: a test mention as a human, then each leg of its way, with times. Source: spec 09.

Every leg is read where it happened: the server's message, and the persona's own journal on this machine.
"""

import asyncio
from dataclasses import dataclass
from pathlib import Path

import httpx

from sentinel.app.clock import SystemClock
from sentinel.app.ground import passed
from sentinel.core.errors import ConfigError, SentinelError, Unavailable
from sentinel.core.journal import State
from sentinel.core.model import Kind, Member, Outgoing
from sentinel.core.persona import Persona, Secret
from sentinel.rooms.open import open_room
from sentinel.store.store import FILE, Store, look_at_store

LEGS = ("stored", "doorbell", "pulled", "triaged", "started", "answered", "posted", "read back")
_LOOK_S = 0.05
_WHERE = {
    "doorbell": "is the sentinel running and connected? `sentinel status`",
    "pulled": "is the conversation guarded? `sentinel status`",
    "triaged": "`sentinel why NAME MESSAGE-ID`",
    "started": "`sentinel logs NAME`: the gate, or the executor's start",
    "answered": "the executor works, or failed: `sentinel logs NAME`",
    "posted": "the room does not take the answer: `sentinel logs NAME`",
    "read back": "the answer was posted, and is not to be found again: `sentinel logs NAME`",
}


@dataclass(frozen=True, slots=True)
class Leg:
    """One leg; `at_ms` counts from the moment when the server had stored the mention, None when it never came."""

    leg: str
    at_ms: float | None


@dataclass(frozen=True, slots=True)
class Woken:
    """What became of the test mention."""

    message_id: str
    legs: tuple[Leg, ...]
    answer_id: str | None

    @property
    def missing(self) -> str | None:
        """The first leg that never came, and where to look."""
        first = next((one.leg for one in self.legs if one.at_ms is None), None)
        return f"{first}: {_WHERE.get(first, 'the server')}" if first else None


async def wake(home: Path, cid: str, token: Secret, *, timeout_s: float) -> Woken:
    """Mention the persona as the human whose token this is, and follow the mention to the answer's readback."""
    persona = passed(home, guarded=None)
    room, clock = open_room(persona.server, token), SystemClock()
    try:
        me = await room.who_am_i()
        if me.kind is not Kind.HUMAN:
            raise ConfigError(f"{me.name} is no human", mend="give the token of a human in this room")
        target = _target(persona, await room.members(cid))
        posted = await room.post(
            cid,
            Outgoing(text=f"@{target.name} this is a wake test", nonce=clock.token(), mentions=(target.uid,)),
        )
        deadline = clock.now().timestamp() + timeout_s
        woken = Woken(posted.id, (Leg("stored", 0.0),), None)
        while clock.now().timestamp() < deadline:
            woken = _look(home, posted.id, posted.sent_at.timestamp())
            if woken.answer_id is not None:
                await room.find(cid, woken.answer_id)
                break
            await asyncio.sleep(_LOOK_S)
        return woken
    finally:
        await room.aclose()


def _target(persona: Persona, members: tuple[Member, ...]) -> Member:
    for one in members:
        if persona.account in {one.uid, one.name}:
            return one
    raise ConfigError(
        f"{persona.account} is not in this conversation", mend="invite it: `sentinel hoop room invite`"
    )


def _look(home: Path, message_id: str, stored_at: float) -> Woken:
    if not (home / FILE).exists():
        return Woken(message_id, tuple(Leg(one, 0.0 if one == "stored" else None) for one in LEGS), None)
    store = look_at_store(home)
    try:
        return _legs(store, message_id, stored_at)
    finally:
        store.close()


def _legs(store: Store, message_id: str, stored_at: float) -> Woken:
    db = store.database
    trigger = db.row("SELECT rang_at, pulled_at, turn_id FROM triggers WHERE message_id = ?", (message_id,))
    decided = store.inbox.why(message_id)
    turn = (
        db.row(
            "SELECT spawned_at, answered_at, posted_at, ended_at, state FROM turns WHERE id = ?",
            (trigger[2],),
        )
        if trigger
        else None
    )
    verified = turn is not None and turn["state"] == State.VERIFIED
    times = {
        "stored": stored_at,
        "doorbell": (trigger["rang_at"] or trigger["pulled_at"]) if trigger else None,
        "pulled": trigger["pulled_at"] if trigger else None,
        "triaged": decided.at if decided else None,
        "started": turn["spawned_at"] if turn else None,
        "answered": turn["answered_at"] if turn else None,
        "posted": turn["posted_at"] if turn else None,
        "read back": turn["ended_at"] if turn and verified else None,
    }
    answer = None
    if verified and trigger:
        part = db.row(
            "SELECT server_id FROM parts WHERE turn_id = ? ORDER BY part DESC", (trigger["turn_id"],)
        )
        answer = part["server_id"] if part else None
    legs = tuple(
        Leg(leg, None if at is None else round((at - stored_at) * 1000, 1)) for leg, at in times.items()
    )
    return Woken(message_id, legs, answer)


async def log_in(server: str, name: str, code: str) -> Secret:
    """Log a human in with a one-time code and return the session's token (`wake --data`)."""
    try:
        async with httpx.AsyncClient(base_url=server, timeout=10.0) as client:
            reply = await client.post("/v1/auth/otp/verify", json={"account": name, "code": code})
            reply.raise_for_status()
            return Secret(str(reply.json()["token"]))
    except (httpx.HTTPError, ValueError, KeyError) as error:
        raise Unavailable(
            f"{name} could not be logged in ({type(error).__name__})", mend="is the server up?"
        ) from error


class NotWoken(SentinelError):
    """The mention did not come back as an answer."""

    exit_code = Unavailable.exit_code
