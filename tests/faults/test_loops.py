"""Two, five and ten personas that greet each other for ever, on a real server: it ends, and one line each says why."""

import httpx
import pytest

from sentinel.core.model import Kind
from sentinel.server.admin import directory
from tests.fakes.town import Place, until

# Speaks as codex does, and calls everybody each time.
_GREETER = """#!/bin/sh
cat >/dev/null
echo '{"type":"thread.started","thread_id":"0199a213-81c0-7800-8aa1-bbab2a035a53"}'
echo '{"type":"turn.started"}'
echo '{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"%s hello!"}}'
echo '{"type":"turn.completed","usage":{"input_tokens":10,"cached_input_tokens":2,"output_tokens":3}}'
"""
HOP_LINE, BUDGET_LINE = "Personas have answered each other", "Personas have called me"


class Guest(Place):
    """One more persona, in a room that is there already."""

    def __init__(self, town, number, *, cid, account, token, greeting, limits):
        self.town, self.cid, self.gode = town, cid, account
        self.root = town.root / f"guest-{number}"
        self.home, self.work = self.root / "home" / "gode", self.root / "work"
        for folder in (self.home, self.work):
            folder.mkdir(parents=True)
        self.home.chmod(0o700)
        executor = self.root / "executor"
        executor.write_text(_GREETER % greeting)
        executor.chmod(0o755)
        values = {
            "server": town.url,
            "account": account.name,
            "token": token,
            "adapter": "codex",
            "model": "m-1",
            "codex_bin": str(executor),
            "codex_cwd": str(self.work),
            "codex_sandbox": "read-only",
            "codex_network": "off",
            "task.md": "You greet whoever greets you.",
            "wake_from": "members",
            "limits.toml": limits,
        }
        for name, value in values.items():
            self.write(name, value)
        self.process, self.people, self._connections_before = None, {}, 0
        self.errors = self.root / "sentinel.log"

    @property
    def reasons(self):
        return {row[0] for row in self.rows("SELECT reason FROM decisions")}

    @property
    def turns(self):
        return self.rows("SELECT count(*) FROM turns WHERE kind = 'answer'")[0][0]

    def is_quiet(self):
        waiting = "SELECT count(*) FROM triggers WHERE state NOT IN ('verified')"
        open_turns = "SELECT count(*) FROM turns WHERE state NOT IN ('verified', 'moot')"
        return self.rows(waiting) == self.rows(open_turns) == [(0,)]


class Party:
    """`size` personas and a human, ann, in one room."""

    def __init__(self, town, size, *, limits):
        self.town = town
        number = len(town.places)
        names = [f"Greeter{number}x{one}" for one in range(size)]
        with directory(town.data) as opened:
            ann = opened.add_account(f"ann{number}p", Kind.HUMAN)
            made = [opened.add_account(name, Kind.PERSONA) for name in names]
            self.cid = opened.add_room("party", [ann.account.name, *names]).conversation.cid
        self.client = httpx.Client(
            base_url=town.url, headers={"Authorization": f"Bearer {ann.token}"}, timeout=30
        )
        self.guests = []
        for place, one in enumerate(made):
            greeting = " ".join(f"@{name}" for name in names if name != one.account.name)
            more = {"cid": self.cid, "account": one.account, "token": one.token}
            guest = Guest(town, f"{number}-{place}", greeting=greeting, limits=limits, **more)
            town.places.append(guest)
            self.guests.append(guest)
        for guest in self.guests:
            guest.start(wait=False)
        for guest in self.guests:
            until(guest._is_up, "a guest's connection")

    def call(self, *guests):
        body = {"text": "greet everybody, for ever", "mentions": [one.gode.uid for one in guests]}
        reply = self.client.post(f"/v1/conversations/{self.cid}/text", json=body)
        assert reply.status_code == 201, reply.text
        return reply.json()["id"]

    def messages(self):
        found, after = [], 0
        while True:
            page = self.client.get(
                f"/v1/conversations/{self.cid}/messages", params={"after": after, "limit": 200}
            ).json()
            found += page["messages"]
            if not page["has_more"]:
                return found
            after = found[-1]["seq"]

    def until_over(self):
        """Wait until everybody has decided on everything that there is, and nothing more comes of it."""

        def over():
            newest = self.messages()[-1]["seq"]
            cursors = [one.rows("SELECT cursor FROM conversations") for one in self.guests]
            quiet = all(one.is_quiet() for one in self.guests)
            return quiet and cursors == [[(newest,)]] * len(self.guests)

        until(over, "the end of it")
        assert over()

    def lines_of(self, guest):
        own = [one for one in self.messages() if one["sender"]["uid"] == guest.gode.uid]
        return [one for one in own if not one.get("answers")]

    def close(self):
        for guest in self.guests:
            guest.close()
        self.client.close()


@pytest.fixture
def party(town):
    made = []

    def make(size, *, limits):
        made.append(Party(town, size, limits=limits))
        return made[-1]

    yield make
    for one in made:
        one.close()


SIZES = [2, 5, pytest.param(10, marks=[pytest.mark.real, pytest.mark.timeout(180)])]


@pytest.mark.parametrize("size", SIZES)
def test_the_hops_end_it(party, size):
    """A greets, the others greet back (hops 2), each answers that (hops 3): nobody answers more."""
    made = party(size, limits="term_grace_s = 1.0")
    made.call(made.guests[0])
    made.until_over()

    assert sum(one.turns for one in made.guests) <= 1 + 2 * (size - 1) + size * (size - 1)
    stopped = [one for one in made.guests if "hop-limit" in one.reasons]
    assert stopped
    for guest in made.guests:
        lines = made.lines_of(guest)
        assert len(lines) == (guest in stopped), [one["text"] for one in lines]
        assert all(one["text"].startswith(HOP_LINE) and not one["mentions"] for one in lines)


@pytest.mark.parametrize("size", SIZES)
def test_the_budget_ends_it_and_a_humans_call_lets_that_one_go_on(party, size):
    made = party(size, limits="hop_limit = 100\nterm_grace_s = 1.0")
    made.call(made.guests[0])
    made.until_over()

    first, *others = made.guests
    before = [one.turns for one in made.guests]
    assert before[0] <= 1 + 7
    assert max(before[1:]) <= 7  # six, and one that waited while the sixth began
    stopped = [one for one in made.guests if "loop-budget" in one.reasons]
    assert stopped
    for guest in made.guests:
        lines = made.lines_of(guest)
        assert len(lines) == (guest in stopped), [one["text"] for one in lines]
        assert all(one["text"].startswith(BUDGET_LINE) and not one["mentions"] for one in lines)

    made.call(first)
    made.until_over()
    assert first.turns > before[0]
    assert [one.turns for one in others if one in stopped] == [
        turns for one, turns in zip(others, before[1:], strict=True) if one in stopped
    ]
    assert all(len(made.lines_of(one)) == 1 for one in others if one in stopped)
