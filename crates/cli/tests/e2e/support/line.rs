//! The words of a line to tenure, and the parts of its answer.

use std::time::Duration;

use serde_json::Value;
use tenure_testkit::{Agent, Env};

pub const SOON: Duration = Duration::from_secs(20);

/// Registers an agent's process as a session.
pub fn register(agent: &Agent, name: &str, more: &str) -> Value {
    let pid = agent.pid();
    run(
        agent,
        0,
        &format!("register --agent {name} --pid {pid} {more}"),
    )
}

/// A worker that is a session.
pub fn session(env: &Env, name: &str) -> Agent {
    let agent = env.agent(name);
    register(&agent, name, "");
    agent
}

/// An environment, and a worker that is a session for each of these names.
pub fn crew<const N: usize>(names: [&str; N]) -> (Env, [Agent; N]) {
    let env = super::env();
    let all = names.map(|name| session(&env, name));
    (env, all)
}

/// The handle of the session that an agent is.
pub fn handle(agent: &Agent) -> String {
    text(&run(agent, 0, "whoami")["session"]["handle"])
}

pub fn text(value: &Value) -> String {
    let text = value
        .as_str()
        .unwrap_or_else(|| panic!("{value} is no text"));
    text.to_owned()
}

/// Runs tenure with the words of a line and `--json`, and expects this code.
#[track_caller]
pub fn run(agent: &Agent, code: i32, line: &str) -> Value {
    let mut args: Vec<&str> = line.split_whitespace().collect();
    args.push("--json");
    let output = agent.tenure(&args);
    assert_eq!(output.code, code, "{line}\n{output}");
    output.json()
}

/// The same for what must fail with this kind of error.
#[track_caller]
pub fn refused(agent: &Agent, code: i32, kind: &str, line: &str) -> Value {
    let answer = run(agent, code, line);
    assert_eq!(answer["error"]["kind"], kind, "{line}: {answer}");
    answer["error"].clone()
}

/// Claims and returns the epoch.
#[track_caller]
pub fn take(agent: &Agent, key: &str) -> u64 {
    let answer = run(agent, 0, &format!("claim {key}"));
    answer["claim"]["epoch"].as_u64().expect("an epoch")
}

pub fn events(agent: &Agent, more: &str) -> Vec<Value> {
    let answer = run(agent, 0, &format!("log {more}"));
    answer["events"].as_array().expect("a list").clone()
}
