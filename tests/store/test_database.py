"""Opening `state.db`: a commit is a promise, or the file is refused (spec 02 section 1)."""

import contextlib
import sqlite3

import pytest

from sentinel.core.errors import ConfigError, Damaged
from sentinel.store import database
from sentinel.store.database import Unwritable, open_database, open_for_reading
from sentinel.store.schema import MIGRATIONS
from sentinel.store.store import open_store


@pytest.mark.parametrize(
    ("pragma", "wanted"),
    [
        ("journal_mode", "wal"),
        ("synchronous", 2),
        ("fullfsync", 1),
        ("checkpoint_fullfsync", 1),
        ("foreign_keys", 1),
        ("busy_timeout", 5000),
    ],
)
def test_the_promises_hold(tmp_path, pragma, wanted):
    opened = open_database(tmp_path / "state.db")

    assert opened.row(f"PRAGMA {pragma}")[0] == wanted
    opened.close()


@pytest.mark.parametrize("pragma", ["journal_mode", "synchronous", "fullfsync", "checkpoint_fullfsync"])
def test_a_promise_that_is_not_taken_up_is_refused(tmp_path, monkeypatch, pragma):
    """A SQLite that says one thing and does another must not carry the journal."""
    monkeypatch.setitem(database._PROMISES, pragma, "9")

    with pytest.raises(ConfigError, match=f"SQLite says {pragma}="):
        open_database(tmp_path / "state.db")


@pytest.mark.parametrize("fault", [None, ValueError])
def test_after_an_unsynced_write_each_commit_is_a_promise_again(tmp_path, fault):
    opened = open_database(tmp_path / "state.db")

    with contextlib.suppress(ValueError), opened.unsynced():
        during = opened.row("PRAGMA synchronous")[0]
        if fault is not None:
            raise fault

    assert (during, opened.row("PRAGMA synchronous")[0]) == (1, 2)
    opened.close()


@pytest.mark.parametrize("way", ["transaction", "unsynced"])
def test_a_full_disk_is_said_as_such_and_takes_nothing(tmp_path, way):
    """The operator must act, not we: it is no bug of ours."""
    opened = open_database(tmp_path / "state.db")
    with opened.transaction() as write:
        write.execute("CREATE TABLE notes (text)")
    opened.row(f"PRAGMA max_page_count = {opened.row('PRAGMA page_count')[0]}")

    with pytest.raises(Unwritable, match="disk is full: free room") as fault, getattr(opened, way)() as write:
        write.execute("INSERT INTO notes VALUES ('kept?'), (?)", ("x" * 100_000,))

    assert fault.value.exit_code == 69
    assert opened.rows("SELECT * FROM notes") == []
    opened.close()


def test_it_is_private(tmp_path):
    open_database(tmp_path / "state.db").close()

    assert (tmp_path / "state.db").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("content", [b"this is no database at all, but it is long enough" * 50, b"\0" * 4096])
@pytest.mark.parametrize("opens", [open_database, open_for_reading])
def test_garbage_is_refused_and_left_as_it_is(tmp_path, content, opens):
    path = tmp_path / "state.db"
    path.write_bytes(content)

    with pytest.raises(Damaged, match="cannot be opened as a database"):
        opens(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("opens", [open_database, open_for_reading])
def test_a_newer_schema_is_refused_and_left_as_it_is(tmp_path, opens):
    path = tmp_path / "state.db"
    open_database(path).close()
    with sqlite3.connect(path) as raw:
        raw.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    raw.close()

    with pytest.raises(Damaged, match="schema"):
        opens(path)


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "fuse.sshfs", "9p"])
def test_a_network_file_system_is_refused(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(database, "_file_system_of", lambda _: kind)

    with pytest.raises(ConfigError, match="network file system"):
        open_database(tmp_path / "state.db")
    assert not (tmp_path / "state.db").exists()


def test_the_file_system_is_the_kernels_word(tmp_path):
    assert database._file_system_of(tmp_path) not in {"", *database._NETWORK_FILE_SYSTEMS}


def test_looking_never_makes_or_changes_anything(tmp_path):
    with pytest.raises(ConfigError, match="does not exist"):
        open_for_reading(tmp_path / "state.db")
    assert list(tmp_path.iterdir()) == []
    open_database(tmp_path / "state.db").close()
    looking = open_for_reading(tmp_path / "state.db")

    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        looking.rows("DELETE FROM turns")
    looking.close()


def test_a_file_that_was_made_and_never_written_counts_as_none(tmp_path):
    (tmp_path / "state.db").touch()

    with pytest.raises(ConfigError, match="does not exist"):
        open_for_reading(tmp_path / "state.db")
    open_database(tmp_path / "state.db").close()


def test_a_home_with_signs_that_mean_something_in_an_address(tmp_path):
    odd = tmp_path / "a?mode=rwc#%41 b"
    odd.mkdir()
    open_database(odd / "state.db").close()

    open_for_reading(odd / "state.db").close()


def test_a_failed_block_leaves_nothing(tmp_path):
    opened = open_database(tmp_path / "state.db")
    with contextlib.suppress(KeyboardInterrupt), opened.transaction() as write:
        write.execute("INSERT INTO meta VALUES ('a', 'b')")
        raise KeyboardInterrupt

    assert opened.rows("SELECT * FROM meta") == []
    opened.close()


def test_state_belongs_to_one_account_for_good(tmp_path):
    store = open_store(tmp_path)
    store.bind("http://a", "u-1")
    store.bind("http://moved/", "u-1")

    with pytest.raises(ConfigError, match="belongs to another account"):
        store.bind("http://a", "u-2")
    assert (store.meta("uid"), store.meta("server")) == ("u-1", "http://moved")
    store.close()
