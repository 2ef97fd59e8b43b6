//! Taking over what other systems kept, and the views that dashboards read.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use serde_json::{Value, json};
use tenure_testkit::{Agent, Env};

use crate::env;
use crate::support::line::{refused, register, run};

const JOINED: &str = "2026-02-15T13:12:20.000Z";
const PARTICIPANT: &str = "01HZY3C5J8Q9X2V4T6W8Y0A1B2";

pub(crate) fn written(env: &Env, name: &str, content: &Value) -> PathBuf {
    let path = env.dir().join(name);
    fs::create_dir_all(path.parent().expect("a file")).expect("a scratch directory is ours");
    fs::write(&path, content.to_string()).expect("a scratch directory is ours");
    path
}

/// Imports, and returns taken, refused and left, whose sum is what was read.
#[track_caller]
pub(crate) fn imported(agent: &Agent, format: &str, path: &Path, apply: &str) -> (Value, [u64; 3]) {
    let line = format!("import {format} {} {apply}", path.display());
    let mut args: Vec<&str> = line.split_whitespace().collect();
    args.push("--json");
    let output = agent.tenure(&args);
    let report = output.json()["import"].clone();
    let number = |name: &str| report[name].as_u64().unwrap_or_else(|| panic!("{output}"));
    let counts = ["taken", "refused", "left"].map(number);
    assert_eq!(counts.iter().sum::<u64>(), number("read"), "{report}");
    assert_eq!(output.code, if counts[1] > 0 { 6 } else { 0 }, "{output}");
    (report, counts)
}

pub(crate) fn openclaw(env: &Env) -> PathBuf {
    let state = env.dir().join("openclaw");
    let dir = state.join("agents/main/agent");
    fs::create_dir_all(&dir).expect("a scratch directory is ours");
    let database = Connection::open(dir.join("openclaw-agent.sqlite")).expect("a new database");
    let rows = "CREATE TABLE session_nodes (session_key TEXT PRIMARY KEY, current_session_id TEXT, created_at INTEGER,
            updated_at INTEGER);
        CREATE TABLE session_windows (session_id TEXT PRIMARY KEY, session_key TEXT);
        INSERT INTO session_nodes VALUES ('agent:main:A', 'a1', 1, 9), ('agent:main:B', 'a1', 2, 2),
            ('agent:main:C', 'c1', 3, 3);
        INSERT INTO session_windows VALUES ('a1', 'agent:main:B'), ('c1', 'agent:main:C');";
    database.execute_batch(rows).expect("rows of our own");
    state
}

#[test]
fn openclaws_sessions_become_conversations_and_contaminated_ones_are_named() {
    let env = env();
    let person = env.agent("w");
    let state = openclaw(&env);
    let (dry, counts) = imported(&person, "openclaw", &state, "");
    assert_eq!((counts, dry["applied"].as_bool()), ([2, 1, 0], Some(false)));
    let none = run(&person, 0, "conversation list");
    assert_eq!(none["conversations"], json!([]), "a dry run writes nothing");
    let (report, counts) = imported(&person, "openclaw", &state, "--apply");
    assert_eq!(counts, [2, 1, 0]);
    assert_eq!(
        report["entries"], dry["entries"],
        "a dry run says what happens"
    );
    let why = report["entries"][1]["why"].as_str().unwrap();
    assert_eq!(
        why,
        "a1 is the session id of agent:main:A, which had it first; its window has moved here"
    );
    let got = run(&person, 0, "conversation get openclaw session:agent:main:A");
    assert_eq!(got["conversation"]["native_id"], "a1");
    let (_, again) = imported(&person, "openclaw", &state, "--apply");
    assert_eq!(again, [0, 1, 2], "a second import changes nothing");
    let events = run(&person, 0, "log --kind import");
    assert_eq!(events["events"].as_array().unwrap().len(), 1, "{events}");
}

