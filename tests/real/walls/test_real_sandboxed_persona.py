"""The sandboxed persona, for real: an unprivileged operator, a second user, sshd and sudo, the real codex.

Spec 02 sections 1 and 2; spec 06 "Users and walls". Needs root, to make the users; without it these tests fail.
"""

import os
import shutil
import signal
import uuid

import pytest

from tests.real.executors.real_world import loopback_only
from tests.real.sentinel.real_house import spoken, until
from tests.real.walls.far_house import FarHouse, install_executors, install_for_all
from tests.real.walls.walls_world import KINDS, home_of, world

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]

HOSTILE = """
cat >/dev/null
trap '' TERM INT HUP
setsid /bin/sh -c 'trap "" TERM INT HUP; while :; do sleep 1; done' </dev/null >/dev/null 2>&1 &
(setsid /bin/sh -c 'trap "" TERM INT HUP; sleep 600 & sleep 600' </dev/null >/dev/null 2>&1 &) &
echo '{"type":"thread.started","thread_id":"01a22dc0-0000-7000-8000-000000000000"}'
while :; do sleep 1; done
"""
ANSWERS = """
cat >/dev/null
echo '{"type":"thread.started","thread_id":"01a22dc0-0000-7000-8000-000000000000"}'
echo '{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"from the box"}}'
echo '{"type":"turn.completed","usage":{"input_tokens":1,"cached_input_tokens":0,"output_tokens":1}}'
"""


@pytest.fixture(scope="module")
def walls():
    with loopback_only(), world() as made:
        yield made


@pytest.fixture(scope="module")
def tools(walls):
    return install_for_all(walls.folder), install_executors(walls.folder)


@pytest.fixture(params=KINDS)
def house(request, walls, tools):
    made = FarHouse(walls, request.param, tools)
    try:
        made.open()
        yield made
    finally:
        made.close()


@pytest.mark.parametrize(("kind", "via"), [("codex", "sudo"), ("codex", "ssh"), ("claude", "ssh")])
def test_the_code_word_comes_back_over_two_connections_with_nothing_alive_between(walls, tools, kind, via):
    house = FarHouse(walls, via, tools, kind=kind)
    try:
        house.open()
        word = f"PLOVER-{uuid.uuid4().hex[:10]}"
        house.model.does("text:text=noted")
        house.until_answered(house.ask(house.room, f"the code word is {word}"))
        assert walls.wait_for_empty_box() == []

        house.model.does("recall:re=PLOVER-[0-9a-f]{10}")
        answer = house.until_answered(house.ask(house.room, "what was the code word?"))

        *_, prompt = spoken(house.model.requests()[-1])
        assert word not in prompt  # so it came from the thread, which lives in the other user's home
        assert answer["text"] == word
        assert walls.wait_for_empty_box() == []
        assert house.runs_of_operator() == 0
    finally:
        house.close()


def test_the_kernel_refuses_the_workspace_and_there_is_no_key_to_find(house, walls):
    secret, token = walls.workspace / "secret.txt", house.home / "token"
    look = f"cat {secret}; cat {token}; cat {house.home}/codex_env; ls -la {house.base}; id -un; env"
    house.model.does(f"tool:cmd={look.replace(',', ' ')}", "text:text=seen")

    house.until_answered(house.ask(house.room, "look around"))

    said = house.model.requests()[-1]
    assert said.count("Permission denied") >= 4
    assert walls.box in said
    for hidden in ("the operator's own", house.token, "SOMETHING_OF_OURS", "never-seen"):
        assert hidden not in said
    assert house.runs_of_operator() == 0
    line = next(line for line in house.stderr().splitlines() if line.startswith("exec: "))
    assert f"[as {walls.box} in {walls.box_cwd}]" in line
    assert "codex exec --json" in line


