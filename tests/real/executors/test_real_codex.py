"""codex: every pair of walls holds against a tool that tries, and its tools see no key."""

import base64
import socket
import threading
from pathlib import Path

import pytest
from real_world import CONFIG

from adapters import codex
from sentinel.core.codec import Sandbox
from sentinel.core.outcome import Answer, FailureClass

pytestmark = pytest.mark.real
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.fixture
async def world(make_world):
    return await make_world("codex", codex.ADAPTER)


@pytest.fixture
def knocks(_loopback_only):
    """Return a port on loopback and the list of connections that came in."""
    came, server = [], socket.create_server(("127.0.0.1", 0))

    def accept():
        while True:
            try:
                came.append(server.accept()[0])
            except OSError:
                return

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    yield server.getsockname()[1], came
    server.shutdown(socket.SHUT_RDWR)
    server.close()
    thread.join()
    for one in came:
        one.close()


@pytest.mark.parametrize(
    ("sandbox", "network", "inside", "tmp", "outside", "connects"),
    [
        (Sandbox.READ_ONLY, False, False, False, False, False),
        (Sandbox.WORKSPACE_WRITE, False, True, False, False, False),
        (Sandbox.WORKSPACE_WRITE, True, True, False, False, True),
        (Sandbox.DANGER_FULL_ACCESS, True, True, True, True, True),
    ],
)
@pytest.mark.parametrize("resumed", [False, True], ids=["first", "resumed"])
async def test_the_walls_hold(world, knocks, sandbox, network, inside, tmp, outside, connects, resumed):
    """Spec 02 section 2, check 6: a pair in the table is really enforced, on a resumed turn like on the first."""
    port, came = knocks
    thread = (await world.turn(sandbox=Sandbox.DANGER_FULL_ACCESS, network=True)).thread if resumed else None
    in_cwd, in_tmp, elsewhere = world.cwd / "made", Path("/tmp") / world.base.name, world.base / "made"
    world.model.always(
        f"tool:cmd=touch {in_cwd}; touch {in_tmp}; touch {elsewhere}; (exec 3<>/dev/tcp/127.0.0.1/{port})"
    )

    outcome = await world.turn(sandbox=sandbox, network=network, resume=thread)

    made = (in_cwd.exists(), in_tmp.exists(), elsewhere.exists(), bool(came))
    in_tmp.unlink(missing_ok=True)
    assert isinstance(outcome, Answer)
    assert made == (inside, tmp, outside, connects)


@pytest.mark.parametrize(("sandbox", "network"), list(codex.WALLS))
async def test_the_hosted_search_is_offered_only_with_a_network(world, sandbox, network):
    await world.turn(sandbox=sandbox, network=network)

    assert ('"type": "web_search"' in world.model.requests()[-1]) is network


async def test_tools_see_no_key_and_carry_the_mark_of_their_turn(world):
    """By the mark a tool is found that fled, and outlived both its executor and its sentinel."""
    world.model.always(f"tool:cmd=env > {world.cwd}/env.txt")

    await world.turn(sandbox=Sandbox.DANGER_FULL_ACCESS, network=True)

    seen = (world.cwd / "env.txt").read_text()
    assert "PATH=" in seen
    assert f"HOOP_TURN=real-{world.base.name}\n" in seen
    assert "test-key" not in seen
    assert "CODEX_HOME" not in seen


async def test_a_slash_and_an_at_are_only_text(world):
    outcome = await world.turn("/clear @/etc/passwd")

    asked = world.model.requests()[-1]
    assert isinstance(outcome, Answer)
    assert "/clear @/etc/passwd" in asked
    assert "root:x:0:0" not in asked


async def test_images_go_in_on_first_and_resumed_turns(world):
    image = world.base / "pixel.png"
    image.write_bytes(PIXEL)

    first = await world.turn(images=(str(image),))
    asked_first = world.model.requests()[-1].count('"input_image"')
    await world.turn(images=(str(image),), resume=first.thread)

    assert asked_first == 1
    assert world.model.requests()[-1].count('"input_image"') == 2


async def test_a_refused_connection_is_known_without_our_limits(world):
    (world.base / "state" / "config.toml").write_text(CONFIG.format(port=9))

    outcome = await world.turn()

    assert outcome.kind is FailureClass.UNAVAILABLE
