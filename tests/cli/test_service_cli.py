"""`sentinel service`, with stand-ins for `systemctl` and `launchctl` that really start what is installed."""

import json
import os
import plistlib
import stat
import sys

import pytest

from sentinel.home import shim
from tests.fakes import supervisor
from tests.fakes.persona_homes import make_home
from tests.fakes.town import Town, until

KINDS = ["launchd", "systemd"]


@pytest.fixture(scope="module")
def town(tmp_path_factory):
    town = Town(tmp_path_factory.mktemp("town"))
    yield town
    town.close()


def plant(root):
    """Put the stand-ins on a PATH of their own; return that."""
    folder = root / "managers"
    folder.mkdir(exist_ok=True)
    for name in ("systemctl", "launchctl"):
        program = folder / name
        words = f"'{sys.executable}' '{supervisor.__file__}' {name} '{root / 'kept'}'"
        program.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        program.chmod(0o755)
    return f"{folder}:/usr/bin:/bin"


@pytest.fixture
def place(town, monkeypatch):
    """A persona whose commands reach the stand-in managers; whatever was installed is taken away again."""
    place = town.place()
    shim.write(place.home, sys.executable)
    path = plant(place.root)
    monkeypatch.setattr(
        type(place),
        "environment",
        property(lambda one: {**_plain(one), "PATH": path, "PYTHONPATH": os.getcwd()}),
    )
    yield place
    for kind in KINDS:
        if units_of(place, kind):
            plant(place.root)
            service(place, "uninstall", kind)
    place.close()


def _plain(place):
    return {
        "HOME": str(place.root),
        "HOOP_HOME": str(place.home.parent),
        "XDG_STATE_HOME": str(place.root / "state"),
        "LANG": "C.UTF-8",
    }


def units_of(place, kind):
    folder = "Library/LaunchAgents" if kind == "launchd" else ".config/systemd/user"
    folder = place.root / folder
    return sorted(folder.glob("com.hoop.gode*")) if folder.exists() else []


def service(place, verb, kind, *more, code=0):
    done = place.verb("service", verb, "gode", "--manager", kind, *more)
    assert done.returncode == code, (done.stdout, done.stderr)
    return done.stdout.decode() + done.stderr.decode()


