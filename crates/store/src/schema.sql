-- Schema 1, of every engine. SQLite runs it as it is; another engine translates the types (see crate::schema).
--
-- Ids are kept as the text that people see: parts of them are matched byte for byte, and a dump reads as the program
-- speaks. Times are milliseconds since 1970; lease_at and turn_at are milliseconds of their era's steady clock. Unsigned
-- 64-bit kernel numbers (pid_ns, start_ticks) are kept bit for bit as signed ones. Flags are 0 or 1. The epochs of claims
-- and holds are kept without the store's base.
--
-- Every process that opens the file parses every line: a table or an index must be worth 20,000 instructions of each
-- hook. What is small by nature (open sessions, open runs, waiting jobs) is read whole.

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
    -- When that branch was last seen.
    branch_at         INTEGER,
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
    -- Why it failed, is limited or retries, and until when.
    activity_why      TEXT,
    activity_until    INTEGER,
    -- When it last asked its model, and when before that.
    asked_at          INTEGER,
    asked_before      INTEGER,
    woken             TEXT,
    started_at        INTEGER NOT NULL,
    seen_at           INTEGER NOT NULL,
    lease_era         TEXT NOT NULL,
    lease_era_private INTEGER NOT NULL,
    lease_at          INTEGER NOT NULL,
    closed_at         INTEGER,
    closed_by         TEXT,
    closed_why        TEXT,
    end_kind          TEXT,
    dismissed_at      INTEGER,
    title_by          TEXT,
    headless          INTEGER,
    flags             TEXT,
    asks              TEXT,
    attended_at       INTEGER,
    -- The daemon that runs the conversation while the process is a window to it.
    daemon_pid        INTEGER,
    daemon_ticks      INTEGER,
    daemon_shifted    INTEGER,
    -- The life in which hooks reached the model.
    model_life        INTEGER,
    -- The session's worktree when it last wrote there.
    tree_root         TEXT,
    tree_head         TEXT,
    tree_branch       TEXT,
    tree_at           INTEGER,
    revision          INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX sessions_id ON sessions (id);
CREATE UNIQUE INDEX sessions_handle ON sessions (handle);
CREATE INDEX sessions_code ON sessions (code);
CREATE INDEX sessions_newest ON sessions (started_at, id);
-- The open ones in order, and the closed ones by when they closed.
CREATE INDEX sessions_closed ON sessions (closed_at, started_at, id);
-- A process is one open session. One that hosts several conversations is one for each of them.
CREATE UNIQUE INDEX sessions_open_process ON sessions
    (pid, boot_id, pid_ns, host_id, start_ticks, boot_private, (CASE hosted WHEN 0 THEN '' ELSE native_id END))
    WHERE closed_at IS NULL;

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
    home       TEXT, -- the repository that a path is held in: its common directory
    home_mark  TEXT, -- what stays when that directory is moved
    PRIMARY KEY (key, epoch)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX holds_open ON holds (key) WHERE ended_at IS NULL;
CREATE INDEX holds_session ON holds (session, key, epoch);
-- The open ones of a session, and the others by how and when they ended: a long past is mostly given back.
CREATE INDEX holds_ended ON holds (session, ended_by, ended_at);
-- The timeline: those that ended, by when.
CREATE INDEX holds_time ON holds (ended_at, key, epoch) WHERE ended_at IS NOT NULL;
CREATE INDEX holds_open_home ON holds (home, home_mark) WHERE ended_at IS NULL AND home IS NOT NULL;

CREATE TABLE notices (
    id           INTEGER PRIMARY KEY,
    recipient    TEXT NOT NULL REFERENCES sessions (id) DEFERRABLE INITIALLY DEFERRED,
    kind         TEXT NOT NULL,
    message      TEXT NOT NULL,
    key          TEXT,
    epoch        INTEGER,
    sender       TEXT,
    at           INTEGER NOT NULL,
    delivered_at INTEGER,
    wakes        TEXT,
    woke_at      INTEGER
) STRICT;

CREATE INDEX notices_waiting ON notices (recipient, id) WHERE delivered_at IS NULL;

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

