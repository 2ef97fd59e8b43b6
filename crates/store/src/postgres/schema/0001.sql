-- The tables of the SQLite store with the names and the meaning that they have there, so that a row copies from one to
-- the other unchanged. All whole numbers are bigint and all texts are compared by their bytes. Times are milliseconds
-- since 1970; lease_at is milliseconds of the store's clock. Flags are 0 or 1. Unsigned 64-bit kernel numbers (pid_ns,
-- start_ticks) are kept bit for bit as signed ones. The epochs of claims and holds are kept without the store's base.

CREATE TABLE store (
    one        boolean NOT NULL PRIMARY KEY DEFAULT true CHECK (one),
    id         text COLLATE "C" NOT NULL DEFAULT gen_random_uuid()::text,
    schema     bigint NOT NULL,
    min_writer bigint NOT NULL, -- the oldest schema whose binaries may still write
    needs      text COLLATE "C" NOT NULL, -- the tenure that they are part of
    base       bigint NOT NULL DEFAULT 0, -- added to every epoch; raised when history was lost
    moved_to   text COLLATE "C", -- the store that took this one's place
    copied_from text COLLATE "C", -- the store that this one is an unfinished copy of
    copy       text COLLATE "C", -- the name of the copy that moved or makes it
    news_at    bigint,
    news       text COLLATE "C" -- the last incident of the store
);
COMMENT ON TABLE store IS 'tenure: the state of coding-agent sessions';
INSERT INTO store (schema, min_writer, needs) VALUES (0, 0, '');

-- The store's time and its difference to the server's clock then.
CREATE TABLE clock (
    one  boolean NOT NULL PRIMARY KEY DEFAULT true CHECK (one),
    last bigint NOT NULL,
    off  bigint NOT NULL
);
INSERT INTO clock (last, off) SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint, 0;

-- The number of the newest event. It also grows with changes that somebody may wait for and that have no event.
CREATE TABLE counter (
    one    boolean NOT NULL PRIMARY KEY DEFAULT true CHECK (one),
    number bigint NOT NULL
);
INSERT INTO counter (number) VALUES (0);

-- One row for each write transaction: what became of a commit whose answer was lost.
CREATE TABLE commits (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    at bigint NOT NULL
);
CREATE INDEX commits_at ON commits (at);

CREATE TABLE sessions (
    id                text COLLATE "C" NOT NULL,
    handle            text COLLATE "C" NOT NULL,
    code              text COLLATE "C" NOT NULL, -- the handle without its agent: what people type
    agent             text COLLATE "C" NOT NULL,
    native_id         text COLLATE "C",
    fork_of           text COLLATE "C",
    parent_id         text COLLATE "C",
    parent_life       bigint,
    twin_of           text COLLATE "C",
    title             text COLLATE "C",
    dir               text COLLATE "C" NOT NULL,
    repo              text COLLATE "C",
    branch            text COLLATE "C",
    hosted            bigint NOT NULL,
    life              bigint NOT NULL,
    host_id           text COLLATE "C",
    boot_id           text COLLATE "C",
    boot_private      bigint,
    pid_ns            bigint,
    pid               bigint,
    start_ticks       bigint,
    start_shifted     bigint,
    activity          text COLLATE "C",
    activity_since    bigint,
    started_at        bigint NOT NULL,
    seen_at           bigint NOT NULL,
    lease_era         text COLLATE "C" NOT NULL,
    lease_era_private bigint NOT NULL,
    lease_at          bigint NOT NULL,
    closed_at         bigint,
    closed_by         text COLLATE "C",
    closed_why        text COLLATE "C",
    revision          bigint NOT NULL,
    end_kind text COLLATE "C",
    dismissed_at bigint,
    title_by text COLLATE "C",
    headless bigint,
    flags text COLLATE "C",
    asks text COLLATE "C",
    attended_at bigint,
    daemon_pid bigint,
    daemon_ticks bigint,
    daemon_shifted bigint,
    by_role text COLLATE "C" -- who may change the row; none if everyone may
);

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

