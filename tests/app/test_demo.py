"""`sentinel demo` without a browser: what it starts, prints, keeps, survives, refuses and leaves behind (spec 09)."""

import json
import os
import shutil
import signal
import socket

import pytest
from websockets.sync.client import connect

from tests.fakes.demo_process import DemoProcess


@pytest.fixture
def demo(tmp_path):
    made = DemoProcess(tmp_path)
    yield made
    made.close()
    assert made.family() == []


def test_echo_is_there_answers_each_question_once_and_goes_on_after_a_restart(demo):
    demo.start()
    ann = demo.log_in()
    ann.until_state("Echo", "idle")
    line = connect(
        demo.url.replace("http", "ws", 1) + "/v1/ws",
        additional_headers={"Authorization": f"Bearer {ann.token}"},
    )
    with line as socket_of_ann:
        first = ann.ask("Echo", "one")
        answer = ann.answer_to(first)
        heard = []
        while answer["id"] not in heard:
            frame = json.loads(socket_of_ann.recv(timeout=20))
            heard += [frame["message"]["id"]] if frame["type"] == "message.new" else []
    ann.answer_to(ann.ask("Echo", "two"))
    before = ann.messages()
    assert len(demo.family()) >= 2  # the count counts: the demo and a sentinel

    assert demo.end(signal.SIGTERM) == 0
    assert demo.family() == []
    demo.start()
    ann = demo.log_in()
    kept = ann.messages()
    third = ann.ask("Echo", "three")

    assert "not an AI" in answer["text"]
    assert "one" in answer["text"]
    assert [one["sender"]["name"] for one in before] == ["ann", "Echo"] * 2
    assert heard == [first["id"], answer["id"]]
    assert kept == before
    assert "three" in ann.answer_to(third)["text"]
    assert len(ann.messages()) == 6


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_everything_well(demo, number):
    demo.start()

    assert demo.end(number) == 0
    assert demo.family() == []
    assert demo.err == ""


def test_a_demo_that_was_killed_starts_again(demo):
    """Its sentinel outlives it, and the lock on the account with it: the next demo ends that one first."""
    demo.start()
    demo.end(signal.SIGKILL)
    left = demo.family()

    demo.start()
    ann = demo.log_in()
    answer = ann.answer_to(ann.ask("Echo", "again"))

    assert len(left) == 1
    assert len(demo.family()) == 2
    assert "again" in answer["text"]
    assert demo.err == ""


def test_a_port_in_use_is_said_and_nothing_runs(demo):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        demo.launch("--port", str(port))

        assert demo.ended() == 78
    assert demo.family() == []
    assert demo.err == (
        f"sentinel: 127.0.0.1:{port} cannot be listened on: Address already in use: "
        "stop what listens there, or choose another --port\n"
    )
    assert demo.out == ""


def test_a_second_demo_on_the_same_folder_is_told_so_and_the_first_goes_on(demo, tmp_path):
    demo.start()
    (tmp_path / "second").mkdir()
    second = DemoProcess(tmp_path / "second")

    second.launch(data=demo.data)

    assert second.ended() == 75
    assert "another server serves" in second.err
    ann = demo.log_in()
    ann.answer_to(ann.ask("Echo", "still there?"))


@pytest.mark.parametrize("where", ["locked", "beneath a file", "a file"])
def test_a_data_folder_that_cannot_be_written_is_said(demo, tmp_path, where):
    (tmp_path / "locked").mkdir(mode=0o500)
    (tmp_path / "file").touch()
    data = {"locked": "locked/data", "beneath a file": "file/data", "a file": "file"}[where]
    wrap = ()
    if os.geteuid() == 0:  # root may write anywhere, unless it is told not to
        wrap = (shutil.which("setpriv"), "--bounding-set=-dac_override,-dac_read_search", "--")

    demo.launch(data=tmp_path / data, wrap=wrap)

    assert demo.ended() == 78
    assert demo.err.startswith(f"sentinel: {tmp_path / data} cannot be used as a data directory: ")
    assert "choose a directory that you may write to" in demo.err
    assert demo.err.count("\n") == 1


def test_an_executor_on_path_becomes_a_persona_that_answers(demo):
    demo.plant("codex")
    demo.plant("claude")
    demo.start()
    ann = demo.log_in()

    answers = {name: ann.answer_to(ann.ask(name, "are you there?"))["text"] for name in ("Gode", "Claude")}

    assert answers == {"Gode": "codex was here", "Claude": "claude was here"}
    assert "then write to: @Echo, @Gode, @Claude " in demo.out
    for name in ("gode", "claude"):
        home = demo.data / "homes" / name
        assert (home / "owners").read_text().split() == [ann.members()["ann"]["uid"]]
        assert (home / "token").stat().st_mode & 0o777 == 0o600


def test_an_executor_that_has_gone_is_told_with_the_gates_line_and_the_others_go_on(demo):
    codex = demo.plant("codex")
    demo.start()
    demo.end()
    codex.unlink()

    demo.start()
    demo.until_said("its log:")
    ann = demo.log_in()
    answer = ann.answer_to(ann.ask("Echo", "and you?"))

    assert "the sentinel of Gode ended with exit code 78:\n  gate: executor: " in demo.err
    assert str(codex) in demo.err
    assert "Echo" not in demo.err
    assert "and you?" in answer["text"]


def test_an_executor_that_the_gate_refuses_stays_away_until_it_is_mended(demo):
    codex = demo.plant("codex", mode=0o777)
    demo.start()
    refused = demo.err
    ann = demo.log_in()
    ann.answer_to(ann.ask("Echo", "hello"))
    demo.end()
    codex.chmod(0o755)

    demo.start()
    ann = demo.log_in()

    assert refused.startswith("Gode stays away: gate: executor: ")
    assert ann.answer_to(ann.ask("Gode", "hello"))["text"] == "codex was here"


def test_without_any_persona_left_it_ends_and_says_why(demo):
    demo.start()
    demo.end()
    (demo.data / "homes" / "echo" / "model").write_text("")

    demo.launch()

    assert demo.ended() == 78
    assert "the sentinel of Echo ended with exit code 78:\n  gate: model: " in demo.err
    assert demo.err.splitlines()[-1].startswith("sentinel: no persona of the demo is left: ")


def test_a_home_that_was_removed_is_made_anew_with_a_token_of_its_own(demo):
    demo.start()
    demo.end()
    shutil.rmtree(demo.data / "homes")

    demo.start()
    ann = demo.log_in()

    assert "hello" in ann.answer_to(ann.ask("Echo", "hello"))["text"]
