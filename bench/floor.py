"""What this machine allows: a bare spawn of the stamp program + a loopback WebSocket round trip + one durable commit.

Each is measured after the same pause as a wake: a core that has slept is slower, for the floor and for us alike.
"""

import asyncio
import os
import sqlite3
import statistics
import time
from pathlib import Path

from websockets.asyncio.client import connect
from websockets.asyncio.server import serve

PAUSE_S = 0.02


def floor_s(folder: Path, stamp: Path, rounds: int = 100) -> dict[str, float]:
    """Return the medians of the three parts and their sum, in seconds."""
    parts = {
        "spawn_s": statistics.median(spawns(folder, stamp, rounds)),
        "websocket_s": statistics.median(asyncio.run(round_trips(rounds))),
        "commit_s": statistics.median(commits(folder, rounds)),
    }
    return {**parts, "sum_s": sum(parts.values())}


def spawns(folder: Path, stamp: Path, rounds: int) -> list[float]:
    """From the call of posix_spawn to the first instruction of the stamp program."""
    stamps = folder / "floor-stamps"
    null = os.open(os.devnull, os.O_RDWR)
    found = []
    for _ in range(rounds):
        time.sleep(PAUSE_S)
        stamps.unlink(missing_ok=True)
        actions = [(os.POSIX_SPAWN_DUP2, null, 0), (os.POSIX_SPAWN_DUP2, null, 1)]
        begin = time.time()
        pid = os.posix_spawn(stamp, [str(stamp)], {"STAMP_FILE": str(stamps)}, file_actions=actions)
        os.waitpid(pid, 0)
        found.append(float(stamps.read_text()) - begin)
    os.close(null)
    return found


async def round_trips(rounds: int) -> list[float]:
    """A small frame there and back between two tasks of one process, over loopback TCP."""

    async def echo(socket) -> None:
        async for frame in socket:
            await socket.send(frame)

    found = []
    async with serve(echo, "127.0.0.1", 0, compression=None) as server:
        port = server.sockets[0].getsockname()[1]
        async with connect(f"ws://127.0.0.1:{port}", compression=None) as socket:
            for _ in range(rounds):
                await asyncio.sleep(PAUSE_S)
                begin = time.perf_counter()
                await socket.send("x" * 300)
                await socket.recv()
                found.append(time.perf_counter() - begin)
    return found


def commits(folder: Path, rounds: int) -> list[float]:
    """One row into SQLite, WAL and FULL: durable when the commit returns."""
    db = sqlite3.connect(folder / "floor.db", isolation_level=None)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA synchronous=FULL")
    db.execute("CREATE TABLE IF NOT EXISTS t (x TEXT)")
    found = []
    for _ in range(rounds):
        time.sleep(PAUSE_S)
        begin = time.perf_counter()
        db.execute("INSERT INTO t VALUES (?)", ("x" * 300,))
        found.append(time.perf_counter() - begin)
    db.close()
    return found
