"""One server process for this folder."""

import pytest

from sentinel.home import shim
from tests.fakes.town import Town


@pytest.fixture(scope="module")
def town(tmp_path_factory):
    town = Town(tmp_path_factory.mktemp("town"))
    yield town
    town.close()


@pytest.fixture
def place(town):
    """A room, a persona with its shim, and nothing that runs."""
    import sys

    place = town.place()
    shim.write(place.home, sys.executable)
    yield place
    place.close()
