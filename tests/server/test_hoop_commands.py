"""`sentinel hoop …`: the shapes of spec 09, clean errors with their exit codes, and light imports."""

import json
import os
import subprocess
import sys

import pytest

from sentinel.cli.main import run


@pytest.fixture
def hoop(data, capsys):
    def call(*arguments, code=0):
        assert run(["hoop", *arguments, "--data", str(data)]) == code, capsys.readouterr().err
        printed = capsys.readouterr()
        return json.loads(printed.out) if "--json" in arguments else printed

    return call


def test_account_add_prints_uid_name_kind_token(hoop, data):
    made = hoop("account", "add", "Gode", "--kind", "persona", "--json")

    assert list(made) == ["uid", "name", "kind", "token"]
    assert (made["name"], made["kind"]) == ("Gode", "persona")
    assert (
        made["token"].encode() not in (data / "hoop.db").read_bytes() + (data / "hoop.db-wal").read_bytes()
        if (data / "hoop.db-wal").exists()
        else (data / "hoop.db").read_bytes()
    )


def test_a_name_is_taken_once_in_any_letters(hoop):
    hoop("account", "add", "Gödë", "--kind", "human")

    for again in ("Gödë", "GÖDË", "go\u0308de\u0308"):
        assert "exists already" in hoop("account", "add", again, "--kind", "persona", code=64).err
    assert len(hoop("account", "list", "--json")) == 1


@pytest.mark.parametrize("name", ["", " ann", "ann ", "a\nb", "a\x00b", "a\u202eb", "x" * 65])
def test_a_name_that_is_none_is_refused(hoop, name):
    hoop("account", "add", "first", "--kind", "human")

    assert "name" in hoop("account", "add", name, "--kind", "human", code=64).err
    assert [one["name"] for one in hoop("account", "list", "--json")] == ["first"]


@pytest.mark.parametrize("name", ["小明", "Ann Lee", "x" * 64, "👩‍💻"])
def test_a_name_may_be_of_any_script(hoop, name):
    assert hoop("account", "add", name, "--kind", "human", "--json")["name"] == name


def test_a_kind_that_is_none_makes_nothing(hoop, data):
    assert "say human or persona" in hoop("account", "add", "ann", "--kind", "robot", code=64).err
    assert not data.exists()


@pytest.mark.parametrize("title", ["", " ", "a\x1b[31mb", "a\nb", "a\u202eb", "x" * 201])
def test_a_title_that_is_none_is_refused(hoop, title):
    """`room list` shows it on the operator's terminal."""
    hoop("account", "add", "ann", "--kind", "human")

    assert "title" in hoop("room", "add", title, "--member", "ann", code=64).err
    assert hoop("room", "list", "--json") == []


def test_rooms_are_made_of_names(hoop):
    ann = hoop("account", "add", "ann", "--kind", "human", "--json")
    hoop("account", "add", "Gode", "--kind", "persona")

    made = hoop("room", "add", "Kitchen", "--member", "ANN", "--member", "Gode", "--json")

    assert list(made) == ["cid", "title", "members"]
    assert made["title"] == "Kitchen"
    assert {name: ann[name] for name in ("uid", "name", "kind")} in made["members"]
    assert hoop("room", "list", "--json") == [{**made, "last_seq": 0}]


def test_a_room_with_an_unknown_member_is_not_made(hoop):
    hoop("account", "add", "ann", "--kind", "human")

    assert (
        "no account called 'bob'"
        in hoop("room", "add", "K", "--member", "ann", "--member", "bob", code=64).err
    )
    assert hoop("room", "list", "--json") == []


def test_invite_and_remove(hoop):
    for name in ("ann", "bob"):
        hoop("account", "add", name, "--kind", "human")
    cid = hoop("room", "add", "K", "--member", "ann", "--json")["cid"]

    two = hoop("room", "invite", cid, "--member", "bob", "--json")["members"]
    one = hoop("room", "remove", cid, "--member", "ann", "--json")["members"]

    assert [member["name"] for member in two] == ["ann", "bob"]
    assert [member["name"] for member in one] == ["bob"]
    assert "not in" in hoop("room", "remove", cid, "--member", "ann", code=64).err
    assert "no conversation" in hoop("room", "invite", "c-none", "--member", "ann", code=64).err


def test_otp_prints_a_code_alone(hoop):
    hoop("account", "add", "ann", "--kind", "human")

    assert hoop("otp", "ann").out.strip().isdigit()
    assert "no account" in hoop("otp", "bob", code=64).err


def test_a_disabled_account_gets_neither_code_nor_token_nor_room(hoop):
    hoop("account", "add", "ann", "--kind", "human")
    assert hoop("account", "disable", "ann", "--json")["disabled"] is True

    for arguments in (("otp", "ann"), ("account", "rotate", "ann"), ("room", "add", "K", "--member", "ann")):
        assert "disabled" in hoop(*arguments, code=64).err
    assert hoop("account", "list", "--json")[0]["disabled"] is True


@pytest.mark.parametrize(
    "arguments",
    [
        ("account", "list"),
        ("account", "disable", "ann"),
        ("account", "rotate", "ann"),
        ("room", "list"),
        ("room", "add", "K", "--member", "ann"),
        ("otp", "ann"),
        ("backup", "copy.tar"),
    ],
)
def test_only_add_and_serve_make_the_directory(hoop, data, arguments):
    assert "holds no hoop.db" in hoop(*arguments, code=78).err
    assert not data.exists()


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (("--port", "99999"), 64, "--port"),
        (("--port", "x"), 64, "--port"),
        (("--host", "203.0.113.1", "--port", "0"), 78, "cannot be listened on"),
        (("--host", "not a host", "--port", "0"), 78, "cannot be listened on"),
        (("--smtp-host", "localhost"), 64, "go together"),
    ],
)
def test_serve_refuses_what_it_cannot_do(hoop, options, code, words):
    assert words in hoop("serve", *options, code=code).err


def test_every_command_shows_an_example(capsys):
    verbs = ["serve", "otp", "backup", "restore", "account", "room"]
    account = [("account", one) for one in ("add", "list", "disable", "rotate")]
    room = [("room", one) for one in ("add", "list", "invite", "remove")]
    for arguments in [(verb,) for verb in verbs] + account + room:
        assert run(["hoop", *arguments, "--help"]) == 0
        assert "Example: sentinel hoop " + " ".join(arguments)[:4] in capsys.readouterr().out


def test_the_other_commands_do_not_import_the_web_server(data):
    program = (
        "import sys; from sentinel.cli.main import run;"
        f"run(['hoop', 'account', 'add', 'ann', '--kind', 'human', '--data', {str(data)!r}]);"
        "print({'starlette', 'uvicorn', 'websockets', 'httpx', 'rich'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.splitlines()[-1] == "set()"


def test_a_missing_extra_says_how_to_get_it(data):
    program = (
        "import sys; sys.modules['uvicorn'] = None; from sentinel.cli.main import run;"
        f"sys.exit(run(['hoop', 'serve', '--data', {str(data)!r}]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, env={**os.environ}
    )

    assert done.returncode == 78
    assert "pip install 'hoop-sentinel[server]'" in done.stderr
    assert not data.exists()
