-- What the seventh schema adds: the queue of jobs, deliveries from outside, and how runs are found that were cut off.

CREATE TABLE jobs (
    id            TEXT NOT NULL,
    agent         TEXT NOT NULL,
    item          TEXT NOT NULL,
    root          TEXT NOT NULL, -- the item whose conversation it continues
    rule          TEXT,
    trust         TEXT NOT NULL,
    repo          TEXT,
    spec          TEXT NOT NULL, -- what to run, as JSON
    state         TEXT NOT NULL,
    attempt       INTEGER NOT NULL,
    failures      INTEGER NOT NULL,
    failure       TEXT, -- why its agent did not start, the last time
    -- The runner that took it.
    taker_host    TEXT,
    boot_id       TEXT,
    boot_private  INTEGER,
    pid_ns        INTEGER,
    pid           INTEGER,
    start_ticks   INTEGER,
    start_shifted INTEGER,
    taken_at      INTEGER,
    run           TEXT,
    parked_for    TEXT,
    parked_until  INTEGER,
    parked_why    TEXT,
    not_before    INTEGER,
    by_session    TEXT,
    created_at    INTEGER NOT NULL,
    ended_at      INTEGER,
    outcome       TEXT,
    why           TEXT,
    revision      INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX jobs_id ON jobs (id);
CREATE INDEX jobs_newest ON jobs (created_at, id);
CREATE INDEX jobs_item ON jobs (item, created_at, id);
CREATE INDEX jobs_agent ON jobs (agent, created_at, id);
CREATE INDEX jobs_open ON jobs (created_at, id) WHERE ended_at IS NULL;
CREATE INDEX jobs_open_conversation ON jobs (root, agent, created_at, id) WHERE ended_at IS NULL;
CREATE INDEX jobs_open_item ON jobs (item, created_at, id) WHERE ended_at IS NULL;
CREATE INDEX jobs_ready ON jobs (created_at, id) WHERE state = 'queued' AND not_before IS NULL;
CREATE INDEX jobs_delayed ON jobs (not_before) WHERE state = 'queued' AND not_before IS NOT NULL;
CREATE INDEX jobs_parked ON jobs (parked_until) WHERE state = 'parked' AND parked_until IS NOT NULL;
CREATE INDEX jobs_run ON jobs (run) WHERE state IN ('starting', 'begun');
-- One at a time: a conversation.
CREATE UNIQUE INDEX jobs_taken ON jobs (root, agent) WHERE state IN ('starting', 'begun');

CREATE TABLE job_events (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    job      TEXT NOT NULL,
    delivery INTEGER,
    at       INTEGER NOT NULL,
    summary  TEXT NOT NULL,
    data     TEXT NOT NULL
) STRICT;

CREATE INDEX job_events_job ON job_events (job, id);

-- Runs of an item since a permitted person last asked for one.
CREATE TABLE breakers (
    item      TEXT NOT NULL PRIMARY KEY,
    runs      INTEGER NOT NULL,
    person_at INTEGER,
    told_at   INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE deliveries (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    endpoint    TEXT NOT NULL,
    delivery_id TEXT,
    content_key TEXT,
    received_at INTEGER NOT NULL,
    event       TEXT NOT NULL,
    repo        TEXT,
    item        TEXT,
    author      TEXT,
    verdict     TEXT NOT NULL,
    rule        TEXT,
    why         TEXT NOT NULL,
    job         TEXT
) STRICT;

-- Only what led to something makes a second one a duplicate.
CREATE UNIQUE INDEX deliveries_delivery ON deliveries (endpoint, delivery_id)
    WHERE delivery_id IS NOT NULL AND verdict IN ('queued', 'joined', 'acted');
CREATE UNIQUE INDEX deliveries_content ON deliveries (endpoint, content_key)
    WHERE content_key IS NOT NULL AND verdict IN ('queued', 'joined', 'acted');
CREATE INDEX deliveries_item ON deliveries (item, id) WHERE item IS NOT NULL;

CREATE TABLE delivery_bodies (
    delivery INTEGER NOT NULL PRIMARY KEY,
    size     INTEGER NOT NULL,
    body     BLOB NOT NULL
) STRICT;

-- The runs that were cut off in a directory or in a conversation, by the boot in which they ran. What such a run
-- started may still be running.
CREATE INDEX runs_cut_off_in ON runs (dir, host_id, boot_id, created_at, id)
    WHERE outcome = 'interrupted' OR exit_code IS NULL AND outcome IN ('stopped', 'timeout', 'failed');
CREATE INDEX runs_cut_off_of ON runs (root, agent, host_id, boot_id, created_at, id)
    WHERE outcome = 'interrupted' OR exit_code IS NULL AND outcome IN ('stopped', 'timeout', 'failed');
