"""`runbooks/obituary.md` knows every failure class, and says of it what the code decides."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sentinel.cli.main import VERBS
from sentinel.core.commands import CommandKind
from sentinel.core.obituary import Counted, Dead, EndsVisibly, Hold, Outage, Quiet, RetryInNewThread, judge
from sentinel.core.outcome import Failure, FailureClass
from sentinel.core.persona import Limits

RUNBOOKS = Path(__file__).parents[2] / "runbooks"
RUNBOOK = (RUNBOOKS / "obituary.md").read_text(encoding="utf-8")
ROWS = {
    cells[0].strip("`"): cells[1:]
    for line in RUNBOOK.splitlines()
    if line.startswith("| `")
    for cells in [[cell.strip() for cell in line.strip("|").split("|")]]
}
SAID_OF = {
    Dead: "dead",
    Hold: "waits",
    Outage: "counts nobody",
    Counted: "tries again",
    RetryInNewThread: "new thread",
    EndsVisibly: "tells the owners",
    Quiet: "",
}


def test_the_rows_are_the_failure_classes():
    assert set(ROWS) == {kind.value for kind in FailureClass}


@pytest.mark.parametrize("kind", FailureClass)
def test_each_row_says_what_the_persona_does_and_what_a_human_can_do(kind):
    verdict = judge(
        Failure(kind, "evidence"),
        failures_before=0,
        rates_before=0,
        thread_failures=0,
        now=datetime(2026, 11, 30, tzinfo=UTC),
        limits=Limits(),
    )

    meaning, does, cure = ROWS[kind.value]

    assert meaning
    assert cure
    assert SAID_OF[type(verdict)] in does
    assert ("dead" in does) == (isinstance(verdict, Dead | Hold))


def test_it_tells_the_true_numbers():
    limits = Limits()

    assert limits.fail_notice_after == 3
    assert "fails three times" in RUNBOOK
    assert limits.park_after == 12
    assert "After twelve" in RUNBOOK
    assert limits.outage_notice_s == 600
    assert "after 10 minutes" in RUNBOOK


@pytest.mark.parametrize("name", ["woke-not.md", "obituary.md"])
def test_commands_and_settings_in_it_exist(name):
    page = (RUNBOOKS / name).read_text(encoding="utf-8")

    assert set(re.findall(r"(?:`|    )sentinel ([a-z]+)", page)) <= set(VERBS)
    assert set(re.findall(r"`/([a-z]+)", page)) <= {kind.value for kind in CommandKind}
    assert set(re.findall(r"`(\w+)` in `limits\.toml`", page)) <= Limits.names()
    for link in re.findall(r"\]\((\w[\w.-]*\.md)", page):
        assert (RUNBOOKS / link).is_file()
