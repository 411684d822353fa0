"""One real server process for this folder's tests; each test makes its own accounts and rooms in it."""

import pytest
from hoop_house import House, HouseProcess

_LOOSE = ("--reads-per-s", "100000", "--posts-per-s", "100000", "--burst", "100000")


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    running = HouseProcess(tmp_path_factory.mktemp("hoop") / "data", *_LOOSE)
    yield running
    assert running.stop() == 0, running.errors.read_text()
    assert "Traceback" not in running.errors.read_text()


@pytest.fixture
async def house(server):
    house = House(server.url, server.data)
    yield house
    await house.leave()


@pytest.fixture
def data(tmp_path):
    return tmp_path / "data"
