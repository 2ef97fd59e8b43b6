-- What the eighth schema adds: what is written in forges about jobs, who does that, and deliveries that wait for an
-- answer of their forge.

CREATE TABLE replies (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    kind       TEXT NOT NULL,
    forge      TEXT NOT NULL,
    item       TEXT NOT NULL,
    job        TEXT NOT NULL,
    target     TEXT, -- what gets eyes; none is the item
    comment    INTEGER, -- the forge's id of our comment
    unsure     INTEGER NOT NULL, -- 1 where a comment may be there whose id is not known
    said       TEXT, -- the label of what the forge has
    tries      INTEGER NOT NULL,
    next_at    INTEGER,
    failure    TEXT,
    created_at INTEGER NOT NULL,
    done_at    INTEGER
) STRICT;

CREATE INDEX replies_open ON replies (forge, id) WHERE done_at IS NULL;
-- One comment of a kind about a job.
CREATE UNIQUE INDEX replies_comment ON replies (job, kind) WHERE kind <> 'eyes';

-- What one process at a time does.
CREATE TABLE duties (
    name          TEXT NOT NULL PRIMARY KEY,
    host_id       TEXT NOT NULL,
    boot_id       TEXT NOT NULL,
    boot_private  INTEGER NOT NULL,
    pid_ns        INTEGER NOT NULL,
    pid           INTEGER NOT NULL,
    start_ticks   INTEGER NOT NULL,
    start_shifted INTEGER NOT NULL,
    renewed_at    INTEGER NOT NULL,
    swept_at      INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE waiting_deliveries (
    delivery INTEGER NOT NULL PRIMARY KEY,
    endpoint TEXT NOT NULL,
    event    TEXT NOT NULL, -- as JSON
    tries    INTEGER NOT NULL,
    next_at  INTEGER NOT NULL
) STRICT;

CREATE INDEX waiting_deliveries_next ON waiting_deliveries (endpoint, next_at);
