"""Spec 09: `sentinel mentions resolve`."""

import io
import json
import sys

import pytest

from sentinel.cli.main import run

MEMBERS = [
    {"uid": "gode", "name": "Gode", "kind": "persona"},
    {"uid": "a1", "name": "Ann", "kind": "human"},
    {"uid": "a2", "name": "ann", "kind": "human", "state": None},
]


@pytest.fixture
def members(tmp_path):
    file = tmp_path / "members.json"
    file.write_text(json.dumps(MEMBERS), encoding="utf-8")
    return str(file)


@pytest.fixture
def standard_input(monkeypatch):
    def give(data):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    return give


def resolve(*arguments):
    return run(["mentions", "resolve", *arguments])


def test_it_prints_mentions_broadcast_and_ambiguous_names(members, capsys):
    code = resolve("--members", members, "@Gode @Ann @all")

    assert code == 0
    assert json.loads(capsys.readouterr().out) == {
        "mentions": ["gode"],
        "broadcast": True,
        "ambiguous": ["Ann"],
    }


def test_without_text_it_reads_standard_input(members, capsys, standard_input):
    standard_input("```\n@Gode\n```\n请＠Gode看\n".encode())

    assert resolve("--members", members) == 0
    assert json.loads(capsys.readouterr().out)["mentions"] == ["gode"]


def test_jsonl_gives_one_result_per_line_in_order(members, capsys, standard_input):
    texts = ["@Gode", "nobody", "@all", "two\u2028lines @Gode"]
    standard_input("\n".join(json.dumps({"text": text}, ensure_ascii=False) for text in texts).encode())

    assert resolve("--members", members, "--jsonl") == 0
    results = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(one["mentions"], one["broadcast"]) for one in results] == [
        (["gode"], False),
        ([], False),
        ([], True),
        (["gode"], False),
    ]


def test_jsonl_answers_a_line_before_it_reads_the_next(members, capsys, monkeypatch):
    answered = []

    class Lines:
        def __iter__(self):
            yield b'{"text": "@Gode"}\n'
            answered.append(capsys.readouterr().out)
            yield b'{"text": ""}\n'

    monkeypatch.setattr(sys, "stdin", type("Input", (), {"buffer": Lines()})())

    assert resolve("--members", members, "--jsonl") == 0
    assert json.loads(answered[0])["mentions"] == ["gode"]


@pytest.mark.parametrize(
    "bad",
    [b"", b"{", b"[]", b'"@Gode"', b'{"text": 1}', b'{"txt": "x"}', b'{"text": "\xff"}', b"[" * 100_000],
    ids=["blank", "cut", "list", "string", "number", "no-text", "no-utf8", "deep"],
)
def test_a_bad_line_ends_with_its_number_and_prints_nothing(bad, members, capsys, standard_input):
    standard_input(b'{"text": "@Gode"}\n' + bad + b'\n{"text": "@Gode"}\n')

    code = resolve("--members", members, "--jsonl")

    out, err = capsys.readouterr()
    assert code == 64
    assert len(out.splitlines()) == 1
    assert "line 2" in err


def test_text_and_jsonl_exclude_each_other(members, capsys):
    assert resolve("--members", members, "--jsonl", "@Gode") == 64
    assert capsys.readouterr().out == ""


def test_input_that_is_not_utf8_is_refused(members, capsys, standard_input):
    standard_input(b"abc \xff")

    assert resolve("--members", members) == 64
    assert "byte 4" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "not JSON"),
        ("{}", "not a list"),
        ("[1]", "member 1"),
        ('[{"uid": "a", "name": "A"}]', "kind None"),
        ('[{"uid": "a", "name": "A", "kind": "robot"}]', "kind 'robot'"),
        ('[{"uid": "a", "name": "A", "kind": ["human"]}]', "kind ['human']"),
        ('[{"uid": "", "name": "A", "kind": "human"}]', "uid and name"),
        ('[{"uid": 1, "name": "A", "kind": "human"}]', "uid and name"),
        ('[{"uid": "a", "name": " ", "kind": "human"}]', "uid and name"),
        (
            '[{"uid": "a", "name": "A", "kind": "human"}, {"uid": "a", "name": "B", "kind": "human"}]',
            "member 2",
        ),
    ],
)
def test_a_bad_members_file_is_refused(content, words, tmp_path, capsys):
    file = tmp_path / "members.json"
    file.write_text(content, encoding="utf-8")

    code = resolve("--members", str(file), "@A")

    out, err = capsys.readouterr()
    assert (code, out) == (64, "")
    assert words in err


@pytest.mark.parametrize(
    "make",
    [lambda path: None, lambda path: path.mkdir(), lambda path: path.write_bytes(b"\xff")],
    ids=["absent", "directory", "no-utf8"],
)
def test_a_members_file_that_cannot_be_read_is_refused(make, tmp_path, capsys):
    make(tmp_path / "members")

    assert resolve("--members", str(tmp_path / "members"), "@A") == 64
    assert "members" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["mentions"], ["mentions", "resolve", "@Gode"], ["mentions", "nothing"]]
)
def test_an_incomplete_command_line_is_a_usage_error(arguments, capsys):
    assert run(arguments) == 64
    assert capsys.readouterr().out == ""


def test_help_shows_an_example(capsys):
    assert run(["mentions", "resolve", "--help"]) == 0
    assert "Example: sentinel mentions resolve" in capsys.readouterr().out
