-- A row of every table, with a value in every column. scripts/golden makes schema-1.db of it.

INSERT INTO sessions (
    id, handle, code, agent, native_id, fork_of, parent_id, parent_life, twin_of, title, dir, repo, branch,
    branch_at, hosted, life, host_id, boot_id, boot_private, pid_ns, pid, start_ticks, start_shifted, activity, activity_since,
    activity_why, activity_until, asked_at, asked_before, woken, started_at, seen_at, lease_era, lease_era_private, lease_at, closed_at, closed_by, closed_why, end_kind,
    dismissed_at, title_by, headless, flags, asks, attended_at, daemon_pid, daemon_ticks, daemon_shifted,
    model_life, tree_root, tree_head, tree_branch, tree_at, revision
) VALUES (
    '018bcfe5-6801-7000-8000-000000000001', 'claude-gggggh', 'gggggh', 'claude', 'ses_1', 'ses_0',
    '018bcfe5-685a-7000-8000-00000000005a', 4, '018bcfe5-685b-7000-8000-00000000005b',
    'fix "the" thing; DROP TABLE – ü', '/srv/a b/ü', 'acme/web', 'feature/x', 1700000000006, 1, 7, 'host-one', 'boot-one', 0,
    4026531836, 2001, 77, 0, 'waiting', 1700000000003, '429 Too Many Requests', 1700000000007, 1700000000008,
    1700000000005, 'turn 1700000000003', 1700000000001, 1700000000002, 'boot-two', 1, -5, 1700000000500,
    'moved', 'it was time', 'moved', 1700000000600, 'prompt', 1, '["--model","a \"b\""]',
    'permission for rm -rf build', 1700000000004, 3001, 78, 0, 7, '/srv/a b/ü', '0a1b2c3d', 'feature/x',
    1700000000005, 12
);

INSERT INTO sessions (
    id, handle, code, agent, dir, hosted, life, host_id, boot_id, boot_private, pid_ns, pid, start_ticks,
    start_shifted, started_at, seen_at, lease_era, lease_era_private, lease_at, revision
) VALUES (
    '018bcfe5-6802-7000-8000-000000000002', 'claude-gggggj', 'gggggj', 'claude', '/srv/2', 0, 1, 'host-one',
    'boot-one', 0, 4026531836, 6, 100, 0, 1700000000002, 1700000000002, 'boot-one', 0, 60000, 0
);

INSERT INTO lives (session, life, host_id, boot_id, boot_private, pid_ns, pid, start_ticks, start_shifted, at) VALUES
    ('018bcfe5-6801-7000-8000-000000000001', 1, 'host-one', 'boot-one', 0, 4026531836, 5, 100, 0, 1700000000001);

INSERT INTO natives (agent, native_id, owner, at) VALUES
    ('claude', 'ses_1', '018bcfe5-6801-7000-8000-000000000001', 5);

INSERT INTO visits (agent, native_id, visitor, at) VALUES
    ('claude', 'ses_1', '018bcfe5-6802-7000-8000-000000000002', 3);

INSERT INTO claims (key, epoch) VALUES
    ('path:acme/web:src/**', 2);

INSERT INTO holds (
    key, epoch, session, life, request, means, note, granted_at, taken_from, ended_at, ended_by, home, home_mark
) VALUES (
    'path:acme/web:src/**', 2, '018bcfe5-6801-7000-8000-000000000001', 1, 'req-1', 'claim', 'the parser',
    1700000000000,
    '{"session":"018bcfe5-6802-7000-8000-000000000002","handle":"claude-gggggj","epoch":1,"by":"death","proof":"pid 7 is gone","dir":"/srv/2"}',
    1700000000700, 'release', '/srv/web/.git', '5f'
);

INSERT INTO notices (id, recipient, kind, message, key, epoch, sender, at, delivered_at, wakes, woke_at) VALUES (
    1, '018bcfe5-6801-7000-8000-000000000001', 'lost', 'first', 'wp:1', 8589934592,
    '018bcfe5-6802-7000-8000-000000000002', 1699999999991, 1700000000001, 'person', 1700000000000
);

INSERT INTO metadata (session, key, value) VALUES
    ('018bcfe5-6801-7000-8000-000000000001', 'run', '42');

INSERT INTO doubts (asker, holder, life) VALUES
    ('018bcfe5-6801-7000-8000-000000000001', '018bcfe5-6802-7000-8000-000000000002', 1);

