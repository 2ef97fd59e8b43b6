//! Sessions that live and that nobody sees: an agent's own service runs them, or their terminal was closed.

use std::path::Path;

use serde_json::{Value, json};
use tenure_testkit::{Agent, Cmd, Env, terminal_pair};

use crate::env;
use crate::support::answer::text;
use crate::support::hook::{captured, claude, only, send, session_of, sessions, told};
use crate::support::line::register;
use crate::support::person::seeing;
use crate::support::transcript::file_of;

const JOB: &str = "e76ac0d2";
const CONVERSATION: &str = "e76ac0d2-dbb9-456a-86d4-c254d00a468b";

/// A file of Claude's background service, as it was captured.
fn captured_file(name: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../agents/tests/background/claude-2.1.325")
        .join(name);
    std::fs::read_to_string(file).expect("it was captured")
}

/// Writes what Claude Code's registry says of a process that its service runs.
fn enlist(env: &Env, agent: &Agent, waits_for_work: bool) {
    let folder = env.home().join(".claude/sessions");
    std::fs::create_dir_all(&folder).expect("the home is ours");
    let name = if waits_for_work {
        "registry.spare.json"
    } else {
        "registry.background.json"
    };
    let mut entry: Value = serde_json::from_str(&captured_file(name)).expect("it is JSON");
    entry["pid"] = json!(agent.pid());
    entry["procStart"] = json!(agent.stat().expect("it lives").start.to_string());
    entry["sessionId"] = json!(CONVERSATION);
    entry["jobId"] = json!(JOB);
    let file = folder.join(format!("{}.json", agent.pid()));
    std::fs::write(file, entry.to_string()).expect("the home is ours");
}

/// Writes the list of what that service keeps running.
fn keep(env: &Env) {
    let folder = env.home().join(".claude/daemon");
    std::fs::create_dir_all(&folder).expect("the home is ours");
    std::fs::write(folder.join("roster.json"), captured_file("roster.json"))
        .expect("the home is ours");
}

/// A session of the service, registered by its hooks.
pub fn in_background(env: &Env) -> (Agent, String) {
    let agent = env.agent_with("claude", &["--session-id", CONVERSATION]);
    enlist(env, &agent, false);
    keep(env);
    claude(env, &agent, "SessionStart.startup", CONVERSATION);
    let handle = text(&session_of(&agent), "/handle").to_owned();
    (agent, handle)
}

fn listed(env: &Env) -> Vec<u64> {
    let listed = env.tenure(&["ps", "--json"]).ok().json();
    let all = listed["unmanaged"].as_array().expect("a list").clone();
    all.iter()
        .map(|one| one["pid"].as_u64().expect("a pid"))
        .collect()
}

#[test]
fn a_session_of_claudes_service_is_live_without_a_window() {
    let env = env();
    let (_agent, handle) = in_background(&env);
    let shown = only(&env);
    assert_eq!(
        (&shown["state"], &shown["place"]),
        (&json!("live"), &json!("no window"))
    );
    let table = env.tenure(&["ps"]).ok().stdout;
    let row = table.lines().find(|line| line.starts_with(&handle));
    assert!(row.unwrap_or(&table).contains("idle, no window"), "{table}");
}

#[test]
fn the_processes_of_that_service_are_not_agents() {
    let env = seeing();
    let others = [
        &["daemon", "run", "--origin", "transient"][..],
        &["--bg-pty-host", "/t/p.sock", "200", "50"],
        &["--bg-spare", "/t/c.sock"],
        &["attach", JOB],
        &["agents"],
    ]
    .map(|args| env.agent_with("claude", args));
    let spare = &others[2];
    let shown = listed(&env);
    for other in &others {
        assert!(!shown.contains(&u64::from(other.pid())), "{shown:?}");
    }
    // In advance of any work it has a conversation already; with work it is a session like any other.
    enlist(&env, spare, true);
    assert!(!listed(&env).contains(&u64::from(spare.pid())));
    enlist(&env, spare, false);
    assert!(listed(&env).contains(&u64::from(spare.pid())));
}

#[test]
fn what_was_started_in_advance_is_a_session_from_its_first_prompt_on() {
    let env = env();
    let spare = env.agent_with("claude", &["--bg-spare", "/t/c.sock"]);
    enlist(&env, &spare, true);
    let start = claude(&env, &spare, "SessionStart.startup", CONVERSATION);
    assert_eq!(
        (start.stdout.as_str(), start.stderr.as_str()),
        ("", ""),
        "{start}"
    );
    assert_eq!(sessions(&env), Vec::<Value>::new());
    enlist(&env, &spare, false);
    let prompt = claude(&env, &spare, "UserPromptSubmit", CONVERSATION);
    let me = only(&env);
    assert_eq!(me["process"]["pid"], spare.pid());
    assert_eq!(me["native_id"], CONVERSATION);
    // It is told who it is, as others are at their start, and once.
    let brief = told(&prompt).unwrap_or_else(|| panic!("{prompt}"));
    assert!(brief.contains(text(&me, "/handle")), "{brief}");
    let again = claude(&env, &spare, "UserPromptSubmit", CONVERSATION);
    assert_eq!(told(&again), None, "{again}");
}