CREATE UNIQUE INDEX sessions_open_hosted
    ON sessions (pid, start_ticks, boot_id, boot_private, pid_ns, host_id, native_id)
    WHERE closed_at IS NULL AND hosted = 1 AND native_id IS NOT NULL;

CREATE INDEX sessions_cut_off ON sessions (closed_at, id)
    WHERE end_kind = 'cut_off' AND dismissed_at IS NULL;

CREATE INDEX sessions_open_daemon ON sessions (daemon_pid, boot_id, pid_ns, host_id)
    WHERE closed_at IS NULL AND daemon_pid IS NOT NULL;

CREATE TABLE lives (
    session       text COLLATE "C" NOT NULL REFERENCES sessions (id) DEFERRABLE INITIALLY DEFERRED,
    life          bigint NOT NULL,
    host_id       text COLLATE "C" NOT NULL,
    boot_id       text COLLATE "C" NOT NULL,
    boot_private  bigint NOT NULL,
    pid_ns        bigint NOT NULL,
    pid           bigint NOT NULL,
    start_ticks   bigint NOT NULL,
    start_shifted bigint NOT NULL,
    at            bigint NOT NULL,
    PRIMARY KEY (session, life)
);

CREATE INDEX lives_place ON lives (pid, boot_id, pid_ns, host_id);

CREATE TABLE natives (
    agent     text COLLATE "C" NOT NULL,
    native_id text COLLATE "C" NOT NULL,
    owner     text COLLATE "C" NOT NULL REFERENCES sessions (id) DEFERRABLE INITIALLY DEFERRED,
    at        bigint NOT NULL,
    PRIMARY KEY (agent, native_id)
);

CREATE INDEX natives_owner ON natives (owner);

CREATE TABLE visits (
    agent     text COLLATE "C" NOT NULL,
    native_id text COLLATE "C" NOT NULL,
    visitor   text COLLATE "C" NOT NULL REFERENCES sessions (id) DEFERRABLE INITIALLY DEFERRED,
    at        bigint NOT NULL,
    PRIMARY KEY (agent, native_id, visitor)
);

CREATE INDEX visits_visitor ON visits (visitor);

CREATE TABLE claims (
    key   text COLLATE "C" NOT NULL PRIMARY KEY,
    epoch bigint NOT NULL
);

CREATE TABLE holds (
    key        text COLLATE "C" NOT NULL REFERENCES claims (key) DEFERRABLE INITIALLY DEFERRED,
    epoch      bigint NOT NULL,
    session    text COLLATE "C" NOT NULL REFERENCES sessions (id) DEFERRABLE INITIALLY DEFERRED,
    life       bigint NOT NULL,
    request    text COLLATE "C",
    means      text COLLATE "C" NOT NULL,
    note       text COLLATE "C",
    granted_at bigint NOT NULL,
    taken_from text COLLATE "C", -- JSON
    ended_at   bigint,
    ended_by   text COLLATE "C",
    home text COLLATE "C",
    home_mark text COLLATE "C",
    PRIMARY KEY (key, epoch)
);

CREATE UNIQUE INDEX holds_open ON holds (key) WHERE ended_at IS NULL;

CREATE INDEX holds_open_session ON holds (session, key) WHERE ended_at IS NULL;

CREATE INDEX holds_session ON holds (session, key, epoch);

CREATE INDEX holds_open_home ON holds (home, home_mark, ended_at)
    WHERE ended_at IS NULL AND home IS NOT NULL;

CREATE INDEX holds_lost_key ON holds (session, key, epoch) WHERE ended_by IN ('death', 'lease', 'taken');

CREATE INDEX holds_lost_at ON holds (session, ended_at) WHERE ended_by IN ('death', 'lease', 'taken');

CREATE INDEX holds_granted ON holds (session, granted_at);

