//! Transcripts of Claude Code.

use std::fs;
use std::path::PathBuf;

use tenure_testkit::{Agent, Env, Output};

use super::line::{register, text};

/// Where Claude Code keeps a conversation of the directory that workers start in.
pub fn file_of(env: &Env, id: &str) -> PathBuf {
    let dashed = env
        .work()
        .to_str()
        .expect("the environment is ours")
        .replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    env.home()
        .join(".claude/projects")
        .join(dashed)
        .join(format!("{id}.jsonl"))
}

pub fn line_of(id: &str) -> String {
    format!("{{\"sessionId\":\"{id}\",\"type\":\"user\"}}\n")
}

/// A session of Claude Code in this conversation, with a transcript of one line.
pub fn claude(env: &Env, id: &str) -> Agent {
    let file = file_of(env, id);
    fs::create_dir_all(file.parent().expect("the environment is ours"))
        .expect("the environment is ours");
    fs::write(&file, line_of(id)).expect("the environment is ours");
    let agent = env.agent("claude");
    register(
        &agent,
        "claude",
        &format!("--native-id {id} --transcript {}", file.display()),
    );
    agent
}

pub fn append(agent: &Agent, name: &str, lines: &str) -> Output {
    agent.tenure_stdin(&["transcript", "append", name, "--json"], lines)
}

/// Asserts that something was refused for this reason, and returns what was said.
#[track_caller]
pub fn fails(said: &Output, code: i32, kind: &str) -> String {
    assert_eq!(said.code, code, "{said}");
    assert_eq!(said.json()["error"]["kind"], kind, "{said}");
    text(&said.json()["error"]["message"])
}
