"""One sentinel per account, whatever its home is called (spec 02 section 3 point 2)."""

import os
import subprocess
import sys

import pytest

from sentinel.core.errors import AlreadyRunning
from sentinel.daemon.lock import AccountLock, is_held, lock_path


@pytest.fixture(autouse=True)
def _state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


HOLD = """
import sys
from sentinel.daemon.lock import AccountLock
lock = AccountLock(sys.argv[1], sys.argv[2])
lock.acquire()
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def other_process(tmp_path):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, "http://h:1", "u-1"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "HOOP_HOME": str(tmp_path / "another-home")},
    )
    assert holder.stdout.readline() == b"held\n"
    yield holder
    holder.stdin.close()
    holder.wait(10)
    holder.stdout.close()


def test_a_second_holder_is_told_who_the_first_is(other_process):
    with pytest.raises(AlreadyRunning, match=f"pid {other_process.pid}") as fault:
        AccountLock("http://h:1/", "u-1").acquire()

    assert fault.value.exit_code == 75
    assert is_held("http://h:1", "u-1")


def test_another_account_or_server_is_free(other_process):
    for server, uid in [("http://h:1", "u-2"), ("http://h:2", "u-1")]:
        lock = AccountLock(server, uid)
        lock.acquire()
        lock.release()


def test_it_ends_with_its_process_however_that_ends(other_process):
    other_process.kill()
    other_process.wait(10)

    lock = AccountLock("http://h:1", "u-1")
    lock.acquire()
    assert lock.path.exists()
    lock.release()
    assert lock.path.exists()
    assert not is_held("http://h:1", "u-1")


def test_the_file_is_private():
    lock = AccountLock("http://h:1", "u-1")
    lock.acquire()

    assert lock_path("http://h:1", "u-1").stat().st_mode & 0o777 == 0o600
    lock.release()
