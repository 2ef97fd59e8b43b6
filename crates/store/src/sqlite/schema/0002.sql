-- What the second schema adds.

-- The repository that a path is held in: its common directory, and what stays when that is moved. Until
-- now a directory was kept only where it names the key.
ALTER TABLE holds ADD COLUMN home TEXT;
ALTER TABLE holds ADD COLUMN home_mark TEXT;

UPDATE holds SET home = substr(rtrim(key, replace(key, ':', '')), 6, length(rtrim(key, replace(key, ':', ''))) - 6)
    WHERE key >= 'path:/' AND key < 'path:0';

CREATE INDEX holds_open_home ON holds (home, home_mark, ended_at)
    WHERE ended_at IS NULL AND home IS NOT NULL;

-- Keys whose text is no longer the canonical spelling of their item. They keep their text, because their
-- holders know them by it; nothing is added here later.
CREATE TABLE spellings (
    canonical TEXT NOT NULL,
    key       TEXT NOT NULL,
    PRIMARY KEY (canonical, key)
) STRICT, WITHOUT ROWID;

INSERT INTO spellings (canonical, key)
WITH numbered AS (
    SELECT key,
        CASE WHEN key LIKE 'issue:%' THEN 'issue:' ELSE 'pr:' END AS scheme,
        lower(trim(substr(key, instr(key, ':') + 1, instr(key, '#') - instr(key, ':') - 1), '/')) AS name,
        substr(key, instr(key, '#') + 1) AS number
    FROM claims
    WHERE (key GLOB 'issue:?*#*' OR key GLOB 'pr:?*#*' OR key GLOB 'mr:?*#*')
), canonical AS (
    SELECT key,
        scheme
        || CASE WHEN name LIKE '%.git' THEN substr(name, 1, length(name) - 4) ELSE name END
        || '#'
        || CASE WHEN ltrim(number, '0') = '' THEN '0' ELSE ltrim(number, '0') END AS canonical
    FROM numbered
    WHERE number <> '' AND number NOT GLOB '*[^0-9]*'
)
SELECT canonical, key FROM canonical WHERE canonical <> key;

INSERT INTO spellings (canonical, key)
WITH paths AS (
    SELECT key, rtrim(key, replace(key, ':', '')) AS space
    FROM claims
    WHERE key >= 'path:' AND key < 'path;' AND NOT (key >= 'path:/' AND key < 'path:0')
), named AS (
    SELECT key, space, lower(trim(substr(space, 6, length(space) - 6), '/')) AS name FROM paths
), canonical AS (
    SELECT key,
        'path:'
        || CASE WHEN name LIKE '%.git' THEN substr(name, 1, length(name) - 4) ELSE name END
        || ':' || substr(key, length(space) + 1) AS canonical
    FROM named
)
SELECT canonical, key FROM canonical WHERE canonical <> key;

-- Names of repositories are in lower case now; a pointer of the new name wins.
UPDATE sessions SET repo = lower(repo) WHERE repo NOT LIKE '/%' AND repo <> lower(repo);
UPDATE OR IGNORE pointers SET name = lower(name)
    WHERE scope = 'repo' AND name NOT LIKE '/%' AND name <> lower(name);

-- What a session lost, and when it was granted something last: both are asked for often, and must not cost
-- more the longer a session works.
CREATE INDEX holds_lost_key ON holds (session, key, epoch) WHERE ended_by IN ('death', 'lease', 'taken');
CREATE INDEX holds_lost_at ON holds (session, ended_at) WHERE ended_by IN ('death', 'lease', 'taken');
CREATE INDEX holds_granted ON holds (session, granted_at);

-- A waiter's turn belongs to the key's epoch; without an end it was passed over by its own word.
ALTER TABLE waiters ADD COLUMN turn_epoch INTEGER;

-- The sessions to whose model hooks speak, and the life in which they do.
CREATE TABLE model_channels (
    session TEXT NOT NULL PRIMARY KEY REFERENCES sessions (id) DEFERRABLE INITIALLY DEFERRED,
    life    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
