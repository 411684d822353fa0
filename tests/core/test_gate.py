"""The gate over made-up facts: each rule, one at a time, and nothing else at fault."""

from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.core.codec import Sandbox
from sentinel.core.facts import (
    Absent,
    Broken,
    DirectoryFacts,
    EnteredFacts,
    HomeFacts,
    Present,
    ProgramFacts,
    Unreadable,
    Unresolved,
    one_value,
    unknown_files,
)
from sentinel.core.gate import CHECKS, Check, GateRefused, Passed, confirm_identity, judge
from sentinel.core.model import Account, Kind
from sentinel.core.persona import Limits, OnInterrupt, Secret
from sentinel.core.settings import BOUNDS
from sentinel.core.voice import repeats

ME = 501
SECRET = "tok-secret"


@dataclass(frozen=True)
class StubAdapter:
    name: str
    needs_binary: bool
    walls: dict

    def codec(self, request):
        raise AssertionError("the gate starts nothing")


READ_ONLY_OFF = (Sandbox.READ_ONLY, False)
ADAPTERS = {
    "codex": StubAdapter("codex", True, {READ_ONLY_OFF: (), (Sandbox.WORKSPACE_WRITE, True): ()}),
    "echo": StubAdapter("echo", False, {READ_ONLY_OFF: ()}),
}
FILES = {
    "server": "https://rooms.example",
    "account": "Gode",
    "token": SECRET,
    "adapter": "codex",
    "model": "gpt-5",
    "codex_bin": "/opt/codex",
    "codex_cwd": "/srv/gode",
    "codex_sandbox": "read-only",
    "codex_network": "off",
    "task.md": "You are Gode.",
}
PROGRAM = ProgramFacts("/opt/codex", is_regular=True, is_directory=False, is_executable=True, mode=0o755)
BASE = HomeFacts(
    home="/h/gode",
    real_home="/h/gode",
    name="gode",
    hoop_home="/h",
    directory=DirectoryFacts(0o700, ME),
    files={name: Present(f"{value}\n".encode(), 0o600, ME) for name, value in FILES.items()},
    names=frozenset(FILES),
    program=PROGRAM,
    cwd=EnteredFacts("/srv/gode"),
    uid=ME,
    user="ann",
)


def with_file(name, content, *, mode=0o600, owner=ME):
    """Return the facts with one file set; None takes it away; a fact stands as it is."""
    if content is None:
        fact = Absent()
    elif isinstance(content, str | bytes):
        fact = Present(content if isinstance(content, bytes) else content.encode(), mode, owner)
    else:
        fact = content
    return replace(BASE, files={**BASE.files, name: fact}, names=BASE.names | {name})


def failed(facts, guarded=None):
    verdict = judge(facts, ADAPTERS, guarded=guarded)
    return {} if isinstance(verdict, Passed) else {check.check: check for check in verdict.failed}


def test_a_whole_home_passes_and_gives_the_persona_as_declared():
    verdict = judge(BASE, ADAPTERS, guarded=True)

    assert isinstance(verdict, Passed)
    persona = verdict.persona
    assert (persona.name, persona.account, persona.model) == ("gode", "Gode", "gpt-5")
    assert (persona.binary, persona.cwd, persona.user) == ("/opt/codex", "/srv/gode", "ann")
    assert (persona.sandbox, persona.network) == READ_ONLY_OFF
    assert (persona.wake_from, persona.on_interrupt, persona.locale) == ("humans", OnInterrupt.RESUME, "en")
    assert persona.token == Secret(SECRET)
    assert persona.limits == Limits()


def test_there_are_exactly_seven_checks_in_the_order_of_the_spec():
    verdict = judge(BASE, ADAPTERS, guarded=None)

    assert [check.check for check in verdict.checks] == [
        "home",
        "identity",
        "adapter",
        "executor",
        "model",
        "walls",
        "voice",
    ]
    assert tuple(check.check for check in verdict.checks) == CHECKS


