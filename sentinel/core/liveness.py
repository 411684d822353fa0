"""Decide whether the loops that do the work still get on. Pure.

A step is what a loop is at: taking a turn, delivering, reading a conversation. It counts from the moment it began, or last
got on. Whoever has nothing to do is rung and goes round once, so an old step is a loop that hangs, never one that is idle.
Source: spec 06 "Services" (a watchdog fed by the loop that does the work).
"""

from collections.abc import Mapping

FEEDS_PER_PERIOD = 3
"""How often the watchdog is fed within its period: one late feed is no death."""

PERIODS_PER_STEP = 3.0
"""A step may take this many periods: three of 180 s are more than the longest call of a room (a transfer, 300 s)."""


def feed_every_s(period_s: float) -> float:
    """Return the seconds between two feeds of a watchdog that bites after `period_s`."""
    return period_s / FEEDS_PER_PERIOD


def step_limit_s(period_s: float) -> float:
    """Return how many seconds a step may take without getting on."""
    return period_s * PERIODS_PER_STEP


def hung(steps: Mapping[str, float], *, now_s: float, limit_s: float) -> tuple[str, ...]:
    """Return the steps that did not get on for longer than `limit_s`, sorted.

    `steps`: name -> when it began or last got on, in seconds of the same monotonic clock as `now_s`.
    """
    return tuple(sorted(name for name, since_s in steps.items() if now_s - since_s > limit_s))
