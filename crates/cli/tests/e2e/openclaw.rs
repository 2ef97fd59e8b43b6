//! OpenClaw: its plugin's stream of events, session ids that another key takes over, and its settings.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use serde_json::{Value, json};
use tenure_testkit::{Agent, Env};

use crate::env;
use crate::support::hook::sessions;

const A: &str = "58818d94-a73c-4273-a89c-4e3d27001219";
const B: &str = "78632b2d-da51-45f4-a663-3e487a2e1b3e";

fn event(name: &str, id: &str, key: &str, more: &Value) -> String {
    let mut event = json!({
        "hook_event_name": name, "session_id": id, "session_key": key, "cwd": "/",
    });
    let parts = more.as_object().expect("an object").clone();
    event.as_object_mut().expect("an object").extend(parts);
    event.to_string()
}

fn start(id: &str, key: &str) -> String {
    event("session_start", id, key, &json!({}))
}

/// The answers to a gateway's events, which it writes into one stream.
#[track_caller]
fn stream(gateway: &Agent, events: &[String]) -> Vec<Value> {
    let said = gateway.tenure_stdin(&["hook", "openclaw", "--stream"], &events.join("\n"));
    assert_eq!(said.code, 0, "{said}");
    let read = |line: &str| serde_json::from_str(line).expect("a line is JSON");
    let answers: Vec<Value> = said.stdout.lines().map(read).collect();
    assert_eq!(answers.len(), events.len(), "{said}");
    answers
}

#[test]
fn one_stream_registers_a_session_for_each_id_and_answers_every_event() {
    let env = env();
    let gateway = env.agent("openclaw");
    let answers = stream(
        &gateway,
        &[
            start(A, "agent:main:a"),
            start(B, "agent:main:b"),
            event(
                "before_prompt_build",
                A,
                "agent:main:a",
                &json!({"prompt": "hello"}),
            ),
            "not JSON".to_owned(),
            String::new(),
            event("agent_end", A, "agent:main:a", &json!({})),
        ],
    );
    let token = |at: usize| {
        answers[at]["env"]["TENURE_SESSION"]
            .as_str()
            .map(str::to_owned)
    };
    assert!(
        token(0).is_some() && token(1).is_some() && token(0) != token(1),
        "{answers:#?}"
    );
    let brief = answers[0]["context"].as_str().expect("a brief");
    assert!(brief.contains("tenure knows this session as"), "{brief}");
    assert_eq!(answers[3], json!({}));
    let mut all = sessions(&env);
    all.sort_by_key(|session| session["title"].to_string());
    assert_eq!(all.len(), 2, "{all:#?}");
    for (session, (id, key)) in all.iter().zip([(A, "agent:main:a"), (B, "agent:main:b")]) {
        assert_eq!(session["native_id"], id);
        assert_eq!(session["title"], key);
        assert_eq!(session["process"]["pid"], gateway.pid());
    }
    // What one of them claims, the other cannot.
    let one = [("TENURE_SESSION", token(0))];
    let one: Vec<(&str, Option<&str>)> = one.iter().map(|(k, v)| (*k, v.as_deref())).collect();
    let two = [("TENURE_SESSION", token(1))];
    let two: Vec<(&str, Option<&str>)> = two.iter().map(|(k, v)| (*k, v.as_deref())).collect();
    assert_eq!(gateway.tenure_env(&one, &["claim", "wp:1"]).code, 0);
    assert_eq!(gateway.tenure_env(&two, &["claim", "wp:1"]).code, 3);
}

#[test]
fn a_second_key_for_an_id_is_refused_and_logged_on_both_sides() {
    let env = env();
    let gateway = env.agent("openclaw");
    stream(&gateway, &[start(A, "agent:main:a")]);
    let answers = stream(
        &gateway,
        &[
            json!({"hook_event_name": "gateway_start"}).to_string(),
            start(A, "agent:main:b"),
            event("agent_end", A, "agent:main:b", &json!({})),
            start(B, "agent:main:b"),
        ],
    );
    assert_eq!(answers[0]["owners"], json!({A: "agent:main:a"}));
    assert_eq!(answers[1], json!({"foreign": "agent:main:a"}));
    assert_eq!(answers[2], json!({"foreign": "agent:main:a"}));
    assert!(
        answers[3]["env"]["TENURE_SESSION"].is_string(),
        "its own id is its own"
    );
    for key in ["session:agent:main:a", "session:agent:main:b"] {
        let log = env.tenure(&["log", key, "--json"]).ok();
        assert!(log.stdout.contains("contamination"), "{key}: {log}");
    }
    let mut titles: Vec<String> = sessions(&env)
        .iter()
        .map(|one| one["title"].to_string())
        .collect();
    titles.sort();
    assert_eq!(
        titles,
        ["\"agent:main:a\"", "\"agent:main:b\""],
        "nothing of it was recorded"
    );
    let owned = env.tenure(&[
        "conversation",
        "get",
        "openclaw",
        "session:agent:main:a",
        "--json",
    ]);
    assert!(owned.stdout.contains(A), "{owned}");
}

