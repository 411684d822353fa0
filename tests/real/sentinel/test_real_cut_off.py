"""A turn that is ended in the middle of a tool's work: by `/stop`, and by a `kill -9` of its sentinel."""

import json
import os
import re
import signal
import subprocess
import time
import uuid
from datetime import datetime
from pathlib import Path

import pytest

from sentinel import proctree
from tests.real.sentinel.real_house import ACTING, READ_ONLY, living, spoken, until

pytestmark = pytest.mark.real
KILL_CALL = re.compile(
    r"^\d+ +(\d+\.\d+) (?:kill|tgkill|pidfd_send_signal)\((.*SIG(?:INT|TERM|KILL).*)\)", re.MULTILINE
)


@pytest.fixture
def mark():
    """Return a number of seconds that names the processes of this test, and nothing else."""
    return f"9{uuid.uuid4().int % 10**8:08d}"


@pytest.fixture
def acting(house):
    """Let the executor run commands for the time of one test."""
    house.walls(*ACTING[house.kind])
    yield
    house.walls(*READ_ONLY)
    house.model.always("text")


@pytest.fixture
def traced(house):
    """Return a function that gives (time, call) of each ending signal the sentinel has sent: the kernel's own word."""
    log = house.base / f"strace-{uuid.uuid4()}"
    watched = "trace=kill,tgkill,pidfd_send_signal"
    command = ["strace", "-f", "-ttt", "-e", watched, "-o", str(log), "-p", str(house.process.pid)]
    tracer = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert "attached" in tracer.stderr.readline()
    yield lambda: [(float(at), call) for at, call in KILL_CALL.findall(log.read_text())]
    tracer.terminate()
    tracer.communicate(timeout=10)


def at_work(house, cid, mark):
    """Ask for something that takes for ever, and wait until its commands run. Return (question, turn, tree)."""
    house.model.always(f"tool:cmd=setsid sleep {mark}1 & (setsid nohup sleep {mark}2 &) ; sleep {mark}3")
    question = house.ask(cid, "work on it")
    until(lambda: len(living(mark)) == 3, lambda: f"{living(mark)}\n{house.log()[-3000:]}")
    turn = house.until_running(question)
    # An executor that tells of its work only after its sentinel's death meets a closed pipe, and ends by itself.
    until(lambda: hears_nothing(house.process.pid), "all that it tells has been heard")
    among = proctree.everything()
    tree = [among[turn["pid"]], *proctree.descendants([turn["pid"]], among)]
    assert len(tree) > 1
    return question, turn, tree


def hears_nothing(pid, for_s=0.3):
    """Return whether a process read nothing at all for a while."""
    io = Path(f"/proc/{pid}/io")
    before, deadline = io.read_text().splitlines()[0], time.monotonic() + for_s
    while time.monotonic() < deadline:
        if io.read_text().splitlines()[0] != before:
            return False
        time.sleep(0.02)
    return True


def alive(tree):
    """Return what of `tree` still runs; the dead that nobody has reaped do not."""
    now = proctree.everything()
    still = [now[one.pid] for one in tree if one.pid in now and now[one.pid].started == one.started]
    return [one for one in still if not one.is_zombie]


def test_stop_ends_the_tree_of_a_tool_call(house, acting, traced, mark):
    """Spec 02 section 3: it begins within 1 s; nothing of the tree lives 10 s later; one line confirms."""
    cid = house.new_room("stopped")
    question, turn, tree = at_work(house, cid, mark)

    stop = house.ask(cid, "/stop")
    said_s, begun = datetime.fromisoformat(stop["sent_at"]).timestamp(), time.monotonic()
    until(lambda: not alive(tree) and not living(mark), lambda: house.log()[-3000:], limit_s=10)
    gone_s = time.monotonic() - begun
    house.until_state(question, "parked")
    until(lambda: house.own(cid), "it is confirmed")

    first_at, first_call = traced()[0]
    assert str(turn["pid"]) in first_call
    assert 0 <= first_at - said_s < 1
    assert gone_s < 10
    until(lambda: house.classes(question) == ["stopped"], lambda: house.log()[-3000:])  # parked comes first
    (confirmed,) = house.own(cid)
    assert confirmed["text"].startswith("Stopped. Messages put aside: 1;")
    assert confirmed["reply_to"] == stop["id"]
    assert house.texts(cid) == ["work on it", "/stop", confirmed["text"]]
    assert house.trigger(stop)["state"] is None  # the model never sees it


def test_what_was_stopped_is_answered_after_a_retry(house, acting, mark):
    cid = house.new_room("stopped and taken up")
    question, _, _ = at_work(house, cid, mark)
    house.ask(cid, "/stop")
    house.until_state(question, "parked")
    house.model.always("text:text=done after all")

    house.ask(cid, "/retry")
    house.until_answered(question)

    assert [one["text"] for one in house.answers(question)] == ["done after all"]
    assert "An earlier attempt:" in prompt_of(house)


def test_an_executor_that_outlived_its_sentinel_is_stopped_before_the_rerun_which_is_told(
    house, acting, mark
):
    cid = house.new_room("killed")
    question, turn, tree = at_work(house, cid, mark)
    house.end(signal.SIGKILL)
    assert len(alive(tree)) == len(tree)
    house.model.always("slow:secs=2")
    asked = len(house.model.requests())

    house.start()
    until(lambda: len(house.model.requests()) > asked, lambda: house.log()[-3000:])
    left = alive(tree), living(mark)
    house.until_answered(question)

    assert left == ([], [])
    assert not (house.home / "turns" / turn["id"]).exists()
    story = house.stderr()
    recovered = story.rindex("recovered an interrupted turn")
    assert recovered < story.rindex("\nexec: ")
    assert house.classes(question) == ["interrupted", None]
    assert prompt_of(house).count("An earlier attempt:") == 1
    assert turn["thread"] in house.turns(question)[1]["exec"]
    assert len(house.own(cid)) == 1


def test_what_fled_and_outlived_executor_and_sentinel_is_ended_before_the_rerun(house, acting, mark):
    """With no executor left to descend from, the mark of the turn is all that tells whose they are."""
    house.walls("danger-full-access", "on")
    cid = house.new_room("fled")
    question, turn, _ = at_work(house, cid, mark)
    house.end(signal.SIGKILL)
    os.kill(turn["pid"], signal.SIGKILL)
    assert living(mark)
    house.model.always("slow:secs=2")
    asked = len(house.model.requests())

    house.start()
    until(lambda: len(house.model.requests()) > asked, lambda: house.log()[-3000:])
    left = living(mark)
    house.until_answered(question)

    assert left == []


def test_a_run_that_could_do_nothing_is_run_again_without_a_word(house):
    """Spec 02 section 4: read-only, network off, no writing tool: what was cut off changed nothing."""
    cid = house.new_room("killed, read only")
    house.model.always("hang_stream")
    question = house.ask(cid, "think about it")
    pid = house.until_running(question)["pid"]
    tree = [proctree.look(pid)]
    house.end(signal.SIGKILL)
    house.model.always("text:text=thought about it")

    house.start()
    house.until_answered(question)

    assert alive(tree) == []
    assert house.classes(question) == ["interrupted", None]
    assert "An earlier attempt:" not in json.dumps(spoken(house.model.requests()[-1]))
    assert [one["text"] for one in house.own(cid)] == ["thought about it"]


def prompt_of(house):
    """Return the newest prompt that the model was given."""
    return spoken(house.model.requests()[-1])[-1]
