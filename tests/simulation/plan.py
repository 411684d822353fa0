"""What a seed draws: the people and settings of a world, and what happens in it, when.

A plan is data. Times are seconds from the start of the world. Every kind of happening has a name; the 10,000-seed run counts
how often each was drawn, and a kind that was never drawn is a failure of the run.
"""

import random
from dataclasses import dataclass

from sentinel.core.codec import Sandbox
from sentinel.core.persona import OnInterrupt
from sentinel.core.ports import NonceMemory
from tests.simulation.executor import BEHAVIOURS
from tests.simulation.lossy_room import WEATHERS

MESSAGES = {
    # kind: weight
    "mention": 26,
    "mention by a non-owner": 8,
    "broadcast": 3,
    "name in the text": 6,
    "reply without a mention": 3,
    "poison": 1,
    "three in a row": 5,
    "a dozen in a row": 2,
    "mention seen late": 4,
    "old mention": 2,
    "persona's mention": 6,
    "persona's broadcast": 3,
    "persona's third hop": 3,
    "persona names it in the text": 3,
    "personas ring and ring": 4,
    "/stop": 8,
    "/retry": 5,
    "/new": 2,
    "/status": 3,
    "/pause and later /resume": 4,
    "old /stop": 3,
    "/stop by a non-owner": 4,
    "/pause by a non-owner": 3,
    "/stop by a persona": 3,
    "/stop in a quote": 3,
    "/stop in a fence": 2,
    "/stop in a file": 2,
    "/stop unaddressed": 3,
}
TROUBLES = {
    "crash": 30,
    "crash soon again": 8,
    "power cut": 8,
    "TERM": 7,
    "superseded": 2,
    "laptop sleeps": 6,
    "line cut": 6,
    "history restored": 3,
    "leaves and comes back": 3,
    "disk full": 3,
    "gate refuses": 4,
    "gate refuses for a moment": 3,
    "gate cannot ask": 2,
}
FAIRLY_BAD = (
    "auth",
    "quota",
    "quota-untold",
    "config",
    "gone",
    "rate",
    "unavailable",
    "busy",
    "crash",
    "hang",
)


@dataclass(frozen=True)
class Settings:
    """How the persona and its room are set up."""

    memory: NonceMemory
    wake_from: str
    on_interrupt: OnInterrupt
    sandbox: Sandbox
    overlap: int
    has_pair: bool
    has_den: bool
    """Whether there is a conversation of the persona and a human who does not own it."""


@dataclass(frozen=True)
class Happening:
    """One thing, at its time. `what` is "say", "trouble", "weather" or "executor"; `kind` says which."""

    at_s: float
    what: str
    kind: str
    where: str = "lab"
    for_s: float = 0.0
    number: int = 0
    wait_s: float = 0.0


@dataclass(frozen=True)
class Plan:
    """All of it."""

    seed: int
    settings: Settings
    happenings: tuple[Happening, ...]
    steady: float
    """How likely a run of the executor simply answers."""


def kinds():
    """Return the name of everything that can be drawn up front."""
    return (
        *(f"say: {one}" for one in MESSAGES),
        *(f"trouble: {one}" for one in TROUBLES),
        *(f"weather: {one}" for one in WEATHERS if one != "calm"),
        *(f"executor era: {one}" for one in FAIRLY_BAD),
        *(f"executor: {one}" for one in BEHAVIOURS),
        *(f"memory: {one.value}" for one in NonceMemory),
        *(f"network: {one}" for one in _NETWORK),
    )


_NETWORK = (
    "5xx before", "answer lost", "429", "slow call", "seen late", "short page", "ring lost", "ring twice",
    "another host was quicker",
)  # fmt: skip


def plan(seed):
    """Return what happens in the world of this seed."""
    dice = random.Random(f"{seed}/plan")
    settings = _settings(dice)
    places = ["lab"] * 4 + ["pair"] * (2 * settings.has_pair) + ["den"] * settings.has_den
    span_s = dice.choice((120.0, 900.0, 3600.0))
    says = [
        Happening(
            _when(dice, span_s),
            "say",
            _weighted(dice, MESSAGES),
            dice.choice(places),
            number=dice.randrange(1000),
        )
        for _ in range(dice.randrange(2, 9))
    ]
    happenings = [*says, *_troubles(dice, span_s, says)]
    happenings += _eras(dice, span_s, settings)
    return Plan(
        seed, settings, tuple(sorted(happenings, key=lambda one: one.at_s)), dice.choice((0.2, 0.6, 0.9, 1.0))
    )


def _settings(dice):
    memory = NonceMemory.FOR_GOOD
    if dice.random() < 0.2:
        memory = dice.choice((NonceMemory.STORED, NonceMemory.BOUNDED, NonceMemory.NONE))
    return Settings(
        memory=memory,
        wake_from=dice.choice(("members", "members", "humans", "listed")),
        on_interrupt=dice.choice((OnInterrupt.RESUME, OnInterrupt.RESUME, OnInterrupt.ASK)),
        sandbox=dice.choice((Sandbox.READ_ONLY, Sandbox.WORKSPACE_WRITE)),
        overlap=dice.choice((200, 200, 20, 5)),
        has_pair=dice.random() < 0.5,
        has_den=dice.random() < 0.3,
    )


def _when(dice, span_s):
    """Draw a moment; things like to come together."""
    return round(dice.choice((dice.uniform(0, span_s), dice.uniform(0, 60), 30 + dice.uniform(0, 5))), 3)


def _troubles(dice, span_s, says):
    """Draw troubles, many of them right behind a message: that is when something is under way."""
    troubles = []
    for _ in range(dice.choice((0, 1, 1, 2, 3, 5))):
        at_s = (
            dice.choice(says).at_s + dice.choice((0.0, 0.05, 1.0, 4.0))
            if dice.random() < 0.7
            else _when(dice, span_s)
        )
        wait_s = dice.choice((0.2, 2.0, 2.0, 15.0, 700.0, 4000.0))
        troubles.append(
            Happening(
                round(at_s, 3),
                "trouble",
                _weighted(dice, TROUBLES),
                for_s=dice.choice((2.0, 30.0, 900.0)),
                number=dice.choice((dice.randrange(1, 12), dice.randrange(1, 60), dice.randrange(1, 200))),
                wait_s=wait_s,
            )
        )
    return troubles


def _eras(dice, span_s, settings):
    """Draw times of bad weather and of an executor that fails in one way."""
    weathers = [one for one in WEATHERS if one != "calm"]
    if settings.memory is not NonceMemory.FOR_GOOD:
        weathers.remove("two-hosts")  # there a second host does speak twice, and nobody promises otherwise
    eras = []
    for _ in range(dice.choice((0, 1, 1, 2))):
        for_s = dice.choice((10.0, 60.0, 700.0, 2000.0))
        eras.append(Happening(_when(dice, span_s), "weather", dice.choice(weathers), for_s=for_s))
    for _ in range(dice.choice((0, 0, 1, 1))):
        for_s = dice.choice((30.0, 700.0, 2400.0))
        eras.append(Happening(_when(dice, span_s), "executor", dice.choice(FAIRLY_BAD), for_s=for_s))
    return eras


def _weighted(dice, weights):
    return dice.choices(list(weights), list(weights.values()))[0]
