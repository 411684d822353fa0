"""A far side of the test's own."""

import pytest

from tests.launcher.far_program import Far


@pytest.fixture
def far(tmp_path):
    made = Far(tmp_path)
    yield made
    made.end()