BROKEN = {
    "absent": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "not executable": lambda path: path.chmod(0o644),
    "a directory": lambda path: (path.unlink(), path.mkdir()),
    "dangling": lambda path: (path.unlink(), path.symlink_to("/nowhere")),
    "looping": lambda path: (path.unlink(), path.symlink_to(path)),
    "writable by others": lambda path: path.chmod(0o757),
    "garbage": lambda path: path.write_text("#!/bin/sh\necho hello\n"),
    "says nothing": lambda path: path.write_text("#!/bin/sh\nexit 0\n"),
    "runs as the operator": lambda path: path.write_text(
        '#!/bin/sh\n[ "$1" = --probe ] && { echo "{\\"user\\": \\"$(id -un)\\", \\"cwd_ok\\": true}"; exit; }\n'
        "read -r line\nexec codex\n"
    ),
    "no such user": lambda path: path.write_text(
        '#!/bin/sh\nexec sudo -n -u nobody-here -- /bin/true "$@"\n'
    ),
}
VALUES = {"no file": None, "empty file": "", "blank": " \n", "relative": "codex\n"}


def test_no_breakage_lets_an_executor_of_the_operators_run(house, walls):
    """Eight breakages of the executor and those of the launcher: refused, and nobody stands in (spec 02 section 2)."""
    marks = house.stand_in(ANSWERS)
    house.until_answered(house.ask(house.room, "hello"))
    ran = len(marks.read_text().split())
    assert ran == 1
    good = house.base / "launcher"
    whole = house.binary.read_bytes()
    for name, value in VALUES.items():
        house.write("codex_bin", value or "")
        if value is None:
            (house.home / "codex_bin").unlink()
        house.cli("check", "gode", code=78)
        assert house.runs_of_operator() == 0, name
    for name, broken in BROKEN.items():
        good.unlink(missing_ok=True) if not good.is_dir() else good.rmdir()
        good.write_bytes(whole)
        good.chmod(0o755)
        broken(good)
        if good.is_file() and not good.is_symlink():
            os.chown(good, house.as_user["user"], house.as_user["group"])
        house.write("codex_bin", f"{good}\n")
        house.cli("check", "gode", code=78)
        assert house.runs_of_operator() == 0, name
    question = house.ask(house.room, "and now?")
    until(lambda: "gate: executor" in house.log() + house.stderr(), "the refusal at a turn")
    assert house.runs_of_operator() == 0
    assert len(marks.read_text().split()) == ran

    house.write("codex_bin", f"{house.binary}\n")

    assert house.until_answered(question)["text"] == "from the box"


@pytest.mark.parametrize("how", ["/stop", "kill -9", "TERM", "drop"])
def test_nothing_of_the_far_tree_lives_ten_seconds_later(house, walls, how):
    marks = house.stand_in(HOSTILE)
    question = house.ask(house.room, "work")
    until(lambda: marks.exists() and len(walls.alive_of_box()) >= 4, "the far tree")

    if how == "/stop":
        house.ask(house.room, "/stop")
    elif how == "drop":
        turn = house.until_running(question)
        os.kill(turn["pid"], signal.SIGKILL)  # ssh or sudo itself, of our side
    else:
        house.process.send_signal(signal.SIGKILL if how == "kill -9" else signal.SIGTERM)

    limit_s = 20.0 if how == "TERM" else 10.0  # TERM leaves the running turn its grace of 10 s first
    assert walls.wait_for_empty_box(limit_s) == []
    if how == "/stop":
        house.until_state(question, "parked")


# Kills its supervisor, as a machine without memory might, and leaves a child that carries the marker.
ORPHANS = """
cat >/dev/null
setsid /bin/sh -c 'trap "" TERM INT HUP; while :; do sleep 1; done' </dev/null >/dev/null 2>&1 &
sleep 0.5
kill -9 $PPID
while :; do sleep 1; done
"""
# Stops its supervisor, so that nobody over there hears that the connection dropped.
DEAFENS = """
cat >/dev/null
trap '' TERM INT HUP
kill -STOP $PPID
while :; do sleep 1; done
"""


def test_a_far_side_that_was_killed_leaves_nothing_and_blocks_nobody(house, walls):
    marks = house.stand_in(ORPHANS)
    question = house.ask(house.room, "work")
    until(lambda: marks.exists() and house.until_failed(question), "the failed turn")

    assert walls.wait_for_empty_box(10.0) == []
    house.stand_in(ANSWERS)

    assert house.until_answered(house.ask(house.room, "and now?"))["text"] == "from the box"


