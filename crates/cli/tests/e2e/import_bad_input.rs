//! Taking over what is damaged, doubled, out of order or of somebody else; and that the other system stays as it was.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use serde_json::{Value, json};
use tenure_testkit::{Agent, Cmd, Env};

use crate::env;
use crate::import::{imported, openclaw, written};
use crate::support::line::run;

/// Imports without and with `--apply`, which must say the same; returns the report and taken, refused and left.
#[track_caller]
fn both(agent: &Agent, format: &str, path: &Path) -> (Value, [u64; 3]) {
    let (dry, expected) = imported(agent, format, path, "");
    let (report, counts) = imported(agent, format, path, "--apply");
    assert_eq!(counts, expected, "{dry} {report}");
    (report, counts)
}

fn why(report: &Value, at: usize) -> &str {
    report["entries"][at]["why"].as_str().unwrap_or_default()
}

#[test]
fn a_key_that_is_in_the_database_and_in_the_older_file_is_judged_once() {
    let env = env();
    let person = env.agent("w");
    let state = openclaw(&env);
    let older = json!({"agent:main:A": {"sessionId": "a1"}, "agent:main:C": {"sessionId": "c0"}});
    written(&env, "openclaw/agents/main/sessions/sessions.json", &older);
    let (report, counts) = both(&person, "openclaw", &state);
    assert_eq!(counts, [2, 2, 1], "{report}");
    assert_eq!(why(&report, 3), "it is there twice");
    let other = "the conversation of openclaw on session:agent:main:C is already c1";
    assert_eq!(why(&report, 4), other);
    let (_, again) = both(&person, "openclaw", &state);
    assert_eq!(again, [0, 2, 3], "a second import changes nothing");
}

/// Every file of a directory with its content.
fn files(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let listed = fs::read_dir(dir)
        .expect("it can be listed")
        .map(|one| one.expect("it can be listed").path());
    let mut found: Vec<_> = listed
        .map(|path| (path.clone(), fs::read(path).expect("it can be read")))
        .collect();
    found.sort();
    found
}

#[test]
fn a_database_with_a_log_is_read_and_left_as_it_was() {
    let env = env();
    let person = env.agent("w");
    let state = openclaw(&env);
    let dir = state.join("agents/main/agent");
    let owner = Connection::open(dir.join("openclaw-agent.sqlite")).unwrap();
    owner.execute_batch("PRAGMA journal_mode = wal").unwrap();
    drop(owner);
    let before = files(&dir);
    let (report, counts) = imported(&person, "openclaw", &state, "");
    assert_eq!((counts, before.len()), ([2, 1, 0], 1), "{report}");
    assert_eq!(files(&dir), before);
    // Its own program has it open, and what it wrote last is only in the log.
    let owner = Connection::open(dir.join("openclaw-agent.sqlite")).unwrap();
    let more = "INSERT INTO session_nodes VALUES ('agent:main:D', 'd1', 4, 4)";
    owner.execute_batch(more).unwrap();
    let before = files(&dir);
    let (report, counts) = imported(&person, "openclaw", &state, "--apply");
    assert_eq!((counts, before.len()), ([3, 1, 0], 3), "{report}");
    assert_eq!(files(&dir), before);
    owner.execute_batch("DELETE FROM session_nodes").unwrap();
}

#[test]
fn a_database_that_is_too_long_is_named_and_the_rest_is_read() {
    let env = env();
    let person = env.agent("w");
    let state = openclaw(&env);
    let database = state.join("agents/main/agent/openclaw-agent.sqlite");
    let file = fs::OpenOptions::new().write(true).open(database).unwrap();
    file.set_len((64 << 20) + 1).unwrap();
    let old = json!({"agent:old:X": {"sessionId": "x1"}});
    written(&env, "openclaw/agents/old/sessions/sessions.json", &old);
    let (report, counts) = both(&person, "openclaw", &state);
    assert_eq!(counts, [1, 1, 0], "{report}");
    assert!(why(&report, 0).contains("longer than"), "{report}");
}

