"""Writing into a home, the record of a refusal, names and places, the child's environment."""

import json
import os
import stat
from datetime import UTC, datetime

import pytest

from sentinel.core.errors import UsageError
from sentinel.core.gate import Passed
from sentinel.home import refusal
from sentinel.home.environment import PATH, child_environment
from sentinel.home.examine import examine
from sentinel.home.locate import find, home_of_new, hoop_home
from sentinel.home.write import put, put_value
from tests.fakes.persona_homes import TOKEN, make_home

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture
def home(tmp_path, monkeypatch):
    made = make_home(tmp_path)
    monkeypatch.setenv("HOOP_HOME", str(made.folder))
    return made


def test_a_file_is_private_whatever_the_umask(tmp_path):
    old = os.umask(0)
    try:
        put_value(tmp_path, "model", "m-1")
    finally:
        os.umask(old)

    assert stat.S_IMODE((tmp_path / "model").stat().st_mode) == 0o600
    assert (tmp_path / "model").read_text() == "m-1\n"


def test_a_write_that_fails_leaves_the_old_content_and_nothing_else(tmp_path, monkeypatch):
    put(tmp_path, "model", b"old")

    def full(_fd):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("sentinel.home.write.os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        put(tmp_path, "model", b"new")

    assert [one.name for one in tmp_path.iterdir()] == ["model"]
    assert (tmp_path / "model").read_bytes() == b"old"


def test_a_link_is_replaced_and_never_written_through(tmp_path):
    (tmp_path / "victim").write_text("untouched")
    (tmp_path / "model").symlink_to("victim")

    put(tmp_path, "model", b"new")

    assert (tmp_path / "victim").read_text() == "untouched"
    assert not (tmp_path / "model").is_symlink()


def test_a_refusal_is_kept_and_goes_with_the_next_yes(home):
    home.write("model", "")
    refusal.keep(home.path, examine(home.path, guarded=None), now=NOW)

    kept = json.loads((home.path / "refusal.json").read_text())
    assert kept["at"] == "2026-01-02T03:04:05+00:00"
    assert [one["check"] for one in kept["checks"]] == ["model"]
    assert stat.S_IMODE((home.path / "refusal.json").stat().st_mode) == 0o600

    home.write("model", "m-1")
    refusal.keep(home.path, examine(home.path, guarded=None), now=NOW)
    assert not (home.path / "refusal.json").exists()


def test_a_refusal_is_kept_only_where_the_home_itself_is_in_order(home):
    home.write("model", "")
    home.path.chmod(0o770)

    refusal.keep(home.path, examine(home.path, guarded=None), now=NOW)

    assert not (home.path / "refusal.json").exists()


def test_homes_are_where_hoop_home_says(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("HOOP_HOME", raising=False)
    assert hoop_home() == tmp_path / ".hoop"

    monkeypatch.setenv("HOOP_HOME", str(tmp_path / "other"))
    assert find("gode") == tmp_path / "other" / "gode"


def test_a_slash_makes_a_path_of_a_name(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOOP_HOME", str(tmp_path / "hoop"))
    (tmp_path / "gode").mkdir()

    assert find("gode") == tmp_path / "hoop" / "gode"
    assert find("./gode") == tmp_path / "gode"
    assert find(str(tmp_path / "gode")) == tmp_path / "gode"


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", ".hidden", "-x", "a b", "x" * 65, "all", "hoop", "limb", "é\n"]
)
def test_a_name_that_would_lead_astray_is_refused(name):
    with pytest.raises(UsageError):
        home_of_new(name)


def test_the_child_gets_the_allow_list_and_its_own_env_only(home, monkeypatch, tmp_path):
    home.write("codex_env", "API_KEY=k\nHOME=/srv/other\n")
    monkeypatch.setenv("HOOP_TOKEN", TOKEN)
    monkeypatch.setenv("LD_PRELOAD_X", "1")
    monkeypatch.setenv("TZ", "UTC")
    verdict = examine(home.path, guarded=None)
    assert isinstance(verdict, Passed)

    environment = child_environment(verdict.persona, tmp_path / "turn")

    assert set(environment) == {"PATH", "HOME", "USER", "LANG", "TZ", "TMPDIR", "API_KEY"}
    assert environment["PATH"] == PATH
    assert environment["HOME"] == "/srv/other"
    assert environment["TMPDIR"] == str(tmp_path / "turn")
    assert TOKEN not in str(environment)
