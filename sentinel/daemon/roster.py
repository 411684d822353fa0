"""Who is in a conversation, and what it is called: asked once, kept until the room says that it changed."""

from sentinel.core.model import Conversation, Member
from sentinel.core.ports import Room

_PAIR = 2


class Roster:
    """A cache of facts about conversations; every miss asks the room."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._members: dict[str, tuple[Member, ...]] = {}
        self._titles: dict[str, str] = {}

    async def conversations(self) -> tuple[Conversation, ...]:
        """Ask for all conversations of this account; their titles are kept."""
        all_of_them = await self._room.conversations()
        self._titles = {one.cid: one.title for one in all_of_them}
        return all_of_them

    async def members(self, cid: str) -> tuple[Member, ...]:
        """Return the members of a conversation."""
        if cid not in self._members:
            self._members[cid] = await self._room.members(cid)
        return self._members[cid]

    def is_pair(self, cid: str) -> bool:
        """Return whether it may be a conversation of two, as far as is known: there every message is a call."""
        return len(self._members.get(cid, ())) <= _PAIR

    def title(self, cid: str) -> str:
        """Return the title as last told, or the cid."""
        return self._titles.get(cid, cid)

    def forget(self, cid: str | None = None) -> None:
        """Ask again next time: for one conversation, or for all."""
        if cid is None:
            self._members.clear()
        else:
            self._members.pop(cid, None)
