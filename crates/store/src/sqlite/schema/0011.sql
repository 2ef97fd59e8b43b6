-- What the eleventh schema adds: deliveries that were stored before they were decided, because several arrived at once.

CREATE TABLE undecided_deliveries (
    delivery    INTEGER NOT NULL PRIMARY KEY,
    endpoint    TEXT NOT NULL,
    delivery_id TEXT,
    headers     TEXT NOT NULL, -- those that name its event, as JSON
    asked       TEXT NOT NULL -- what its forge answered when it arrived, as JSON
) STRICT;
