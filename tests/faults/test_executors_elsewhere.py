"""A persona whose executor runs as another user: real sentinel, real room, a launcher that keeps our side honest.

The kernel's part (a second user, ssh, sudo) is shown in tests/real/walls. Source: spec 02 sections 1, 2 and 7; docs/launcher.md.
"""

import json
import os

import pytest

from tests.fakes.launchers import FakeLauncher
from tests.fakes.persona_homes import plant
from tests.fakes.town import until

SECRET = "sk-of-the-executor-0123"


@pytest.fixture
def launcher(tmp_path):
    return FakeLauncher(tmp_path / "launcher")


@pytest.fixture
def place(town, waiting, launcher):
    """A room with a persona of another user; `codex` of the other side is the waiting executor."""
    made = town.place(executor=launcher.path, adapter="codex")
    (waiting.folder / "codex").symlink_to(waiting.path)
    made.write("codex_user", launcher.user)
    made.write("codex_env", f"PATH={waiting.folder}:/usr/bin:/bin\nAPI_KEY={SECRET}")
    yield made
    made.close()


def checks(place):
    said = place.run("check", str(place.home), "--json")
    return said.returncode, [one["check"] for one in json.loads(said.stdout) if not one["ok"]]


def test_an_answer_comes_through_the_launcher_and_only_the_header_holds_its_secrets(place, launcher, waiting):
    waiting.go()
    place.start()

    question = place.ask()
    place.until_answered(question)

    (header,) = launcher.headers
    assert header["argv"][:2] == ["codex", "exec"]
    assert (header["user"], header["cwd"]) == (launcher.user, str(place.work))
    assert (header["env"]["API_KEY"], header["env"]["HOME"]) == (SECRET, "/home/box")
    assert header["env"]["HOOP_TURN"] == header["turn"]
    assert header["env"]["TMPDIR"].endswith("/far/" + header["turn"])
    assert SECRET not in json.dumps(launcher.environ) + "".join(launcher.calls) + place.said
    assert place.tokens["Gode"] not in json.dumps(header)
    assert [one["text"] for one in place.answers_to(question)] == ["It is done."]


def test_the_exec_line_names_the_other_user_and_what_runs_there(place, waiting):
    waiting.go()
    place.start()
    place.until_answered(place.ask())

    line = next(line for line in place.said.splitlines() if line.startswith("exec: "))
    assert "--run" in line
    assert f"[as box in {place.work}]" in line
    assert " codex exec --json" in line


def test_each_turn_asks_who_it_is_and_has_its_end_confirmed(place, launcher, waiting):
    waiting.go()
    place.start()
    place.until_answered(place.ask("one"))
    place.until_answered(place.ask("two"))
    turns = [one["turn"] for one in launcher.headers]
    until(lambda: launcher.calls[-1] == f"--stop {turns[-1]}", "the last stop")

    after_start = launcher.calls[launcher.calls.index("--run") - 1 :]
    assert after_start == [
        *("--probe", "--run", f"--get {turns[0]}", f"--stop {turns[0]}"),
        *("--probe", "--run", f"--get {turns[1]}", f"--stop {turns[1]}"),
    ]


_MAKER = """#!/bin/sh
cat >/dev/null
printf 'one' >"$TMPDIR/outbox/a.txt"
printf '%s' "$SENT" >"$TMPDIR/outbox/b.txt"
ln -s /etc/hostname "$TMPDIR/outbox/.hidden"
echo '{"type":"thread.started","thread_id":"0199a213-81c0-7800-8aa1-bbab2a035a53"}'
echo '{"type":"turn.started"}'
echo '{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"Two files."}}'
echo '{"type":"turn.completed","usage":{"input_tokens":10,"cached_input_tokens":2,"output_tokens":3}}'
"""


def making(place, waiting, sent):
    """Let the executor of the other side leave two files, the second of them with the content `sent`."""
    waiting.path.write_text(_MAKER)
    place.write("codex_env", f"PATH={waiting.folder}:/usr/bin:/bin\nAPI_KEY={SECRET}\nSENT={sent}")
    place.start()
    return place.ask("two files, please")


def test_files_left_on_the_other_side_are_fetched_before_its_folder_is_forgotten(place, launcher, waiting):
    question = making(place, waiting, "two")
    place.until_answered(question)

    answers = place.answers_to(question)
    contents = [place.person("ann").get(one["media"]["url"]).content for one in answers if "media" in one]
    assert [one["type"] for one in answers] == ["text", "file", "file"]
    assert contents == [b"one", b"two"]
    turn = launcher.headers[0]["turn"]
    until(lambda: launcher.calls[-1] == f"--stop {turn}", "the stop")
    assert [one for one in launcher.calls if turn in one] == [*[f"--get {turn}"] * 3, f"--stop {turn}"]


def test_a_secret_in_a_file_of_the_other_side_is_kept_here(place, launcher, waiting):
    question = making(place, waiting, SECRET)
    until(lambda: place.turn_of(question)[2] == "leak", "the leak")

    assert place.answers_to(question) == []
    (kept,) = (place.home / "turns").iterdir()
    assert sorted(one.name for one in kept.iterdir()) == ["0-a.txt", "1-b.txt", "answer.txt"]


