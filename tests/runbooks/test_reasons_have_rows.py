"""`runbooks/woke-not.md` knows every reason word, and says what the code says."""

import re
from pathlib import Path

import pytest

from sentinel.core.persona import Limits
from sentinel.core.triage import Reason, explain

RUNBOOK = (Path(__file__).parents[2] / "runbooks" / "woke-not.md").read_text(encoding="utf-8")
SECTION = RUNBOOK.split("## The reason words")[1].split("\n## ")[0]
ROWS = {
    cells[0].strip("`"): (cells[1], cells[2])
    for line in SECTION.splitlines()
    if line.startswith("| `")
    for cells in [[cell.strip() for cell in line.strip("|").split("|")]]
}


@pytest.mark.parametrize("reason", Reason)
def test_each_reason_has_its_row_in_the_words_of_sentinel_why(reason):
    assert ROWS[reason.value] == explain(reason)


def test_no_row_is_about_a_reason_that_does_not_exist():
    assert set(ROWS) == {reason.value for reason in Reason}


def test_the_numbers_it_names_are_keys_of_limits_toml():
    named = set(re.findall(r"`(\w+_(?:s|limit|turns))`", RUNBOOK))

    assert named
    assert named <= Limits.names()
