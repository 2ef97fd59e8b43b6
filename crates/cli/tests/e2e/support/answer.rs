//! Arguments to tenure, and places in its answer.

use std::time::Duration;

use serde_json::Value;
use tenure_testkit::pinned::Stat;
use tenure_testkit::{Agent, Env};

/// How long a state may take to come about.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// An answer that is a success.
#[track_caller]
pub fn ask(agent: &Agent, args: &[&str]) -> Value {
    agent.tenure(&[args, &["--json"]].concat()).ok().json()
}

/// The error of an answer that is a failure.
#[track_caller]
pub fn refused(agent: &Agent, code: i32, args: &[&str]) -> Value {
    let answer = agent.tenure(&[args, &["--json"]].concat()).fails(code);
    answer.json()["error"].clone()
}

/// An answer to a caller outside any session.
#[track_caller]
pub fn asked_by_nobody(env: &Env, args: &[&str]) -> Value {
    env.tenure(&[args, &["--json"]].concat()).ok().json()
}

#[track_caller]
pub fn register(agent: &Agent, args: &[&str]) -> Value {
    ask(agent, &[&["register"], args].concat())
}

/// The text at a place of an answer.
#[track_caller]
pub fn text<'a>(answer: &'a Value, at: &str) -> &'a str {
    answer
        .pointer(at)
        .and_then(Value::as_str)
        .unwrap_or_else(|| panic!("no text at {at} of {answer:#}"))
}

/// How many are listed at a place of an answer.
#[track_caller]
pub fn count(answer: &Value, at: &str) -> usize {
    let list = answer.pointer(at).and_then(Value::as_array);
    list.unwrap_or_else(|| panic!("no list at {at} of {answer:#}"))
        .len()
}

/// What a session holds, as `key@epoch`.
#[track_caller]
pub fn held(answer: &Value, at: &str) -> Vec<String> {
    let list = answer.pointer(at).and_then(Value::as_array);
    list.unwrap_or_else(|| panic!("no list at {at} of {answer:#}"))
        .iter()
        .map(|one| format!("{}@{}", text(one, "/key"), one["epoch"]))
        .collect()
}

/// The record of the process is what /proc says of it.
#[track_caller]
pub fn assert_is(answer: &Value, pid: u32) {
    let process = &answer["session"]["process"];
    let stat = Stat::read(pid).expect("it lives");
    assert_eq!(process["pid"], pid, "{answer:#}");
    assert_eq!(process["start_ticks"], stat.start, "{answer:#}");
    assert_eq!(process["verified"], true);
}

/// The lines of the log of this kind.
#[track_caller]
pub fn events(env: &Env, kind: &str) -> Vec<Value> {
    let log = asked_by_nobody(env, &["log", "--limit", "1000"]);
    let all = log["events"].as_array().expect("a log is a list");
    all.iter()
        .filter(|one| one["kind"] == kind)
        .cloned()
        .collect()
}
