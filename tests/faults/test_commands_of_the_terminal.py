"""The verbs of a running persona, from real command lines: what they do, their exit codes, bad input (spec 09)."""

import json
import sqlite3

import pytest

from tests.fakes.town import until


@pytest.fixture(scope="module")
def place(town):
    made = town.place()
    made.start()
    return made


@pytest.fixture(scope="module")
def resting(town):
    """A persona whose sentinel does not run."""
    return town.place()


@pytest.fixture(scope="module")
def broken(town):
    made = town.place()
    (made.home / "model").unlink()
    return made


def text(done):
    return done.stdout.decode().strip()


# say


def test_say_posts_resolves_and_reads_back(place):
    done = place.run("say", str(place.home), place.cid, f"@{_ann(place)} the build is green", "--json")

    said = json.loads(done.stdout)
    assert done.returncode == 0, done.stderr
    assert said["mentions"] == [place.uids["ann"]]
    assert [one["id"] for one in place.own()][-1:] == said["message_ids"]


def _ann(place):
    return next(one["sender"]["name"] for one in _asked(place) if one["sender"]["uid"] == place.uids["ann"])


def _asked(place):
    if not any(one["sender"]["uid"] == place.uids["ann"] for one in place.messages()):
        place.say("ann", "I am here", mention=False)
    return place.messages()


@pytest.mark.parametrize("who", ["place", "resting"])
def test_say_with_the_same_nonce_says_it_once(who, request):
    there = request.getfixturevalue(who)
    first = there.run("say", str(there.home), there.cid, "only once", "--nonce", "n-1")
    second = there.run("say", str(there.home), there.cid, "-", "--nonce", "n-1", stdin="only once")

    assert (first.returncode, second.returncode) == (0, 0), second.stderr
    assert text(first) == text(second) != ""
    assert [one["text"] for one in there.own()].count("only once") == 1


# bridge


def test_bridge_fetch_shows_what_waits_and_reply_answers_it(resting):
    message = resting.say("ann", "what is up?")
    fetched = resting.run("bridge", "fetch", str(resting.home), resting.cid)
    replied = resting.run("bridge", "reply", str(resting.home), resting.cid, stdin="all is well")

    assert fetched.returncode == 0, fetched.stderr
    shown = [json.loads(one) for one in fetched.stdout.decode().splitlines()]
    assert message in [one["id"] for one in shown]
    assert replied.returncode == 0, replied.stderr
    assert text(replied) == resting.own()[-1]["id"]


REPLIES = {
    "blank": ("resting", {"stdin": " \n\u200b"}, 65),
    "not a member": ("resting", {"cid": "c-unknown", "stdin": "x"}, 66),
    "not UTF-8": ("resting", {"stdin": b"\xff\xfe\x00"}, 66),
    "a nonce that cannot be one": ("resting", {"stdin": "x", "nonce": "a b"}, 66),
    "the token in the text": ("resting", {"stdin": "TOKEN"}, 66),
    "far too long": ("resting", {"stdin": "word " * 60_000}, 66),
    "the gate refuses": ("broken", {"stdin": "x"}, 78),
}


@pytest.mark.parametrize(("who", "how", "code"), REPLIES.values(), ids=REPLIES)
def test_bridge_reply_codes(who, how, code, request):
    there = request.getfixturevalue(who)
    before = there.messages()
    words = there.tokens["Gode"] if how["stdin"] == "TOKEN" else how["stdin"]
    nonce = ["--nonce", how["nonce"]] if "nonce" in how else []

    done = there.verb("bridge", "reply", str(there.home), how.get("cid", there.cid), *nonce, stdin=words)

    assert done.returncode == code, done.stderr
    assert done.stdout == b""
    assert len(done.stderr.decode().strip().splitlines()) == 1
    assert there.tokens["Gode"] not in done.stderr.decode()
    assert there.messages() == before


FETCHES = {
    "not a member": ("resting", "c-unknown", 77),
    "the gate refuses": ("broken", None, 78),
}