#[test]
fn what_that_service_keeps_is_not_resumed_by_anybody_else() {
    let env = env();
    let (agent, handle) = in_background(&env);
    let attach = format!("run `claude attach {JOB}` to open it");
    let hints = |error: &Value| {
        let hints = error["error"]["hints"].as_array().expect("a list").clone();
        hints.iter().any(|hint| hint["why"] == attach.as_str())
    };
    let live = env.tenure(&["resume", &handle, "--json"]).fails(3).json();
    assert!(hints(&live), "{live:#}");
    claude(&env, &agent, "UserPromptSubmit", CONVERSATION);
    // Killed: the service starts it again within seconds.
    agent.kill9();
    for more in [&["--print"][..], &[]] {
        let words = [&["resume", &handle, "--json"], more].concat();
        let error = env.tenure(&words).fails(3).json();
        assert_eq!(error["error"]["kind"], "live", "{error:#}");
        assert!(hints(&error), "{error:#}");
    }
    let all = env
        .tenure(&["resume", "--all", "--print", "--json"])
        .ok()
        .json();
    assert_eq!(all["resume"][0]["attach"], format!("claude attach {JOB}"));
    assert!(all["resume"][0]["problem"].is_string(), "{all:#}");
    // Stopped by its own command it is over, whether or not the list says so yet.
    let job = env.home().join(".claude/jobs").join(JOB);
    std::fs::create_dir_all(&job).unwrap();
    for (state, is_kept) in [("job.working.json", true), ("job.stopped.json", false)] {
        std::fs::write(job.join("state.json"), captured_file(state)).unwrap();
        let said = env.tenure(&["resume", &handle, "--print"]);
        assert_eq!(said.stderr.contains("claude attach"), is_kept, "{said}");
    }
    std::fs::remove_dir_all(job).unwrap();
    let transcript = file_of(&env, CONVERSATION);
    std::fs::create_dir_all(transcript.parent().unwrap()).unwrap();
    std::fs::write(transcript, "").unwrap();
    std::fs::write(
        env.home().join(".claude/daemon/roster.json"),
        r#"{"workers":{}}"#,
    )
    .unwrap();
    let view = env
        .tenure(&["resume", &handle, "--print", "--json"])
        .ok()
        .json();
    assert_eq!(view["resume"][0]["problem"], Value::Null);
    assert_eq!(view["resume"][0]["attach"], Value::Null);
}

#[test]
fn what_that_service_would_start_again_is_not_killed() {
    let env = env();
    let (agent, handle) = in_background(&env);
    let words = ["end", &handle, "--kill", "--reason", "enough", "--json"];
    let error = env.tenure(&words).fails(1).json();
    assert_eq!(error["error"]["kind"], "kept");
    let hint = text(&error, "/error/hints/0/why").to_owned();
    assert_eq!(hint, format!("run `claude stop {JOB}` to end it"));
    assert!(agent.is_alive());
    assert_eq!(only(&env)["state"], "live");
    let ended = env
        .tenure(&["end", &handle, "--reason", "enough"])
        .ok()
        .stdout;
    assert!(ended.contains(&format!("claude stop {JOB}")), "{ended}");
}

#[test]
fn a_session_whose_terminal_was_closed_is_live_and_said_so() {
    let env = env();
    let keeper = env.agent("keeper");
    let (master, terminal) = terminal_pair();
    let line = format!(
        "trap '' HUP; exec sleep 1000 <{0} >{0} 2>&1",
        terminal.display()
    );
    let pid = keeper.orphan(Cmd::shell(&line)).to_string();
    let words = [
        "register",
        "--agent",
        "gemini",
        "--native-id",
        "g-1",
        "--pid",
        &pid,
    ];
    let born = env.tenure(&[&words[..], &["--json"]].concat()).ok().json();
    let handle = text(&born, "/session/handle").to_owned();
    let place = |env: &Env| only(env)["place"].clone();
    assert_ne!(place(&env), "its terminal is gone");
    drop(master);
    assert_eq!(place(&env), "its terminal is gone");
    assert_eq!(only(&env)["state"], "live");
    let table = env.tenure(&["ps"]).ok().stdout;
    let row = table.lines().find(|line| line.starts_with(&handle));
    assert!(
        row.unwrap_or(&table).contains("live, its terminal is gone"),
        "{table}"
    );
    // While it lives its conversation is not resumed; once its process is ended it can be.
    let lives = env.tenure(&["resume", &handle, "--print"]).fails(3).stderr;
    assert!(lives.contains("its window is closed"), "{lives}");
    // A person is told how to end it, by both commands; a command that focuses windows is not tried.
    let person = env.agent("bash");
    register(&person, "human", "");
    let focused = env.dir().join("focused");
    let focus = format!("TENURE_GOTO_COMMAND='touch {}'", focused.display());
    for (verb, code) in [("resume", 3), ("goto", 1)] {
        let line = format!("{focus} tenure {verb} {handle}");
        let said = person.tenure_shell(&line).fails(code).stderr;
        let end = format!("tenure end {handle} --kill --reason");
        assert!(said.contains(&end), "{said}");
    }
    assert!(!focused.exists());
    let _ended = env
        .tenure(&["end", &handle, "--kill", "--reason", "nobody sees it"])
        .ok();
    let _resumable = env.tenure(&["resume", &handle, "--print"]).ok();
    let event = captured(&env, "gemini-0.61.0/SessionStart.resume", "g-1");
    let next = env.agent("gemini");
    let _heard = send(&next, "gemini", &event);
    let shown = env.tenure(&["show", &handle, "--json"]).ok().json();
    assert_eq!(shown["session"]["process"]["life"], 2);
}