#[test]
fn sessions_of_a_gateway_end_with_it_and_resume_by_their_key() {
    let env = env();
    let gateway = env.agent("openclaw");
    stream(
        &gateway,
        &[start(A, "agent:main:a"), start(B, "agent:main:b")],
    );
    let stop = json!({"reason": "gateway stopping"});
    stream(&gateway, &[event("gateway_stop", B, "agent:main:b", &stop)]);
    gateway.kill9();
    let shown = env.tenure(&["resume", "--all", "--print"]).ok();
    let line = "openclaw agent --session-key agent:main:a";
    assert!(shown.stdout.contains(line), "{shown}");
    assert!(
        !shown.stdout.contains("agent:main:b"),
        "it was stopped in order: {shown}"
    );
    // Nobody asked for the turn that its command begins.
    let started = env.tenure(&["resume", "--all"]).ok();
    assert!(started.stdout.contains("was left out"), "{started}");
}

/// An OpenClaw whose command line only edits its settings, and notes how it was called.
fn with_fake_openclaw(env: &mut Env) -> PathBuf {
    let bin = env.dir().join("fake-bin");
    fs::create_dir_all(&bin).expect("the directory is ours");
    let calls = env.dir().join("calls");
    let config = env.home().join(".openclaw/openclaw.json");
    let script = format!(
        "#!/bin/sh\necho \"$*\" >> {calls}\ncase \"$1 $2\" in\n\
         'plugins install') printf '{{\"plugins\":{{\"load\":{{\"paths\":[\"%s\"]}},\"entries\":{{\"tenure\":{{\"enabled\":true}}}}}}}}' \"$4\" > {config};;\n\
         'config set') sed -i 's/\"enabled\":true/\"enabled\":true,\"hooks\":{{\"allowConversationAccess\":true}}/' {config};;\n\
         'plugins uninstall') echo '{{\"plugins\":{{\"entries\":{{\"tenure\":{{\"enabled\":false}}}}}}}}' > {config};;\n\
         'config unset') echo '{{}}' > {config};;\n\
         *) echo 'unknown command' >&2; exit 7;;\nesac\n",
        calls = calls.display(),
        config = config.display(),
    );
    let program = bin.join("openclaw");
    fs::write(&program, script).expect("the directory is ours");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("it is ours");
    env.set("PATH", format!("{}:/usr/bin:/bin", bin.display()));
    fs::create_dir_all(env.home().join(".openclaw")).expect("the directory is ours");
    calls
}

#[test]
fn install_goes_through_openclaws_own_command_line_and_uninstall_undoes_it() {
    let mut env = env();
    let calls = with_fake_openclaw(&mut env);
    let dir = env.home().join(".openclaw/tenure-plugin");
    let first = env.tenure(&["install", "openclaw"]).ok();
    assert!(
        first.stdout.contains("openclaw: installed, mode warn"),
        "{first}"
    );
    assert!(first.stdout.contains("openclaw.heal"), "{first}");
    let called = fs::read_to_string(&calls).expect("it was called");
    assert_eq!(
        called,
        format!(
            "plugins install --link {} --force --accept-capabilities\n\
             config set plugins.entries.tenure.hooks.allowConversationAccess true\n",
            dir.display()
        )
    );
    for name in ["index.js", "package.json", "openclaw.plugin.json"] {
        assert!(dir.join(name).is_file(), "{name}");
    }
    let again = env.tenure(&["install", "openclaw"]).ok();
    assert!(again.stdout.contains("already installed"), "{again}");
    env.tenure(&["install", "openclaw", "--check"]).ok();
    assert_eq!(fs::read_to_string(&calls).expect("it was called"), called);
    // Someone disables what it needs.
    let config = env.home().join(".openclaw/openclaw.json");
    fs::write(&config, "{}").expect("it is ours");
    let check = env.tenure(&["install", "openclaw", "--check"]).fails(1);
    assert!(check.stdout.contains("outdated"), "{check}");
    env.tenure(&["install", "openclaw"]).ok();
    let gone = env.tenure(&["uninstall", "openclaw"]).ok();
    assert!(
        gone.stdout
            .contains("ran `openclaw plugins uninstall tenure"),
        "{gone}"
    );
    assert!(!dir.exists());
    assert_eq!(fs::read_to_string(&config).expect("it stays"), "{}\n");
}

