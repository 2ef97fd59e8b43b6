//! Events of agents to their hooks, and what they answer.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tenure_testkit::{Agent, Cmd, Env, Output};

use super::answer::{ask, asked_by_nobody, text};
use super::skip::skipped;
use super::transcript::file_of;

/// What Claude Code sends to its hooks.
pub fn event(agent: &Agent, name: &str, more: &Value) {
    let conversation = format!("c-{}", agent.pid());
    let mut event = json!({"hook_event_name": name, "session_id": conversation});
    let parts = more.as_object().expect("an object").clone();
    event.as_object_mut().expect("an object").extend(parts);
    let said = agent.tenure_stdin(&["hook", "claude"], &event.to_string());
    assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{said}");
}

/// Whether system calls can be watched here.
pub fn can_trace(agent: &Agent) -> bool {
    let can = agent
        .run(Cmd::shell("strace -o trial true && rm trial"))
        .code
        == 0;
    if !can {
        skipped("strace is missing, or may not be used");
    }
    can
}

/// What is promised for an event.
pub const LIMIT: Duration = Duration::from_secs(2);

/// The same for an end.
pub const END_LIMIT: Duration = Duration::from_secs(1);

/// How often something is measured: what the machine adds is not the same each time.
const TRIES: usize = 5;

/// Asserts that a command can end within a limit; what it said.
#[track_caller]
pub fn within(limit: Duration, work: impl Fn() -> Output) -> Output {
    let mut shortest = Duration::MAX;
    for _ in 0..TRIES {
        let began = Instant::now();
        let said = work();
        shortest = shortest.min(began.elapsed());
        if shortest < limit {
            return said;
        }
    }
    panic!("it took {shortest:?} at least, and {limit:?} are promised");
}

/// The events that were counted as not recorded.
pub fn outages(env: &Env) -> Vec<Value> {
    let log = fs::read_to_string(env.state().join("outages.log")).unwrap_or_default();
    log.lines()
        .map(|line| serde_json::from_str(line).expect("a line of the count is JSON"))
        .collect()
}

/// A captured event (`claude-2.1.325/Stop`), as if this conversation of this environment had sent it.
pub fn captured(env: &Env, fixture: &str, id: &str) -> Value {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(format!("{fixture}.json"));
    let whole = std::fs::read_to_string(file).expect("it was captured");
    let as_json: Value = serde_json::from_str(&whole).expect("captured events are JSON");
    let theirs = text(&as_json, "/session_id");
    let dashed = file_of(env, id);
    let dashed = dashed.parent().and_then(Path::file_name).expect("a folder");
    let mine = whole
        .replace(theirs, id)
        .replace(&theirs[..8], &id[..id.len().min(8)])
        .replace("-home-dev-proj", dashed.to_str().expect("it is text"))
        .replace("/home/dev/proj", &env.work().display().to_string())
        .replace("/home/dev", &env.home().display().to_string());
    serde_json::from_str(&mine).expect("it is still JSON")
}

/// Sends an event as agents do: a shell of the agent's runs the hook and stays until it is done.
#[track_caller]
pub fn send(agent: &Agent, adapter: &str, event: &Value) -> Output {
    let line = format!("tenure hook {adapter}; exit $?");
    let said = agent
        .run(Cmd::shell(&line).stdin(event.to_string()))
        .fails(0);
    assert!(!said.stderr.contains("unexpectedly"), "{said}");
    said
}

/// A captured event of Claude Code 2.1.325.
#[track_caller]
pub fn claude(env: &Env, agent: &Agent, event: &str, id: &str) -> Output {
    send(
        agent,
        "claude",
        &captured(env, &format!("claude-2.1.325/{event}"), id),
    )
}

/// What a hook told the model.
#[track_caller]
pub fn told(said: &Output) -> Option<String> {
    if said.stdout.is_empty() {
        return None;
    }
    let context = &said.json()["hookSpecificOutput"]["additionalContext"];
    context.as_str().map(str::to_owned)
}

/// Every session that there ever was.
#[track_caller]
pub fn sessions(env: &Env) -> Vec<Value> {
    let all = asked_by_nobody(env, &["ps", "-a"]);
    all["sessions"].as_array().expect("a list").clone()
}

/// The only session.
#[track_caller]
pub fn only(env: &Env) -> Value {
    let mut all = sessions(env);
    assert_eq!(all.len(), 1, "{all:#?}");
    all.remove(0)
}

/// The session that this agent's tools find.
#[track_caller]
pub fn session_of(agent: &Agent) -> Value {
    ask(agent, &["whoami"])["session"].clone()
}

/// Whether a process sleeps in a poll with its directory watched.
pub fn sleeps(pid: u32) -> bool {
    let proc = PathBuf::from(format!("/proc/{pid}"));
    let called = std::fs::read_to_string(proc.join("syscall")).unwrap_or_default();
    let is_poll = called.starts_with("271 ") || called.starts_with("7 ");
    let open = std::fs::read_dir(proc.join("fd")).into_iter().flatten();
    let mut open = open.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    is_poll && open.any(|file| file == Path::new("anon_inode:inotify"))
}