CREATE TABLE notices (
    id           bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    recipient    text COLLATE "C" NOT NULL REFERENCES sessions (id) DEFERRABLE INITIALLY DEFERRED,
    kind         text COLLATE "C" NOT NULL,
    message      text COLLATE "C" NOT NULL,
    key          text COLLATE "C",
    epoch        bigint,
    sender       text COLLATE "C",
    at           bigint NOT NULL,
    delivered_at bigint
);

CREATE INDEX notices_waiting ON notices (recipient, id) WHERE delivered_at IS NULL;

CREATE TABLE metadata (
    session text COLLATE "C" NOT NULL REFERENCES sessions (id) DEFERRABLE INITIALLY DEFERRED,
    key     text COLLATE "C" NOT NULL,
    value   text COLLATE "C" NOT NULL,
    PRIMARY KEY (session, key)
);

CREATE TABLE doubts (
    asker  text COLLATE "C" NOT NULL REFERENCES sessions (id) DEFERRABLE INITIALLY DEFERRED,
    holder text COLLATE "C" NOT NULL,
    life   bigint NOT NULL,
    PRIMARY KEY (asker, holder, life)
);

CREATE TABLE waiters (
    key               text COLLATE "C" NOT NULL,
    ticket            bigint NOT NULL,
    session           text COLLATE "C",
    life              bigint,
    host_id           text COLLATE "C" NOT NULL,
    boot_id           text COLLATE "C" NOT NULL,
    boot_private      bigint NOT NULL,
    pid_ns            bigint NOT NULL,
    pid               bigint NOT NULL,
    start_ticks       bigint NOT NULL,
    start_shifted     bigint NOT NULL,
    since             bigint NOT NULL,
    turn_era          text COLLATE "C",
    turn_era_private  bigint,
    turn_at           bigint,
    turn_epoch bigint,
    PRIMARY KEY (key, ticket)
);

CREATE INDEX waiters_ticket ON waiters (ticket);

CREATE INDEX waiters_session ON waiters (session) WHERE session IS NOT NULL;

CREATE TABLE transcripts (
    path      text COLLATE "C" NOT NULL PRIMARY KEY,
    session   text COLLATE "C" NOT NULL REFERENCES sessions (id) DEFERRABLE INITIALLY DEFERRED,
    native_id text COLLATE "C" NOT NULL,
    at        bigint NOT NULL
);

CREATE UNIQUE INDEX transcripts_session ON transcripts (session, native_id);

CREATE TABLE quarantine (
    id        bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    session   text COLLATE "C" NOT NULL,
    path      text COLLATE "C" NOT NULL,
    native_id text COLLATE "C" NOT NULL,
    since     bigint NOT NULL,
    why       text COLLATE "C" NOT NULL,
    at        bigint NOT NULL
);

CREATE INDEX quarantine_session ON quarantine (session);

CREATE TABLE writes (
    path    text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL REFERENCES sessions (id) DEFERRABLE INITIALLY DEFERRED,
    at      bigint NOT NULL,
    -- What the file was when the session was done with it.
    size     bigint,
    modified bigint,
    PRIMARY KEY (path, session)
);

CREATE INDEX writes_session ON writes (session, at);

CREATE TABLE trees (
    session text COLLATE "C" NOT NULL PRIMARY KEY REFERENCES sessions (id) DEFERRABLE INITIALLY DEFERRED,
    root    text COLLATE "C" NOT NULL,
    head    text COLLATE "C",
    branch  text COLLATE "C",
    at      bigint NOT NULL
);

CREATE TABLE missions (
    id         text COLLATE "C" NOT NULL PRIMARY KEY,
    created_at bigint NOT NULL
);

CREATE TABLE participants (
    mission     text COLLATE "C" NOT NULL REFERENCES missions (id) DEFERRABLE INITIALLY DEFERRED,
    session     text COLLATE "C" NOT NULL REFERENCES sessions (id) DEFERRABLE INITIALLY DEFERRED,
    participant text COLLATE "C" NOT NULL,
    role        text COLLATE "C" NOT NULL,
    joined_at   bigint NOT NULL,
    active_at   bigint NOT NULL,
    drive       text COLLATE "C" NOT NULL,
    focus       text COLLATE "C",
    revision    bigint NOT NULL,
    PRIMARY KEY (mission, session)
);