@pytest.mark.parametrize("code", [255, 78, 64])
def test_an_outbox_out_of_reach_does_not_cost_the_answer(place, launcher, waiting, code):
    launcher.ends_with(code, "get")
    question = making(place, waiting, "two")
    place.until_answered(question)

    assert [one["text"] for one in place.answers_to(question)] == ["Two files."]

    def lines():
        return [one["text"] for one in place.own() if not one.get("answers")]

    if code == 64:  # a launcher that does not know the verb has no files to be told of
        place.until_answered(place.ask("and once more"))
        assert lines() == []
    else:
        until(lines, "the line about the files")
        assert "could not send: 1" in lines()[0]


BROKEN = {
    "another user": lambda one: one.tells({"user": "ann", "cwd_ok": True}),
    "no such cwd": lambda one: one.tells({"user": "box", "cwd_ok": False}),
    "no codex": lambda one: one.tells({"user": "box", "cwd_ok": True, "program": None}),
    "garbage": lambda one: one.tells("box"),
    "nothing": lambda one: one.tells(""),
    "refused": lambda one: one.ends_with(78),
    "not executable": lambda one: one.path.chmod(0o644),
    "absent": lambda one: one.path.unlink(),
    "dangling": lambda one: (one.path.unlink(), one.path.symlink_to("/nowhere")),
    "a directory": lambda one: (one.path.unlink(), one.path.mkdir()),
    "empty file": lambda one: one.path.write_bytes(b""),
    "writable by others": lambda one: one.path.chmod(0o757),
}


@pytest.mark.parametrize("breakage", BROKEN)
def test_a_broken_launcher_is_78_and_nothing_runs_instead(place, launcher, waiting, breakage, tmp_path):
    """The executor of our own user must never stand in: no run of it, whatever is broken."""
    planted = plant(tmp_path)
    BROKEN[breakage](launcher)

    said = place.run("run", str(place.home), place.cid)
    code, failed = checks(place)

    assert said.returncode == code == 78, said.stderr
    assert failed == (["walls"] if breakage == "no such cwd" else ["executor"])
    assert (planted.runs, waiting.runs, launcher.headers) == (0, 0, [])


def test_a_launcher_that_breaks_while_it_runs_is_a_refused_turn(place, launcher, waiting):
    waiting.go()
    place.start()
    launcher.tells({"user": "ann", "cwd_ok": True})

    question = place.ask()

    until(lambda: "the launcher runs as ann" in place.said, "the refusal")
    assert waiting.runs == 0
    assert place.state_of(question) == "seen"


def test_a_lost_line_is_an_outage_that_counts_nobody_and_heals(place, launcher, waiting):
    """ssh's own 255 is "unavailable", not death (spec 02 section 2)."""
    waiting.go()
    place.start()
    launcher.loses_runs_with(255)
    question = place.ask()
    until(lambda: len(launcher.headers) == 1, "the first run")
    until(lambda: place.turn_of(question)[0] == "failed", "its end")

    launcher.loses_runs_with(None)
    place.until_answered(question)

    assert place.rows("SELECT failures FROM triggers WHERE message_id = ?", question) == [(0,)]
    assert len(place.own()) == 1  # the answer, and no notice


def test_a_far_side_that_is_away_at_the_start_is_waited_for(place, launcher, waiting):
    waiting.go()
    launcher.ends_with(255)
    place.start(wait=False)
    until(lambda: "waits for what is away" in place.said, "the wait")
    question = place.ask()
    assert place.process.poll() is None
    assert checks(place) == (78, ["executor"])

    launcher.ends_with(None)

    place.until_answered(question)
    assert not (place.home / "refusal.json").exists()


def test_a_file_is_carried_over_and_named_as_it_is_called_there(place, launcher, waiting):
    waiting.go()
    place.start()
    notes = b"four legs good\n" * 1000
    media = place.person("ann").post("/v1/media", content=notes, headers={"Content-Type": "text/plain"})
    assert media.status_code == 201, media.text

    body = {"type": "file", "media_id": media.json()["id"], "text": "read it", "mentions": [place.gode.uid]}
    sent = place.person("ann").post(f"/v1/conversations/{place.cid}/media", json=body)
    assert sent.status_code == 201, sent.text
    place.until_answered(sent.json()["id"])

    turn = launcher.headers[0]["turn"]
    (carried,) = [one for one in (launcher.folder / "far" / turn).iterdir() if one.name != "outbox"]
    assert carried.read_bytes() == notes
    assert str(carried) in (waiting.folder / "prompt").read_text()
    assert str(place.home) not in (waiting.folder / "prompt").read_text()


def test_a_killed_sentinel_has_the_end_of_its_turn_confirmed_before_it_goes_on(place, launcher, waiting):
    place.start()
    question = place.ask()
    until(lambda: waiting.runs == 1, "the run")
    lost = launcher.headers[0]["turn"]
    place.kill()
    launcher.ends_with(70, "stop")  # what is left there does not end

    place.start()
    until(lambda: place.said.count("the end of a turn is not confirmed") > 1, "the question")
    assert len(launcher.headers) == 1  # nothing new begins beside it
    launcher.ends_with(None, "stop")
    waiting.go()

    place.until_answered(question)
    assert f"--stop {lost}" in launcher.calls
    assert len(launcher.headers) == 2


def test_a_stop_ends_the_run_and_confirms_it(place, launcher, waiting):
    place.start()
    question = place.ask()
    until(lambda: waiting.runs == 1, "the run")

    place.say("ann", "/stop")

    until(lambda: place.state_of(question) == "parked", "the end")
    turn = launcher.headers[0]["turn"]
    until(lambda: launcher.calls[-1] == f"--stop {turn}", "the confirmed end")
    until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in waiting.pids), "an empty machine")
