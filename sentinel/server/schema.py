"""The database's tables, and the forward migrations that lead to them (`PRAGMA user_version` counts the steps).

`meta` holds two counters that triggers move, whichever process writes: `access` when an account or token changes,
`membership` when who is in which conversation changes. A running server compares them instead of asking about
everything. Source: spec 01 section 3.
"""

import sqlite3

from sentinel.core.errors import ConfigError

_FIRST = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO meta VALUES ('access', 0), ('membership', 0);

CREATE TABLE accounts (
    uid TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    name_key TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL CHECK (kind IN ('human', 'persona')),
    disabled INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE tokens (
    hash BLOB PRIMARY KEY,
    uid TEXT NOT NULL REFERENCES accounts (uid),
    source TEXT NOT NULL CHECK (source IN ('script', 'login')),
    created_at INTEGER NOT NULL,
    expires_at INTEGER
) WITHOUT ROWID;
CREATE INDEX tokens_of_account ON tokens (uid);

CREATE TABLE codes (
    uid TEXT PRIMARY KEY REFERENCES accounts (uid),
    hash BLOB NOT NULL,
    expires_at INTEGER NOT NULL,
    tries_left INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE presence (
    uid TEXT PRIMARY KEY REFERENCES accounts (uid),
    state TEXT NOT NULL,
    detail TEXT
) WITHOUT ROWID;

CREATE TABLE conversations (
    cid TEXT PRIMARY KEY,
    title TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    last_seq INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

CREATE TABLE members (
    cid TEXT NOT NULL REFERENCES conversations (cid),
    uid TEXT NOT NULL REFERENCES accounts (uid),
    joined_at INTEGER NOT NULL,
    PRIMARY KEY (cid, uid)
) WITHOUT ROWID;
CREATE INDEX conversations_of_account ON members (uid);

CREATE TABLE media (
    id TEXT PRIMARY KEY,
    uid TEXT NOT NULL REFERENCES accounts (uid),
    type TEXT NOT NULL,
    size INTEGER NOT NULL,
    name TEXT,
    created_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE messages (
    cid TEXT NOT NULL REFERENCES conversations (cid),
    seq INTEGER NOT NULL,
    id TEXT NOT NULL UNIQUE,
    uid TEXT NOT NULL REFERENCES accounts (uid),
    sent_at INTEGER NOT NULL,
    type TEXT NOT NULL,
    text TEXT,
    mentions TEXT NOT NULL,
    broadcast INTEGER NOT NULL,
    media_id TEXT REFERENCES media (id),
    reply_to TEXT,
    answers TEXT NOT NULL,
    nonce TEXT,
    hops INTEGER NOT NULL,
    input_hash BLOB NOT NULL,
    PRIMARY KEY (cid, seq)
);
CREATE UNIQUE INDEX message_of_nonce ON messages (uid, cid, nonce) WHERE nonce IS NOT NULL;
CREATE INDEX messages_of_media ON messages (media_id) WHERE media_id IS NOT NULL;

CREATE TRIGGER account_changed AFTER UPDATE ON accounts
    BEGIN UPDATE meta SET value = value + 1 WHERE name = 'access'; END;
CREATE TRIGGER token_ended AFTER DELETE ON tokens
    BEGIN UPDATE meta SET value = value + 1 WHERE name = 'access'; END;
CREATE TRIGGER member_joined AFTER INSERT ON members
    BEGIN UPDATE meta SET value = value + 1 WHERE name = 'membership'; END;
CREATE TRIGGER member_left AFTER DELETE ON members
    BEGIN UPDATE meta SET value = value + 1 WHERE name = 'membership'; END;
"""

MIGRATIONS: tuple[str, ...] = (_FIRST,)
"""Step N leads from `user_version` N to N + 1. Steps are only ever added."""


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the database to the newest schema, one transaction per step; refuse one that is newer than we know."""
    version = _version(connection)
    if version > len(MIGRATIONS):
        raise ConfigError(
            f"the database has schema {version}, and this version knows {len(MIGRATIONS)}",
            mend="install the version of hoop-sentinel that wrote it, or a newer one",
        )
    while version < len(MIGRATIONS):
        connection.execute("BEGIN IMMEDIATE")
        try:
            if _version(connection) == version:  # another process may have taken this step meanwhile
                for statement in _statements(MIGRATIONS[version]):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {version + 1}")
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        version += 1


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _statements(script: str) -> list[str]:
    """Split a script into statements; `executescript` would commit the transaction around them."""
    statements: list[str] = []
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            statements.append(pending.strip())
            pending = ""
    return [one for one in statements if one]
