"""The database of the embedded server: SQLite in WAL mode, one writer thread, one reader.

Durable before acknowledged: a write is answered only after `COMMIT` under `synchronous=FULL` returned, which is after
the write-ahead log was synced. The writer takes every waiting job into one transaction (group commit), each inside a
savepoint, so that a refused job undoes itself alone; what a job returns, and what is announced of it, leaves this
module only after the commit, in commit order. A failed sync is final: the store refuses all further writes
(security facts, section B). Source: spec 01 section 3.
"""

import asyncio
import os
import queue
import sqlite3
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from sentinel.core.errors import ConfigError
from sentinel.server.problem import cannot_store
from sentinel.server.schema import migrate

DATABASE = "hoop.db"
BUSY_TIMEOUT_S = 10.0
_BATCH = 256

Result = TypeVar("Result")


def make_folder(data: Path) -> None:
    """Make a data directory, for its owner alone, and its parents. Raises `ConfigError` where that cannot be.

    One that holds other things keeps its mode: it may be anybody's (`--data .`), and the database is private by itself.
    """
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        if (data / DATABASE).exists() or not any(data.iterdir()):
            data.chmod(0o700)
    except OSError as fault:
        raise ConfigError(
            f"{data} cannot be used as a data directory: {fault.strerror}",
            mend="choose a directory that you may write to",
        ) from fault


def connect(data: Path, *, create: bool = False) -> sqlite3.Connection:
    """Open the database of a data directory, migrated, in autocommit mode (transactions are said aloud).

    Raises:
        ConfigError: there is none and `create` is false, or it cannot be opened.
    """
    path = data / DATABASE
    if create:
        make_folder(data)
        _make_private(path)
    elif not path.is_file():
        raise ConfigError(
            f"{data} holds no {DATABASE}",
            mend="make one with `sentinel hoop account add NAME --kind human --data DIR`",
        )
    try:
        connection = sqlite3.connect(
            path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
        )
        connection.row_factory = sqlite3.Row
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA fullfsync = 1")  # macOS: fsync alone stops at the drive's cache
        connection.execute("PRAGMA checkpoint_fullfsync = 1")
        connection.execute("PRAGMA foreign_keys = 1")
        migrate(connection)
    except sqlite3.DatabaseError as fault:
        raise ConfigError(
            f"{path} cannot be opened: {fault}", mend="check its owner, or restore a back-up"
        ) from fault
    return connection


def _make_private(path: Path) -> None:
    """Make the file before SQLite does: what SQLite lays beside it takes over its mode."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    except OSError as fault:
        raise ConfigError(
            f"{path} cannot be opened: {fault.strerror}", mend="check its owner, or restore a back-up"
        ) from fault


def transact(connection: sqlite3.Connection, job: Callable[[sqlite3.Connection], Result]) -> Result:
    """Run one job in one transaction of its own, for the commands that write beside a running server."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        result = job(connection)
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    return result


@dataclass(slots=True)
class _Job:
    work: Callable[[sqlite3.Connection], Any]
    after: Callable[[Any], None] | None
    future: asyncio.Future[Any]
    result: Any = None
    fault: Exception | None = None


class Store:
    """The server's two connections. `reader` is for tiny indexed reads in the event loop's own thread."""

    def __init__(self, data: Path) -> None:
        self._writer = connect(data, create=True)
        self.reader = connect(data)
        self.reader.execute("PRAGMA query_only = 1")
        self._loop = asyncio.get_running_loop()
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._broken: str | None = None
        self._thread = threading.Thread(target=self._run, name="hoop-writer", daemon=True)
        self._thread.start()

    async def write(
        self, work: Callable[[sqlite3.Connection], Result], *, after: Callable[[Result], None] | None = None
    ) -> Result:
        """Run `work` in the writer's transaction and return its result once that is durable.

        `after` runs in the event loop, once, after the commit and in commit order, even when the caller has meanwhile
        gone away: what is stored is announced. An exception of `work` undoes its writes and comes out here.
        """
        future: asyncio.Future[Result] = self._loop.create_future()
        self._jobs.put(_Job(work, after, future))
        return await future

    async def aclose(self) -> None:
        """Finish what is queued, then close both connections."""
        self._jobs.put(None)
        await asyncio.to_thread(self._thread.join)
        self.reader.close()
        self._writer.close()

    def _run(self) -> None:
        while True:
            first = self._jobs.get()
            batch = [first]
            while len(batch) < _BATCH and not self._jobs.empty():
                batch.append(self._jobs.get())
            jobs = [job for job in batch if job is not None]
            if jobs:
                self._commit(jobs)
                self._loop.call_soon_threadsafe(self._settle, jobs)
            if None in batch:
                return

    def _commit(self, jobs: list[_Job]) -> None:
        """Run the jobs in one transaction. Whatever goes wrong outside a job is the fault of all of them."""
        if self._broken is not None:
            for job in jobs:
                job.fault = cannot_store(self._broken)
            return
        try:
            self._writer.execute("BEGIN IMMEDIATE")
            for job in jobs:
                self._attempt(job)
            self._writer.execute("COMMIT")
        except (
            Exception
        ) as fault:  # the thread's outermost edge: without it every later write would wait for ever
            if getattr(fault, "sqlite_errorname", "").startswith("SQLITE_IOERR"):
                self._broken = f"an earlier sync failed: {fault}"
            for job in jobs:
                job.fault = cannot_store(fault)
            self._undo()

    def _undo(self) -> None:
        try:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
        except sqlite3.Error as fault:
            self._broken = f"a transaction could not be undone: {fault}"

    def _attempt(self, job: _Job) -> None:
        self._writer.execute("SAVEPOINT job")
        try:
            job.result = job.work(self._writer)
        except sqlite3.OperationalError:
            raise  # the disk or the file, not this job: nothing of the batch may be called done
        except Exception as fault:
            job.fault = fault
            self._writer.execute("ROLLBACK TO job")
        self._writer.execute("RELEASE job")

    def _settle(self, jobs: list[_Job]) -> None:
        for job in jobs:
            if job.fault is None and job.after is not None:
                # Called on its own: a fault in it must not hold up the answers to the rest.
                self._loop.call_soon(job.after, job.result)
            if job.future.done():  # the caller went away
                continue
            if job.fault is None:
                job.future.set_result(job.result)
            else:
                job.future.set_exception(job.fault)
