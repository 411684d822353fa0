"""Durable before acknowledged: shown by kill -9 under load, and by the system calls themselves."""

import asyncio
import contextlib
import re
import shutil
import sqlite3

import httpx
import pytest
from hoop_house import House, HouseProcess, eventually

LOOSE = ("--reads-per-s", "100000", "--posts-per-s", "100000", "--burst", "100000")


@pytest.mark.parametrize("round_", [0, *(pytest.param(n, marks=pytest.mark.real) for n in (1, 2))])
async def test_killed_under_load_no_acknowledged_message_is_lost(data, round_):
    running = HouseProcess(data, *LOOSE)
    house = House(running.url, data)
    people = [house.person("ann"), house.person("bob"), house.persona("Gode")]
    cid = house.room(*people)
    acknowledged = []

    async def post_for_ever(person):
        with contextlib.suppress(httpx.HTTPError):
            for n in range(100_000):
                reply = await person.text(cid, f"t{n}", nonce=f"n{n}")
                assert reply.status_code == 201
                acknowledged.append(reply.json())

    posting = [asyncio.create_task(post_for_ever(one)) for one in people]
    async with people[0].socket() as ears:
        await eventually(lambda: len(acknowledged) > 40 * (round_ + 1))
        running.kill()
        await asyncio.gather(*posting)
        pushed = []
        with contextlib.suppress(Exception):
            while True:
                frame = await ears.next()
                pushed += [frame["message"]] if frame["type"] == "message.new" else []
    await house.leave()

    running = HouseProcess(data, *LOOSE)
    again = people[0]
    again.url, again._clients = running.url, []
    kept = []
    while (page := await again.history(cid, after=len(kept)))["messages"]:
        kept += page["messages"]
    first = acknowledged[0]
    sender = next(one for one in people if one.uid == first["sender"]["uid"])
    sender.url, sender._clients = running.url, sender._clients if sender is again else []
    repeated = await sender.text(cid, first["text"], nonce=first["nonce"])
    await house.leave()
    assert running.stop() == 0

    by_id = {one["id"]: one for one in kept}
    assert [one["seq"] for one in kept] == list(range(1, len(kept) + 1))
    assert len(by_id) == len(kept)
    assert all(by_id[one["id"]] == one for one in acknowledged)
    assert all(by_id[one["id"]] == one for one in pushed), "something was pushed that is not stored"
    assert (repeated.status_code, repeated.json()) == (200, first)


@pytest.mark.real
async def test_the_sync_comes_before_the_reply_and_the_push(data, tmp_path):
    """`kill -9` keeps the page cache, so the order of the system calls is looked at."""
    strace = shutil.which("strace")
    assert strace, "strace is needed: apt-get install strace"
    trace = tmp_path / "trace"
    wrap = (
        strace,
        "-f",
        "-y",
        "-s",
        "2000",
        "-e",
        "trace=fsync,fdatasync,sendto,write,pwrite64",
        "-o",
        str(trace),
    )
    running = HouseProcess(data, *LOOSE, wrap=wrap)
    house = House(running.url, data)
    ann, gode = house.person("ann"), house.persona("Gode")
    cid = house.room(ann, gode)
    async with gode.socket() as ears:
        await ears.until("hello")
        await ann.text(cid, "marker-one")
        await ears.until("message.new")
    await house.leave()
    running.kill()

    lines = trace.read_text(errors="replace").splitlines()
    told = [
        n
        for n, line in enumerate(lines)
        if "sendto(" in line and "marker-one" in line and "message.new" not in line
    ]
    pushed = [n for n, line in enumerate(lines) if "sendto(" in line and "message.new" in line]
    before = list(enumerate(lines[: min(told + pushed)]))
    written = max(n for n, line in before if "pwrite64(" in line and "hoop.db-wal" in line)
    synced = max(n for n, line in before if re.search(r"f(data)?sync(\(.*hoop.db-wal| resumed).*= 0$", line))
    assert written < synced
    assert len(told) == len(pushed) == 1


async def test_a_second_server_of_one_directory_is_refused(server):
    import subprocess
    import sys

    command = [
        sys.executable,
        "-m",
        "sentinel.cli.main",
        "hoop",
        "serve",
        "--data",
        str(server.data),
        "--port",
        "0",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)

    assert done.returncode == 75
    assert "another server serves" in done.stderr


def test_the_database_is_synced_in_full(server):
    from sentinel.server.store import connect

    connection = connect(server.data)
    modes = [
        connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("journal_mode", "synchronous", "fullfsync")
    ]
    connection.close()

    assert modes == ["wal", 2, 1]
    assert server.data.stat().st_mode & 0o777 == 0o700
    assert sqlite3.threadsafety >= 1


def test_a_directory_that_holds_other_things_keeps_its_mode_and_the_database_is_private(tmp_path):
    """`--data .`, or worse `--data /tmp`: whose directory that is, is not ours to decide."""
    from sentinel.server.store import connect

    tmp_path.chmod(0o755)
    (tmp_path / "letter").touch()

    connect(tmp_path, create=True).close()

    assert tmp_path.stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "hoop.db").stat().st_mode & 0o777 == 0o600