@pytest.mark.parametrize(("who", "cid", "code"), FETCHES.values(), ids=FETCHES)
def test_bridge_fetch_codes(who, cid, code, request):
    there = request.getfixturevalue(who)

    done = there.verb("bridge", "fetch", str(there.home), cid or there.cid)

    assert done.returncode == code, done.stderr
    assert done.stdout == b""


def test_bridge_without_its_server(town):
    there = town.place(server="http://127.0.0.1:9")

    assert there.verb("bridge", "fetch", str(there.home), there.cid).returncode == 69
    assert there.verb("bridge", "reply", str(there.home), there.cid, stdin="x").returncode == 66


def test_bridge_with_a_token_that_is_not_good(town):
    there = town.place()
    there.write("token", "not-a-token-of-this-server")

    assert there.verb("bridge", "fetch", str(there.home), there.cid).returncode in {77, 78}
    assert there.verb("bridge", "reply", str(there.home), there.cid, stdin="x").returncode == 78


def test_somebody_elses_token_speaks_for_nobody(town):
    """Another account's good token under this persona's name: nothing is read, nothing is said."""
    there, other = town.place(), town.place()
    there.write("token", other.tokens["Gode"])
    before = other.messages()

    for arguments in (
        ("bridge", "fetch", str(there.home), other.cid),
        ("bridge", "reply", str(there.home), other.cid),
        ("say", str(there.home), other.cid, "x"),
        ("run", str(there.home), other.cid),
    ):
        done = there.verb(*arguments, stdin="x")
        assert done.returncode == 78, (arguments, done.stderr)
        assert b"gate: identity: " in done.stderr
        assert done.stdout == b""
    assert other.messages() == before


# wake


def test_wake_reports_every_leg(place, tmp_path):
    token = tmp_path / "ann.token"
    token.write_text(place.tokens["ann"] + "\n")

    done = place.run("wake", str(place.home), place.cid, "--token-file", str(token), "--json")

    told = json.loads(done.stdout)
    assert done.returncode == 0, done.stderr
    assert [one["leg"] for one in told["legs"]] == [
        "stored",
        "doorbell",
        "pulled",
        "triaged",
        "started",
        "answered",
        "posted",
        "read back",
    ]
    times = [one["at_ms"] for one in told["legs"]]
    assert None not in times
    assert times[3:] == sorted(times[3:])
    assert told["answer_id"] in [one["id"] for one in place.own()]


def test_wake_with_a_local_server(place, town):
    done = place.verb("wake", str(place.home), place.cid, "--data", str(town.data))

    assert done.returncode == 0, done.stderr
    assert b"read back" in done.stdout


def test_wake_of_nobody_says_where_to_look(resting, tmp_path):
    token = tmp_path / "ann.token"
    token.write_text(resting.tokens["ann"])

    done = resting.verb(
        "wake", str(resting.home), resting.cid, "--token-file", str(token), "--timeout", "0.3"
    )

    assert done.returncode == 69
    assert b"is the sentinel running" in done.stderr


@pytest.mark.parametrize(
    ("content", "code"),
    [
        pytest.param(b"\xff\xfe", 64, id="not UTF-8"),
        pytest.param(b"wrong-token-value", 77, id="a wrong token"),
        pytest.param(b"", 78, id="empty"),
        pytest.param("tök\nén".encode(), 78, id="no token at all"),
        pytest.param(None, 64, id="no such file"),
    ],
)
def test_wake_with_a_bad_token_file(place, tmp_path, content, code):
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)
    before = place.messages()

    done = place.verb("wake", str(place.home), place.cid, "--token-file", str(file), "--timeout", "1")

    assert done.returncode == code, done.stderr
    assert place.messages() == before


def test_a_persona_cannot_wake(place, tmp_path):
    file = tmp_path / "token"
    file.write_text(place.tokens["Gode"])

    assert place.verb("wake", str(place.home), place.cid, "--token-file", str(file)).returncode == 78


# status, usage, logs, control