def told(place, kind):
    return json.loads(service(place, "status", kind, "--json"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_service_lives_from_install_to_uninstall(place, kind):
    service(place, "install", kind, "--cid", place.cid)
    first = until(lambda: told(place, kind)["pid"], "the sentinel")
    place.until_answered(place.ask())
    assert "runs already" in service(place, "install", kind, "--cid", place.cid)
    assert told(place, kind)["pid"] == first

    service(place, "restart", kind)
    second = until(lambda: told(place, kind)["pid"], "the next sentinel")
    assert second != first
    place.until_answered(place.ask("again"))

    assert "uninstalled" in service(place, "uninstall", kind)
    assert units_of(place, kind) == []
    assert told(place, kind) | {"files": []} == {
        "name": "gode",
        "manager": kind,
        "installed": False,
        "loaded": False,
        "running": False,
        "detail": "not loaded" if kind == "launchd" else "inactive (dead)",
        "pid": None,
        "last_exit": None,
        "refused": [],
        "files": [],
    }
    assert not os.path.exists(f"/proc/{second}")
    assert "there was no service" in service(place, "uninstall", kind)


@pytest.mark.parametrize("kind", KINDS)
def test_print_writes_the_unit_and_changes_nothing(place, kind):
    said = service(place, "install", kind, "--cid", place.cid, "--print")

    assert units_of(place, kind) == []
    assert not (place.root / "kept").exists()
    assert not (place.home / "log").exists()
    if kind == "launchd":
        assert plistlib.loads(said.encode())["ProgramArguments"][3:] == [place.cid]
    else:
        assert "\n[Service]\nType=notify\n" in said
        assert said.count("\n[Service]\n") == 1  # the second unit stands in comments
        assert "# ExecStart=sleep 60" in said


@pytest.mark.parametrize("kind", KINDS)
def test_print_as_json_holds_each_file_whole(place, kind):
    files = json.loads(service(place, "install", kind, "--print", "--json"))

    assert len(files) == (1 if kind == "launchd" else 2)
    assert all(one["path"].startswith(str(place.root)) and one["content"] for one in files)
    assert "all" in files[0]["content"]  # without --cid: every conversation of the account


@pytest.mark.parametrize("more", [(), ("--print",)])
@pytest.mark.parametrize("kind", KINDS)
def test_a_refused_home_is_78_and_nothing_is_written(place, kind, more):
    place.write("model", "")

    said = service(place, "install", kind, *more, code=78)

    assert "gate: model: " in said
    assert units_of(place, kind) == []
    assert not (place.root / "kept").exists()


def test_a_home_without_its_shim_is_refused(place):
    (place.home / "launch").unlink()

    assert "sentinel persona set gode launch" in service(place, "install", "systemd", code=78)


def test_a_refused_restart_leaves_the_running_one_alone(place):
    service(place, "install", "launchd")
    pid = until(lambda: told(place, "launchd")["pid"], "the sentinel")
    place.write("model", "")

    service(place, "restart", "launchd", code=78)

    assert told(place, "launchd")["pid"] == pid


def test_what_is_not_installed_is_not_restarted(place):
    assert "service install gode" in service(place, "restart", "launchd", code=78)


@pytest.mark.parametrize("kind", KINDS)
def test_no_second_copy_beside_a_sentinel_that_somebody_runs(place, kind):
    place.start()
    place.until_answered(place.ask())

    said = service(place, "install", kind, code=75)

    assert "runs already" in said
    assert units_of(place, kind) == []


@pytest.mark.parametrize("kind", KINDS)
def test_files_are_private_and_the_log_folder_is_there_first(place, kind):
    service(place, "install", kind)

    assert {stat.S_IMODE(one.stat().st_mode) for one in units_of(place, kind)} == {0o600}
    assert (place.home / "log").is_dir()


def test_another_set_of_conversations_takes_effect_at_once(place):
    service(place, "install", "systemd")
    pid = until(lambda: told(place, "systemd")["pid"], "the sentinel")

    service(place, "install", "systemd", "--cid", place.cid)

    assert until(lambda: told(place, "systemd")["pid"], "the next one") != pid


def test_status_says_why_it_was_refused(place):
    service(place, "install", "launchd")
    until(lambda: told(place, "launchd")["pid"], "the sentinel")
    place.write("model", "")
    os.kill(told(place, "launchd")["pid"], 9)

    refused = until(lambda: told(place, "launchd")["refused"], "the refusal")

    assert refused[0].startswith("model: ")
    assert "last refused: model: " in service(place, "status", "launchd")


@pytest.mark.parametrize("word", ["limb", "hoop"])
@pytest.mark.parametrize("verb", ["install", "uninstall", "restart", "status"])
def test_words_that_have_no_unit_yet_say_so(place, word, verb):
    done = place.verb("service", verb, word)

    assert done.returncode == 64
    assert b"has no service unit in this build" in done.stderr


def test_a_manager_that_does_not_exist_is_a_usage_error(place):
    assert place.verb("service", "status", "gode", "--manager", "upstart").returncode == 64


@pytest.mark.parametrize("kind", KINDS)
def test_a_manager_that_cannot_be_asked_is_unavailable(place, kind, monkeypatch):
    (place.root / "managers" / "systemctl").write_text("#!/bin/sh\necho no bus >&2; exit 1\n")
    (place.root / "managers" / "launchctl").write_text("#!/bin/sh\necho no bus >&2; exit 1\n")

    said = service(place, "install", kind, code=69)

    assert "no bus" in said
    assert units_of(place, kind) == []


@pytest.mark.parametrize(
    ("name", "code"),
    [("a\nb", 78), ("a & \"b\" 'c'", 0), ("小明", 0), ("$HOME %h \\", 0), ("two  spaces", 0)],
)
@pytest.mark.parametrize("kind", KINDS)
def test_any_home_gives_a_valid_unit_or_a_clear_refusal(tmp_path, monkeypatch, name, code, kind):
    from sentinel.cli import main

    home = make_home(tmp_path, adapter="echo", name=name)
    shim.write(home.path, sys.executable)

    said = main.run(["service", "install", str(home.path), "--manager", kind, "--print"])

    assert said == code


def test_plutil_has_a_say_where_it_exists(place):
    lint = place.root / "managers" / "plutil"
    lint.write_text('#!/bin/sh\necho "$2: nonsense"; exit 1\n')
    lint.chmod(0o755)

    said = service(place, "install", "launchd", code=78)

    assert "plutil refuses" in said
    assert "nonsense" in said
