"""`kill -9` keeps the page cache, so durability is shown by the system calls: each sync comes before the next act.

strace looks at a real sentinel for one turn. The write-ahead log of `state.db` must have been written *and* synced
before the executor starts, before the POST leaves, after its response and after the readback.
"""

import os
import re
import shutil
import signal
from dataclasses import dataclass
from pathlib import Path

import pytest

CALLS = "openat,close,fsync,fdatasync,pwrite64,write,sendto,sendmsg,writev,recvfrom,read,execve,vfork,clone,clone3"


@dataclass
class Line:
    at: int
    text: str


def traced(place):
    """Run one turn under strace; return its lines in order, and which descriptors are the write-ahead log."""
    strace = shutil.which("strace")
    assert strace, "strace is needed to show the order of syncs: install it"
    trace = place.root / "trace"
    place.start(wrap=[strace, "-f", "-qq", "-y", "-s", "400", "-e", f"trace={CALLS}", "-o", str(trace)])
    question = place.ask("the question")
    place.until_answered(question)
    (pid,) = Path(f"/proc/{place.process.pid}/task/{place.process.pid}/children").read_text().split()
    os.kill(int(pid), signal.SIGTERM)  # the sentinel: strace itself ends with it
    place.process.wait(20)
    return [Line(at, text) for at, text in enumerate(trace.read_text(errors="replace").splitlines())]


def first(lines, pattern, after=-1):
    return next(one for one in lines if one.at > after and re.search(pattern, one.text))


def is_write(line):
    return re.search(r"pwrite64\(\d+<[^>]*state\.db-wal>", line.text)


def is_sync(line):
    return re.search(r"f(data)?sync\(\d+<[^>]*state\.db-wal>\) *= 0", line.text)


def synced_writes(lines, begin, end):
    """Count the syncs of the log between two lines that come after a write, and whether nothing is left unsynced."""
    syncs, dirty = 0, False
    for one in lines:
        if begin < one.at < end:
            if is_write(one):
                dirty = True
            elif is_sync(one):
                syncs += dirty
                dirty = False
    return syncs, dirty


@pytest.mark.real
def test_every_state_is_on_the_disk_before_the_next_act(town):
    lines = traced(town.place())
    execve = first(lines, r'execve\("/bin/cat"')
    post = first(lines, r"(sendto|sendmsg|write|writev)\(.*POST /v1/conversations/.*/text", execve.at)
    response = first(lines, r"(recvfrom|read)\(.*HTTP/1\.1 201", post.at)
    look = first(lines, r"(sendto|sendmsg|write|writev)\(.*GET .*/by-nonce/", response.at)
    looked = first(lines, r"(recvfrom|read)\(.*HTTP/1\.1 200", look.at)

    running = synced_writes(lines, -1, execve.at)
    drafted_and_sending = synced_writes(lines, execve.at, post.at)
    posted = synced_writes(lines, response.at, look.at)
    verified = synced_writes(lines, looked.at, len(lines))

    assert running[0] >= 1
    assert not running[1], "the executor started on the strength of something that was not synced"
    assert drafted_and_sending[0] >= 2
    assert not drafted_and_sending[1], "the post left before the journal was synced"
    assert posted[0] >= 1
    assert not posted[1]
    assert verified[0] >= 1
