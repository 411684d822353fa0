"""`sentinel persona …`: homes made, taken over, changed, shown, moved and removed; bad input changes nothing."""

import io
import json
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import tarfile
from contextlib import suppress
from types import SimpleNamespace

import pytest

from sentinel.cli.main import run
from sentinel.home import templates
from tests.fakes.persona_homes import TASK, TOKEN, make_home


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A HOOP_HOME that does not exist yet, a token file, an executor and its directory."""
    made = make_home(tmp_path / "other")
    (tmp_path / "tok").write_text(f"{TOKEN}\n")
    (tmp_path / "tok").chmod(0o600)
    monkeypatch.setenv("HOOP_HOME", str(tmp_path / "hoop"))
    return tmp_path, made


@pytest.fixture
def home(tmp_path, monkeypatch):
    made = make_home(tmp_path)
    monkeypatch.setenv("HOOP_HOME", str(made.folder))
    return made


def new(place, *more, name="gode", without=(), **changed):
    base, made = place
    flags = {
        "server": "http://127.0.0.1:9",
        "account": "Gode",
        "token-file": str(base / "tok"),
        "adapter": "codex",
        "model": "m-1",
        "bin": str(made.binary),
        "cwd": str(made.cwd),
        "sandbox": "read-only",
        "network": "off",
    } | changed
    told = [word for flag, value in flags.items() if flag not in without for word in (f"--{flag}", value)]
    return run(["persona", "new", name, *told, *more])


def everything(folder):
    return {
        str(one.relative_to(folder)): one.read_bytes() if one.is_file() else None for one in folder.rglob("*")
    }


# --- new


def test_a_new_home_passes_the_gate(place, capsys):
    assert new(place, "--owner", "u1", "--owner", "u2") == 0

    home = place[0] / "hoop" / "gode"
    assert capsys.readouterr().out.count("ok: ") == 7
    assert run(["check", "gode"]) == 0
    assert (home / "token").read_text() == f"{TOKEN}\n"
    assert (home / "owners").read_text().split() == ["u1", "u2"]
    assert (home / "task.md").read_text().strip()
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert {stat.S_IMODE(one.stat().st_mode) for one in home.iterdir() if one.name != "launch"} == {0o600}


def test_the_echo_needs_no_binary(place):
    assert new(place, without=("bin", "cwd", "sandbox", "network"), adapter="echo", model="echo") == 0
    assert run(["check", "gode"]) == 0


@pytest.mark.parametrize(
    "changed",
    [
        {"bin": "codex"},
        {"bin": "/nowhere/codex"},
        {"cwd": "/nowhere"},
        {"cwd": "/"},
        {"sandbox": "open"},
        {"sandbox": "danger-full-access"},
        {"network": "on"},
        {"model": "two words"},
        {"server": "nowhere"},
        {"account": ""},
        {"user": "somebody-else"},
        {"owner": "a/b"},
    ],
    ids=lambda changed: "-".join(
        f"{key}={value or 'empty'}".replace("/", "_") for key, value in changed.items()
    ),
)
def test_what_the_gate_would_refuse_is_not_made(place, changed, capsys):
    assert new(place, **changed) == 78

    assert not (place[0] / "hoop").exists()
    said = capsys.readouterr().err
    assert "gate: " in said
    assert ".new" not in said


@pytest.mark.parametrize("flag", ["server", "account", "token-file", "adapter", "model"])
def test_a_missing_flag_is_64_and_named(place, flag, capsys):
    assert new(place, without=(flag,)) == 64

    assert f"--{flag}" in capsys.readouterr().err
    assert not (place[0] / "hoop").exists()


@pytest.mark.parametrize("flag", ["bin", "cwd", "sandbox", "network"])
def test_a_missing_wall_is_78_never_a_default(place, flag):
    assert new(place, without=(flag,)) == 78
    assert not (place[0] / "hoop").exists()


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"adapter": "cursor"}, "gode"),
        ({"token-file": "/nowhere"}, "gode"),
        ({"token-file": "/"}, "gode"),
        ({"from": "nothing"}, "gode"),
        ({"from": "../personas"}, "gode"),
        ({"task": "/nowhere"}, "gode"),
        ({"model": "\udcff"}, "gode"),
        ({}, "../gode"),
        ({}, "all"),
        ({}, ".x"),
    ],
    ids=[
        "adapter",
        "token",
        "token-folder",
        "template",
        "template-path",
        "task",
        "bytes",
        "path",
        "all",
        "hidden",
    ],
)
def test_bad_input_is_64_and_changes_nothing(place, changed, name, capsys):
    assert new(place, name=name, **changed) == 64

    assert capsys.readouterr().err.startswith("sentinel: ")
    assert not (place[0] / "hoop").exists()


def test_an_existing_home_is_not_overwritten(place, capsys):
    assert new(place) == 0
    before = everything(place[0] / "hoop")

    assert new(place, model="m-2") == 64

    assert everything(place[0] / "hoop") == before
    assert "not overwritten" in capsys.readouterr().err


def test_a_token_file_that_others_can_read_is_told(place, capsys):
    (place[0] / "tok").chmod(0o644)

    assert new(place) == 0
    assert "warning: other users" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["gode", "godemini01", "claude-core", "claude-sandboxed"])
def test_each_template_makes_a_home_that_passes(place, name):
    assert name in templates.names()

    code = new(place, "--from", name, without=("adapter", "sandbox", "network"))

    assert code == 0
    assert (place[0] / "hoop" / "gode" / "task.md").read_bytes() == templates.load(name)["task.md"]


def test_a_template_leaves_out_what_is_another_adapters(place):
    assert new(place, "--from", "gode", adapter="claude") == 0

    assert not list((place[0] / "hoop" / "gode").glob("codex_*"))


def test_a_task_of_ones_own_is_taken(place):
    (place[0] / "mine.md").write_text(TASK)

    assert new(place, "--task", str(place[0] / "mine.md")) == 0
    assert (place[0] / "hoop" / "gode" / "task.md").read_text() == TASK


def test_ctrl_c_in_the_middle_leaves_nothing(place, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("sentinel.home.build.shim.write", interrupted)

    with suppress(KeyboardInterrupt):
        assert new(place) != 0

    assert not (place[0] / "hoop").exists()


# --- set


def test_set_changes_one_file(home):
    assert run(["persona", "set", "gode", "model", "m-2"]) == 0
    assert (home.path / "model").read_text() == "m-2\n"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["model", "two words"], 78),
        (["codex_bin", "codex"], 78),
        (["codex_network", "on"], 78),
        (["adapter", "claude"], 78),
        (["task.md", "I am m-1"], 78),
        (["model", "--unset"], 78),
        (["state.db", "x"], 64),
        (["../x", "x"], 64),
        (["model"], 64),
        (["model", "m-2", "--unset"], 64),
        (["token", "secret"], 64),
        (["codex_env", "A=1"], 64),
        (["model", "--from-file", "/nowhere"], 64),
    ],
    ids=lambda one: "-".join(one).replace("/", "_").replace(" ", "_") if isinstance(one, list) else None,
)
def test_what_set_refuses_changes_nothing(home, arguments, code, capsys):
    before = everything(home.path)

    assert run(["persona", "set", "gode", *arguments]) == code

    assert everything(home.path) == before
    assert capsys.readouterr().err


def test_a_broken_home_is_mended_file_by_file(home):
    home.remove("model")
    home.write("codex_sandbox", "odd")

    assert run(["persona", "set", "gode", "codex_sandbox", "read-only"]) == 0
    assert run(["check", "gode"]) == 78
    assert run(["persona", "set", "gode", "model", "m-2"]) == 0
    assert run(["check", "gode"]) == 0


def test_another_mistake_in_a_broken_file_is_still_refused(home):
    home.remove("codex_bin")

    assert run(["persona", "set", "gode", "codex_bin", "relative"]) == 78
    assert not (home.path / "codex_bin").exists()


def test_a_secret_comes_from_a_file(home, tmp_path):
    (tmp_path / "fresh").write_text("tok-fresh\n")

    assert run(["persona", "set", "gode", "token", "--from-file", str(tmp_path / "fresh")]) == 0
    assert (home.path / "token").read_text() == "tok-fresh\n"
    assert stat.S_IMODE((home.path / "token").stat().st_mode) == 0o600


def test_set_launch_writes_the_shim_again(home):
    assert run(["persona", "set", "gode", "launch"]) == 0
    assert sys.executable in (home.path / "launch").read_text()


def test_set_in_a_home_that_is_not_there_is_refused(home, capsys):
    assert run(["persona", "set", "nobody", "model", "m-2"]) == 64
    assert not (home.folder / "nobody").exists()


# --- show, list, remove


def test_show_tells_value_and_file_and_hides_secrets(home, capsys):
    home.write("codex_env", "API_KEY=abcdefgh\n")
    home.write("last_run.json", json.dumps({"argv": ["codex", "-m", "m-1"]}))
    home.write("stray", "x")

    assert run(["persona", "show", "gode", "--json"]) == 0

    out = capsys.readouterr().out
    shown = json.loads(out)
    values = {one["file"]: (one["value"], one["path"]) for one in shown["settings"]}
    assert values["model"] == ("m-1", str(home.path / "model"))
    assert values["wake_from"] == ("humans", None)
    assert values["codex_env"][0] == "API_KEY=***"
    assert shown["last_run"] == {"argv": ["codex", "-m", "m-1"]}
    assert shown["unknown"] == ["stray"]
    assert TOKEN not in out
    assert "abcdefgh" not in out


def test_show_works_on_a_broken_home(home, capsys):
    home.write("model", "a\nb\n")
    home.remove("server")
    home.write("last_run.json", "{")

    assert run(["persona", "show", "gode"]) == 0
    assert "model = (refused: model holds more than one line)" in capsys.readouterr().out


def test_list_tells_which_may_run(home, capsys):
    make_home(home.folder.parent, name="mini", adapter="echo")
    home.remove("model")
    (home.folder / ".gode.1234.new").mkdir()
    (home.folder / "not-a-home").mkdir()

    assert run(["persona", "list", "--json"]) == 0

    rows = json.loads(capsys.readouterr().out)
    assert [(row["name"], row["ok"], row["failed"]) for row in rows] == [
        ("gode", False, ["model"]),
        ("mini", True, []),
    ]


def test_list_of_no_homes_is_an_empty_list(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HOOP_HOME", str(tmp_path / "none"))

    assert run(["persona", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []


def test_remove_wants_a_yes(home, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))

    assert run(["persona", "remove", "gode"]) == 64
    assert home.path.exists()

    assert run(["persona", "remove", "gode", "--yes"]) == 0
    assert list(home.folder.iterdir()) == []


@pytest.mark.parametrize("command", [["remove", "gode", "--yes"], ["export", "gode", "out.tar", "--move"]])
def test_a_running_persona_is_neither_removed_nor_moved(home, command, monkeypatch, capsys):
    monkeypatch.setattr("sentinel.app.status.status", lambda *_, **__: SimpleNamespace(running=True))
    monkeypatch.chdir(home.cwd)
    before = everything(home.folder)

    assert run(["persona", *command]) == 75

    assert everything(home.folder) == before
    assert "a sentinel runs for gode" in capsys.readouterr().err


def test_remove_takes_no_folder_that_is_no_home(home, tmp_path):
    (tmp_path / "precious").mkdir()

    assert run(["persona", "remove", str(tmp_path / "precious"), "--yes"]) == 78
    assert (tmp_path / "precious").exists()


def test_remove_does_not_follow_a_link(home):
    (home.folder / "alias").symlink_to(home.path)

    assert run(["persona", "remove", "alias", "--yes"]) == 78
    assert home.path.exists()


# --- export, import


def names_in(file):
    with tarfile.open(file) as archive:
        return set(archive.getnames())


def test_an_export_has_no_secrets_and_is_private(home, tmp_path):
    home.write("codex_env", "API_KEY=abcdefgh\n")
    out = tmp_path / "out.tar"

    assert run(["persona", "export", "gode", str(out)]) == 0

    assert names_in(out) & {"token", "codex_env", "launch"} == set()
    assert TOKEN.encode() not in out.read_bytes()
    assert stat.S_IMODE(out.stat().st_mode) == 0o600


def test_a_whole_home_goes_over_and_passes(home, tmp_path, capsys):
    out = tmp_path / "out.tar"
    with sqlite3.connect(home.path / "state.db") as db:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("CREATE TABLE t (x)")
        db.execute("INSERT INTO t VALUES (42)")
    db.close()

    assert run(["persona", "export", "gode", str(out), "--with-secrets"]) == 0
    assert run(["persona", "import", str(out), "twin"]) == 0

    twin = home.folder / "twin"
    assert run(["check", "twin"]) == 0
    assert (twin / "token").read_text() == f"{TOKEN}\n"
    copy = sqlite3.connect(twin / "state.db")
    assert copy.execute("SELECT x FROM t").fetchall() == [(42,)]
    copy.close()
    assert (twin / "launch").exists()


def test_an_import_without_its_token_says_what_is_missing(home, tmp_path, capsys):
    out = tmp_path / "out.tar"
    assert run(["persona", "export", "gode", str(out)]) == 0
    capsys.readouterr()

    assert run(["persona", "import", str(out), "twin"]) == 0

    assert "gate: identity: token is absent" in capsys.readouterr().err
    assert run(["check", "twin"]) == 78


def test_a_moved_persona_never_runs_here_again(home, tmp_path, capsys):
    assert run(["persona", "export", "gode", str(tmp_path / "out.tar"), "--move"]) == 0

    assert run(["check", "gode"]) == 78
    assert "gate: home: " in capsys.readouterr().err
    assert run(["persona", "export", "gode", str(tmp_path / "again.tar")]) == 78


def test_a_move_that_fails_leaves_the_persona_here(home, tmp_path):
    assert run(["persona", "export", "gode", str(tmp_path / "none" / "out.tar"), "--move"]) == 64
    assert run(["check", "gode"]) == 0


def test_export_and_import_overwrite_nothing(home, tmp_path):
    out = tmp_path / "out.tar"
    assert run(["persona", "export", "gode", str(out)]) == 0
    before = everything(home.folder), out.read_bytes()

    assert run(["persona", "export", "gode", str(out)]) == 64
    assert run(["persona", "import", str(out), "gode"]) == 64

    assert (everything(home.folder), out.read_bytes()) == before


def member(name, kind=tarfile.REGTYPE, link=""):
    one = tarfile.TarInfo(name)
    one.type, one.linkname = kind, link
    return one


@pytest.mark.parametrize(
    "evil",
    [
        member("../evil"),
        member("/tmp/evil"),
        member("log/evil"),
        member("launch"),
        member("model", tarfile.SYMTYPE, "/etc/passwd"),
        member("model", tarfile.LNKTYPE, "adapter"),
        member("model", tarfile.DIRTYPE),
        member("model", tarfile.FIFOTYPE),
        member("adapter"),
    ],
    ids=["parent", "absolute", "folder", "shim", "symlink", "hardlink", "directory", "fifo", "twice"],
)
def test_an_archive_with_anything_else_in_it_is_refused_whole(home, tmp_path, evil, capsys):
    out = tmp_path / "evil.tar"
    with tarfile.open(out, "w") as archive:
        archive.addfile(member("adapter"), io.BytesIO(b""))
        archive.addfile(evil)

    assert run(["persona", "import", str(out), "twin"]) == 64

    assert [one.name for one in home.folder.iterdir()] == ["gode"]
    assert "the archive holds" in capsys.readouterr().err


@pytest.mark.parametrize("content", [b"", b"not a tar at all" * 100])
def test_a_file_that_is_no_archive_is_refused(home, tmp_path, content):
    (tmp_path / "x").write_bytes(content)

    assert run(["persona", "import", str(tmp_path / "x"), "twin"]) == 64
    assert run(["persona", "import", str(tmp_path / "none"), "twin"]) == 64


# --- adopt


THREAD = "0198f0c2-0000-7000-8000-000000000001"


@pytest.fixture
def old(home):
    """An older home: `model codex_* session.id ws_state.json task.md`, folder open to be read."""
    for name in ("server", "account", "token", "adapter", "codex_sandbox", "codex_network"):
        home.remove(name)
    home.write("session.id", f"{THREAD}\n", 0o644)
    home.write("ws_state.json", json.dumps({"cursor": 41}), 0o644)
    (home.folder.parent / "tok").write_text(f"{TOKEN}\n")
    home.path.chmod(0o755)
    return home


def adopt(home, *more, without=()):
    flags = {
        "server": "http://127.0.0.1:9",
        "account": "Gode",
        "token-file": str(home.folder.parent / "tok"),
        "sandbox": "read-only",
        "network": "off",
        "cid": "c1",
    }
    told = [word for flag, value in flags.items() if flag not in without for word in (f"--{flag}", value)]
    return run(["persona", "adopt", "gode", *told, *more])


def test_an_older_home_is_taken_over_once(old):
    assert run(["check", "gode"]) == 78

    assert adopt(old) == 0

    assert run(["check", "gode"]) == 0
    assert json.loads((old.path / "imports.json").read_text()) == {
        "cid": "c1",
        "thread": THREAD,
        "cursor": 41,
    }
    assert (old.path / "session.id.imported").exists()
    assert (old.path / "ws_state.json.imported").exists()
    assert not (old.path / "session.id").exists()
    assert stat.S_IMODE(old.path.stat().st_mode) == 0o700
    assert (old.path / "adapter").read_text() == "codex\n"


@pytest.mark.parametrize("flag", ["server", "account", "token-file", "sandbox", "network", "cid"])
def test_what_is_missing_and_cannot_be_asked_for_is_64(old, flag, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO())
    before = everything(old.path)

    assert adopt(old, without=(flag,)) == 64

    assert everything(old.path) == before
    assert f"--{flag}" in capsys.readouterr().err


def test_an_adoption_that_the_gate_would_refuse_changes_nothing(old):
    before, mode = everything(old.path), old.path.stat().st_mode

    assert adopt(old, "--model", "two words") == 78

    assert (everything(old.path), old.path.stat().st_mode) == (before, mode)


@pytest.mark.parametrize(
    ("state", "cursor"),
    [('{"last_seq": 7}', 7), ('{"cursor": "12"}', 12), ('{"cursor": {"c1": 9, "c2": 3}}', 9)],
    ids=["last_seq", "digits", "per-conversation"],
)
def test_a_cursor_is_found_where_older_sentinels_put_it(old, state, cursor):
    old.write("ws_state.json", state)

    assert adopt(old) == 0
    assert json.loads((old.path / "imports.json").read_text())["cursor"] == cursor


@pytest.mark.parametrize(
    "state", ["", "{", "[]", "{}", '{"cursor": -1}', '{"cursor": true}', '{"cursor": "x"}']
)
def test_a_cursor_that_says_nothing_is_78_unless_told(old, state, capsys):
    old.write("ws_state.json", state)

    assert adopt(old) == 78
    assert "--cursor" in capsys.readouterr().err
    assert adopt(old, "--cursor", "5") == 0
    assert json.loads((old.path / "imports.json").read_text())["cursor"] == 5


def test_an_adoption_is_asked_for_on_a_terminal(old):
    """The real command on a real terminal: what no flag says is asked, in order."""
    primary, secondary = os.openpty()
    answers = ["http://127.0.0.1:9", "Gode", str(old.folder.parent / "tok"), "read-only", "off", "c1"]
    with subprocess.Popen(
        [sys.executable, "-m", "sentinel.cli.main", "persona", "adopt", "gode"],
        stdin=secondary,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as asked:
        os.close(secondary)
        os.write(primary, "".join(f"{one}\n" for one in answers).encode())
        try:
            _, err = asked.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            os.killpg(asked.pid, signal.SIGKILL)
            raise
    os.close(primary)

    assert asked.returncode == 0, err
    assert run(["check", "gode"]) == 0
