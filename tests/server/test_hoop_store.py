"""The writer: group commit, jobs that fail alone, announcing what is stored, and a failed sync being final."""

import asyncio
import sqlite3

import pytest

from sentinel.core.errors import ConfigError
from sentinel.server.problem import Problem
from sentinel.server.schema import MIGRATIONS
from sentinel.server.store import Store, connect


@pytest.fixture
async def store(data):
    opened = Store(data)
    yield opened
    await opened.aclose()


def insert(name):
    return lambda db: db.execute("INSERT INTO meta VALUES (?, 1)", (name,)).rowcount


def names(db):
    return {row[0] for row in db.execute("SELECT name FROM meta")} - {"access", "membership"}


async def test_a_job_that_fails_undoes_itself_alone(store):
    def fails(db):
        insert("half")(db)
        raise ValueError("no")

    results = await asyncio.gather(
        store.write(insert("one")), store.write(fails), store.write(insert("two")), return_exceptions=True
    )

    assert [type(one) for one in results] == [int, ValueError, int]
    assert names(store.reader) == {"one", "two"}


async def test_what_is_stored_is_announced_in_order_even_if_nobody_waits(store):
    told = []
    tasks = [
        asyncio.create_task(store.write(lambda db, n=n: insert(f"n{n}")(db) and n, after=told.append))
        for n in range(20)
    ]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await store.write(lambda _: None)

    assert told == list(range(20))


async def test_many_jobs_share_a_commit(store):
    commits = []
    store._writer.set_trace_callback(lambda sql: commits.append(sql) if sql == "COMMIT" else None)

    await asyncio.gather(*(store.write(insert(f"n{n}")) for n in range(200)))

    assert len(commits) < 50


async def test_nothing_is_visible_or_told_before_the_commit(store):
    told = []
    seen = []

    def looks(db):
        insert("x")(db)
        seen.append((names(store_two), list(told)))
        return "x"

    store_two = connect_again(store)
    await store.write(looks, after=told.append)

    assert seen == [(set(), [])]
    assert told == ["x"]
    assert names(store_two) == {"x"}
    store_two.close()


def connect_again(store):
    path = store.reader.execute("PRAGMA database_list").fetchone()["file"]
    return sqlite3.connect(path, check_same_thread=False, isolation_level=None)


async def test_a_failed_sync_is_final(store):
    real = store._writer
    fault = sqlite3.OperationalError("disk I/O error")
    fault.sqlite_errorname = "SQLITE_IOERR_FSYNC"

    class FailingDisk:
        in_transaction = False

        def execute(self, sql, *more):
            if sql == "COMMIT":
                real.execute("ROLLBACK")
                raise fault
            return real.execute(sql, *more)

    store._writer = FailingDisk()
    with pytest.raises(Problem) as first:
        await store.write(insert("lost"))
    store._writer = real

    with pytest.raises(Problem) as later:
        await store.write(insert("after"))

    assert first.value.status == later.value.status == 503
    assert "sync failed" in later.value.detail
    assert names(store.reader) == set()


def test_a_newer_schema_is_refused(data):
    db = connect(data, create=True)
    db.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    db.close()

    with pytest.raises(ConfigError, match="schema 2, and this version knows 1"):
        connect(data)


def test_a_file_that_is_no_database_is_refused(data):
    data.mkdir()
    (data / "hoop.db").write_bytes(b"x" * 5000)

    with pytest.raises(ConfigError, match="cannot be opened"):
        connect(data)


def test_a_migration_that_fails_leaves_the_schema_as_it_was(data, monkeypatch):
    connect(data, create=True).close()
    steps = (*MIGRATIONS, "CREATE TABLE added (x);\nCREATE TABLE accounts (x);\n")
    monkeypatch.setattr("sentinel.server.schema.MIGRATIONS", steps)

    with pytest.raises(ConfigError):
        connect(data)

    monkeypatch.undo()
    db = connect(data)
    tables = {row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    db.close()
    assert "added" not in tables