CREATE UNIQUE INDEX participants_id ON participants (mission, participant);

CREATE INDEX participants_session ON participants (session);

CREATE TABLE pointers (
    scope   text COLLATE "C" NOT NULL, -- session, repo or user
    name    text COLLATE "C" NOT NULL,
    mission text COLLATE "C" NOT NULL,
    at      bigint NOT NULL,
    PRIMARY KEY (scope, name)
);

CREATE TABLE mirror_failures (
    path    text COLLATE "C" NOT NULL PRIMARY KEY,
    session text COLLATE "C" NOT NULL,
    why     text COLLATE "C" NOT NULL,
    at      bigint NOT NULL
);

CREATE TABLE spellings (
    canonical text COLLATE "C" NOT NULL,
    key       text COLLATE "C" NOT NULL,
    PRIMARY KEY (canonical, key)
);

CREATE TABLE model_channels (
    session text COLLATE "C" NOT NULL PRIMARY KEY REFERENCES sessions (id) DEFERRABLE INITIALLY DEFERRED,
    life    bigint NOT NULL
);

CREATE TABLE conversations (
    item       text COLLATE "C" NOT NULL,
    agent      text COLLATE "C" NOT NULL,
    native_id  text COLLATE "C", -- the current one; none after a drop
    host_id    text COLLATE "C",
    user_name  text COLLATE "C",
    agent_home text COLLATE "C",
    dir        text COLLATE "C",
    set_by     text COLLATE "C", -- a session
    set_by_run text COLLATE "C",
    set_at     bigint,
    closed_at  bigint,
    revision   bigint NOT NULL,
    repo_host  text COLLATE "C", -- of the item's repository, where dir is in a clone of it
    PRIMARY KEY (item, agent)
);

CREATE UNIQUE INDEX conversations_native ON conversations (agent, native_id) WHERE native_id IS NOT NULL;

CREATE INDEX conversations_open ON conversations (item, agent)
    WHERE native_id IS NOT NULL AND closed_at IS NULL;

CREATE INDEX conversations_open_agent ON conversations (agent, item)
    WHERE native_id IS NOT NULL AND closed_at IS NULL;

CREATE TABLE past_ids (
    id         bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    item       text COLLATE "C" NOT NULL,
    agent      text COLLATE "C" NOT NULL,
    native_id  text COLLATE "C" NOT NULL,
    from_at    bigint NOT NULL,
    set_by     text COLLATE "C",
    set_by_run text COLLATE "C",
    ended_at   bigint,
    ended_why  text COLLATE "C",
    ended_by   text COLLATE "C",
    ended_by_run text COLLATE "C"
);

CREATE INDEX past_ids_conversation ON past_ids (item, agent, id);

CREATE UNIQUE INDEX past_ids_open ON past_ids (item, agent) WHERE ended_at IS NULL;

CREATE TABLE items (
    item      text COLLATE "C" NOT NULL PRIMARY KEY,
    root      text COLLATE "C", -- the item whose conversations it continues
    linked_at bigint,
    linked_by text COLLATE "C",
    closed_at bigint
);

CREATE INDEX items_root ON items (root, item) WHERE root IS NOT NULL;

