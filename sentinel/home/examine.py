"""The gate on a real home: read once, ask the far side if there is one, judge. Source: spec 02 section 2."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from sentinel.core.codec import Adapter
from sentinel.core.executor import declared, environment_of, standing_program
from sentinel.core.facts import Broken, Far, FarSilent, HomeFacts
from sentinel.core.far import Question, is_elsewhere, question
from sentinel.core.gate import Verdict, judge
from sentinel.core.walls import declared_directory
from sentinel.home.environment import PATH
from sentinel.home.executors import ADAPTERS
from sentinel.home.facts import read

NOT_ASKED = FarSilent("was not asked", is_passing=True)


def examine(
    home: Path,
    *,
    guarded: bool | None,
    instead: Mapping[str, bytes | None] | None = None,
    far: Far | None = None,
) -> Verdict:
    """Return what the gate says of `home` now. Writes nothing.

    Args:
        home: the home's directory.
        guarded: as in `judge`.
        instead: as in `read`.
        far: what is known of an executor's other side; None: ask its launcher, which may take seconds.
    """
    return examine_facts(read(home, instead=instead), guarded=guarded, far=far)


def examine_facts(facts: HomeFacts, *, guarded: bool | None, far: Far | None = None) -> Verdict:
    """Do as `examine`, of a home that was read already."""
    asked = _question(facts)
    if asked is not None:
        facts = replace(facts, far=far or _probe(asked))
    return judge(facts, ADAPTERS, guarded=guarded)


async def examine_aside(home: Path, *, guarded: bool | None) -> Verdict:
    """Do as `examine` for a turn: the event loop goes on while a launcher is asked."""
    facts = read(home)
    asked = _question(facts)
    if asked is not None:
        from sentinel.home.far_side import probe_aside

        facts = replace(facts, far=await probe_aside(asked))
    return judge(facts, ADAPTERS, guarded=guarded)


def _probe(asked: Question) -> Far:
    from sentinel.home.far_side import (
        probe,
    )  # only where there is a far side: most gates never start a process

    return probe(asked)


def _question(facts: HomeFacts) -> Question | None:
    """Return what must be asked before the gate can judge; None where nothing must, or no sound launcher is there to ask."""
    try:
        adapter = declared(facts, ADAPTERS)
        if not adapter.needs_binary or not is_elsewhere(facts, adapter):
            return None
        launcher = standing_program(facts, adapter)
        path = environment_of(facts, adapter).get("PATH")
    except Broken:
        return None  # the gate will say it
    return question(launcher, _directory(facts, adapter), adapter.name, path.reveal() if path else PATH)


def _directory(facts: HomeFacts, adapter: Adapter) -> str:
    try:
        return declared_directory(facts, f"{adapter.name}_cwd")
    except Broken:
        return "/"  # check 6 will say it; who the launcher runs as can be asked all the same
