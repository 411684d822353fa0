"""`control.sock`: private, patient with garbage, also in a folder whose name is too long for a socket address."""

import asyncio
import json
import socket

import pytest

from sentinel.core.errors import NotPermitted, SentinelError, Unavailable, UsageError
from sentinel.daemon.control import NAME, Control, ask
from tests.fakes.fake_clock import stepped


async def _echo(request):
    return {"got": request.get("word")}


async def _refuse(request):
    raise NotPermitted("no", mend="ask nicely")


async def _bug(request):
    raise ZeroDivisionError("a bug")


@pytest.fixture
async def control(tmp_path):
    made = Control(tmp_path, {"echo": _echo, "refuse": _refuse, "bug": _bug})
    await made.open()
    yield made
    await made.close()


async def _send(path, data):
    reader, writer = await asyncio.open_unix_connection(str(path / NAME))
    writer.write(data)
    writer.write_eof()
    answer = await reader.readline()
    writer.close()
    return json.loads(answer) if answer else None


async def test_it_is_private(control, tmp_path):
    assert (tmp_path / NAME).stat().st_mode & 0o777 == 0o600


async def test_a_verb_is_answered(control, tmp_path):
    assert await ask(tmp_path, "echo", word="hello @ann 你好") == {"got": "hello @ann 你好"}


async def test_a_fault_comes_back_with_its_code(control, tmp_path):
    with pytest.raises(SentinelError, match="no: ask nicely") as fault:
        await ask(tmp_path, "refuse")
    assert fault.value.exit_code == 77


async def test_a_bug_comes_back_as_one_and_ends_nothing(control, tmp_path):
    with pytest.raises(SentinelError, match="a bug of ours: ZeroDivisionError") as fault:
        await ask(tmp_path, "bug")
    assert fault.value.exit_code == 70
    assert await ask(tmp_path, "echo", word="still here") == {"got": "still here"}


async def test_an_unknown_verb_is_a_usage_error(control, tmp_path):
    with pytest.raises(UsageError):
        await ask(tmp_path, "explode")


@pytest.mark.parametrize(
    "garbage",
    [
        b"\n",
        b"not json\n",
        b"[]\n",
        b"null\n",
        b'{"verb": ["echo"]}\n',
        b'{"verb": 1}\n',
        b"\xff\xfe\n",
        b"[" * 100_000 + b"\n",
    ],
)
async def test_garbage_gets_a_clear_answer_and_does_nothing(control, tmp_path, garbage):
    answer = await _send(tmp_path, garbage)

    assert answer == {"error": "not a verb of this sentinel", "code": 64}


@pytest.mark.parametrize("garbage", [b"", b"x" * 2_000_000])
async def test_what_is_no_line_gets_no_answer_and_ends_nothing(control, tmp_path, garbage):
    try:
        answer = await _send(tmp_path, garbage)
    except (ConnectionError, BrokenPipeError):
        answer = None

    assert answer is None or answer["code"] == 64
    assert await ask(tmp_path, "echo", word="still here") == {"got": "still here"}


async def test_a_very_long_home_works(tmp_path):
    home = tmp_path / ("long-" * 12) / ("name-" * 12)
    home.mkdir(parents=True)
    assert len(str(home / NAME)) > 108
    control = Control(home, {"echo": _echo})
    await control.open()

    assert await ask(home, "echo", word="far") == {"got": "far"}
    await control.close()
    assert not (home / NAME).exists()


async def test_a_socket_that_a_killed_sentinel_left_is_replaced(tmp_path):
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(tmp_path / NAME))
    left.close()
    with pytest.raises(Unavailable):
        await ask(tmp_path, "echo")
    control = Control(tmp_path, {"echo": _echo})
    await control.open()

    assert await ask(tmp_path, "echo", word="new") == {"got": "new"}
    await control.close()


async def test_nobody_listens(tmp_path):
    with pytest.raises(Unavailable, match="no sentinel listens"):
        await ask(tmp_path, "echo")


# The verbs, through a whole sentinel.


@stepped
async def test_the_verbs_refuse_what_is_not_theirs_and_change_nothing(stage):
    from sentinel.daemon.verbs import verbs

    stage.open()
    offered = verbs(stage.sentinel.commands, stage.sentinel._ground, stage.sentinel._postman)
    for verb, request in [
        ("say", {}),
        ("say", {"cid": 1, "text": "x"}),
        ("say", {"cid": stage.cid, "text": None}),
        ("say", {"cid": stage.cid, "text": "x", "nonce": 5}),
        ("retry", {"message_id": ["m"]}),
        ("retry", {"message_id": 5}),
    ]:
        with pytest.raises(UsageError):
            await offered[verb](request)
    assert stage.server.messages(stage.cid) == ()
    stage.store.close()
    stage.store = None
