"""Commands: the strict form of a first line (spec 02 section 3)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.core.commands import NEEDS_ARGUMENT, Command, CommandKind, parse
from sentinel.core.model import Kind, Member

MEMBERS = (
    Member("u-ann", "ann", Kind.HUMAN),
    Member("u-gode", "Gode", Kind.PERSONA),
    Member("u-mini", "GodeMini01", Kind.PERSONA),
)
PLAIN = [kind for kind in CommandKind if kind not in NEEDS_ARGUMENT]


@pytest.mark.parametrize("kind", PLAIN)
def test_a_bare_word_is_a_command(kind):
    assert parse(f"/{kind}", MEMBERS) == Command(kind)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("@Gode /stop", Command(CommandKind.STOP), id="after-a-mention"),
        pytest.param("@Gode @GodeMini01 /stop", Command(CommandKind.STOP), id="after-two-mentions"),
        pytest.param("@everyone /stop", Command(CommandKind.STOP), id="after-calling-everybody"),
        pytest.param("/stop @Gode", Command(CommandKind.STOP, "@Gode"), id="before-a-mention"),
        pytest.param("/stop\nplease", Command(CommandKind.STOP), id="a-later-line-is-not-read"),
        pytest.param("/stop\r\nplease", Command(CommandKind.STOP), id="windows-line-end"),
        pytest.param("/retry  m-7 ", Command(CommandKind.RETRY, "m-7"), id="argument-without-space-around"),
        pytest.param("/approve K7Q2", Command(CommandKind.APPROVE, "K7Q2"), id="approve-with-code"),
        pytest.param("/deny K7Q2 @Gode", Command(CommandKind.DENY, "K7Q2"), id="the-code-is-the-first-word"),
        pytest.param(
            "/task tidy up\n- a\n- b", Command(CommandKind.TASK, "tidy up\n- a\n- b"), id="task-whole"
        ),
        pytest.param("/task\ntidy up", Command(CommandKind.TASK, "tidy up"), id="task-on-later-lines"),
        pytest.param("  /stop", Command(CommandKind.STOP), id="up-to-three-spaces-are-nothing"),
    ],
)
def test_what_is_a_command(text, expected):
    assert parse(text, MEMBERS) == expected


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("please /stop", id="inside-a-line"),
        pytest.param("hello\n/stop", id="later-line"),
        pytest.param("@Gode\n/stop", id="the-line-after-a-mention"),
        pytest.param("\n/stop", id="after-an-empty-line"),
        pytest.param("@Gode\u2028/stop", id="after-a-line-separator"),
        pytest.param("@Gode\x85/stop", id="after-a-next-line-character"),
        pytest.param("> /stop", id="quote"),
        pytest.param("@Gode > /stop", id="quote-sign-after-a-mention"),
        pytest.param("`/stop`", id="inline-code"),
        pytest.param("@Gode `/stop`", id="inline-code-after-a-mention"),
        pytest.param("```\n/stop\n```", id="fence"),
        pytest.param("~~~\n/stop\n~~~", id="tilde-fence"),
        pytest.param("    /stop", id="indented-code"),
        pytest.param("\t/stop", id="indented-by-tab"),
        pytest.param("    @Gode /stop", id="indented-mention"),
        pytest.param("- /stop", id="list"),
        pytest.param("/Stop", id="capital"),
        pytest.param("/STOP", id="capitals"),
        pytest.param("/stopp", id="longer-word"),
        pytest.param("/stop!", id="punctuation-behind"),
        pytest.param("/stop/status", id="path"),
        pytest.param("//stop", id="two-slashes"),
        pytest.param("/ stop", id="space-after-slash"),
        pytest.param("stop", id="no-slash"),
        pytest.param("/clear", id="an-executor's-command"),
        pytest.param("@nobody /stop", id="not-a-member's-name"),
        pytest.param("/approve", id="approve-without-code"),
        pytest.param("/approve  ", id="approve-with-spaces-only"),
        pytest.param("/approve\nK7Q2", id="code-on-a-later-line"),
        pytest.param("/deny", id="deny-without-code"),
        pytest.param("/task", id="task-without-text"),
        pytest.param("/task \n \n", id="task-blank"),
    ],
)
def test_what_is_no_command(text):
    assert parse(text, MEMBERS) is None


@given(st.text(), st.sampled_from(CommandKind))
def test_nothing_on_a_later_line_is_a_command(before, kind):
    """Whatever stands on the first line, a command below it is text."""
    alone = parse(before, MEMBERS)

    both = parse(f"{before}\n/{kind} x", MEMBERS)

    assert both == alone or (both is not None and both.kind is CommandKind.TASK)


@given(st.text())
def test_any_text_is_parsed_without_a_fault(text):
    found = parse(text, MEMBERS)

    assert found is None or f"/{found.kind}" in text.split("\n")[0]
