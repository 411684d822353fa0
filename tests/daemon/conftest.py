"""A whole sentinel on a stepped clock."""

import pytest

from tests.fakes.stage import Stage, never_adopt


@pytest.fixture
def stage(tmp_path, monkeypatch):
    never_adopt(monkeypatch)
    return Stage(tmp_path)


@pytest.fixture
def make_stage(tmp_path, monkeypatch):
    never_adopt(monkeypatch)
    return lambda **more: Stage(tmp_path, **more)