def test_a_far_side_that_was_stopped_ends_within_ten_seconds_of_a_stop(house, walls):
    marks = house.stand_in(DEAFENS)
    question = house.ask(house.room, "work")
    until(lambda: marks.exists() and len(walls.alive_of_box()) >= 2, "the far tree")

    house.ask(house.room, "/stop")

    assert walls.wait_for_empty_box(10.0) == []
    house.until_state(question, "parked")


def test_what_a_killed_sentinel_left_is_ended_before_anything_begins_there(house, walls):
    marks = house.stand_in(DEAFENS)
    question = house.ask(house.room, "work")
    until(lambda: marks.exists() and len(walls.alive_of_box()) >= 2, "the far tree")
    left = walls.alive_of_box()
    house.end(signal.SIGKILL)

    house.stand_in(ANSWERS)
    house.start()
    house.until_answered(question)

    assert set(left).isdisjoint(walls.alive_of_box())


def test_a_killed_sentinel_answers_once_after_its_restart(house, walls):
    marks = house.stand_in(HOSTILE)
    question = house.ask(house.room, "work")
    until(lambda: marks.exists() and len(walls.alive_of_box()) >= 4, "the far tree")
    house.end(signal.SIGKILL)

    house.stand_in(ANSWERS)
    house.start()

    assert house.until_answered(question)["text"] == "from the box"
    assert walls.wait_for_empty_box() == []


def test_an_sshd_that_is_away_is_an_outage_that_heals_and_no_death(walls, tools):
    house = FarHouse(walls, "ssh", tools)
    try:
        house.open()
        house.stand_in(ANSWERS)
        walls.stop_sshd()
        question = house.ask(house.room, "hello?")
        until(lambda: "could not be reached" in house.log() + house.stderr(), "the outage")
        assert house.trigger(question)["failures"] == 0
        walls.start_sshd()

        assert house.until_answered(question)["text"] == "from the box"

        assert house.notices(house.room) == []
        assert house.trigger(question)["failures"] == 0
    finally:
        if walls._sshd is None:
            walls.start_sshd()
        house.close()


def test_the_wall_can_be_shown(walls, tools):
    house = FarHouse(walls, "sudo", tools)
    try:
        house.open()
        closed = [walls.workspace, house.base / "homes", walls.workspace / "not-there"]
        ajar = walls.folder / "ajar"
        (ajar / "deep").mkdir(parents=True)
        ajar.chmod(0o711)
        absent = walls.folder / "absent: Permission denied"

        said = house.cli("persona", "wall", "gode", *map(str, closed))

        assert [line.partition(":")[0] for line in said.splitlines()] == ["closed"] * 3
        assert said.count("Permission denied") == 3
        said = house.cli("persona", "wall", "gode", str(walls.workspace), str(ajar), str(absent), code=78)
        assert [line.partition(":")[0] for line in said.splitlines()] == ["closed", "OPEN", "unknown"]
        ajar.chmod(0o704)
        assert "can list it" in house.cli("persona", "wall", "gode", str(ajar), code=78)
        house.cli("persona", "wall", "gode", str(absent), code=69)
        house.cli("persona", "wall", "gode", "relative", code=64)
        assert [one for one in (home_of(walls.box) / ".hoop-turns").iterdir() if "wall" in one.name] == []
    finally:
        house.close()


def test_the_core_persona_reads_the_workspace_that_the_box_may_not(walls, tools):
    """The same question to a persona that runs as the operator: what a wall is, is only seen from both sides."""
    house = FarHouse(walls, "sudo", tools)
    try:
        house.open()
        secret = walls.workspace / "secret.txt"
        own = shutil.copytree(house.state, house.base / "own-state")
        for path in (own, *own.rglob("*")):
            os.chown(path, house.as_user["user"], house.as_user["group"])
        house.write("codex_user", f"{walls.operator}\n")
        house.write("codex_bin", f"{house.programs}/codex\n")
        house.write("codex_cwd", f"{walls.workspace}\n")
        house.write("codex_env", f"CODEX_HOME={own}\nMOCK_API_KEY=fake-key-of-the-model-server\n")
        house.model.does(f"tool:cmd=cat {secret}", "text:text=read")

        house.until_answered(house.ask(house.room, "read it"))

        assert "the operator's own" in house.model.requests()[-1]
    finally:
        house.close()
