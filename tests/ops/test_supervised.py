"""The installed files start real sentinels under a supervisor that obeys the same keys; a minute takes a second."""

import os
import signal
import time
from contextlib import contextmanager
from itertools import pairwise

import pytest

from sentinel.ops.launchd import Launchd
from sentinel.ops.service import AGAIN_S, Service
from sentinel.ops.systemd import Systemd
from tests.fakes.supervisor import Supervisor
from tests.fakes.town import until

SCALE = 1 / 60
KINDS = ["launchd", "systemd"]


@contextmanager
def supervised(place, kind):
    """Install the persona's files and let the stand-in obey them."""
    folder = place.root / kind
    folder.mkdir()
    manager = Launchd(folder) if kind == "launchd" else Systemd(folder, environment={})
    environment = {key: place.environment[key] for key in ("PATH", "HOOP_HOME", "XDG_STATE_HOME")}
    files = manager.files(Service("gode", place.home, (place.cid,), environment))
    for one in files:
        one.path.touch(mode=0o600)
        one.path.write_bytes(one.data)
    with Supervisor(files[0].path, home=place.root, scale=SCALE, errors=place.errors) as supervisor:
        yield supervisor


def until_up(place, supervisor, *, runs=1):
    until(lambda: len(supervisor.runs) >= runs and supervisor.pid, "the run")
    until(lambda: place.said.count("event='connected'") >= runs, lambda: place.said)


@pytest.mark.parametrize("kind", KINDS)
def test_a_refused_persona_does_not_loop_and_heals_once_its_home_is_mended(place, kind):
    place.write("model", "")

    with supervised(place, kind) as supervisor:
        until(lambda: len(supervisor.runs) >= 3, "three starts")
        began = [one.at for one in supervisor.runs]
        assert {one.code for one in supervisor.runs if one.code is not None} == {78}
        assert all(later - one >= AGAIN_S * SCALE * 0.95 for one, later in pairwise(began))
        assert "exec:" not in place.said
        question = place.ask("are you well?")
        until(lambda: supervisor.pid is None, "the refusal")
        place.write("model", "m-1")
        mended, refusals = time.monotonic(), len(supervisor.runs)
        place.until_answered(question)

        healed = supervisor.runs[refusals]
        assert healed.code is None
        assert healed.at - mended <= AGAIN_S * SCALE * 1.5
        assert len(place.answers_to(question)) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_sentinel_is_started_again_and_answers_what_came_meanwhile(place, kind):
    with supervised(place, kind) as supervisor:
        until_up(place, supervisor)
        os.kill(supervisor.pid, signal.SIGKILL)
        question = place.ask()
        place.until_answered(question)

        assert [one.code for one in supervisor.runs] == [-signal.SIGKILL, None]


@pytest.mark.parametrize("kind", KINDS)
def test_a_clean_end_is_final(place, kind):
    with supervised(place, kind) as supervisor:
        until_up(place, supervisor)
        os.kill(supervisor.pid, signal.SIGTERM)
        until(lambda: supervisor.pid is None, "the end")
        ended = time.monotonic()
        until(lambda: time.monotonic() - ended > 2 * AGAIN_S * SCALE, "two throttle periods")

        assert [one.code for one in supervisor.runs] == [0]


@pytest.mark.parametrize("kind", KINDS)
def test_stopping_the_service_ends_the_sentinel_well(place, kind):
    with supervised(place, kind) as supervisor:
        until_up(place, supervisor)

    assert [one.code for one in supervisor.runs] == [0]


def test_a_stopped_process_is_killed_by_the_watchdog_and_its_heir_answers(place):
    with supervised(place, "systemd") as supervisor:
        until_up(place, supervisor)
        os.kill(supervisor.pid, signal.SIGSTOP)
        question = place.ask("still there?")
        place.until_answered(question)

        assert [one.bitten for one in supervisor.runs] == [True, False]
        assert len(place.answers_to(question)) == 1


def test_a_healthy_idle_sentinel_is_left_alone(place):
    with supervised(place, "systemd") as supervisor:
        until_up(place, supervisor)
        until(lambda: supervisor.runs[0].told.count("WATCHDOG=1") >= 6, "six feeds: two watchdog periods")

        assert len(supervisor.runs) == 1
        assert "READY=1" in supervisor.runs[0].told


def test_a_second_sentinel_is_not_started_again_at_once(place):
    place.start()

    with supervised(place, "systemd") as supervisor:
        until(lambda: len(supervisor.runs) >= 2, "the second try")
        first, second = supervisor.runs[:2]
        assert first.code == 75
        assert second.at - first.at >= AGAIN_S * SCALE