BREAKAGES = [
    *[("identity", with_file(name, None), "absent") for name in ("server", "account", "token")],
    ("model", with_file("model", None), "absent"),
    ("walls", with_file("codex_sandbox", None), "absent"),
    ("walls", with_file("codex_network", None), "absent"),
    ("walls", with_file("codex_cwd", None), "absent"),
    ("voice", with_file("task.md", None), "absent"),
    ("executor", with_file("codex_bin", None), "absent"),
    ("executor", with_file("codex_bin", ""), "empty"),
    ("executor", with_file("codex_bin", " \n"), "blank"),
    ("executor", with_file("codex_bin", "codex\n"), "not absolute"),
    ("executor", replace(BASE, program=Unresolved("does not exist")), "does not exist"),
    ("executor", replace(BASE, program=Unresolved("is a link that loops")), "loops"),
    ("executor", replace(BASE, program=None), "not looked up"),
    ("executor", replace(BASE, program=replace(PROGRAM, is_regular=False, is_directory=True)), "a directory"),
    ("executor", replace(BASE, program=replace(PROGRAM, is_regular=False)), "not a regular file"),
    ("executor", replace(BASE, program=replace(PROGRAM, is_executable=False)), "not executable"),
    ("executor", replace(BASE, program=replace(PROGRAM, mode=0o757)), "writable by others"),
    ("executor", with_file("codex_env", "A=1\n", mode=0o640), "mode 0640"),
    ("executor", with_file("codex_env", "A=1\n", owner=0), "belongs to"),
    ("executor", with_file("codex_env", "# a comment\n"), "not KEY=VALUE"),
    ("executor", with_file("codex_env", "A=1\nA=2\n"), "twice"),
    ("executor", with_file("codex_env", "LD_PRELOAD=/tmp/x.so\n"), "break the walls"),
    ("executor", with_file("codex_env", "HOOP_HOME=/tmp\n"), "break the walls"),
    ("executor", with_file("codex_env", "USER=bob\n"), "break the walls"),
    ("executor", with_file("codex_env", f"API_KEY=x{SECRET}x\n"), "room's token"),
    ("home", replace(BASE, directory=DirectoryFacts(0o700, 0)), "belongs to"),
    ("home", replace(BASE, directory=DirectoryFacts(0o720, ME)), "writable by group"),
    ("home", replace(BASE, directory=DirectoryFacts(0o702, ME)), "writable by group or others"),
    ("home", replace(BASE, names=BASE.names | {"moved"}), "moved"),
    ("home", replace(BASE, names=BASE.names | {"session.id"}), "not imported"),
    ("home", replace(BASE, names=BASE.names | {"ws_state.json"}), "not imported"),
    ("home", with_file("model", "gpt-5\n", mode=0o646), "changed by others"),
    ("home", with_file("model", "gpt-5\n", owner=502), "changed by others"),
    ("identity", with_file("server", "rooms.example"), "no host"),
    ("identity", with_file("server", "ftp://rooms.example"), "no host"),
    ("identity", with_file("server", "https://"), "no host"),
    ("identity", with_file("server", "https://ann:pw@rooms.example"), "credentials"),
    ("identity", with_file("server", "https://rooms.example?x=1"), "query"),
    ("identity", with_file("server", "https://rooms.example:port"), "no URL"),
    ("identity", with_file("token", SECRET, mode=0o644), "mode 0644"),
    ("identity", with_file("token", SECRET, mode=0o400), "mode 0400"),
    ("identity", with_file("token", SECRET, owner=0), "belongs to"),
    ("identity", with_file("token", Unreadable("it is a symbolic link")), "symbolic link"),
    ("identity", with_file("token", "two words"), "one word"),
    ("identity", with_file("account", "Gode\nother\n"), "more than one line"),
    ("identity", with_file("owners", "\n"), "blank"),
    ("identity", with_file("owners", "u1 a/b"), "no user id"),
    ("identity", with_file("wake_from", "humans u1"), "mixes"),
    ("adapter", with_file("codex_driver", "warm"), "does not have"),
    ("adapter", with_file("codex_driver", "fast"), "fast"),
    ("model", with_file("model", "gpt 5"), "more than one word"),
    ("model", with_file("model", "--help"), "dash"),
    ("model", with_file("model", b"gpt\xff"), "UTF-8"),
    ("model", with_file("model", "\ufeffgpt-5"), "byte order mark"),
    ("model", with_file("model", "gpt\x00"), "NUL"),
    ("model", with_file("model", "gpt\x1b[31m"), "control character"),
    ("model", with_file("model", "gpt-5\r\n"), "carriage return"),
    ("model", with_file("model", "gpt-5 \n"), "white space around"),
    ("walls", with_file("codex_sandbox", "none"), "none"),
    ("walls", with_file("codex_network", "yes"), "yes"),
    ("walls", with_file("codex_network", "on"), "cannot enforce read-only with network on"),
    ("walls", with_file("codex_cwd", "work"), "not absolute"),
    ("walls", replace(BASE, cwd=Unresolved("cannot be entered: permission denied")), "cannot be entered"),
    ("walls", replace(BASE, cwd=EnteredFacts("/h")), "lies in /h"),
    ("walls", replace(BASE, cwd=EnteredFacts("/h/gode/work")), "lies in /h"),
    ("walls", replace(BASE, cwd=EnteredFacts("/")), "holds /h"),
    ("voice", with_file("task.md", " \n\n"), "empty"),
    ("voice", with_file("task.md", "You run on gpt-5."), "repeats the value of model"),
    ("voice", with_file("task.md", "Start /opt/codex yourself"), "repeats the value of codex_bin"),
    ("voice", with_file("task.md", "Work in /srv/gode."), "repeats the value of codex_cwd"),
    ("voice", with_file("codex_reply_bridge", "off"), "not on"),
    ("voice", with_file("codex_reply_bridge", ""), "not on"),
    ("voice", with_file("codex_reply_bridge", " on"), "not on"),
    ("voice", with_file("may_broadcast", "maybe"), "maybe"),
    ("voice", with_file("reply_wakes", "yes"), "yes"),
    ("voice", with_file("on_interrupt", "retry"), "retry"),
    ("voice", with_file("locale", "fr"), "fr"),
    ("voice", with_file("limits.toml", "turn_s = "), "not TOML"),
    ("voice", with_file("limits.toml", "speed = 1"), "unknown key"),
    ("voice", with_file("limits.toml", 'turn_s = "60"'), "not a number"),
    ("voice", with_file("limits.toml", "turn_s = true"), "not a number"),
    ("voice", with_file("limits.toml", "turn_s = nan"), "nan"),
    ("voice", with_file("limits.toml", "turn_s = inf"), "inf"),
    ("voice", with_file("limits.toml", "turn_s = -1"), "-1"),
    ("voice", with_file("limits.toml", "hop_limit = 2.5"), "not a whole number"),
    ("voice", with_file("limits.toml", "backoff_first_s = 1"), "backoff_first_s is 1"),
    ("voice", with_file("limits.toml", "backoff_cap_s = 6\nbackoff_first_s = 7"), "above"),
]


