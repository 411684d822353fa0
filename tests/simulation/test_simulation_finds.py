"""The simulator finds faults: each guard of the sentinel taken away is found by a seed, and by the promise it guards.

Each mutation's own seed is tried first; where the plan has changed since, the search goes on from seed 0.
"""

import itertools

import pytest

from tests.simulation.mutations import MUTATIONS
from tests.simulation.world import simulate

_MOST = 300


@pytest.mark.parametrize("guard", MUTATIONS)
def test_a_guard_that_is_missing_is_found(guard):
    mutation = MUTATIONS[guard]

    with mutation.applied():
        found = next(
            (
                one
                for one in itertools.chain((mutation.seed,), range(_MOST))
                if _breaks(one, mutation.promises)
            ),
            None,
        )

    assert found is not None, f"no seed below {_MOST} misses the guard {guard!r}"
    assert not simulate(found).broken, "the seed is red with the guard in place, too"


def _breaks(seed, promises):
    return any(one.startswith(promises) for one in simulate(seed).broken)