#[test]
fn a_database_that_another_program_has_locked_is_named_and_the_rest_is_read() {
    let env = env();
    let person = env.agent("w");
    let state = openclaw(&env);
    let held = state.join("agents/main/agent/openclaw-agent.sqlite");
    let holder = Connection::open(held).unwrap();
    holder.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let old = json!({"agent:old:X": {"sessionId": "x1"}});
    written(&env, "openclaw/agents/old/sessions/sessions.json", &old);
    let (report, counts) = imported(&person, "openclaw", &state, "--apply");
    assert_eq!(counts, [1, 1, 0], "{report}");
    assert_eq!(report["entries"][0]["why"], "another program has it locked");
    let garbage = state.join("agents/bad/sessions/sessions.json");
    fs::create_dir_all(garbage.parent().unwrap()).unwrap();
    fs::write(&garbage, "{\"half\": ").unwrap();
    drop(holder);
    let (report, counts) = imported(&person, "openclaw", &state, "--apply");
    assert_eq!(counts, [2, 2, 1], "{report}");
}

#[test]
fn workers_of_claude_hooks_are_roles_and_what_is_here_is_not_replaced() {
    let env = env();
    let person = env.agent("w");
    let file = json!({"boss": {"acme/web": {"6": "s6", "7": "s7"}}, "codex:acme/web#6": "t6"});
    let file = written(&env, "sessions.json", &file);
    run(
        &person,
        0,
        "conversation set claude issue:acme/web#7 other --role boss",
    );
    let (report, counts) = imported(&person, "claude-hooks", &file, "--apply");
    assert_eq!(counts, [2, 1, 0], "{report}");
    let line = "conversation get claude issue:acme/web#6 --role boss";
    assert_eq!(run(&person, 0, line)["conversation"]["native_id"], "s6");
    refused(
        &person,
        4,
        "not_found",
        "conversation get claude issue:acme/web#6",
    );
    let kept = run(
        &person,
        0,
        "conversation get claude issue:acme/web#7 --role boss",
    );
    assert_eq!(kept["conversation"]["native_id"], "other");
}

#[test]
fn a_mission_of_spec_kitty_goes_on_under_its_participant_id() {
    let env = env();
    let ann = env.agent("claude");
    register(&ann, "claude", "");
    let mission = json!({"mission_id": "041-login", "mission_run_id": "run-7", "participant_id": PARTICIPANT,
        "role": "developer", "joined_at": JOINED, "last_activity_at": JOINED, "drive_intent": "inactive",
        "focus": "wp:WP03", "session_token": "s3cret", "saas_api_url": "https://kitty.example/api"});
    written(&env, ".kitty/missions/041-login/session.json", &mission);
    written(
        &env,
        ".kitty/session.json",
        &json!({"active_mission_id": "041-login"}),
    );
    let dir = env.dir().join(".kitty");
    let (report, counts) = imported(&ann, "spec-kitty", &dir, "--apply");
    assert_eq!(counts, [2, 0, 0], "{report}");
    assert!(!report.to_string().contains("s3cret"));
    let status = run(&ann, 0, "mission status --mission 041-login");
    let one = &status["participants"][0];
    assert_eq!(
        (&one["participant_id"], &one["joined_at"]),
        (&json!(PARTICIPANT), &json!(JOINED)),
        "{status}"
    );
    assert_eq!(
        (&one["run_id"], &one["state"]),
        (&json!("run-7"), &json!("ended")),
        "{status}"
    );
    let joined = run(
        &ann,
        0,
        &format!("mission join 041-login --role developer --participant {PARTICIPANT}"),
    );
    assert_eq!(joined["participant"]["joined_at"], JOINED, "{joined}");
    assert_eq!(joined["participant"]["run_id"], "run-7", "{joined}");
    let (_, again) = imported(&ann, "spec-kitty", &dir, "--apply");
    assert_eq!(again, [0, 0, 2]);
}

