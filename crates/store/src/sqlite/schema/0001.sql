-- Ids are kept as the text that people see: parts of them are matched byte for byte, and a dump reads
-- as the program speaks. Times are milliseconds since 1970; lease_at is milliseconds of its era's steady
-- clock. Unsigned 64-bit kernel numbers (pid_ns, start_ticks) are kept bit for bit as signed ones.
-- Whatever is listed while it is open has a partial index, so that what is closed costs nothing.

CREATE TABLE meta (
    name  TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE sessions (
    id                TEXT NOT NULL,
    handle            TEXT NOT NULL,
    code              TEXT NOT NULL, -- the handle without its agent: what people type
    agent             TEXT NOT NULL,
    native_id         TEXT,
    fork_of           TEXT,
    parent_id         TEXT,
    parent_life       INTEGER,
    twin_of           TEXT,
    title             TEXT,
    dir               TEXT NOT NULL,
    repo              TEXT,
    branch            TEXT,
    hosted            INTEGER NOT NULL,
    life              INTEGER NOT NULL,
    host_id           TEXT,
    boot_id           TEXT,
    boot_private      INTEGER,
    pid_ns            INTEGER,
    pid               INTEGER,
    start_ticks       INTEGER,
    start_shifted     INTEGER,
    activity          TEXT,
    activity_since    INTEGER,
    started_at        INTEGER NOT NULL,
    seen_at           INTEGER NOT NULL,
    lease_era         TEXT NOT NULL,
    lease_era_private INTEGER NOT NULL,
    lease_at          INTEGER NOT NULL,
    closed_at         INTEGER,
    closed_by         TEXT,
    closed_why        TEXT,
    revision          INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX sessions_id ON sessions (id);
CREATE UNIQUE INDEX sessions_handle ON sessions (handle);
CREATE INDEX sessions_code ON sessions (code);
CREATE INDEX sessions_newest ON sessions (started_at, id);
CREATE INDEX sessions_parent ON sessions (parent_id, parent_life, closed_at)
    WHERE parent_id IS NOT NULL;
CREATE INDEX sessions_died ON sessions (closed_at) WHERE closed_by = 'death';
CREATE INDEX sessions_open_newest ON sessions (started_at, id) WHERE closed_at IS NULL;
CREATE INDEX sessions_open_repo ON sessions (repo, started_at, id) WHERE closed_at IS NULL;
CREATE INDEX sessions_open_dir ON sessions (dir) WHERE closed_at IS NULL;
CREATE INDEX sessions_open_place ON sessions (pid, boot_id, pid_ns, host_id) WHERE closed_at IS NULL;
CREATE UNIQUE INDEX sessions_open_process
    ON sessions (pid, start_ticks, boot_id, boot_private, pid_ns, host_id)
    WHERE closed_at IS NULL AND hosted = 0;

CREATE TABLE lives (
    session       TEXT NOT NULL REFERENCES sessions (id) DEFERRABLE INITIALLY DEFERRED,
    life          INTEGER NOT NULL,
    host_id       TEXT NOT NULL,
    boot_id       TEXT NOT NULL,
    boot_private  INTEGER NOT NULL,
    pid_ns        INTEGER NOT NULL,
    pid           INTEGER NOT NULL,
    start_ticks   INTEGER NOT NULL,
    start_shifted INTEGER NOT NULL,
    at            INTEGER NOT NULL,
    PRIMARY KEY (session, life)
) STRICT, WITHOUT ROWID;

CREATE INDEX lives_place ON lives (pid, boot_id, pid_ns, host_id);

CREATE TABLE natives (
    agent     TEXT NOT NULL,
    native_id TEXT NOT NULL,
    owner     TEXT NOT NULL REFERENCES sessions (id) DEFERRABLE INITIALLY DEFERRED,
    at        INTEGER NOT NULL,
    PRIMARY KEY (agent, native_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX natives_owner ON natives (owner);

CREATE TABLE visits (
    agent     TEXT NOT NULL,
    native_id TEXT NOT NULL,
    visitor   TEXT NOT NULL REFERENCES sessions (id) DEFERRABLE INITIALLY DEFERRED,
    at        INTEGER NOT NULL,
    PRIMARY KEY (agent, native_id, visitor)
) STRICT, WITHOUT ROWID;

CREATE INDEX visits_visitor ON visits (visitor);

CREATE TABLE claims (
    key   TEXT NOT NULL PRIMARY KEY,
    epoch INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE holds (
    key        TEXT NOT NULL REFERENCES claims (key) DEFERRABLE INITIALLY DEFERRED,
    epoch      INTEGER NOT NULL,
    session    TEXT NOT NULL REFERENCES sessions (id) DEFERRABLE INITIALLY DEFERRED,
    life       INTEGER NOT NULL,
    request    TEXT,
    means      TEXT NOT NULL,
    note       TEXT,
    granted_at INTEGER NOT NULL,
    taken_from TEXT, -- JSON
    ended_at   INTEGER,
    ended_by   TEXT,
    PRIMARY KEY (key, epoch)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX holds_open ON holds (key) WHERE ended_at IS NULL;
CREATE INDEX holds_open_session ON holds (session, key) WHERE ended_at IS NULL;
CREATE INDEX holds_session ON holds (session, key, epoch);

CREATE TABLE notices (
    id           INTEGER PRIMARY KEY,
    recipient    TEXT NOT NULL REFERENCES sessions (id) DEFERRABLE INITIALLY DEFERRED,
    kind         TEXT NOT NULL,
    message      TEXT NOT NULL,
    key          TEXT,
    epoch        INTEGER,
    sender       TEXT,
    at           INTEGER NOT NULL,
    delivered_at INTEGER
) STRICT;

CREATE INDEX notices_waiting ON notices (recipient, id) WHERE delivered_at IS NULL;

CREATE TABLE events (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    at        INTEGER NOT NULL,
    kind      TEXT NOT NULL,
    session   TEXT,
    actor     TEXT,
    key       TEXT,
    epoch     INTEGER,
    mechanism TEXT NOT NULL,
    evidence  TEXT NOT NULL,
    reason    TEXT
) STRICT;

CREATE INDEX events_at ON events (at);
CREATE INDEX events_key ON events (key) WHERE key IS NOT NULL;
CREATE INDEX events_session ON events (session) WHERE session IS NOT NULL;
CREATE INDEX events_actor ON events (actor) WHERE actor IS NOT NULL;

CREATE TABLE metadata (
    session TEXT NOT NULL REFERENCES sessions (id) DEFERRABLE INITIALLY DEFERRED,
    key     TEXT NOT NULL,
    value   TEXT NOT NULL,
    PRIMARY KEY (session, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE doubts (
    asker  TEXT NOT NULL REFERENCES sessions (id) DEFERRABLE INITIALLY DEFERRED,
    holder TEXT NOT NULL,
    life   INTEGER NOT NULL,
    PRIMARY KEY (asker, holder, life)
) STRICT, WITHOUT ROWID;

-- A waiter has one row for each key that it waits for, all with one ticket: the order of arrival is then
-- the same for all of them. Tickets are never used twice.
CREATE TABLE tickets (
    id INTEGER PRIMARY KEY AUTOINCREMENT
) STRICT;

CREATE TABLE waiters (
    key               TEXT NOT NULL,
    ticket            INTEGER NOT NULL,
    session           TEXT,
    life              INTEGER,
    host_id           TEXT NOT NULL,
    boot_id           TEXT NOT NULL,
    boot_private      INTEGER NOT NULL,
    pid_ns            INTEGER NOT NULL,
    pid               INTEGER NOT NULL,
    start_ticks       INTEGER NOT NULL,
    start_shifted     INTEGER NOT NULL,
    since             INTEGER NOT NULL,
    turn_era          TEXT,
    turn_era_private  INTEGER,
    turn_at           INTEGER,
    PRIMARY KEY (key, ticket)
) STRICT, WITHOUT ROWID;

CREATE INDEX waiters_ticket ON waiters (ticket);
CREATE INDEX waiters_session ON waiters (session) WHERE session IS NOT NULL;

CREATE TABLE transcripts (
    path      TEXT NOT NULL PRIMARY KEY,
    session   TEXT NOT NULL REFERENCES sessions (id) DEFERRABLE INITIALLY DEFERRED,
    native_id TEXT NOT NULL,
    at        INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX transcripts_session ON transcripts (session, native_id);

CREATE TABLE quarantine (
    id        INTEGER PRIMARY KEY,
    session   TEXT NOT NULL,
    path      TEXT NOT NULL,
    native_id TEXT NOT NULL,
    since     INTEGER NOT NULL,
    why       TEXT NOT NULL,
    at        INTEGER NOT NULL
) STRICT;

CREATE INDEX quarantine_session ON quarantine (session);

-- Which file a session wrote when last; for tools that write files only.
CREATE TABLE writes (
    path    TEXT NOT NULL,
    session TEXT NOT NULL REFERENCES sessions (id) DEFERRABLE INITIALLY DEFERRED,
    at      INTEGER NOT NULL,
    -- What the file was when the session was done with it.
    size     INTEGER,
    modified INTEGER,
    PRIMARY KEY (path, session)
) STRICT, WITHOUT ROWID;

CREATE INDEX writes_session ON writes (session, at);

-- What a session's worktree was when it last wrote there.
CREATE TABLE trees (
    session TEXT NOT NULL PRIMARY KEY REFERENCES sessions (id) DEFERRABLE INITIALLY DEFERRED,
    root    TEXT NOT NULL,
    head    TEXT,
    branch  TEXT,
    at      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What is wrong with a row of a mission is for core to say, so these columns take any text.
CREATE TABLE missions (
    id         TEXT NOT NULL PRIMARY KEY,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE participants (
    mission     TEXT NOT NULL REFERENCES missions (id) DEFERRABLE INITIALLY DEFERRED,
    session     TEXT NOT NULL REFERENCES sessions (id) DEFERRABLE INITIALLY DEFERRED,
    participant TEXT NOT NULL,
    role        TEXT NOT NULL,
    joined_at   INTEGER NOT NULL,
    active_at   INTEGER NOT NULL,
    drive       TEXT NOT NULL,
    focus       TEXT,
    revision    INTEGER NOT NULL,
    PRIMARY KEY (mission, session)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX participants_id ON participants (mission, participant);
CREATE INDEX participants_session ON participants (session);

CREATE TABLE pointers (
    scope   TEXT NOT NULL, -- session, repo or user
    name    TEXT NOT NULL,
    mission TEXT NOT NULL,
    at      INTEGER NOT NULL,
    PRIMARY KEY (scope, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE mirror_failures (
    path    TEXT NOT NULL PRIMARY KEY,
    session TEXT NOT NULL,
    why     TEXT NOT NULL,
    at      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
