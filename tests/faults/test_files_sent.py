"""Files sent back, on a real server: each in the room exactly once, wherever the sentinel is killed (law 7)."""

import pytest

from sentinel.core.parts import nonce
from tests.fakes.town import until

# Speaks as codex does, and leaves two files to be sent, one of them named badly.
_MAKER = """#!/bin/sh
cat >/dev/null
echo run >>"$(dirname "$0")/runs"
printf 'one' >"$TMPDIR/outbox/a.txt"
printf 'two' >"$TMPDIR/outbox/b@Gode.txt"
ln -s /etc/hostname "$TMPDIR/outbox/c.txt"
echo '{"type":"thread.started","thread_id":"0199a213-81c0-7800-8aa1-bbab2a035a53"}'
echo '{"type":"turn.started"}'
echo '{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"Two files."}}'
echo '{"type":"turn.completed","usage":{"input_tokens":10,"cached_input_tokens":2,"output_tokens":3}}'
"""


@pytest.fixture
def maker(tmp_path):
    path = tmp_path / "maker"
    path.write_text(_MAKER)
    path.chmod(0o755)
    return path


def runs(maker):
    return (maker.parent / "runs").read_text().count("run")


def sent(place, question):
    """Return (type, text or file name, bytes) of everything that answers a question."""
    found = []
    for one in place.answers_to(question):
        media = one.get("media")
        data = place.person("ann").get(media["url"]).content if media else None
        found.append((one["type"], media["name"] if media else one["text"], data))
    return found


WHOLE = [("text", "Two files.", None), ("file", "a.txt", b"one"), ("file", "b_Gode.txt", b"two")]


def test_they_come_after_the_answer_with_safe_names_and_a_link_is_left(town, maker):
    place = town.place(adapter="codex", executor=maker)
    place.start()
    question = place.ask("two files, please")
    place.until_answered(question)
    until(
        lambda: any("could not send: 1" in one["text"] for one in place.own() if one.get("text")), "the line"
    )

    assert sent(place, question) == WHOLE
    assert not list((place.home / "turns").iterdir())
    line = next(line for line in place.said.splitlines() if line.startswith("exec: "))
    assert "sandbox_workspace_write.writable_roots=" in line
    place.close()


UPLOADS, TEXTS, FILES, READS = "/v1/media?", "/text", "/media", "/by-nonce/"
STEPS = {
    "first upload, not arrived": (UPLOADS, 0, False, 2),
    "first upload, arrived": (UPLOADS, 0, True, 2),
    "text, not arrived": (TEXTS, None, False, 1),
    "text, arrived": (TEXTS, None, True, 1),
    "first file, not arrived": (FILES, 1, False, 1),
    "first file, arrived": (FILES, 1, True, 1),
    "last file, not arrived": (FILES, 2, False, 1),
    "last file, arrived": (FILES, 2, True, 1),
    "first file posted": (READS, 1, True, 1),
    "last file posted": (READS, 2, True, 1),
}


def gate_at(place, proxy, question, part, number, after):
    """Stop the call of one step; posts of a part are told apart by what went before them."""
    method = "GET" if part == READS else "POST"
    if part == READS:
        part += nonce(
            account=place.gode.uid,
            persona="gode",
            cid=place.cid,
            trigger_id=question,
            generation=0,
            part=number,
        )
        return proxy.stop(method, part, after=after)
    if part != FILES:
        return proxy.stop(method, part, after=after)
    gate = proxy.stop("POST", f"{place.cid}/media", after=after)
    for _ in range(number - 1):
        gate.wait()
        gate.go()
        gate = proxy.stop("POST", f"{place.cid}/media", after=after)
    return gate


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_killed_at_any_step_each_file_is_there_exactly_once(town, proxy, maker, step):
    part, number, after, most_runs = step
    place = town.place(adapter="codex", executor=maker, server=proxy.url)
    place.start()
    held = proxy.stop("GET", "/messages")
    question = place.ask("two files, please")
    held.wait()
    gate = None if part == FILES and number > 1 else gate_at(place, proxy, question, part, number, after)
    held.go()
    gate = gate or gate_at(place, proxy, question, part, number, after)
    gate.wait()

    place.kill()
    gate.cut()
    place.start()
    place.until_answered(question)
    later = place.ask("and once more")
    place.until_answered(later)

    assert sorted(sent(place, question)) == sorted(WHOLE)
    assert sorted(sent(place, later)) == sorted(WHOLE)
    assert runs(maker) <= most_runs + 1
    place.close()
