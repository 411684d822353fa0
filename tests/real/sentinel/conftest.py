"""The house, one per module and kind of executor (see `real_house.py`)."""

import pytest

from tests.real.executors.real_world import loopback_only
from tests.real.sentinel.real_house import House


@pytest.fixture(scope="module", autouse=True)
def _loopback_only():
    with loopback_only():
        yield


@pytest.fixture(scope="module", params=["codex", "claude"])
def house(request, _loopback_only):
    """Return a whole house that runs; nothing of it ever starts an executor from PATH."""
    house = House(request.param)
    try:
        house.open()
        yield house
        assert house.planted.runs == 0
    finally:
        house.close()
