"""The built-in stand-in: whole, honest, and unable to call anybody."""

from datetime import UTC, datetime

import pytest
from executor_runs import NOW, request
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from adapters import echo
from sentinel.core.codec import EndedBy, ExitStatus, Sandbox
from sentinel.core.model import Account, Kind, Media, Message, MessageType
from sentinel.core.outcome import Answer, FailureClass

ANN = Account("u1", "ann", Kind.HUMAN)


def message(text, message_id="m1", **more):
    return Message(
        id=message_id,
        cid="c1",
        seq=1,
        sender=ANN,
        sent_at=datetime(2026, 11, 30, tzinfo=UTC),
        text=text,
        **more,
    )


def echoed(*triggers, prompt="the prompt with its context"):
    codec = echo.ADAPTER.codec(request(binary="", prompt=prompt, triggers=triggers))
    codec.receive(codec.to_send())
    return codec.outcome(ExitStatus(0), stderr="", now=NOW)


def test_any_pair_of_walls_is_kept():
    assert set(echo.WALLS) == {(sandbox, network) for sandbox in Sandbox for network in (True, False)}
    assert not echo.ADAPTER.needs_binary


@pytest.mark.parametrize(("binary", "argv"), [("", ("/bin/cat",)), ("/opt/stamp", ("/opt/stamp",))])
def test_it_runs_the_copier_or_the_binary_that_was_named(binary, argv):
    assert echo.ADAPTER.codec(request(binary=binary)).argv() == argv


def test_every_trigger_stands_whole_and_once_and_it_says_what_it_is():
    answer = echoed(message("@Echo one\n\ntwo", "m1"), message("three", "m2"), message("three", "m2"))

    assert answer.text.startswith("I am a built-in echo, not an AI.")
    assert answer.text.count("@Echo one\n\ntwo") == 1
    assert answer.text.count("three") == 1
    assert "context" not in answer.text


@given(text=st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\x00\r")))
@example("before\n```\n@everyone\n`````\n@everyone")
def test_all_of_the_text_is_inside_one_code_fence(text):
    """Spec 02 section 6: no `@` in fenced code calls anybody; so `@everyone` that is echoed does not."""
    fences = [token for token in MarkdownIt().parse(echoed(message(text)).text) if token.type == "fence"]

    assert [fence.content for fence in fences] == [f"{text or '(no text)'}\n"]


def test_media_is_named_by_its_type():
    answer = echoed(message(None, type=MessageType.VOICE, media=Media("x", "/m/x", "audio/ogg", 9, "hi.ogg")))

    assert "(voice hi.ogg)" in answer.text


def test_lone_surrogates_can_be_sent_on():
    echoed(message("bad \ud800 text")).text.encode()


@pytest.mark.parametrize("printed", [b"", b"no\n", b'{"echo":[1]}\n', b'{"echo":"x"}\n'])
def test_what_was_not_sent_back_is_no_answer(printed):
    codec = echo.ADAPTER.codec(request(triggers=(message("hi"),)))
    codec.receive(printed)

    assert codec.outcome(ExitStatus(0), stderr="", now=NOW).kind is FailureClass.CRASH


def test_an_executor_that_never_started_is_missing():
    codec = echo.ADAPTER.codec(request(triggers=(message("hi"),)))

    assert codec.outcome(ExitStatus(None, EndedBy.SPAWN), stderr="", now=NOW).kind is FailureClass.MISSING


@given(texts=st.lists(st.text(max_size=50), min_size=1, max_size=4), size=st.integers(1, 7))
def test_any_split_of_the_bytes_gives_the_same_answer(texts, size):
    triggers = tuple(message(text, f"m{at}") for at, text in enumerate(texts))
    codec = echo.ADAPTER.codec(request(triggers=triggers))
    data = codec.to_send()

    for at in range(0, len(data), size):
        codec.receive(data[at : at + size])

    assert codec.outcome(ExitStatus(0), stderr="", now=NOW) == echoed(*triggers)
    assert isinstance(echoed(*triggers), Answer)
