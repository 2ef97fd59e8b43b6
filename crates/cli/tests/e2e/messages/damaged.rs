//! Rows of the store that another version or another program changed.

use rusqlite::Connection;
use tenure_testkit::fake_forge::Dialect;
use tenure_testkit::{Agent, Cmd, Env, Scripted, Signal, poll};

use super::page::Page;
use crate::env;
use crate::support::forge_api::set_up_forge;
use crate::support::line::{SOON, run, session, take};
use crate::support::mission::join;
use crate::support::run::fake_claude;
use crate::support::webhook::set_up;

/// A store whose rows can be changed to anything.
struct Store(Connection);

impl Store {
    /// Takes away the rules of the tables, which keep most of such changes out.
    fn open(env: &Env) -> Self {
        let file = env.state().join("tenure.db");
        let store = Connection::open(file).expect("it is there");
        store
            .execute_batch(
                "PRAGMA foreign_keys = OFF; PRAGMA writable_schema = ON; \
                 UPDATE sqlite_schema SET sql = \
                 replace(replace(replace(sql, ' NOT NULL', ''), 'STRICT, ', ''), ' STRICT', '') \
                 WHERE type = 'table'; PRAGMA writable_schema = RESET",
            )
            .expect("the tables are as the test thinks");
        Self(store)
    }

    fn change(&self, sql: &str) {
        self.0.execute_batch(sql).expect(sql);
    }

    /// Changes rows of a table while a line runs.
    fn with(&self, (table, set): (&str, &str), then: impl FnOnce()) {
        self.change(&format!(
            "CREATE TEMP TABLE kept AS SELECT * FROM {table}; UPDATE {table} SET {set}"
        ));
        then();
        self.change(&format!(
            "DELETE FROM {table}; INSERT INTO {table} SELECT * FROM kept; DROP TABLE kept"
        ));
    }
}