CREATE TABLE runs (
    id            text COLLATE "C" NOT NULL,
    agent         text COLLATE "C" NOT NULL,
    item          text COLLATE "C" NOT NULL,
    root          text COLLATE "C" NOT NULL, -- the item whose conversation it continues
    host_id       text COLLATE "C" NOT NULL,
    session       text COLLATE "C",
    life          bigint,
    -- The runner, on the run's own host.
    runner_host   text COLLATE "C",
    boot_id       text COLLATE "C",
    boot_private  bigint,
    pid_ns        bigint,
    pid           bigint,
    start_ticks   bigint,
    start_shifted bigint,
    before_id     text COLLATE "C",
    intended_id   text COLLATE "C",
    after_id      text COLLATE "C",
    dir           text COLLATE "C" NOT NULL,
    shares_dir    bigint NOT NULL,
    exclusive     bigint NOT NULL,
    started_by    text COLLATE "C" NOT NULL,
    skill         text COLLATE "C",
    prompt_hash   text COLLATE "C",
    log           text COLLATE "C",
    goes_on       text COLLATE "C",
    created_at    bigint NOT NULL,
    begun_at      bigint,
    fell_back     bigint NOT NULL,
    stop_at       bigint,
    stop_by       text COLLATE "C",
    stop_why      text COLLATE "C",
    turns         bigint,
    tokens_in     bigint,
    tokens_out    bigint,
    cost          double precision,
    ended_at      bigint,
    outcome       text COLLATE "C",
    why           text COLLATE "C",
    exit_code     bigint,
    conversation_left text COLLATE "C", -- whether the conversation may be resumed: another question than why the run ended
    parked_until  bigint,
    revision      bigint NOT NULL,
    stop_cause    text COLLATE "C" -- asked, or timed_out
);

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

CREATE UNIQUE INDEX runs_open_conversation ON runs (root, agent) WHERE ended_at IS NULL;

CREATE UNIQUE INDEX runs_open_dir ON runs (dir, host_id) WHERE ended_at IS NULL AND shares_dir = 0;

CREATE INDEX runs_cut_off_in ON runs (dir, host_id, boot_id, created_at, id)
    WHERE outcome = 'interrupted' OR exit_code IS NULL AND outcome IN ('stopped', 'timeout', 'failed');

CREATE INDEX runs_cut_off_of ON runs (root, agent, host_id, boot_id, created_at, id)
    WHERE outcome = 'interrupted' OR exit_code IS NULL AND outcome IN ('stopped', 'timeout', 'failed');

CREATE TABLE parks (
    agent    text COLLATE "C" NOT NULL,
    host_id  text COLLATE "C" NOT NULL,
    until_at bigint NOT NULL,
    count    bigint NOT NULL,
    why      text COLLATE "C" NOT NULL,
    run      text COLLATE "C" NOT NULL,
    at       bigint NOT NULL,
    PRIMARY KEY (agent, host_id)
);

CREATE TABLE jobs (
    id            text COLLATE "C" NOT NULL,
    agent         text COLLATE "C" NOT NULL,
    item          text COLLATE "C" NOT NULL,
    root          text COLLATE "C" NOT NULL, -- the item whose conversation it continues
    rule          text COLLATE "C",
    trust         text COLLATE "C" NOT NULL,
    repo          text COLLATE "C",
    spec          text COLLATE "C" NOT NULL, -- what to run, as JSON
    state         text COLLATE "C" NOT NULL,
    attempt       bigint NOT NULL,
    failures      bigint NOT NULL,
    failure       text COLLATE "C", -- why its agent did not start, the last time
    -- The runner that took it.
    taker_host    text COLLATE "C",
    boot_id       text COLLATE "C",
    boot_private  bigint,
    pid_ns        bigint,
    pid           bigint,
    start_ticks   bigint,
    start_shifted bigint,
    taken_at      bigint,
    run           text COLLATE "C",
    parked_for    text COLLATE "C",
    parked_until  bigint,
    parked_why    text COLLATE "C",
    not_before    bigint,
    by_session    text COLLATE "C",
    created_at    bigint NOT NULL,
    ended_at      bigint,
    outcome       text COLLATE "C",
    why           text COLLATE "C",
    revision      bigint NOT NULL
);

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

CREATE INDEX jobs_waiting_repo ON jobs (coalesce(repo, ''), coalesce(parked_until, not_before, 0), created_at, id)
    WHERE state = 'queued' OR state = 'parked' AND parked_until IS NOT NULL;

CREATE INDEX jobs_run ON jobs (run) WHERE state IN ('starting', 'begun');

CREATE UNIQUE INDEX jobs_taken ON jobs (root, agent) WHERE state IN ('starting', 'begun');

