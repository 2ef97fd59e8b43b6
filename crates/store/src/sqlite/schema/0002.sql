-- What the second schema adds.

-- The sessions to whose model hooks speak, and the life in which they do.
CREATE TABLE model_channels (
    session TEXT NOT NULL PRIMARY KEY REFERENCES sessions (id) DEFERRABLE INITIALLY DEFERRED,
    life    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