-- A waiter has one row for each key that it waits for, all with one ticket: the order of arrival is then the same for
-- all of them.
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
    turn_epoch        INTEGER, -- the turn belongs to this epoch of the key
    turn_at           INTEGER,
    PRIMARY KEY (key, ticket)
) STRICT, WITHOUT ROWID;

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
    run_id      TEXT, -- of the mission in another system
    api_url     TEXT,
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

-- Items are claim keys in canonical form.
CREATE TABLE conversations (
    item       TEXT NOT NULL,
    agent      TEXT NOT NULL,
    role       TEXT NOT NULL, -- of the agent; empty by default
    native_id  TEXT, -- the current one; none after a drop
    host_id    TEXT,
    user_name  TEXT,
    agent_home TEXT,
    dir        TEXT,
    repo_host  TEXT, -- of the item's repository, where dir is in a clone of it
    set_by     TEXT, -- a session
    set_by_run TEXT,
    set_at     INTEGER,
    closed_at  INTEGER,
    revision   INTEGER NOT NULL,
    PRIMARY KEY (item, agent, role)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX conversations_native ON conversations (agent, native_id) WHERE native_id IS NOT NULL;

-- Every native id that a conversation ever had; the one without an end is the current one.
CREATE TABLE past_ids (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    item       TEXT NOT NULL,
    agent      TEXT NOT NULL,
    role       TEXT NOT NULL,
    native_id  TEXT NOT NULL,
    from_at    INTEGER NOT NULL,
    set_by     TEXT,
    set_by_run TEXT,
    ended_at   INTEGER,
    ended_why  TEXT,
    ended_by   TEXT,
    ended_by_run TEXT
) STRICT;

CREATE INDEX past_ids_conversation ON past_ids (item, agent, role, id);
CREATE UNIQUE INDEX past_ids_open ON past_ids (item, agent, role) WHERE ended_at IS NULL;

CREATE TABLE items (
    item      TEXT NOT NULL PRIMARY KEY,
    root      TEXT, -- the item whose conversations it continues
    linked_at INTEGER,
    linked_by TEXT,
    closed_at INTEGER,
    reset_at  INTEGER, -- the runs that began before it drop their conversation at their end
    -- The breaker: runs since a permitted person last asked for one.
    breaker_runs INTEGER,
    person_at INTEGER,
    told_at   INTEGER,
    -- Of a repository (repo:NAME): its id at its forge, and what may make it another one: a second id, or 0 for its
    -- deletion.
    forge_id  INTEGER,
    doubt_id  INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX items_root ON items (root, item) WHERE root IS NOT NULL;

CREATE TABLE runs (
    id            TEXT NOT NULL PRIMARY KEY,
    agent         TEXT NOT NULL,
    role          TEXT NOT NULL,
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
    timeout_ms    INTEGER,
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
    stop_cause    TEXT, -- asked, or timed_out
    revision      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX runs_newest ON runs (created_at, id);
CREATE INDEX runs_item ON runs (item, created_at, id);
CREATE INDEX runs_session ON runs (session, created_at, id) WHERE session IS NOT NULL;
CREATE INDEX runs_after ON runs (agent, after_id, ended_at) WHERE after_id IS NOT NULL AND ended_at IS NOT NULL;
-- One at a time: a conversation, and a directory unless a run says that it shares it.
CREATE UNIQUE INDEX runs_open ON runs (root, agent, role) WHERE ended_at IS NULL;
CREATE UNIQUE INDEX runs_open_dir ON runs (dir, host_id) WHERE ended_at IS NULL AND shares_dir = 0;
-- Those that were cut off, by the boot in which they ran. What such a run started may still be running.
CREATE INDEX runs_cut_off ON runs (host_id, boot_id, created_at, id)
    WHERE outcome = 'interrupted' OR exit_code IS NULL AND outcome IN ('stopped', 'timeout', 'failed');

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

CREATE TABLE jobs (
    id            TEXT NOT NULL PRIMARY KEY,
    agent         TEXT NOT NULL,
    role          TEXT NOT NULL,
    item          TEXT NOT NULL,
    root          TEXT NOT NULL, -- the item whose conversation it continues
    rule          TEXT,
    trust         TEXT NOT NULL,
    repo          TEXT,
    spec          TEXT NOT NULL, -- what to run, as JSON
    fresh         INTEGER NOT NULL, -- whether it begins a new conversation, wherever the last one is
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
    unpublished   TEXT, -- why its result waits for a person
    published     TEXT, -- the branch that its result was pushed to
    revision      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX jobs_newest ON jobs (created_at, id);
-- Open jobs, and those whose result waits for a person.
CREATE INDEX jobs_open ON jobs (root, agent, role, created_at, id)
    WHERE ended_at IS NULL OR unpublished IS NOT NULL;
-- By when they may be taken: zero for those that wait for no time.
CREATE INDEX jobs_waiting ON jobs ((coalesce(parked_until, not_before, 0)), created_at, id)
    WHERE state = 'queued' OR state = 'parked' AND parked_until IS NOT NULL;
-- One at a time: a conversation.
CREATE UNIQUE INDEX jobs_taken ON jobs (root, agent, role) WHERE state IN ('starting', 'begun');

CREATE TABLE job_events (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    job      TEXT NOT NULL,
    delivery INTEGER,
    at       INTEGER NOT NULL,
    summary  TEXT NOT NULL,
    data     TEXT NOT NULL
) STRICT;

CREATE INDEX job_events_job ON job_events (job, id);

CREATE TABLE deliveries (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    endpoint    TEXT NOT NULL,
    delivery_id TEXT,
    content_key TEXT,
    body_hash   TEXT,
    received_at INTEGER NOT NULL,
    event       TEXT NOT NULL,
    repo        TEXT,
    item        TEXT,
    author      TEXT,
    verdict     TEXT NOT NULL,
    rule        TEXT,
    why         TEXT NOT NULL,
    job         TEXT,
    size        INTEGER, -- of the body, while it is kept
    body        BLOB
) STRICT;

-- Only what led to something makes a second one a duplicate.
CREATE UNIQUE INDEX deliveries_delivery ON deliveries (endpoint, delivery_id)
    WHERE delivery_id IS NOT NULL AND verdict IN ('queued', 'joined', 'acted');
CREATE UNIQUE INDEX deliveries_content ON deliveries (endpoint, content_key)
    WHERE content_key IS NOT NULL AND verdict IN ('queued', 'joined', 'acted');
CREATE INDEX deliveries_body ON deliveries (body_hash, id)
    WHERE body_hash IS NOT NULL AND verdict IN ('queued', 'joined', 'acted');
CREATE INDEX deliveries_item ON deliveries (item, id) WHERE item IS NOT NULL;

-- Deliveries that are stored and not decided yet.
CREATE TABLE undecided_deliveries (
    delivery    INTEGER NOT NULL PRIMARY KEY,
    endpoint    TEXT NOT NULL,
    delivery_id TEXT,
    headers     TEXT NOT NULL, -- those that name its event, as JSON
    answers     TEXT, -- of its forge, as JSON; none while it has not answered
    acted       INTEGER NOT NULL, -- 1 where everything was done that needs no answer
    replayed    INTEGER NOT NULL -- 1 where a person asked for it again
) STRICT;

-- What is written in forges about jobs.
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

-- Tokens of the HTTP API.
CREATE TABLE tokens (
    owner      TEXT NOT NULL, -- the machine and the user that it is for
    name       TEXT NOT NULL,
    hash       TEXT NOT NULL, -- SHA-256 of its text
    scopes     TEXT NOT NULL, -- with blanks between them
    created_at INTEGER NOT NULL,
    PRIMARY KEY (owner, name)
) STRICT, WITHOUT ROWID;

-- What sessions used, as their transcripts count it.
CREATE TABLE spend (
    session    TEXT NOT NULL,
    source     TEXT NOT NULL, -- the conversation, or the file of a subagent
    day        TEXT NOT NULL,
    item       TEXT NOT NULL, -- empty where the session held none
    agent      TEXT NOT NULL,
    tokens_in  INTEGER NOT NULL,
    tokens_out INTEGER NOT NULL,
    read_to    INTEGER NOT NULL, -- how far the transcript was read
    last_at    INTEGER NOT NULL, -- where the last record before that begins
    PRIMARY KEY (session, source, day, item)
) STRICT, WITHOUT ROWID;
