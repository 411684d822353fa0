"""Every open socket, and which of them hears what.

The hub goes by a copy of the memberships, held against the database's change counter before each fan-out and once a
second: whoever was taken out, disabled or rotated, also by a command in another process, hears nothing from then on.
It lives in the event loop's thread and never waits. Source: spec 01 sections 2 and 3.
"""

import json
import sqlite3
from collections.abc import Iterable
from typing import Any

from sentinel.core.model import Kind, PresenceState
from sentinel.server.accounts import session_of
from sentinel.server.clock import Now
from sentinel.server.line import UNAUTHORIZED, Line
from sentinel.server.messages import Posted
from sentinel.server.presence import Presence, Shown
from sentinel.server.rooms import all_memberships, change_counters


def encode(frame: dict[str, Any]) -> str:
    """Return a frame's text, as short as JSON allows."""
    return json.dumps(frame, ensure_ascii=False, separators=(",", ":"))


class Hub:
    """The sockets of the running server."""

    def __init__(self, reader: sqlite3.Connection, *, now_ms: Now, offline_after_s: float) -> None:
        self._reader = reader
        self._now_ms = now_ms
        self._lines: dict[str, list[Line]] = {}
        self._members = all_memberships(reader)
        self._rooms = _inverted(self._members)
        self._seen_access, self._seen_membership = change_counters(reader)
        self.presence = Presence(
            _stated(reader), offline_after_s=offline_after_s, announce=self._announce_presence
        )

    def open(self, line: Line) -> None:
        """Take a socket in; an older one of the same persona is told that it was superseded."""
        self.look()  # what changed before this socket opened is not news to it
        older = self._lines.setdefault(line.uid, [])
        if line.session.account.kind is Kind.PERSONA:
            for one in older:
                one.offer('{"type":"session.superseded"}')
        older.append(line)
        self.presence.opened(line.uid)

    def shut(self, line: Line) -> None:
        """Let a socket go."""
        for cid in list(line.typing_in):
            self.typing(line, cid, on=False)
        self._lines[line.uid].remove(line)
        if not self._lines[line.uid]:
            del self._lines[line.uid]
        self.presence.closed(line.uid)

    def announce(self, posted: Posted) -> None:
        """Push a message that was just committed to every socket of every member."""
        self.look()
        if posted.is_new:
            frame = encode({"type": "message.new", "message": posted.message})
            self._tell(self._members.get(posted.message["cid"], frozenset()), frame)

    def typing(self, line: Line, cid: str, *, on: bool) -> None:
        """Show or hide "is typing" to the other members."""
        self.look()
        if on:
            line.typing_in.add(cid)
        else:
            line.typing_in.discard(cid)
        others = self._members.get(cid, frozenset()) - {line.uid}
        self._tell(others, encode({"type": "typing", "cid": cid, "uid": line.uid, "on": on}))

    def look(self) -> None:
        """Hold sockets and memberships against the database, if it says that these changed."""
        access, membership = change_counters(self._reader)
        if membership != self._seen_membership:
            self._seen_membership = membership
            self._take_members(all_memberships(self._reader))
        if access != self._seen_access:
            self._seen_access = access
            for line in self._every_line():
                self.is_good(line)

    def tick(self) -> None:
        """Look, and close the sockets whose session ran out; called once a second."""
        self.look()
        now_ms = self._now_ms()
        for line in self._every_line():
            expires_at_ms = line.session.expires_at_ms
            if expires_at_ms is not None and expires_at_ms <= now_ms:
                line.close(UNAUTHORIZED)

    def is_good(self, line: Line) -> bool:
        """Return whether the socket's token is still good; if not, the socket closes."""
        if session_of(self._reader, line.session.token_hash, now_ms=self._now_ms()) is None:
            line.close(UNAUTHORIZED)
            return False
        return not line.is_closing

    def stop(self) -> None:
        """Stop the clocks; the sockets themselves are closed (1012) by the web server as it goes down."""
        self.presence.stop()

    def _every_line(self) -> list[Line]:
        return [line for lines in self._lines.values() for line in lines]

    def _take_members(self, members: dict[str, frozenset[str]]) -> None:
        before, self._members, self._rooms = self._members, members, _inverted(members)
        for cid in before.keys() | members.keys():
            was, now = before.get(cid, frozenset()), members.get(cid, frozenset())
            for uid in sorted(now - was):
                self._tell(now, encode({"type": "member.joined", "cid": cid, "uid": uid}))
            for uid in sorted(was - now):
                self._tell(now | {uid}, encode({"type": "member.left", "cid": cid, "uid": uid}))

    def _announce_presence(self, uid: str) -> None:
        self.look()
        shown = self.presence.shown(uid)
        around = {uid}.union(*(self._members[cid] for cid in self._rooms.get(uid, ())))
        frame = {"type": "presence", "uid": uid, "state": str(shown.state), "detail": shown.detail}
        self._tell(around, encode(frame))

    def _tell(self, uids: Iterable[str], frame: str) -> None:
        for uid in uids:
            for line in self._lines.get(uid, ()):
                line.offer(frame)


def _inverted(members: dict[str, frozenset[str]]) -> dict[str, set[str]]:
    rooms: dict[str, set[str]] = {}
    for cid, uids in members.items():
        for uid in uids:
            rooms.setdefault(uid, set()).add(cid)
    return rooms


def _stated(reader: sqlite3.Connection) -> dict[str, Shown]:
    rows = reader.execute("SELECT uid, state, detail FROM presence")
    return {row["uid"]: Shown(PresenceState(row["state"]), row["detail"]) for row in rows}
