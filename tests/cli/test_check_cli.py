"""`sentinel check`: seven entries, lines on standard error, 0 or 78, and the record of a refusal."""

import json
import os
import subprocess
import sys

import pytest

from sentinel.cli.main import run
from sentinel.core.gate import CHECKS
from tests.fakes.persona_homes import TOKEN, make_home, run_sentinel


@pytest.fixture(params=["codex", "claude", "echo"])
def any_home(request, tmp_path, monkeypatch):
    made = make_home(tmp_path, adapter=request.param)
    monkeypatch.setenv("HOOP_HOME", str(made.folder))
    return made


@pytest.fixture
def home(tmp_path, monkeypatch):
    made = make_home(tmp_path)
    monkeypatch.setenv("HOOP_HOME", str(made.folder))
    return made


def test_a_whole_home_is_0_with_seven_entries(any_home, capsys):
    code = run(["check", "gode", "--json"])

    said = capsys.readouterr()
    assert (code, said.err) == (0, "")
    entries = json.loads(said.out)
    assert [one["check"] for one in entries] == list(CHECKS)
    assert all(set(one) == {"check", "ok", "what", "mend"} and one["ok"] is True for one in entries)


def test_a_path_serves_as_well_as_a_name(home, capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("HOOP_HOME", str(tmp_path / "another"))

    assert run(["check", str(home.path)]) == 0
    assert capsys.readouterr().out.count("ok: ") == 7


def _missing(home):
    home.remove("codex_bin")


def _empty(home):
    home.write("codex_bin", "")


def _blank(home):
    home.write("codex_bin", "   \n")


def _relative(home):
    home.write("codex_bin", "codex\n")


def _nonexistent(home):
    home.write("codex_bin", f"{home.cwd}/none\n")


def _directory(home):
    home.write("codex_bin", f"{home.cwd}\n")


def _not_executable(home):
    home.binary.chmod(0o644)


def _dangling(home):
    (home.cwd / "link").symlink_to("nowhere")
    home.write("codex_bin", f"{home.cwd}/link\n")


def _looping(home):
    (home.cwd / "link").symlink_to("link")
    home.write("codex_bin", f"{home.cwd}/link\n")


def _writable(home):
    home.binary.chmod(0o757)


EXECUTOR = [
    _missing,
    _empty,
    _blank,
    _relative,
    _nonexistent,
    _directory,
    _not_executable,
    _dangling,
    _looping,
    _writable,
]


@pytest.mark.parametrize("break_it", EXECUTOR)
def test_each_way_to_break_the_executor_is_78_with_its_line(home, break_it, capsys):
    break_it(home)

    code = run(["check", "gode", "--json"])

    said = capsys.readouterr()
    assert code == 78
    assert [one["check"] for one in json.loads(said.out) if not one["ok"]] == ["executor"]
    lines = said.err.splitlines()
    assert len(lines) == 1
    check, what, mend = lines[0].removeprefix("gate: ").split(": ", 2)
    assert (check, bool(what), bool(mend)) == ("executor", True, True)


def test_a_file_that_is_a_link_is_unreadable_for_each_check_that_needs_it(home, capsys):
    (home.folder / "shared").write_text(f"{home.binary}\n")
    home.remove("codex_bin")
    (home.path / "codex_bin").symlink_to(home.folder / "shared")

    assert run(["check", "gode", "--json"]) == 78

    said = capsys.readouterr()
    assert [one["check"] for one in json.loads(said.out) if not one["ok"]] == ["executor", "voice"]
    assert said.err.count("codex_bin cannot be read: it is a symbolic link") == 2


def _value(name, content, mode=0o600):
    return lambda home: home.write(name, content, mode)


OTHERS = [
    ("home", lambda home: home.path.chmod(0o775)),
    ("home", lambda home: (home.path / "moved").touch()),
    ("home", _value("session.id", "0198-thread\n")),
    ("home", _value("ws_state.json", "{}")),
    ("identity", lambda home: home.remove("server")),
    ("identity", lambda home: home.remove("account")),
    ("identity", lambda home: home.remove("token")),
    ("identity", lambda home: (home.path / "token").chmod(0o644)),
    ("identity", _value("server", "http://ann:pw@host\n")),
    ("model", _value("model", "two words\n")),
    ("model", _value("model", "one\ntwo\n")),
    ("model", _value("model", b"\xff\xfe")),
    ("walls", _value("codex_sandbox", "loose\n")),
    ("walls", _value("codex_network", "on\n")),
    ("walls", lambda home: home.write("codex_cwd", f"{home.path}\n")),
    ("walls", _value("codex_cwd", "/\n")),
    ("walls", _value("codex_cwd", "here\n")),
    ("voice", _value("task.md", "\n \n")),
    ("voice", _value("task.md", "You are m-1.\n")),
    ("voice", _value("codex_reply_bridge", "off\n")),
    ("voice", _value("codex_reply_bridge", "")),
    ("voice", _value("limits.toml", "speed = 1\n")),
    ("executor", _value("codex_user", "somebody-else\n")),
    ("executor", _value("codex_env", "LD_PRELOAD=/x\n")),
    ("adapter", _value("codex_driver", "warm\n")),
]


@pytest.mark.parametrize(("check", "break_it"), OTHERS, ids=[f"{n}-{one[0]}" for n, one in enumerate(OTHERS)])
def test_each_other_breakage_is_78_with_the_line_of_its_check(home, check, break_it, capsys):
    break_it(home)

    code = run(["check", "gode", "--json"])

    said = capsys.readouterr()
    assert code == 78
    assert [one["check"] for one in json.loads(said.out) if not one["ok"]] == [check]
    assert said.err.startswith(f"gate: {check}: ")
    assert TOKEN not in said.out + said.err


def test_a_fifo_in_the_home_blocks_nothing(home, capsys):
    home.remove("model")
    os.mkfifo(home.path / "model")

    assert run(["check", "gode"]) == 78
    assert "gate: model: model cannot be read: it is not a regular file" in capsys.readouterr().err


def test_a_home_that_is_not_there_refuses_all_seven(home, capsys):
    assert run(["check", "nobody", "--json"]) == 78

    said = capsys.readouterr()
    assert [one["ok"] for one in json.loads(said.out)] == [False] * 7
    assert said.err.count("gate: ") == 7
    assert not (home.folder / "nobody").exists()


def test_conversations_count_only_when_given(home, capsys):
    assert run(["check", "gode"]) == 0
    assert run(["check", "gode", "c1", "c2"]) == 0
    assert run(["check", "gode", " "]) == 78
    assert "gate: voice: no conversation" in capsys.readouterr().err


def test_a_refusal_is_recorded_and_taken_back(home, capsys):
    home.write("model", "")
    assert run(["check", "gode"]) == 78
    assert (home.path / "refusal.json").exists()

    home.write("model", "m-1\n")
    assert run(["check", "gode"]) == 0
    assert not (home.path / "refusal.json").exists()


@pytest.mark.parametrize("arguments", [[], [""], ["gode", "--yaml"]])
def test_bad_usage_is_64_with_a_line(home, arguments, capsys):
    assert run(["check", *arguments]) == 64
    assert "sentinel: " in capsys.readouterr().err


def test_the_real_command_says_the_same(home):
    good = run_sentinel("check", "gode", "--json", home=home)
    home.remove("codex_bin")
    bad = run_sentinel("check", "gode", home=home)

    assert (good.returncode, len(json.loads(good.stdout))) == (0, 7)
    assert bad.returncode == 78
    assert bad.stderr.startswith("gate: executor: codex_bin is absent: ")


def test_check_imports_nothing_of_the_rooms(home):
    # pydantic is not in the list: typer itself loads it to read its arguments.
    heavy = ("asyncio", "httpx", "filelock", "structlog", "markdown_it", "websockets", "sqlite3", "rich")
    code = (
        "import sys; from sentinel.cli.main import run; code = run(['check', 'gode', '--json']); "
        f"print([one for one in {heavy!r} if one in sys.modules], code, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=False
    )

    assert done.stderr == "[] 0\n"