#[test]
fn sessions_of_pact_and_ehg_are_history_with_parents_and_no_claims() {
    let env = env();
    let person = env.agent("w");
    let context = json!({"session_id": "c0ffee", "team_name": "pact-c0", "project_dir": "/srv/web",
        "started_at": "2026-05-14T00:00:00Z"});
    written(
        &env,
        "pact-sessions/web/c0ffee/pact-session-context.json",
        &context,
    );
    let empty = env.dir().join("pact-sessions/web/empty");
    fs::create_dir_all(&empty).unwrap();
    let (report, counts) = imported(&person, "pact", &env.dir().join("pact-sessions"), "--apply");
    assert_eq!(counts, [1, 1, 0], "{report}");
    let missing = empty.join("pact-session-context.json");
    let why = format!("{} does not exist", missing.display());
    assert_eq!(report["entries"][1]["why"], why, "{report}");
    let csv = env.dir().join("claude_sessions.csv");
    fs::write(&csv, "session_id,status,created_at,heartbeat_at,sd_id,metadata\n\
        session_aa,released,2026-03-06 22:00:00+00,2026-03-06 22:30:00+00,,{}\n\
        session_ab,active,2026-03-06 22:10:00+00,2026-03-06 23:00:00+00,SD-1,\"{\"\"parent_session_id\"\": \"\"session_aa\"\"}\"\n\
        short,row\n").unwrap();
    let (report, counts) = imported(&person, "ehg", &csv, "--apply");
    assert_eq!(counts, [2, 1, 1], "{report}");
    assert!(
        report.to_string().contains("tenure claim sd:SD-1"),
        "{report}"
    );
    let claims = run(&person, 0, "claims --all");
    assert_eq!(
        claims["claims"],
        json!([]),
        "nothing is granted to the dead"
    );
    let all = run(&person, 0, "ps --all");
    let sessions = all["sessions"].as_array().unwrap();
    let named = |id: &str| {
        sessions
            .iter()
            .find(|one| one["native_id"] == id)
            .unwrap_or_else(|| panic!("{all}"))
    };
    assert_eq!(named("c0ffee")["dir"], "/srv/web");
    assert_eq!(
        named("session_ab")["parent"],
        named("session_aa")["id"],
        "{all}"
    );
    let (_, again) = imported(&person, "ehg", &csv, "--apply");
    assert_eq!(again, [0, 1, 3]);
}

