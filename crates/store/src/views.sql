-- What dashboards and other programs may read, in every engine. A column that is here stays, with its meaning; columns
-- are only added. AT() is a time, EPOCH() the number of a grant as people see it.

CREATE VIEW sessions AS
SELECT s.id, s.handle, s.agent, s.native_id, s.parent_id AS parent, s.title, s.dir, s.repo, s.branch, s.host_id, s.pid,
    s.activity, AT(s.started_at) AS started_at, AT(s.seen_at) AS seen_at, AT(s.closed_at) AS ended_at,
    s.closed_by AS ended_by, s.closed_why AS ended_why
FROM sessions s;

CREATE VIEW claims AS
SELECT h.key, EPOCH(h.epoch) AS epoch, h.session, s.handle, s.agent, h.note, AT(h.granted_at) AS granted_at
FROM holds h JOIN sessions s ON s.id = h.session
WHERE h.ended_at IS NULL;

CREATE VIEW claim_history AS
SELECT h.key, EPOCH(h.epoch) AS epoch, h.session, s.handle, s.agent, h.means, h.note, AT(h.granted_at) AS granted_at,
    AT(h.ended_at) AS ended_at, h.ended_by
FROM holds h JOIN sessions s ON s.id = h.session;

CREATE VIEW events AS
SELECT e.id AS cursor, AT(e.at) AS at, e.kind, e.session, e.actor, e.key, e.epoch, e.mechanism, e.evidence, e.reason
FROM events e
WHERE e.id IS NOT NULL;

CREATE VIEW runs AS
SELECT r.id, r.agent, r.item, r.session, r.dir, r.skill, AT(r.created_at) AS created_at, AT(r.begun_at) AS begun_at,
    AT(r.ended_at) AS ended_at, r.outcome, r.why, r.exit_code, r.turns, r.tokens_in, r.tokens_out, r.cost
FROM runs r;
