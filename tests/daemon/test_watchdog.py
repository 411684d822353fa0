"""The service manager hears "alive" only while the loops that do the work get on."""

import asyncio
import contextlib
import os
import socket
import sys

import pytest

from sentinel import process
from sentinel.daemon.watchdog import Notifier, Pulse, Watchdog
from tests.fakes.fake_clock import until
from tests.fakes.stage import Lines

PERIOD_S = 0.03


@pytest.fixture
def manager(tmp_path):
    """A manager's end of the line; `heard()` returns the datagrams so far."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
        line.bind(str(tmp_path / "n"))
        line.setblocking(False)
        kept = []

        def heard():
            with contextlib.suppress(BlockingIOError):
                while True:
                    kept.append(line.recv(4096).decode())
            return kept

        heard.address = str(tmp_path / "n")
        yield heard


@contextlib.asynccontextmanager
async def watched(stage, manager):
    """A whole sentinel that is watched; a step of it may take three periods."""
    stage.open()
    stage.sentinel._notifier = Notifier(manager.address, PERIOD_S)
    async with stage.running():
        yield


async def no_feed_for(manager, seconds):
    """Wait until nothing was heard for so long."""
    loop = asyncio.get_running_loop()
    count, since = manager().count("WATCHDOG=1"), loop.time()
    while loop.time() - since < seconds:
        if manager().count("WATCHDOG=1") != count:
            count, since = manager().count("WATCHDOG=1"), loop.time()
        await asyncio.sleep(0)


async def feeds(manager, more):
    before = manager().count("WATCHDOG=1")
    async with asyncio.timeout(20):
        while manager().count("WATCHDOG=1") < before + more:
            await asyncio.sleep(0)


def test_its_variables_are_taken_away_so_that_no_child_speaks_for_us():
    environment = {"NOTIFY_SOCKET": "/n", "WATCHDOG_USEC": "180000000", "WATCHDOG_PID": "7", "PATH": "/bin"}

    notifier = Notifier.of(environment, pid=7)

    assert notifier == Notifier("/n", 180.0)
    assert environment == {"PATH": "/bin"}


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"WATCHDOG_USEC": "1000"},
        {"NOTIFY_SOCKET": "/n", "WATCHDOG_USEC": "1000", "WATCHDOG_PID": "8"},
        {"NOTIFY_SOCKET": "/n", "WATCHDOG_USEC": "0"},
        {"NOTIFY_SOCKET": "/n", "WATCHDOG_USEC": "soon"},
        {"NOTIFY_SOCKET": "/n"},
    ],
)
def test_nothing_is_fed_unless_the_manager_watches_this_very_process(environment):
    assert Notifier.of(environment, pid=7).watchdog_s is None


def test_what_is_told_is_one_datagram_of_lines(manager):
    Notifier(manager.address).tell(READY=1, STATUS="ready")

    assert manager() == ["READY=1\nSTATUS=ready"]


def test_an_abstract_address_is_one_too():
    address = f"hoop-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
        line.bind(f"\0{address}")
        Notifier(f"@{address}").tell(READY=1)

        assert line.recv(100) == b"READY=1"


def test_a_manager_that_is_gone_harms_nothing(tmp_path):
    Notifier(str(tmp_path / "nobody")).tell(READY=1)
    Notifier().tell(READY=1)


async def test_an_executor_gets_none_of_it(monkeypatch, tmp_path):
    """Children's environment is built from nothing; so is that of a program of ours."""
    monkeypatch.setenv("NOTIFY_SOCKET", "/n")
    said = tmp_path / "said"
    with said.open("wb") as out:
        words = [sys.executable, "-c", "import os; print('NOTIFY_SOCKET' in os.environ)"]
        child = await process.start_program(words, env={"PATH": "/bin"}, cwd="/", stdout=out)
        await child.wait()

    assert said.read_text() == "False\n"


async def test_it_is_fed_while_the_sentinel_idles(stage, manager):
    async with watched(stage, manager):
        await feeds(manager, 12)  # longer than a step may take


async def test_it_is_fed_while_an_executor_works_however_long(stage, manager):
    stage.works.clear()
    async with watched(stage, manager):
        question = stage.ask()
        await until(lambda: stage.runs)
        await feeds(manager, 12)
        stage.works.set()
        await stage.until_answered(question)


def names(stage, step):
    """Whether the log says that a step of this name hangs."""
    return any(one.startswith(step) for line in stage.log.of("hangs") for one in line["steps"])


async def never(*_, **__):
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("step", "hang"),
    [
        ("turns", lambda stage: setattr(stage.sentinel.turner, "run", never)),
        ("deliveries", lambda stage: setattr(stage.sentinel._postman, "attempt", never)),
        ("pull", lambda stage: setattr(stage.room, "history", never)),
    ],
)
async def test_a_loop_that_hangs_while_the_event_loop_lives_is_not_fed(stage, manager, step, hang):
    async with watched(stage, manager):
        await feeds(manager, 2)
        hang(stage)
        stage.ask()
        if step == "deliveries":
            stage.sentinel._postman.say(stage.cid, "a notice", "said")
        await until(lambda: names(stage, step))
        await no_feed_for(manager, PERIOD_S * 2)

        assert any(one.startswith("STATUS=hangs: ") for one in manager())


async def test_a_worker_that_does_not_come_when_rung_is_not_fed(stage, manager):
    """Idle is no excuse: the loop must go round."""
    async with watched(stage, manager):
        stage.sentinel._worker._wait = never
        await until(lambda: names(stage, "turns"))
        await no_feed_for(manager, PERIOD_S * 2)


async def test_an_end_is_told(stage, manager):
    async with watched(stage, manager):
        await stage.sentinel.end()
        await stage.task

        assert "STOPPING=1" in manager()


async def test_the_time_of_an_awaited_executor_does_not_count_for_what_comes_after():
    now, log = [0.0], Lines()
    pulse = Pulse(lambda: now[0])
    watchdog = Watchdog(Notifier(), pulse, ring=lambda: None, awaited=lambda: "turns", log=log)
    pulse.on("turns")
    now[0] = 1000.0

    watchdog._look(10.0)

    assert pulse.steps == {"turns": 1000.0}
    assert not log.of("hangs")
