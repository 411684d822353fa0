"""What the far side takes for a line of JSON, an order and a command line, and what it refuses. Source: docs/launcher.md."""

import io
import json
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.launcher.far_program import load

program = load()
GOOD = {"argv": ["sh"], "cwd": "/", "env": {}, "turn": "t-1"}


def line(data, **options):
    return program.Line.read(SimpleNamespace(read=io.BytesIO(data).read), wrong=78, **options)


def order(**changed):
    values = {key: value for key, value in (GOOD | changed).items() if value is not ...}
    return program.Order.of(line(json.dumps(values).encode() + b"\n"))


def refused(call, *args, **options):
    with pytest.raises(program.Refusal) as refusal:
        call(*args, **options)
    assert "\n" not in str(refusal.value)
    return refusal.value.code


def test_an_order_needs_four_keys_and_ignores_those_it_does_not_know():
    made = order(later=1, user=None)

    assert (made.argv, made.cwd, made.turn, made.user, made.limit_s) == (["sh"], "/", "t-1", "", None)
    assert made.env == {"HOOP_TURN": "t-1"}


@pytest.mark.parametrize(
    "changed",
    [
        {"argv": []},
        {"argv": "sh"},
        {"argv": ["sh", "a\0b"]},
        {"argv": ["sh", "\ud800"]},
        {"argv": ["sh", 1]},
        {"argv": ...},
        {"cwd": "relative"},
        {"cwd": ...},
        {"env": ...},
        {"env": {"A=B": "1"}},
        {"env": {"": "1"}},
        {"env": {"A": 1}},
        {"env": {"HOOP_TURN": "another"}},
        {"turn": "../x"},
        {"turn": "a" * 65},
        {"turn": "t\n"},
        {"turn": 7},
        {"turn": ...},
        {"user": 1},
        {"stop": [["SIGNOPE", 1]]},
        {"stop": [[[], 1]]},
        {"stop": [["SIGINT", -1]]},
        {"stop": [["SIGINT", True]]},
        {"stop": [["SIGINT"]]},
        {"stop": [["SIGINT", 1]] * 9},
        {"limit_s": "9"},
        {"limit_s": -1},
        {"litter": [1]},
    ],
    ids=ascii,
)
def test_an_order_that_is_not_right_is_refused(changed):
    assert refused(order, **changed) == 78


@pytest.mark.parametrize(
    "data",
    [b"", b"{}", b"[]\n", b"no\n", b"\xff\n", b"[" * 100_000 + b"\n", b'{"a":"' + b"x" * 1_048_576 + b'"}\n'],
    ids=["nothing", "cut", "list", "no-json", "no-utf8", "deep", "too-long"],
)
def test_a_line_that_is_none_is_refused(data):
    assert refused(line, data) == 78


def test_only_the_line_is_read():
    stream = io.BytesIO(b"{}\nprompt")

    program.Line.read(SimpleNamespace(read=stream.read), wrong=78)

    assert stream.read() == b"prompt"


def test_infinity_is_no_number_of_seconds():
    told = line(b'{"limit_s": Infinity, "nan": NaN}\n')

    assert refused(told.number, "limit_s", most=1e7) == 78
    assert refused(told.number, "nan", most=1e7) == 78


@pytest.mark.parametrize("size", [-1, 1.5, True, "4", None])
def test_a_size_is_a_whole_number(size):
    assert refused(line(json.dumps({"size": size}).encode() + b"\n").size, "size") == 78


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--help"],
        ["--run", "x"],
        ["--stop"],
        ["--stop", "a/b"],
        ["--put", ""],
        ["--get", "a\n"],
        ["--stop", "a", "b"],
    ],
)
def test_other_words_are_refused(words):
    assert refused(program.command_line, words, None) == 64


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("/usr/local/libexec/hoop-executor --probe", ("--probe", "")),
        ("--run", ("--run", "")),
        ("/opt/hoop-executor --stop t-1", ("--stop", "t-1")),
    ],
)
def test_a_forced_command_takes_the_verb_from_ssh(asked, meant):
    assert program.command_line([], asked) == meant


@pytest.mark.parametrize(
    "asked",
    [
        "/opt/hoop-executor --stop t-1 ",
        "/opt/hoop-executor --probe; id",
        "/opt/hoop-executor  --probe",
        "hoop-executor --probe",
        "/bin/sh -c id",
        "--stop $(id)",
        "--probe\n",
        "",
    ],
)
def test_a_forced_command_takes_nothing_else(asked):
    assert refused(program.command_line, [], asked) == 64


@given(st.text())
def test_what_a_forced_command_takes_is_always_a_verb(asked):
    try:
        verb, turn = program.command_line([], asked)
    except program.Refusal:
        return
    assert verb in program.VERBS
    assert turn == "" or program.TURN.fullmatch(turn)


def test_arguments_win_over_what_ssh_says():
    assert refused(program.command_line, ["--nope"], "--probe") == 64