const HEAD: &str = "session_id,status,created_at,heartbeat_at,parent_session_id\n";

fn csv(env: &Env, rows: &[(&str, &str)]) -> PathBuf {
    let at = "2026-03-06 22:00:00+00";
    let rows = rows
        .iter()
        .map(|(id, parent)| format!("{id},released,{at},{at},{parent}\n"));
    let path = env.dir().join("claude_sessions.csv");
    fs::write(&path, HEAD.to_owned() + &rows.collect::<String>())
        .expect("a scratch directory is writable");
    path
}

/// The native id of a session's parent.
#[track_caller]
fn parent(person: &Agent, of: &str) -> Option<String> {
    let all = run(person, 0, "ps --all");
    let sessions = all["sessions"].as_array().expect("a list");
    let find = |name: &str, value: &Value| {
        let found = sessions.iter().find(|one| one[name] == *value);
        found.unwrap_or_else(|| panic!("{value}: {all}"))
    };
    let parent = &find("native_id", &json!(of))["parent"];
    let parent = Some(parent).filter(|one| !one.is_null())?;
    let id = find("id", parent)["native_id"].as_str().expect("a text");
    Some(id.to_owned())
}

#[test]
fn sessions_of_ehg_have_their_parents_whatever_the_order_of_the_rows() {
    let env = env();
    let person = env.agent("w");
    let rows = [
        ("grandchild", "child"),
        ("child", "root"),
        ("root", ""),
        ("orphan", "late"),
        ("chicken", "egg"),
        ("egg", "chicken"),
        ("self", "self"),
        ("child", "orphan"),
    ];
    let (report, counts) = both(&person, "ehg", &csv(&env, &rows));
    assert_eq!(counts, [7, 0, 1], "{report}");
    let entries = report["entries"].as_array().unwrap();
    let names: Vec<&str> = entries
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, rows.map(|(id, _)| id), "in the order of the file");
    assert_eq!(parent(&person, "grandchild").as_deref(), Some("child"));
    assert_eq!(parent(&person, "child").as_deref(), Some("root"));
    let orphan = report["entries"][3]["became"].as_str().unwrap();
    assert!(
        orphan.ends_with("; its parent late is not known"),
        "{orphan}"
    );
    assert_eq!(parent(&person, "chicken").as_deref(), Some("egg"));
    assert_eq!(parent(&person, "egg"), None);
    let (report, again) = both(&person, "ehg", &csv(&env, &rows));
    assert_eq!(
        again,
        [0, 0, 8],
        "a second import changes nothing: {report}"
    );
    // What was imported without its parent gets it as soon as that is known.
    let rows = [("orphan", "late"), ("late", "orphan2"), ("orphan2", "")];
    let (report, counts) = both(&person, "ehg", &csv(&env, &rows));
    assert_eq!(counts, [3, 0, 0], "{report}");
    assert_eq!(parent(&person, "orphan").as_deref(), Some("late"));
    assert_eq!(parent(&person, "late").as_deref(), Some("orphan2"));
    let (report, again) = both(&person, "ehg", &csv(&env, &rows));
    assert_eq!(again, [0, 0, 3], "{report}");
    let rows = [("orphan2", "orphan"), ("root", "new"), ("new", "root")];
    let (report, counts) = both(&person, "ehg", &csv(&env, &rows));
    assert_eq!(
        counts,
        [1, 0, 2],
        "nobody descends from themselves: {report}"
    );
    let file = csv(&env, &[]);
    let twice = fs::read_to_string(&file)
        .unwrap()
        .replace("status", "session_id,status");
    fs::write(&file, twice).unwrap();
    let line = format!("import ehg {}", file.display());
    let refused = crate::support::line::refused(&person, 6, "invalid", &line);
    assert!(
        refused.to_string().contains("session_id more than once"),
        "{refused}"
    );
}

