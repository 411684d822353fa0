"""The tables of `state.db`, as forward migrations: a released one is never edited, a new one is added.

Times are seconds since the epoch, UTC. `message`, `outgoing` and `total` are JSON of the core's nouns.
Source: spec 02 sections 3, 4 and 7.
"""

_FIRST = (
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    """CREATE TABLE conversations (
        cid TEXT PRIMARY KEY,
        first_mark INTEGER NOT NULL,
        cursor INTEGER NOT NULL,
        answered INTEGER NOT NULL DEFAULT 0,
        guard_reset_at REAL NOT NULL DEFAULT 0,
        thread TEXT,
        thread_input INTEGER NOT NULL DEFAULT 0,
        thread_failures INTEGER NOT NULL DEFAULT 0,
        task_hash TEXT,
        total TEXT
    ) WITHOUT ROWID""",
    """CREATE TABLE seen (
        cid TEXT NOT NULL, message_id TEXT NOT NULL, seq INTEGER NOT NULL,
        PRIMARY KEY (cid, message_id)
    ) WITHOUT ROWID""",
    "CREATE INDEX seen_by_seq ON seen (cid, seq)",
    """CREATE TABLE triggers (
        message_id TEXT PRIMARY KEY,
        cid TEXT NOT NULL,
        seq INTEGER NOT NULL,
        message TEXT NOT NULL,
        state TEXT NOT NULL,
        by_persona INTEGER NOT NULL,
        queued_at REAL NOT NULL,
        ready_at REAL NOT NULL,
        alone INTEGER NOT NULL DEFAULT 0,
        failures INTEGER NOT NULL DEFAULT 0,
        rates INTEGER NOT NULL DEFAULT 0,
        generation INTEGER NOT NULL DEFAULT 0,
        cut_thread TEXT,
        cuts INTEGER NOT NULL DEFAULT 0,
        turn_id TEXT,
        rang_at REAL,
        pulled_at REAL
    ) WITHOUT ROWID""",
    "CREATE INDEX triggers_waiting ON triggers (state, queued_at)",
    """CREATE TABLE turns (
        id TEXT PRIMARY KEY,
        kind TEXT NOT NULL,
        cid TEXT NOT NULL,
        key_id TEXT NOT NULL,
        generation INTEGER NOT NULL,
        batch TEXT NOT NULL,
        state TEXT NOT NULL,
        attempt INTEGER NOT NULL,
        snapshot INTEGER NOT NULL,
        by_persona INTEGER NOT NULL DEFAULT 0,
        pid INTEGER, started INTEGER,
        thread TEXT,
        exec TEXT,
        class TEXT, evidence TEXT,
        ready_at REAL NOT NULL DEFAULT 0,
        started_at REAL, spawned_at REAL, answered_at REAL, posted_at REAL, ended_at REAL,
        input_tokens INTEGER, cached_tokens INTEGER, output_tokens INTEGER, reasoning_tokens INTEGER, cost_usd REAL
    ) WITHOUT ROWID""",
    "CREATE INDEX turns_by_state ON turns (state)",
    "CREATE UNIQUE INDEX notices_once ON turns (key_id) WHERE kind = 'notice'",
    "CREATE INDEX turns_by_time ON turns (started_at)",
    """CREATE TABLE parts (
        turn_id TEXT NOT NULL REFERENCES turns (id),
        part INTEGER NOT NULL,
        nonce TEXT NOT NULL,
        outgoing TEXT NOT NULL,
        state TEXT NOT NULL,
        attempt INTEGER NOT NULL DEFAULT 0,
        anchor INTEGER NOT NULL DEFAULT 0,
        server_id TEXT,
        PRIMARY KEY (turn_id, part)
    ) WITHOUT ROWID""",
    """CREATE TABLE decisions (
        message_id TEXT PRIMARY KEY, cid TEXT NOT NULL, seq INTEGER NOT NULL,
        decision TEXT NOT NULL, reason TEXT NOT NULL, at REAL NOT NULL
    ) WITHOUT ROWID""",
    "CREATE INDEX decisions_by_time ON decisions (at)",
    "CREATE TABLE commands (message_id TEXT PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID",
)

_CRASHES = (
    """CREATE TABLE crashes (
        place TEXT PRIMARY KEY, error TEXT NOT NULL, times INTEGER NOT NULL, since REAL NOT NULL
    ) WITHOUT ROWID""",
)

# A thread is blamed by its own name: a run that was cut off goes on in one that is not the conversation's yet.
_THREADS = (
    """CREATE TABLE thread_failures (
        thread TEXT PRIMARY KEY, class TEXT NOT NULL, failures INTEGER NOT NULL
    ) WITHOUT ROWID""",
    "ALTER TABLE conversations DROP COLUMN thread_failures",
)

MIGRATIONS: tuple[tuple[str, ...], ...] = (_FIRST, _CRASHES, _THREADS)
