"""Chat text is live for an executor: no message runs a command of it, and none reads a file into the prompt.

Shown with the widest walls that the executor has, where nothing but the form of the prompt stands in the way; and then
the very same texts are handed to the very same command without that form, and do what they say.
"""

import json
import shlex
import subprocess
import uuid

import pytest

from tests.real.sentinel.real_house import READ_ONLY, WAIT_S, until

pytestmark = pytest.mark.real
COMMANDS = ["/clear", "/compact", "/model mock-other", "/clear\n/compact", "  /clear"]


@pytest.fixture(scope="module")
def canaries(house):
    """Return files that each hold a word of its own: in the working directory, below it, and outside of it."""
    files = {}
    (house.cwd / "deep").mkdir()
    for path in (house.cwd / "inside.txt", house.cwd / "deep" / "inside.txt", house.base / "outside.txt"):
        files[path] = f"canary-{uuid.uuid4().hex}"
        path.write_text(files[path] + "\n")
    return files


@pytest.fixture(params=["read-only", "danger"])
def walls(house, request):
    if request.param == "danger":
        house.walls("danger-full-access", "on")
    yield request.param
    house.walls(*READ_ONLY)


@pytest.fixture(scope="module")
def pair(house):
    """Return a conversation of two, where each message is a call; its very title names a file."""
    cid = house.new_room("@inside.txt")
    house.until_answered(house.ask(cid, "now we have a thread", mention=False))
    return cid


def live_texts(house, canaries):
    """Return every form in which a text may name a file of ours."""
    inside, deep, outside = canaries
    return [
        "@/etc/passwd",
        f"@{outside}",
        f"@{inside}",
        "@inside.txt",
        f"@{deep.relative_to(house.cwd)}",
        f'look at @"{outside}" and @{inside}',
        f"```\n@{outside}\n@inside.txt\n```",
        f"> @{outside}",
        f"hello\n@{outside}\n",
    ]


def test_a_file_named_in_a_message_never_gets_into_the_prompt(house, canaries, walls, pair):
    """All in one batch; in a conversation of two each is a call, and the whole of it."""
    house.cli("pause", "gode")
    asked = [house.ask(pair, text, mention=False) for text in live_texts(house, canaries)]
    for one in asked:
        until(lambda one=one: house.trigger(one)["state"] == "seen", "it is taken in")
    before = len(house.model.requests())
    house.cli("resume", "gode")
    for one in asked:
        house.until_state(one, "verified")

    said = "".join(house.model.requests()[before:])
    assert len(house.turns(asked[0])) == 1
    assert r"\\u0040/etc/passwd" in said
    assert "root:x:0:0" not in said
    assert [word for word in canaries.values() if word in said] == []


def test_a_file_that_is_called_like_a_file_of_ours_is_only_a_name(house, canaries, walls, pair):
    name = "@inside.txt"
    upload = house.hoop.call("ann", "POST", "/v1/media", params={"name": name}, content=b"harmless")
    body = {"type": "file", "media_id": upload["id"], "text": "@inside.txt"}
    before = len(house.model.requests())
    question = house.hoop.call("ann", "POST", f"/v1/conversations/{pair}/media", json=body)

    house.until_state(question, "verified")

    said = "".join(house.model.requests()[before:])
    assert r"\\u0040inside.txt" in said
    assert [word for word in canaries.values() if word in said] == []


@pytest.mark.parametrize("text", COMMANDS)
def test_a_command_of_an_executor_is_only_text(house, text, pair):
    thread, ledgers, before = house.thread(pair), house.ledgers(), len(house.model.requests())
    house.model.does("text:text=only text")

    question = house.ask(pair, text, mention=False)
    answer = house.until_answered(question)

    (request,) = house.model.requests()[before:]
    assert answer["text"] == "only text"
    assert json.dumps(json.dumps(text))[1:-1] in request
    assert house.thread(pair) == thread
    assert house.ledgers() == ledgers


def raw(house, text, *, without=()):
    """Hand a raw text to the very command of the last turn, some flags left out. Return (output, requests)."""
    (turn,) = house.rows("SELECT exec FROM turns WHERE exec != '' ORDER BY started_at DESC LIMIT 1")
    settings = (house.home / f"{house.kind}_env").read_text().splitlines()
    before = len(house.model.requests())
    done = subprocess.run(
        [word for word in shlex.split(turn["exec"].removeprefix("exec: ")) if word not in without],
        env={**house.env, **dict(line.split("=", 1) for line in settings)},
        cwd=house.cwd,
        input=text,
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    return done.stdout, house.model.requests()[before:]


@pytest.fixture
def resumed(house, pair):
    """Have a turn that went on in a thread, within the widest walls: its command is the one that `raw` repeats."""
    house.walls("danger-full-access", "on")
    house.until_answered(house.ask(pair, "hello", mention=False))
    house.walls(*READ_ONLY)
    return house.thread(pair)


def test_without_the_form_of_the_prompt_claude_reads_the_file_that_a_text_names(
    house, canaries, resumed, pair
):
    """The danger is real for claude; for codex an `@` is only text."""
    _, _, outside = canaries

    _, (asked,) = raw(house, f"@{outside}")

    assert (canaries[outside] in asked) is (house.kind == "claude")
    assert f"@{outside}" in asked


def test_without_the_guards_claude_drops_the_thread_at_a_word(house, resumed):
    """Two guards stand before it, the prompt's first line and a flag. Without the first, no model would be asked."""
    said, asked = raw(house, "/clear")
    bare, asked_bare = raw(house, "/clear", without=["--disable-slash-commands"])

    if house.kind == "codex":
        assert (len(asked), len(asked_bare)) == (1, 1)
        return
    assert (asked, asked_bare) == ([], [])
    assert "/clear isn't available in this environment." in said
    assert '"type":"conversation_reset"' in bare
    assert resumed not in json.loads(bare.splitlines()[-1])["session_id"]