/// Changes of rows, and the command that meets them.
type Damage = (&'static str, &'static [&'static str], &'static str);

const CLAIMS: &[Damage] = &[(
    "holds",
    &[
        "ended_by = 'magic' WHERE key = 'wp:2'",
        "ended_by = NULL WHERE key = 'wp:2'",
    ],
    "claims --all wp:2",
)];

const SESSIONS: &[Damage] = &[(
    "sessions",
    &[
        "parent_life = 1 WHERE agent = 'ann'",
        "activity_since = 1 WHERE agent = 'ann'",
        "closed_at = 1 WHERE agent = 'ann'",
        "closed_by = 'magic' WHERE agent = 'ann'",
        "end_kind = 'magic' WHERE agent = 'ann'",
        "title_by = 'magic' WHERE agent = 'ann'",
        "flags = '--yolo' WHERE agent = 'ann'",
        "boot_id = NULL WHERE agent = 'ann'",
        "daemon_pid = 7 WHERE agent = 'ann'",
    ],
    "ps --all --quiet",
)];

/// A process that no kernel has.
const PROCESSES: &[Damage] = &[(
    "sessions",
    &["pid = 4294967295 WHERE agent = 'ann'"],
    "ps --verbose",
)];

const CONVERSATIONS: &[Damage] = &[
    ("conversations", &["dir = NULL"], "conversation list"),
    (
        "conversations",
        &["user_name = 'bob'"],
        "run claude wp:1 --prompt fix",
    ),
    (
        "past_ids",
        &[
            "ended_why = NULL WHERE native_id = '7f3c'",
            "ended_why = 'magic' WHERE native_id = '7f3c'",
        ],
        "conversation history claude wp:1",
    ),
    (
        "items",
        &["linked_at = NULL"],
        "conversation get claude wp:3",
    ),
];

const RUNS: &[Damage] = &[(
    "runs",
    &[
        "id = 'r-1'",
        "life = NULL",
        "stop_at = 1",
        "stop_cause = 'magic'",
        "cost = 'much'",
        "why = NULL",
        "conversation_left = 'magic'",
    ],
    "runs",
)];

const JOBS: &[Damage] = &[(
    "jobs",
    &[
        "id = 'j-1'",
        "id = NULL",
        "state = 'magic'",
        "taken_at = 1",
        "parked_for = 'magic'",
        "parked_why = 'a limit'",
        "ended_at = 1",
        "attempt = NULL",
        "attempt = -1",
        "attempt = 'many'",
        "rule = CAST(x'ff' AS TEXT)",
        "rule = x'0102'",
    ],
    "queue --all",
)];

const OTHERS: &[Damage] = &[
    ("delivery_bodies", &["body = '{}'"], "dispatch explain 1"),
    ("pointers", &["scope = 'team'"], "mission check --all"),
    (
        "waiters",
        &[
            "host_id = NULL, boot_id = NULL, boot_private = NULL, pid_ns = NULL, pid = NULL, \
             start_ticks = NULL, start_shifted = NULL",
        ],
        "why wp:1",
    ),
];

#[test]
fn rows() {
    let env = env();
    let mut page = Page::new("90-damaged-rows", &env);
    let (ann, codex) = (session(&env, "ann"), session(&env, "codex"));
    fill(&env, &ann, &codex);
    let host = std::fs::read_to_string(env.state().join("host-id")).expect("it is there");
    page.replace(host.trim(), "build-3");
    page.replace("9223372036854775808", "2^63");
    page.learn(&env);
    let store = Store::open(&env);
    store.change(
        "INSERT INTO deliveries (endpoint, received_at, event, verdict, why) \
         VALUES ('home', 1, 'issues', 'ignored', 'no rule'); \
         INSERT INTO delivery_bodies (delivery, size, body) VALUES (1, 2, x'7b7d'); \
         INSERT INTO waiters (key, ticket, since) VALUES ('wp:1', 1, 1)",
    );
    let anybody = env.agent("anybody");
    for (title, damages) in [
        ("Claims", CLAIMS),
        ("Sessions", SESSIONS),
        ("Processes", PROCESSES),
        ("Conversations", CONVERSATIONS),
        ("Runs", RUNS),
        ("Jobs", JOBS),
        ("Deliveries, missions and waiting sessions", OTHERS),
    ] {
        page.title(title);
        for (table, sets, line) in damages {
            for set in *sets {
                store.with((table, set), || {
                    page.run(&anybody, &format!("tenure {line}"));
                });
            }
        }
    }
    page.title("A number at its limit");
    store.change("UPDATE claims SET epoch = 9223372036854775807 WHERE key = 'wp:2'");
    page.run(&codex, "tenure claim wp:2");
    drop(store);
    page.check(&env);
}

/// What a dispatcher says about rows that it cannot read: it goes on.
#[test]
fn replies() {
    let env = env();
    let mut page = Page::new("90-damaged-replies", &env);
    let human = session(&env, "human");
    Scripted::new(&env, "mine", "init; done_");
    let _forge = set_up_forge(&env, Dialect::Forgejo, "", "reply = \"comment\"");
    let store = Store::open(&env);
    for (title, damage) in [
        (
            "A comment that cannot be read",
            "INSERT INTO replies (kind, forge, item, job, unsure, tries, created_at) \
             VALUES ('magic', 'home', 'wp:1', 'j-k7qd2m4zw9', 0, 0, 1)",
        ),
        (
            "A dispatcher that left no trace",
            "DELETE FROM replies; DELETE FROM duties; \
             INSERT INTO duties (name, renewed_at) VALUES ('forge home', 1)",
        ),
    ] {
        store.change(damage);
        let worker = human.start(Cmd::new("tenure").arg("dispatch"));
        poll(SOON, "it says what is wrong", || {
            worker.stdout().contains("damaged").then_some(())
        });
        let port = worker.stdout();
        let port = port.split("127.0.0.1:").nth(1).expect("it listens");
        let port: String = port.chars().take_while(char::is_ascii_digit).collect();
        page.replace(&port, "8085");
        assert!(worker.signal(Signal::TERM));
        page.title(title);
        page.show(human.pid(), "tenure dispatch", worker.wait(), None);
    }
    drop(store);
    page.check(&env);
}

/// At least one row in every table that is changed.
fn fill(env: &Env, ann: &Agent, codex: &Agent) {
    take(ann, "wp:1");
    take(codex, "wp:2");
    run(codex, 0, "release wp:2");
    for line in [
        "conversation set claude wp:1 7f3c",
        "conversation set claude wp:1 8a1b",
        "conversation link wp:3 wp:1",
    ] {
        run(codex, 0, line);
    }
    join(ann, "041-login");
    fake_claude(env, "keeps; init; ok 'it works'");
    let words = ["run", "claude", "wp:5", "--prompt", "fix"];
    codex.tenure(&words).ok();
    codex.tenure(&[&words[..], &["--queue"]].concat()).ok();
    Scripted::new(env, "mine", "init; done_");
    set_up(env, "");
}