INSERT INTO waiters (
    key, ticket, session, life, host_id, boot_id, boot_private, pid_ns, pid, start_ticks, start_shifted, since,
    turn_era, turn_era_private, turn_epoch, turn_at
) VALUES (
    'wp:a', 1, '018bcfe5-6801-7000-8000-000000000001', 1, 'host-one', 'boot-one', 0, 4026531836, 1, 1, 0, 1,
    'boot-one', 0, 3, 1700
);

INSERT INTO transcripts (path, session, native_id, at) VALUES
    ('/t/a.jsonl', '018bcfe5-6801-7000-8000-000000000001', 'a', 5);

INSERT INTO quarantine (id, session, path, native_id, since, why, at) VALUES
    (1, '018bcfe5-6801-7000-8000-000000000001', '/t/b.jsonl', 'a', 5, 'it is not its own', 9);

INSERT INTO writes (path, session, at, size, modified) VALUES
    ('/w/A', '018bcfe5-6801-7000-8000-000000000001', 1700000000003, 1099511627776, -5);

INSERT INTO missions (id, created_at) VALUES
    ('m', 1700000000000);

INSERT INTO participants (
    mission, session, participant, role, joined_at, active_at, drive, focus, run_id, api_url, revision
) VALUES (
    'm', '018bcfe5-6801-7000-8000-000000000001', '01HF7YAT00040G2081040G2081', 'developer', 1700000000001,
    1700000000010, 'active', 'wp:041/WP01', 'run-1', 'https://api.example/v1', 7
);

INSERT INTO pointers (scope, name, mission, at) VALUES
    ('repo', 'acme/web', 'r', 1700000000000);

INSERT INTO mirror_failures (path, session, why, at) VALUES
    ('/srv/1/.tenure/status.json', '018bcfe5-6801-7000-8000-000000000001', 'the disk is full', 1700000000001);

INSERT INTO conversations (
    item, agent, role, native_id, host_id, user_name, agent_home, dir, repo_host, set_by, set_by_run, set_at, closed_at, revision
) VALUES (
    'issue:acme/web#6', 'claude', 'reviewer', 'ses_1', 'host-one', 'alice', '/home/alice/.codex-2', '/srv/web', 'github.com',
    '018bcfe5-6801-7000-8000-000000000001', 'r-3333333333', 1700000000007, 1700000000009, 12
);

INSERT INTO past_ids (
    id, item, agent, role, native_id, from_at, set_by, set_by_run, ended_at, ended_why, ended_by, ended_by_run
) VALUES (
    1, 'issue:acme/web#6', 'claude', 'reviewer', 'ses_1', 1700000000001, '018bcfe5-6801-7000-8000-000000000001', 'r-3333333333',
    1700000000005, 'replaced', '018bcfe5-6802-7000-8000-000000000002', 'r-4444444444'
);

INSERT INTO items (item, root, linked_at, linked_by, closed_at, reset_at, breaker_runs, person_at, told_at, forge_id, doubt_id) VALUES (
    'branch:acme/web:fix-6', 'issue:acme/web#6', 1700000000000, '018bcfe5-6801-7000-8000-000000000001', 1700000000009,
    1700000000008, 3, 1700000000002, 1700000000003, 7, 9
);

INSERT INTO runs (
    id, agent, role, item, root, host_id, session, life, runner_host, boot_id, boot_private, pid_ns, pid, start_ticks,
    start_shifted, before_id, intended_id, after_id, dir, shares_dir, exclusive, timeout_ms, started_by, skill, prompt_hash,
    log, goes_on, created_at, begun_at, fell_back, stop_at, stop_by, stop_why, turns, tokens_in, tokens_out, cost,
    ended_at, outcome, why, exit_code, conversation_left, parked_until, stop_cause, revision
) VALUES (
    'r-3333333333', 'claude', 'reviewer', 'issue:acme/web#1', 'issue:acme/web#99', 'host-one',
    '018bcfe5-6801-7000-8000-000000000001', 1, 'host-one', 'boot-one', 0, 4026531836, 77, -1, 0, 'ses_1', 'ses_2',
    'ses_3', '/srv/1', 1, 1, 1800000, 'resume', 'implement', 'ab12', '/state/runs/x.log', 'r-cccccccccc', 1700000000001,
    1700000000002, 1, 1700000000003, '018bcfe5-6801-7000-8000-000000000001', 'wrong branch', 3, 1099511627776, 0,
    0.25, 1700000000004, 'parked', 'usage limit', 137, 'overflowed', 1700000000005, 'timed_out', 6
);