#[test]
fn a_failing_command_of_openclaw_is_reported_and_tried_again() {
    let mut env = env();
    let calls = with_fake_openclaw(&mut env);
    let program = env.dir().join("fake-bin/openclaw");
    let sound = fs::read_to_string(&program).expect("it is ours");
    fs::write(&program, "#!/bin/sh\necho 'the disk is full' >&2\nexit 3\n").expect("it is ours");
    let failed = env.tenure(&["install", "openclaw"]);
    assert_ne!(failed.code, 0, "{failed}");
    assert!(failed.to_string().contains("the disk is full"), "{failed}");
    fs::write(&program, sound).expect("it is ours");
    env.tenure(&["install", "openclaw"]).ok();
    assert!(calls.is_file());
    env.tenure(&["install", "openclaw", "--check"]).ok();
}

/// OpenClaw's tables, as far as they matter, in which key b took over the id of a.
fn contaminated(env: &Env, with_own_session: bool) -> PathBuf {
    let dir = env.home().join(".openclaw/agents/main/agent");
    fs::create_dir_all(&dir).expect("the directory is ours");
    let path = dir.join("openclaw-agent.sqlite");
    let database = Connection::open(&path).expect("it can be made");
    let own = if with_own_session {
        format!("INSERT INTO session_windows VALUES ('{B}', 'agent:main:b', NULL, 1);")
    } else {
        String::new()
    };
    database
        .execute_batch(&format!(
            "PRAGMA journal_mode = WAL; PRAGMA foreign_keys = ON;
             CREATE TABLE session_nodes (session_key TEXT PRIMARY KEY, current_session_id TEXT NOT NULL,
                entry_json TEXT NOT NULL, created_at INTEGER, updated_at INTEGER, entry_valid INTEGER DEFAULT 1);
             CREATE TRIGGER not_valid AFTER UPDATE OF current_session_id, entry_json ON session_nodes
                BEGIN UPDATE session_nodes SET entry_valid = 0 WHERE session_key = NEW.session_key; END;
             CREATE TABLE session_windows (session_id TEXT PRIMARY KEY, session_key TEXT NOT NULL,
                previous_session_id TEXT, updated_at INTEGER,
                FOREIGN KEY (session_key) REFERENCES session_nodes(session_key) ON DELETE CASCADE);
             CREATE TABLE transcript_events (session_id TEXT NOT NULL, seq INTEGER NOT NULL, event_json TEXT,
                PRIMARY KEY (session_id, seq),
                FOREIGN KEY (session_id) REFERENCES session_windows(session_id) ON DELETE CASCADE);
             INSERT INTO session_nodes VALUES ('agent:main:a', '{A}', '{{\"sessionId\":\"{A}\"}}', 1, 1, 1),
                ('agent:main:b', '{A}', '{{\"sessionId\":\"{A}\"}}', 2, 2, 1);
             INSERT INTO session_windows VALUES ('{A}', 'agent:main:b', '{B}', 2);
             {own}
             INSERT INTO transcript_events VALUES ('{A}', 0, '{{\"type\":\"session\",\"id\":\"{A}\"}}');"
        ))
        .expect("the tables are made");
    path
}

fn nodes(path: &Path) -> Vec<String> {
    let database = Connection::open(path).expect("it is there");
    let query = "SELECT n.session_key || ' ' || n.current_session_id || ' ' || coalesce(w.session_key, '-')
        || iif(n.entry_valid, '', ' not valid') FROM session_nodes n LEFT JOIN session_windows w ON w.session_id = n.current_session_id ORDER BY 1";
    let mut statement = database.prepare(query).expect("it is a query");
    let rows = statement
        .query_map([], |row| row.get(0))
        .expect("it can be read");
    rows.map(|row| row.expect("it is text")).collect()
}