CREATE TABLE job_events (
    id       bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    job      text COLLATE "C" NOT NULL,
    delivery bigint,
    at       bigint NOT NULL,
    summary  text COLLATE "C" NOT NULL,
    data     text COLLATE "C" NOT NULL
);

CREATE INDEX job_events_job ON job_events (job, id);

CREATE TABLE breakers (
    item      text COLLATE "C" NOT NULL PRIMARY KEY,
    runs      bigint NOT NULL,
    person_at bigint,
    told_at   bigint
);

CREATE TABLE deliveries (
    id          bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    endpoint    text COLLATE "C" NOT NULL,
    delivery_id text COLLATE "C",
    content_key text COLLATE "C",
    received_at bigint NOT NULL,
    event       text COLLATE "C" NOT NULL,
    repo        text COLLATE "C",
    item        text COLLATE "C",
    author      text COLLATE "C",
    verdict     text COLLATE "C" NOT NULL,
    rule        text COLLATE "C",
    why         text COLLATE "C" NOT NULL,
    job         text COLLATE "C"
);

CREATE UNIQUE INDEX deliveries_delivery ON deliveries (endpoint, delivery_id)
    WHERE delivery_id IS NOT NULL AND verdict IN ('queued', 'joined', 'acted');

CREATE UNIQUE INDEX deliveries_content ON deliveries (endpoint, content_key)
    WHERE content_key IS NOT NULL AND verdict IN ('queued', 'joined', 'acted');

CREATE INDEX deliveries_item ON deliveries (item, id) WHERE item IS NOT NULL;

CREATE TABLE delivery_bodies (
    delivery bigint NOT NULL PRIMARY KEY,
    size     bigint NOT NULL,
    body     bytea NOT NULL
);

-- What is written in forges about jobs.
CREATE TABLE replies (
    id         bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    kind       text COLLATE "C" NOT NULL,
    forge      text COLLATE "C" NOT NULL,
    item       text COLLATE "C" NOT NULL,
    job        text COLLATE "C" NOT NULL,
    target     text COLLATE "C", -- what gets eyes; none is the item
    comment    bigint, -- the forge's id of our comment
    unsure     bigint NOT NULL, -- whether a comment may be there whose id is not known
    said       text COLLATE "C", -- the label of what the forge has
    tries      bigint NOT NULL,
    next_at    bigint,
    failure    text COLLATE "C",
    created_at bigint NOT NULL,
    done_at    bigint
);

CREATE INDEX replies_open ON replies (forge, id) WHERE done_at IS NULL;

CREATE INDEX replies_done ON replies (done_at) WHERE done_at IS NOT NULL;
-- One comment of a kind about a job.
CREATE UNIQUE INDEX replies_comment ON replies (job, kind) WHERE kind <> 'eyes';

-- What one process at a time does.
CREATE TABLE duties (
    name          text COLLATE "C" NOT NULL PRIMARY KEY,
    host_id       text COLLATE "C" NOT NULL,
    boot_id       text COLLATE "C" NOT NULL,
    boot_private  bigint NOT NULL,
    pid_ns        bigint NOT NULL,
    pid           bigint NOT NULL,
    start_ticks   bigint NOT NULL,
    start_shifted bigint NOT NULL,
    renewed_at    bigint NOT NULL,
    swept_at      bigint
);

CREATE TABLE waiting_deliveries (
    delivery bigint NOT NULL PRIMARY KEY,
    endpoint text COLLATE "C" NOT NULL,
    event    text COLLATE "C" NOT NULL, -- as JSON
    tries    bigint NOT NULL,
    next_at  bigint NOT NULL
);

CREATE INDEX waiting_deliveries_next ON waiting_deliveries (endpoint, next_at);

-- Deliveries that were stored before they were decided, because several arrived at once.
CREATE TABLE undecided_deliveries (
    delivery    bigint NOT NULL PRIMARY KEY,
    endpoint    text COLLATE "C" NOT NULL,
    delivery_id text COLLATE "C",
    headers     text COLLATE "C" NOT NULL, -- those that name its event, as JSON
    asked       text COLLATE "C" NOT NULL -- what its forge answered when it arrived, as JSON
);

