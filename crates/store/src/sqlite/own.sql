-- What only a store in a file has.

CREATE TABLE meta (
    name  TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

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