#[test]
fn what_is_not_what_it_is_said_to_be_is_refused_whole() {
    let env = env();
    let person = env.agent("w");
    let text = env.dir().join("text");
    fs::write(&text, "not JSON").unwrap();
    let huge = env.dir().join("huge");
    fs::File::create(&huge)
        .unwrap()
        .set_len((64 << 20) + 1)
        .unwrap();
    let deep = env.dir().join("deep");
    fs::write(&deep, "{\"a\":".repeat(100_000)).unwrap();
    let fifo = env.dir().join("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RWXU).unwrap();
    for format in ["openclaw", "claude-hooks", "spec-kitty", "pact", "ehg"] {
        for path in [&text, &huge, &deep, &fifo, &env.dir().join("none")] {
            let line = format!("import {format} {} --apply", path.display());
            let said = refused(&person, 6, "invalid", &line).to_string();
            assert!(!said.contains("os error"), "{said}");
        }
    }
    refused(&person, 2, "malformed", "import csv x");
    assert_eq!(run(&person, 0, "ps --all")["sessions"], json!([]));
}

/// The promise: a column that is here never goes.
const COLUMNS: &[(&str, &str)] = &[
    (
        "claim_history",
        "key epoch session handle agent means note granted_at ended_at ended_by",
    ),
    ("claims", "key epoch session handle agent note granted_at"),
    (
        "events",
        "cursor at kind session actor key epoch mechanism evidence reason",
    ),
    (
        "runs",
        "id agent item session dir skill created_at begun_at ended_at outcome why exit_code turns tokens_in tokens_out cost",
    ),
    (
        "sessions",
        "id handle agent native_id parent title dir repo branch host_id pid activity started_at seen_at ended_at ended_by ended_why",
    ),
];

#[test]
fn the_views_of_a_file_have_the_promised_columns_and_the_epochs_that_people_see() {
    let env = env();
    let ann = env.agent("claude");
    register(&ann, "claude", "");
    let epoch = run(&ann, 0, "claim wp:1")["claim"]["epoch"]
        .as_i64()
        .unwrap();
    let printed = run(&ann, 0, "store views");
    let reader = Connection::open(env.state().join("tenure.db")).unwrap();
    reader
        .execute_batch(printed["views"]["sql"].as_str().unwrap())
        .unwrap();
    for (view, columns) in COLUMNS {
        let found = reader
            .prepare(&format!("SELECT * FROM temp.{view}"))
            .unwrap();
        for column in columns.split(' ') {
            assert!(
                found.column_names().any(|one| one == column),
                "{view} lost {column}"
            );
        }
    }
    let claim = reader.query_row(
        "SELECT key, epoch, granted_at FROM temp.claims",
        [],
        |row| {
            Ok((
                row.get::<_, String>(0)?,
                row.get::<_, i64>(1)?,
                row.get::<_, String>(2)?,
            ))
        },
    );
    let (key, shown, at) = claim.unwrap();
    assert_eq!((key.as_str(), shown), ("wp:1", epoch));
    assert!(at.ends_with('Z'), "{at}");
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn server_views_are_in_a_schema_of_their_own_and_ehg_is_read_from_its_database() {
    let server = tenure_testkit::postgres::PostgresServer::shared();
    let mut env = env();
    let schema = server.new_schema();
    let url = server.url(&schema);
    env.set("TENURE_STORE", url.clone());
    env.tenure(&["store", "migrate"]).ok();
    let printed = env.tenure(&["store", "views", "--json"]).ok().json();
    assert_eq!(printed["views"]["schema"], format!("{schema}_read"));
    for (view, columns) in COLUMNS {
        let found = server.ask(&format!(
            "SELECT column_name FROM information_schema.columns WHERE table_schema = '{schema}_read' AND table_name = '{view}'"
        ));
        for column in columns.split(' ') {
            assert!(
                found.iter().any(|one| one == column),
                "{view} lost {column}: {found:?}"
            );
        }
    }
    dashboards_read_only_the_views(&server, &schema);
    let foreign = env
        .tenure(&["import", "ehg", &url, "--json"])
        .fails(6)
        .json();
    assert!(
        foreign["error"]["message"]
            .as_str()
            .unwrap()
            .contains("it is not EHG's"),
        "{foreign}"
    );
    let ehg = server.new_schema();
    server.run(&format!(
        "CREATE SCHEMA {ehg}; CREATE TABLE {ehg}.claude_sessions (session_id text, status text, created_at timestamptz, \
         heartbeat_at timestamptz, sd_id text, metadata jsonb); \
         INSERT INTO {ehg}.claude_sessions VALUES ('s1', 'active', now(), now(), 'SD-9', '{{}}')"
    ));
    let report = env
        .tenure(&["import", "ehg", &server.url(&ehg), "--json"])
        .ok()
        .json();
    assert_eq!(
        (&report["import"]["taken"], &report["import"]["left"]),
        (&json!(1), &json!(1)),
        "{report}"
    );
}

/// The role of docs/team.md, made by the statements that are there.
fn dashboards_read_only_the_views(server: &tenure_testkit::postgres::PostgresServer, schema: &str) {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/team.md");
    let text = fs::read_to_string(file).expect("it can be read");
    let blocks = text.split("```sql\n").skip(1);
    let mut blocks = blocks.filter_map(|block| block.split("```").next());
    let grants = blocks
        .find(|block| block.contains("tenure_read"))
        .expect("the page has it");
    let role = format!("dashboards_{schema}");
    let grants = grants
        .replace("tenure_read", &format!("{schema}_read"))
        .replace("dashboards", &role);
    server.run(&grants);
    let mut reader = server.asker();
    reader.ask(&format!("SET ROLE {role}"));
    for (view, _) in COLUMNS {
        reader.ask(&format!("SELECT count(*) FROM {schema}_read.{view}"));
    }
    let allowed = |right: &str, table: &str| {
        let asked = format!("SELECT has_table_privilege('{role}', '{table}', '{right}')");
        server.ask(&asked) == ["t"]
    };
    for (view, _) in COLUMNS {
        let view = format!("{schema}_read.{view}");
        assert!(allowed("SELECT", &view), "{view}");
        for right in ["INSERT", "UPDATE", "DELETE"] {
            assert!(!allowed(right, &view), "{right} on {view}");
        }
    }
    let tables = server.ask(&format!(
        "SELECT quote_ident(schemaname) || '.' || quote_ident(tablename) FROM pg_tables WHERE schemaname = '{schema}'"
    ));
    assert!(!tables.is_empty());
    for table in tables {
        for right in ["SELECT", "INSERT", "UPDATE", "DELETE"] {
            assert!(!allowed(right, &table), "{right} on {table}");
        }
    }
    let usage = format!("SELECT has_schema_privilege('{role}', '{schema}', 'USAGE')");
    assert_eq!(server.ask(&usage), ["f"]);
}
