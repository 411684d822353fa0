"""The world of two users, made once a module."""

import pytest

from tests.real.walls.walls_world import world


@pytest.fixture(scope="module")
def walls():
    """Two users, sudo and sshd; absent rights are a failure, not a skip."""
    with world() as made:
        yield made