#[test]
fn a_directory_of_pact_that_cannot_be_read_is_named_and_the_rest_is_read() {
    let env = env();
    let person = env.agent("w");
    let context = json!({"session_id": "c0ffee", "team_name": "pact-c0", "project_dir": "/srv/web",
        "started_at": "2026-05-14T00:00:00Z"});
    let file = "pact-sessions/web/c0ffee/pact-session-context.json";
    written(&env, file, &context);
    let sessions = env.dir().join("pact-sessions");
    let closed = sessions.join("api");
    fs::create_dir_all(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o0)).unwrap();
    let mut line = vec!["tenure", "import", "pact", sessions.to_str().unwrap()];
    line.extend(["--apply", "--json"]);
    if rustix::process::geteuid().is_root() {
        let less = "--bounding-set=-dac_override,-dac_read_search";
        line.splice(0..0, ["setpriv", less, "--inh-caps=-all", "--"]);
    }
    let output = person.run(Cmd::new(line[0]).args(line[1..].iter().copied()));
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    let report = output.fails(6).json()["import"].clone();
    let verdicts: Vec<(&str, &str)> = report["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            (
                one["name"].as_str().unwrap(),
                one["verdict"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        verdicts,
        [("api", "refused"), ("c0ffee", "taken")],
        "{report}"
    );
    assert_eq!(
        why(&report, 0),
        format!("you may not read {}", closed.display())
    );
    let all = run(&person, 0, "ps --all");
    let handle = all["sessions"][0]["handle"].as_str().unwrap();
    let kept = run(&person, 0, &format!("meta get --session {handle}"));
    assert_eq!(
        kept["meta"],
        json!({"project": "web", "team_name": "pact-c0"}),
        "{kept}"
    );
}

#[test]
fn a_token_of_spec_kitty_that_cannot_be_stored_is_named_and_its_participant_taken() {
    let env = env();
    let person = env.agent("w");
    let mission = json!({"mission_id": "041-login", "participant_id": "01HZY3C5J8Q9X2V4T6W8Y0A1B2",
        "role": "developer", "joined_at": "2026-02-15T13:12:20.000Z", "session_token": "s3cret two"});
    written(&env, ".kitty/missions/041-login/session.json", &mission);
    let dir = env.dir().join(".kitty");
    let (report, counts) = both(&person, "spec-kitty", &dir);
    assert_eq!(counts, [1, 1, 0], "{report}");
    assert_eq!(report["entries"][1]["name"], "041-login session_token");
    assert!(why(&report, 1).contains("printable ASCII"), "{report}");
    assert!(!report.to_string().contains("s3cret"), "{report}");
    let (_, again) = both(&person, "spec-kitty", &dir);
    assert_eq!(again, [0, 1, 1]);
}

#[test]
fn conversations_of_another_home_are_refused() {
    let env = env();
    let person = env.agent("w");
    let elsewhere =
        json!({"boss:acme/web#1": {"session_id": "s1", "cwd": "/home/somebody-else/web"}});
    let file = written(&env, "sessions.json", &elsewhere);
    let (report, counts) = both(&person, "claude-hooks", &file);
    assert_eq!(counts, [0, 1, 0], "{report}");
    let said = "its directory /home/somebody-else/web is not on this machine";
    assert_eq!(why(&report, 0), said);
    let shelf = env.home().join(".claude/projects/-srv-web");
    fs::create_dir_all(&shelf).unwrap();
    let (own, other) = (
        "0c5d3a52-aaaa-4bbb-8ccc-000000000001",
        "0c5d3a52-aaaa-4bbb-8ccc-000000000002",
    );
    fs::write(shelf.join(format!("{own}.jsonl")), "{}\n").unwrap();
    let ids = json!({"boss": {"acme/web": {"6": own, "7": other}}});
    let file = written(&env, "sessions.json", &ids);
    let (report, counts) = both(&person, "claude-hooks", &file);
    assert_eq!(counts, [1, 1, 0], "{report}");
    assert!(
        why(&report, 1).contains("it is of another HOME, or was removed"),
        "{report}"
    );
    assert_eq!(report["entries"][0]["verdict"], "taken", "{report}");
}
