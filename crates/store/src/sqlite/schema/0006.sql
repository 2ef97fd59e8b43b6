-- What the sixth schema adds: conversations of agents and items with their history, links between items, and runs.
-- Items are claim keys in canonical form.

CREATE TABLE conversations (
    item       TEXT NOT NULL,
    agent      TEXT NOT NULL,
    native_id  TEXT, -- the current one; none after a drop
    host_id    TEXT,
    user_name  TEXT,
    agent_home TEXT,
    dir        TEXT,
    set_by     TEXT, -- a session
    set_by_run TEXT,
    set_at     INTEGER,
    closed_at  INTEGER,
    revision   INTEGER NOT NULL,
    PRIMARY KEY (item, agent)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX conversations_native ON conversations (agent, native_id) WHERE native_id IS NOT NULL;
CREATE INDEX conversations_open ON conversations (item, agent)
    WHERE native_id IS NOT NULL AND closed_at IS NULL;
CREATE INDEX conversations_open_agent ON conversations (agent, item)
    WHERE native_id IS NOT NULL AND closed_at IS NULL;

-- Every native id that a conversation ever had; the one without an end is the current one.
CREATE TABLE past_ids (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    item       TEXT NOT NULL,
    agent      TEXT NOT NULL,
    native_id  TEXT NOT NULL,
    from_at    INTEGER NOT NULL,
    set_by     TEXT,
    set_by_run TEXT,
    ended_at   INTEGER,
    ended_why  TEXT,
    ended_by   TEXT,
    ended_by_run TEXT
) STRICT;

CREATE INDEX past_ids_conversation ON past_ids (item, agent, id);
CREATE UNIQUE INDEX past_ids_open ON past_ids (item, agent) WHERE ended_at IS NULL;

CREATE TABLE items (
    item      TEXT NOT NULL PRIMARY KEY,
    root      TEXT, -- the item whose conversations it continues
    linked_at INTEGER,
    linked_by TEXT,
    closed_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX items_root ON items (root, item) WHERE root IS NOT NULL;

CREATE TABLE runs (
    id            TEXT NOT NULL,
    agent         TEXT NOT NULL,
    item          TEXT NOT NULL,
    root          TEXT NOT NULL, -- the item whose conversation it continues
    host_id       TEXT NOT NULL,
    session       TEXT,
    life          INTEGER,
    -- The runner, on the run's own host.
    runner_host   TEXT,
    boot_id       TEXT,
    boot_private  INTEGER,
    pid_ns        INTEGER,
    pid           INTEGER,
    start_ticks   INTEGER,
    start_shifted INTEGER,
    before_id     TEXT,
    intended_id   TEXT,
    after_id      TEXT,
    dir           TEXT NOT NULL,
    shares_dir    INTEGER NOT NULL,
    exclusive     INTEGER NOT NULL,
    started_by    TEXT NOT NULL,
    skill         TEXT,
    prompt_hash   TEXT,
    log           TEXT,
    goes_on       TEXT,
    created_at    INTEGER NOT NULL,
    begun_at      INTEGER,
    fell_back     INTEGER NOT NULL,
    stop_at       INTEGER,
    stop_by       TEXT,
    stop_why      TEXT,
    turns         INTEGER,
    tokens_in     INTEGER,
    tokens_out    INTEGER,
    cost          REAL,
    ended_at      INTEGER,
    outcome       TEXT,
    why           TEXT,
    exit_code     INTEGER,
    conversation_left TEXT, -- whether the conversation may be resumed: another question than why the run ended
    parked_until  INTEGER,
    revision      INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX runs_id ON runs (id);
CREATE INDEX runs_newest ON runs (created_at, id);
CREATE INDEX runs_item ON runs (item, created_at, id);
CREATE INDEX runs_agent ON runs (agent, created_at, id);
CREATE INDEX runs_failed ON runs (created_at, id)
    WHERE outcome IN ('failed', 'refused', 'timeout', 'interrupted', 'unusable');
CREATE INDEX runs_after ON runs (agent, after_id, ended_at) WHERE after_id IS NOT NULL AND ended_at IS NOT NULL;
CREATE INDEX runs_session ON runs (session, created_at, id) WHERE session IS NOT NULL;
CREATE INDEX runs_open ON runs (created_at, id) WHERE ended_at IS NULL;
CREATE INDEX runs_open_session ON runs (session) WHERE ended_at IS NULL;
CREATE INDEX runs_open_in ON runs (dir, host_id) WHERE ended_at IS NULL;
-- One at a time: a conversation, and a directory unless a run says that it shares it.
CREATE UNIQUE INDEX runs_open_conversation ON runs (root, agent) WHERE ended_at IS NULL;
CREATE UNIQUE INDEX runs_open_dir ON runs (dir, host_id) WHERE ended_at IS NULL AND shares_dir = 0;

-- Agents that wait on a host for a usage limit to end.
CREATE TABLE parks (
    agent    TEXT NOT NULL,
    host_id  TEXT NOT NULL,
    until_at INTEGER NOT NULL,
    count    INTEGER NOT NULL,
    why      TEXT NOT NULL,
    run      TEXT NOT NULL,
    at       INTEGER NOT NULL,
    PRIMARY KEY (agent, host_id)
) STRICT, WITHOUT ROWID;