@pytest.mark.parametrize(
    ("check", "facts", "words"),
    BREAKAGES,
    ids=[f"{number}-{check}" for number, (check, _, _) in enumerate(BREAKAGES)],
)
def test_a_broken_rule_fails_its_check_alone_and_says_so(check, facts, words):
    refused = failed(facts)

    assert list(refused) == [check]
    assert words in refused[check].what
    assert refused[check].mend
    assert refused[check].line() == f"gate: {check}: {refused[check].what}: {refused[check].mend}"
    assert SECRET not in refused[check].line()


@pytest.mark.parametrize("word", ["acp", "cursor", "Codex", "../codex", "", None])
def test_no_known_adapter_fails_every_check_that_builds_on_it(word):
    """There is no default: what cannot be judged without an adapter is refused, not skipped."""
    refused = failed(with_file("adapter", word))

    assert list(refused) == ["adapter", "executor", "walls", "voice"]
    assert refused["adapter"].file == "adapter"
    assert "cannot be judged" in refused["voice"].what


@pytest.mark.parametrize("directory", [Absent(), Unreadable("not a directory")])
def test_without_a_home_no_later_check_passes(directory):
    verdict = judge(replace(BASE, directory=directory, files={}), ADAPTERS, guarded=None)

    assert isinstance(verdict, GateRefused)
    assert [check.ok for check in verdict.checks] == [False] * 7
    assert all("could not be read" in check.what for check in verdict.checks[1:])


def test_a_file_that_cannot_be_read_is_never_taken_for_absent():
    for name in BASE.files:
        assert failed(with_file(name, Unreadable("permission denied"))), name
    for name in (
        "owners",
        "wake_from",
        "handoff_from",
        "locale",
        "limits.toml",
        "codex_env",
        "codex_reply_bridge",
    ):
        assert failed(with_file(name, Unreadable("permission denied"))), name


@pytest.mark.parametrize(("guarded", "passes"), [(None, True), (True, True), (False, False)])
def test_run_needs_a_conversation_to_guard(guarded, passes):
    assert ("voice" in failed(BASE, guarded)) is not passes


def test_the_echo_needs_no_binary_no_directory_and_no_walls():
    files = {name: fact for name, fact in BASE.files.items() if not name.startswith("codex_")}
    files["adapter"] = Present(b"echo\n", 0o600, ME)
    verdict = judge(replace(BASE, files=files, program=None, cwd=None), ADAPTERS, guarded=None)

    assert isinstance(verdict, Passed)
    assert (verdict.persona.binary, verdict.persona.cwd) == ("", "/")
    assert (verdict.persona.sandbox, verdict.persona.network) == READ_ONLY_OFF