-- One row for each life of a keeper. Times of the store's clock are milliseconds; so are spans.
CREATE TABLE keepers (
    id           text COLLATE "C" NOT NULL PRIMARY KEY,
    host_id      text COLLATE "C" NOT NULL,
    boot_id      text COLLATE "C" NOT NULL,
    boot_private bigint NOT NULL,
    pid_ns       bigint NOT NULL,
    uid          bigint NOT NULL,
    pid          bigint NOT NULL,
    version      text COLLATE "C" NOT NULL,
    host_name    text COLLATE "C" NOT NULL,
    started_at   bigint NOT NULL,
    seen_at      bigint NOT NULL,
    renewed      bigint NOT NULL, -- on the store's clock
    acknowledged bigint, -- the renewal whose answer it certainly has
    lease        bigint NOT NULL,
    lock_delay   bigint NOT NULL,
    by_role      text COLLATE "C" -- who may change the row; none if everyone may
);
CREATE INDEX keepers_seen ON keepers (seen_at);

-- Which sessions a keeper sees running, in which life.
CREATE TABLE watched (
    session text COLLATE "C" NOT NULL PRIMARY KEY REFERENCES sessions (id) DEFERRABLE INITIALLY DEFERRED,
    life    bigint NOT NULL,
    keeper  text COLLATE "C" NOT NULL REFERENCES keepers (id) ON DELETE CASCADE
);
CREATE INDEX watched_keeper ON watched (keeper, session);

-- Takeovers that a keeper may not know of yet.
CREATE TABLE untold (
    key    text COLLATE "C" NOT NULL,
    epoch  bigint NOT NULL,
    keeper text COLLATE "C" NOT NULL REFERENCES keepers (id) ON DELETE CASCADE,
    at     bigint NOT NULL, -- on the store's clock
    PRIMARY KEY (key, epoch)
);

CREATE INDEX sessions_open_host ON sessions (host_id, pid_ns) WHERE closed_at IS NULL;

-- Tickets are never used twice.
CREATE SEQUENCE tickets;

-- An event has no number until its transaction commits; then it gets the next one. So numbers are in the order of
-- commits, and a client that stops before its commit holds nobody up.
CREATE TABLE events (
    written   bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    id        bigint,
    uid       text COLLATE "C" NOT NULL DEFAULT gen_random_uuid()::text,
    at        bigint NOT NULL,
    kind      text COLLATE "C" NOT NULL,
    session   text COLLATE "C",
    actor     text COLLATE "C",
    key       text COLLATE "C",
    epoch     bigint,
    mechanism text COLLATE "C" NOT NULL,
    evidence  text COLLATE "C" NOT NULL,
    reason    text COLLATE "C",
    -- Who wrote it, as the server knows them.
    by_role   text COLLATE "C" NOT NULL DEFAULT session_user,
    by_address text COLLATE "C" DEFAULT inet_client_addr()::text
);
CREATE UNIQUE INDEX events_id ON events (id);
CREATE INDEX events_at ON events (at, id);
CREATE INDEX events_key ON events (key, id) WHERE key IS NOT NULL;
CREATE INDEX events_session ON events (session, id) WHERE session IS NOT NULL;
CREATE INDEX events_actor ON events (actor, id) WHERE actor IS NOT NULL;

CREATE FUNCTION number_event() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    next bigint;
BEGIN
    EXECUTE format('UPDATE %I.counter SET number = number + 1 RETURNING number', TG_TABLE_SCHEMA) INTO next;
    EXECUTE format('UPDATE %I.events SET id = $1 WHERE written = $2', TG_TABLE_SCHEMA) USING next, NEW.written;
    RETURN NULL;
END
$$;
CREATE CONSTRAINT TRIGGER number_event AFTER INSERT ON events DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.id IS NULL) EXECUTE FUNCTION number_event();

-- Rows of a copied store are no changes that somebody waits for.
CREATE FUNCTION count_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('UPDATE %I.counter SET number = number + 1', TG_TABLE_SCHEMA);
    RETURN NULL;