INSERT INTO parks (agent, host_id, until_at, count, why, run, at) VALUES
    ('claude', 'host-two', 1700000000040, 4, 'usage limit', 'r-6666666666', 1700000000000);

INSERT INTO jobs (
    id, agent, role, item, root, rule, trust, repo, spec, fresh, state, attempt, failures, failure, taker_host, boot_id,
    boot_private, pid_ns, pid, start_ticks, start_shifted, taken_at, run, parked_for, parked_until, parked_why,
    not_before, by_session, created_at, ended_at, outcome, why, unpublished, published, revision
) VALUES (
    'j-3333333333', 'claude', 'reviewer', 'issue:acme/web#1', 'issue:acme/web#99', 'fix', 'trusted', 'acme/web',
    '{"ask":{"skill":{"name":"fix","variables":{"a":"b"}}},"workdir":{"dir":"/srv","worktree":false},"args":["--model"],"env":["TOKEN"],"wrap":["bwrap"],"exclusive":false,"fresh":false,"shares_dir":false,"timeout_ms":7,"caps":{"runs_per_hour":3,"budget_per_day":1.5,"per_repo":2,"breaker":10},"dispatched":true,"trusted_repo":false,"code":{"head":"a1","url":"https://git.example.org/acme/web.git","forge":{"kind":"forgejo","url":"https://git.example.org","credential":{"user":"bot","file":"token"},"ca_file":"/ca.pem"},"push":{"user":"bot","file":"push"}}}',
    0, 'ended', 3, 2, 'no skill', 'host-one', 'boot-one', 0, 4026531836, 77, -1, 0, 1700000000050, 'r-9999999999',
    'limit', 1700000000900, 'a usage limit', 1700000000800, '018bcfe5-6801-7000-8000-000000000001', 1700000000001,
    1700000000700, 'failed', 'it failed', 'its rule asks', 'tenure/issue-1', 2
);

INSERT INTO job_events (id, job, delivery, at, summary, data) VALUES
    (1, 'j-3333333333', 2, 1700000000002, 'event 2', '{}');

INSERT INTO deliveries (
    id, endpoint, delivery_id, content_key, body_hash, received_at, event, repo, item, author, verdict, rule, why, job, size,
    body
) VALUES (
    1, 'home', 'd-1', 'c-1', 'ab12', 1700000000001, 'issue.opened', 'acme/web', 'issue:acme/web#6', 'alice', 'refused', 'fix',
    'rule fix matches', 'j-3333333333', 3, x'6f6e65'
);

INSERT INTO undecided_deliveries (delivery, endpoint, delivery_id, headers, answers, acted, replayed) VALUES
    (2, 'home', 'd-2', '[["number","1"]]', '{}', 1, 0);

INSERT INTO replies (
    id, kind, forge, item, job, target, comment, unsure, said, tries, next_at, failure, created_at, done_at
) VALUES (
    1, 'status', 'home', 'issue:acme/web#1', 'j-3333333333', 'comment-1', 9223372036854775807, 1, 'running r-1', 3,
    1700000000009, 'away', 1700000000001, 1700000000010
);

INSERT INTO duties (
    name, host_id, boot_id, boot_private, pid_ns, pid, start_ticks, start_shifted, renewed_at, swept_at
) VALUES (
    'forge home', 'host-one', 'boot-one', 0, 4026531836, 8, -1, 0, 1700000000002, 1700000000002
);

INSERT INTO tokens (owner, name, hash, scopes, created_at) VALUES
    ('host-one/1000', 'ci', 'ab12', 'read act', 1700000000001);

INSERT INTO spend (session, source, day, item, agent, tokens_in, tokens_out, read_to, last_at) VALUES
    ('018bcfe5-6801-7000-8000-000000000001', 'c-1', '2026-11-19', 'issue:acme/web#1', 'claude', 1200, 34, 4096, 4000);

INSERT INTO events (id, at, kind, session, actor, key, epoch, mechanism, evidence, reason) VALUES (
    1, 1700000000003, 'session.registered', '018bcfe5-6801-7000-8000-000000000001',
    '018bcfe5-6801-7000-8000-000000000001', 'path:acme/web:src/**', 2, 'register', 'pid 7 is gone', 'stuck'
);