def test_an_echo_model_called_echo_leaves_the_word_free():
    files = {**BASE.files, "adapter": Present(b"echo", 0o600, ME), "model": Present(b"echo", 0o600, ME)}
    files["task.md"] = Present(b"You echo what people write.", 0o600, ME)

    assert isinstance(judge(replace(BASE, files=files), ADAPTERS, guarded=None), Passed)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("use gpt-5.", True),
        ("gpt-5", True),
        ("用gpt-5写", True),
        ("openai/gpt-5 is", True),
        ("(gpt-5)", True),
        ("gpt-5.4", False),
        ("gpt-5-mini", False),
        ("my-gpt-5", False),
        ("gpt-55", False),
        ("GPT-5", False),
        ("", False),
    ],
)
def test_a_value_is_repeated_as_a_whole_word_only(text, expected):
    assert repeats(text, "gpt-5") is expected


def test_a_regular_expression_in_a_value_is_only_text():
    assert repeats("a+b", "a+b")
    assert not repeats("aab", "a+b")


def test_another_adapters_path_may_not_be_repeated_either():
    facts = with_file("claude_bin", "/opt/claude")
    facts = replace(facts, files={**facts.files, "task.md": Present(b"never run /opt/claude", 0o600, ME)})

    assert "claude_bin" in failed(facts)["voice"].what


def test_optional_files_become_values():
    told = {
        "owners": "u1, u2\nu3\n",
        "wake_from": "u1 u9",
        "handoff_from": "limb1",
        "may_broadcast": "on",
        "reply_wakes": "on",
        "on_interrupt": "ask",
        "locale": "zh",
        "limits.toml": "turn_s = 60\nhop_limit = 2\n",
        "codex_env": "KEY=a=b\n\nHOME=/home/x\n",
    }
    files = {**BASE.files, **{name: Present(value.encode(), 0o600, ME) for name, value in told.items()}}

    verdict = judge(replace(BASE, files=files), ADAPTERS, guarded=True)

    assert isinstance(verdict, Passed)
    persona = verdict.persona
    assert persona.owners == {"u1", "u2", "u3"}
    assert persona.wake_from == {"u1", "u9"}
    assert persona.handoff_from == {"limb1"}
    assert (persona.may_broadcast, persona.reply_wakes, persona.locale) == (True, True, "zh")
    assert persona.on_interrupt is OnInterrupt.ASK
    assert (persona.limits.turn_s, persona.limits.hop_limit) == (60.0, 2)
    assert {key: value.reveal() for key, value in persona.env.items()} == {"KEY": "a=b", "HOME": "/home/x"}


def test_every_limit_has_bounds_and_its_default_lies_in_them():
    assert set(BOUNDS) == Limits.names()
    for name, (low, high) in BOUNDS.items():
        assert low <= getattr(Limits(), name) <= high, name


def test_an_unknown_file_is_no_refusal_and_is_named():
    facts = with_file("notes.txt", "x")

    assert failed(facts) == {}
    assert unknown_files(facts) == ("notes.txt",)


GODE = Account("u-gode", "Gode", Kind.PERSONA)


@pytest.mark.parametrize(
    ("declared", "account", "words"),
    [
        ("Gode", GODE, None),
        ("u-gode", GODE, None),
        ("gode", GODE, "belongs to Gode"),
        ("Gode", replace(GODE, name="GodeMini01"), "belongs to GodeMini01"),
        ("Gode", replace(GODE, kind=Kind.HUMAN), "not a persona"),
    ],
)
def test_the_server_must_say_that_the_token_is_this_persona(declared, account, words):
    verdict = judge(with_file("account", declared), ADAPTERS, guarded=None)
    assert isinstance(verdict, Passed)

    check = confirm_identity(verdict.persona, account)

    if words is None:
        assert check is None
    else:
        assert isinstance(check, Check)
        assert (check.check, check.ok) == ("identity", False)
        assert words in check.what


@given(st.binary(max_size=40))
def test_a_value_is_one_clean_line_or_is_refused(data):
    """Single-value files: one line, UTF-8, trailing newline allowed (spec 02 section 1)."""
    try:
        value = one_value(data, "model")
    except Broken:
        return

    assert value.encode() == data.removesuffix(b"\n")
    assert value == value.strip() != ""
    assert value.isprintable() or any(not one.isascii() for one in value)


@given(st.dictionaries(st.sampled_from(sorted(FILES)), st.binary(max_size=20), min_size=1))
def test_no_content_of_any_file_raises_or_shortens_the_list(contents):
    files = {**BASE.files, **{name: Present(data, 0o600, ME) for name, data in contents.items()}}

    verdict = judge(replace(BASE, files=files), ADAPTERS, guarded=None)

    assert [check.check for check in verdict.checks] == list(CHECKS)