def test_status_and_usage_tell_what_is_so(place, resting):
    place.until_answered(place.ask())
    (status,) = json.loads(place.verb("status", str(place.home), "--json").stdout)
    (usage,) = json.loads(place.verb("usage", str(place.home), "--json").stdout)

    assert (status["state"], status["running"], status["waiting"]) == ("idle", True, 0)
    assert status["last_delivered_at"] is not None
    assert usage["turns"] >= 1
    logs = place.verb("logs", str(place.home)).stdout.decode().splitlines()
    assert any(json.loads(one)["event"] == "verified" for one in logs)
    asleep = json.loads(resting.verb("status", str(resting.home), "--json").stdout)
    assert asleep[0]["state"] in {"offline", "never-run"}


def test_pause_resume_stop_and_retry(town, waiting):
    there = town.place(adapter="codex", executor=waiting.path)
    there.start()
    assert there.verb("pause", str(there.home)).returncode == 0
    question = there.ask()
    until(lambda: there.state_of(question) == "seen")
    (status,) = json.loads(there.verb("status", str(there.home), "--json").stdout)
    assert (status["state"], status["waiting"], waiting.runs) == ("paused", 1, 0)

    assert there.verb("resume", str(there.home)).returncode == 0
    until(lambda: there.turn_of(question)[1], "the executor")
    assert there.verb("stop", str(there.home)).returncode == 0
    until(lambda: there.state_of(question) == "parked")
    waiting.go()
    done = there.verb("retry", str(there.home), question)
    assert (done.returncode, done.stderr) == (0, b"trying again: 1\n")
    there.until_answered(question)
    assert len(there.answers_to(question)) == 1
    there.close()


BAD = {
    "pause of nobody": (["pause", "nobody"], 78),
    "stop of one that does not run": (["stop", "HOME"], 69),
    "retry of nobody": (["retry", "nobody", "m-1"], 78),
    "status of nobody": (["status", "nobody"], 78),
    "usage of nobody": (["usage", "nobody"], 78),
    "usage since nonsense": (["usage", "--since", "soon"], 64),
    "logs of nobody": (["logs", "nobody"], 78),
    "why of nobody": (["why", "nobody", "m-1"], 78),
    "say of nobody": (["say", "nobody", "c", "x"], 78),
    "say into nowhere": (["say", "HOME", "c-unknown", "x"], 66),
    "say nothing": (["say", "HOME", "CID", "  "], 65),
    "say no text": (["say", "HOME", "CID"], 64),
    "say bytes that are no text": (["say", "HOME", "CID", b"\xff"], 64),
    "wake without a human": (["wake", "HOME", "CID"], 64),
    "wake with a folder that is no server's": (["wake", "HOME", "CID", "--data", "/nonexistent"], 78),
    "run in a room that is not there": (["run", "HOME", "c-unknown"], 78),
    "run without a room": (["run", "HOME"], 78),
    "an unknown verb": (["explode"], 64),
    "an unknown flag": (["status", "--loud"], 64),
    "no name": (["status", ""], 64),
}


@pytest.mark.parametrize(("arguments", "code"), BAD.values(), ids=BAD)
def test_bad_input_gets_a_clear_line_and_changes_nothing(resting, arguments, code):
    before = resting.messages()
    words = [{"HOME": str(resting.home), "CID": resting.cid}.get(one, one) for one in arguments]

    done = resting.verb(*words)

    assert done.returncode == code, done.stderr
    assert b"Traceback" not in done.stderr
    assert b"a bug of ours" not in done.stderr
    assert done.stderr.strip()
    assert done.stdout == b""
    assert resting.messages() == before


@pytest.mark.parametrize("verb", ["status", "usage", "why"])
@pytest.mark.parametrize("content", [b"garbage" * 500, None], ids=["garbage", "newer"])
def test_a_damaged_state_is_76(town, tmp_path, verb, content):
    there = town.place()
    path = there.home / "state.db"
    if content is None:
        with sqlite3.connect(path) as raw:
            raw.execute("PRAGMA user_version = 99")
        raw.close()
    else:
        path.write_bytes(content)
    more = ["m-1"] if verb == "why" else []

    done = there.verb(verb, str(there.home), *more)

    assert done.returncode == 76, done.stderr
    if verb == "status":
        assert there.run("run", str(there.home), there.cid).returncode == 76