#[test]
fn verify_reads_what_is_wrong_and_fix_gives_the_id_back() {
    for with_own_session in [false, true] {
        let env = env();
        let gateway = env.agent("openclaw");
        stream(&gateway, &[start(A, "agent:main:a")]);
        let path = contaminated(&env, with_own_session);
        let before = fs::read(&path).expect("it is there");
        let seen = env.tenure(&["verify", "--openclaw"]).fails(6);
        assert!(
            seen.stdout.contains("agent:main:b: its session id"),
            "{seen}"
        );
        assert_eq!(
            fs::read(&path).expect("it is there"),
            before,
            "it only reads"
        );
        let fixed = env
            .tenure(&["verify", "--openclaw", "--fix", "--json"])
            .ok();
        let fault = &fixed.json()["openclaw"]["faults"][0];
        assert_eq!(
            (&fault["fixed"], &fault["id"]),
            (&json!(true), &json!(A)),
            "{fixed}"
        );
        let owner = format!("agent:main:a {A} agent:main:a");
        let other = format!("agent:main:b {B} agent:main:b");
        let left = if with_own_session {
            vec![owner, other]
        } else {
            vec![owner]
        };
        assert_eq!(nodes(&path), left);
        let copy = fault["copy"].as_str().expect("a copy was made");
        assert_eq!(nodes(Path::new(copy)).len(), 2, "from before");
        env.tenure(&["verify", "--openclaw"]).ok();
        let log = env.tenure(&["log", "session:agent:main:b"]).ok();
        assert!(log.stdout.contains("alone again"), "{log}");
    }
}

#[test]
fn transcript_verify_reads_the_records_of_a_session() {
    let env = env();
    let gateway = env.agent("openclaw");
    stream(&gateway, &[start(A, "agent:main:a")]);
    let handle = sessions(&env)[0]["handle"].as_str().map(str::to_owned);
    let handle = handle.expect("it has a handle");
    let verify = ["transcript", "verify", &handle];
    env.tenure(&verify).fails(4);
    let path = contaminated(&env, false);
    let sound = env.tenure(&verify).ok();
    assert!(sound.stdout.contains("1 line, no problems"), "{sound}");
    let database = Connection::open(&path).expect("it is there");
    let add = format!("INSERT INTO transcript_events VALUES ('{A}', 1, '{{')");
    database.execute_batch(&add).expect("it is ours");
    let wrong = env.tenure(&verify).fails(6);
    assert!(wrong.stdout.contains("line 2: malformed"), "{wrong}");
}

#[test]
fn what_tenure_did_not_record_is_not_repaired() {
    let env = env();
    let path = contaminated(&env, false);
    let before = nodes(&path);
    let seen = env.tenure(&["verify", "--openclaw", "--fix"]).fails(6);
    assert!(seen.stdout.contains("not repaired"), "{seen}");
    assert_eq!(nodes(&path), before);
}

#[test]
fn the_plugin_heals_only_if_the_user_lets_it() {
    let mut env = env();
    let gateway = env.agent("openclaw");
    stream(&gateway, &[start(A, "agent:main:a")]);
    let path = contaminated(&env, false);
    let config = env.home().join(".config/tenure");
    fs::create_dir_all(&config).expect("the directory is ours");
    env.set(
        "XDG_CONFIG_HOME",
        env.home().join(".config").display().to_string(),
    );
    fs::write(config.join("config.toml"), "[openclaw]\nheal = false\n").expect("it is ours");
    env.tenure(&["verify", "--openclaw", "--heal"]).fails(6);
    assert_eq!(nodes(&path).len(), 2);
    fs::remove_file(config.join("config.toml")).expect("it is ours");
    env.tenure(&["verify", "--openclaw", "--heal"]).ok();
    assert_eq!(nodes(&path).len(), 1);
}

#[test]
fn a_lock_that_no_process_holds_is_named_and_removed() {
    let env = env();
    let dir = env.home().join(".openclaw/tmp/openclaw-0");
    fs::create_dir_all(env.home().join(".openclaw/agents")).expect("the directory is ours");
    let reclaim = dir.join("gateway.state.lock.reclaim");
    fs::create_dir_all(&reclaim).expect("the directory is ours");
    let sidecar = Connection::open(dir.join("gateway.state.lock.sqlite")).expect("it can be made");
    sidecar
        .execute_batch("CREATE TABLE held (x); BEGIN EXCLUSIVE")
        .expect("it can be locked");
    env.tenure(&["verify", "--openclaw", "--fix"]).ok();
    assert!(reclaim.is_dir(), "a gateway has it");
    sidecar.execute_batch("ROLLBACK").expect("it was locked");
    let seen = env.tenure(&["verify", "--openclaw"]).fails(6);
    assert!(seen.stdout.contains("no process holds this lock"), "{seen}");
    assert!(reclaim.is_dir());
    env.tenure(&["verify", "--openclaw", "--fix"]).ok();
    assert!(!reclaim.exists());
}