END
$$;
CREATE CONSTRAINT TRIGGER count_change AFTER INSERT OR UPDATE OR DELETE ON waiters DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (current_setting('tenure.copying', true) IS DISTINCT FROM 'on')
    EXECUTE FUNCTION count_change();
CREATE CONSTRAINT TRIGGER count_change AFTER INSERT OR UPDATE OR DELETE ON notices DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (current_setting('tenure.copying', true) IS DISTINCT FROM 'on')
    EXECUTE FUNCTION count_change();
CREATE CONSTRAINT TRIGGER count_change AFTER INSERT OR UPDATE OR DELETE ON jobs DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (current_setting('tenure.copying', true) IS DISTINCT FROM 'on')
    EXECUTE FUNCTION count_change();
CREATE CONSTRAINT TRIGGER count_change AFTER INSERT OR UPDATE OR DELETE ON runs DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (current_setting('tenure.copying', true) IS DISTINCT FROM 'on')
    EXECUTE FUNCTION count_change();
CREATE CONSTRAINT TRIGGER count_change AFTER INSERT OR UPDATE OR DELETE ON participants DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (current_setting('tenure.copying', true) IS DISTINCT FROM 'on')
    EXECUTE FUNCTION count_change();

-- With a role per person, only that role changes its sessions and its keepers' rows. What the owner of the tables writes
-- is everyone's. Judges need no exception: they read other rows, lock them, and end holds.
CREATE FUNCTION own_row() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    tables_owner oid := (SELECT relowner FROM pg_class WHERE oid = TG_RELID);
BEGIN
    IF pg_has_role(session_user, tables_owner, 'MEMBER') THEN
        IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;
        RETURN NEW;
    END IF;
    IF TG_OP = 'INSERT' THEN
        NEW.by_role := session_user;
        RETURN NEW;
    END IF;
    -- Rows of keepers that have long been silent are removed by any other.
    IF TG_OP = 'DELETE' AND TG_TABLE_NAME = 'keepers'
        AND OLD.seen_at < extract(epoch FROM clock_timestamp()) * 1000 - 29 * 86400000::bigint THEN
        RETURN OLD;
    END IF;
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = OLD.by_role AND pg_has_role(session_user, oid, 'MEMBER'))
        AND (TG_OP = 'DELETE' OR NEW.by_role = OLD.by_role) THEN
        IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;
        RETURN NEW;
    END IF;
    RAISE EXCEPTION '% belongs to the database role %',
        coalesce(to_jsonb(OLD) ->> 'handle', 'the keeper of ' || (to_jsonb(OLD) ->> 'host_name')),
        coalesce(OLD.by_role, 'of the tables')
        USING ERRCODE = 'insufficient_privilege', CONSTRAINT = 'own_row';
END
$$;
CREATE TRIGGER own_row BEFORE INSERT ON sessions FOR EACH ROW EXECUTE FUNCTION own_row();
CREATE TRIGGER own_row BEFORE INSERT ON keepers FOR EACH ROW EXECUTE FUNCTION own_row();
CREATE TRIGGER own_changed_row BEFORE UPDATE ON sessions FOR EACH ROW
    WHEN (OLD.by_role IS DISTINCT FROM NEW.by_role OR OLD.by_role <> session_user) EXECUTE FUNCTION own_row();
CREATE TRIGGER own_changed_row BEFORE UPDATE ON keepers FOR EACH ROW
    WHEN (OLD.by_role IS DISTINCT FROM NEW.by_role OR OLD.by_role <> session_user) EXECUTE FUNCTION own_row();
CREATE TRIGGER own_removed_row BEFORE DELETE ON sessions FOR EACH ROW
    WHEN (OLD.by_role <> session_user) EXECUTE FUNCTION own_row();
CREATE TRIGGER own_removed_row BEFORE DELETE ON keepers FOR EACH ROW
    WHEN (OLD.by_role <> session_user) EXECUTE FUNCTION own_row();
