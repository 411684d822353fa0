"""docs/persona-home.md says what the code does: every file, every limit, every wall, in the code's own words."""

import shlex
from pathlib import Path

from sentinel.core.facts import ADAPTER_FILES, SETTING_FILES
from sentinel.core.persona import Limits
from sentinel.core.settings import BOUNDS, REFUSED_KEYS, REFUSED_PREFIXES
from sentinel.home.environment import PATH
from sentinel.home.executors import ADAPTERS

DOC = (Path(__file__).parents[2] / "docs" / "persona-home.md").read_text()


def limit_rows():
    return [
        f"| `{name}` | {getattr(Limits(), name):.12g} | {low:.12g} | {high:.12g} |"
        for name, (low, high) in BOUNDS.items()
    ]


def wall_rows():
    return [
        f"| {word} | {wall} | {'on' if network else 'off'} | {f'`{shlex.join(flags)}`' if flags else 'none needed'} |"
        for word, adapter in ADAPTERS.items()
        for (wall, network), flags in adapter.walls.items()
    ]


def rows_under(heading):
    """Return the body rows of the table under a heading."""
    section = DOC.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    table = [line for line in section.splitlines() if line.startswith("|")]
    return table[2:]


def test_every_file_has_its_row_and_no_other():
    named = [row.split("`")[1] for row in rows_under("Files")]

    assert sorted(named) == sorted([*SETTING_FILES, *(f"<adapter>_{one}" for one in ADAPTER_FILES)])


def test_every_limit_stands_there_with_its_default_and_bounds():
    assert set(BOUNDS) == Limits.names()
    assert rows_under("limits.toml") == limit_rows()


def test_every_pair_of_walls_stands_there_with_its_exact_flags():
    assert rows_under("Walls that can be enforced") == wall_rows()


def test_the_environment_is_described_as_it_is():
    assert f"`{PATH}`" in DOC
    assert all(f"`{key}`" in DOC for key in REFUSED_KEYS)
    assert all(f"`{prefix}*`" in DOC for prefix in REFUSED_PREFIXES)


def test_the_walls_that_the_spec_names_are_there_and_the_impossible_ones_are_not():
    """Spec 02 section 2, check 6."""
    pairs = {
        (word, str(wall), network) for word, adapter in ADAPTERS.items() for wall, network in adapter.walls
    }

    assert pairs >= {
        *(
            ("echo", wall, net)
            for wall in ("read-only", "workspace-write", "danger-full-access")
            for net in (False, True)
        ),
        ("codex", "read-only", False),
        ("codex", "workspace-write", False),
        ("codex", "workspace-write", True),
        ("codex", "danger-full-access", True),
        ("claude", "read-only", False),
        ("claude", "read-only", True),
        ("claude", "danger-full-access", True),
    }
    assert ("codex", "read-only", True) not in pairs
    assert not {("codex", "danger-full-access", False), ("claude", "danger-full-access", False)} & pairs
