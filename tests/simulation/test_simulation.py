"""The simulator in small: some seeds of every run, the same bytes for the same seed, and executors that are what they say.

The ten thousand seeds are `make simulate`; see docs/simulation.md.
"""

import os
import subprocess
import sys
from datetime import UTC, datetime

import pytest

from adapters.codex import CodexCodec
from sentinel.core.classify import failure
from sentinel.core.codec import EndedBy, ExitStatus, Sandbox, TurnRequest
from sentinel.core.outcome import Answer, FailureClass
from tests.simulation.executor import ANSWER, BEHAVIOURS, COUNTED, DEATH, LEAK, OUTAGE, RATE, RENEWED
from tests.simulation.executor import encoded as line_of
from tests.simulation.plan import kinds, plan
from tests.simulation.world import simulate

SEEDS = 60
BLOCKS = 4
NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize("block", range(BLOCKS))
def test_no_promise_is_broken(block):
    """Nothing lost, nothing said twice, no false death: after any crash, in any weather."""
    size = SEEDS // BLOCKS

    outcomes = [simulate(seed) for seed in range(block * size, (block + 1) * size)]

    broken = {one.seed: one.broken for one in outcomes if one.broken}
    assert not broken, f"replay with `make simulate SEED={min(broken)}`: {broken}"


def test_the_same_seed_is_the_same_world_in_every_process():
    """A failing seed is worth something only when everybody sees it fail."""
    program = (
        "import hashlib\nfrom tests.simulation.world import simulate\n"
        "for seed in range(8):\n"
        "    print(hashlib.sha256(simulate(seed).trace.text().encode()).hexdigest())\n"
    )

    def traces(hash_seed):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(
            [sys.executable, "-c", program],
            env=environment,
            capture_output=True,
            text=True,
            timeout=50,
            check=True,
        )
        return done.stdout.split()

    first, second = traces("1"), traces("2")

    assert len(set(first)) == 8
    assert first == second


def test_a_seed_says_what_happens_before_it_happens():
    assert plan(5) == plan(5)
    assert plan(5) != plan(6)
    assert len(set(kinds())) == len(kinds())


@pytest.mark.parametrize("name", [name for name, one in BEHAVIOURS.items() if not one.refuses_to_start])
def test_an_executor_is_what_the_oracle_takes_it_for(name):
    """The real codec gives each behaviour the class that its truth says: else the oracle would judge by a wrong measure."""
    behaviour = BEHAVIOURS[name]
    codec = CodexCodec(
        TurnRequest("codex", "m", "/", Sandbox.READ_ONLY, network=False, prompt="", triggers=())
    )
    began = (
        ({"type": "thread.started", "thread_id": "t"}, {"type": "turn.started"})
        if not behaviour.stderr
        else ()
    )
    for line in (*began, *behaviour.lines):
        codec.receive(line_of(line))
    ended_by = EndedBy.SILENCE if behaviour.hangs else EndedBy.ITSELF

    outcome = codec.outcome(ExitStatus(behaviour.code, ended_by), stderr=behaviour.stderr, now=NOW)

    assert _truth(outcome) == (behaviour.truth if behaviour.truth != LEAK else ANSWER)
    if behaviour.cause:
        assert outcome.kind.value == behaviour.cause or behaviour.truth == OUTAGE


def _truth(outcome):
    if isinstance(outcome, Answer):
        return ANSWER
    match outcome.kind:
        case FailureClass.AUTH | FailureClass.QUOTA | FailureClass.CONFIG | FailureClass.MISSING:
            return DEATH
        case FailureClass.UNAVAILABLE | FailureClass.BUSY:
            return OUTAGE
        case FailureClass.RATE:
            return RATE
        case FailureClass.THREAD_LOST | FailureClass.CONTEXT_FULL:
            return RENEWED
        case _:
            return COUNTED


def test_a_told_wait_is_read():
    assert (
        failure(FailureClass.QUOTA, BEHAVIOURS["quota"].lines[0]["error"]["message"], now=NOW).retry_at
        is not None
    )
