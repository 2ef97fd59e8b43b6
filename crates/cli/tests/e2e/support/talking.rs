//! Agents that talk, with captured events and a conversation on disk; and what the lists say of them.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tenure_testkit::{Agent, Env};

use super::answer::{asked_by_nobody, text};
use super::hook::{captured, send};

/// An agent that started a conversation which is on disk, with this command line.
pub fn talking(env: &Env, agent: &str, version: &str, args: &[&str], id: &str) -> Agent {
    let worker = env.agent_with(agent, args);
    said(
        env,
        &worker,
        agent,
        &format!("{version}/SessionStart.startup"),
        id,
    );
    worker
}

/// Sends a captured event, and writes the transcript that it names.
pub fn said(env: &Env, worker: &Agent, agent: &str, fixture: &str, id: &str) {
    let event = captured(env, fixture, id);
    let path = event["transcript_path"].as_str().map(Path::new);
    if let Some((path, dir)) = path.and_then(|path| Some((path, path.parent()?))) {
        fs::create_dir_all(dir).expect("it is ours");
        fs::write(path, "{}\n").expect("it is ours");
    }
    send(worker, agent, &event);
}

/// The sessions that `ps` shows without `-a`.
#[track_caller]
pub fn shown(env: &Env) -> Vec<Value> {
    let listed = asked_by_nobody(env, &["ps"]);
    listed["sessions"].as_array().expect("a list").clone()
}

#[track_caller]
pub fn offered(env: &Env) -> Vec<String> {
    let answer = asked_by_nobody(env, &["resume"]);
    let all = answer["resume"].as_array().expect("a list").iter();
    all.map(|view| text(view, "/session/handle").to_owned())
        .collect()
}

pub fn bash() -> &'static Path {
    let mut paths = ["/bin/bash", "/usr/bin/bash"].into_iter().map(Path::new);
    paths.find(|path| path.exists()).expect("there is a bash")
}
