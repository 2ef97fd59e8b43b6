//! Codex CLI: a node wrapper starts the real program.

use std::path::Path;

use super::{AgentCase, NO_UUID};
use crate::real::config::save_text;

pub(in super::super) const ROW: AgentCase = AgentCase {
    name: "codex",
    version: "0.166.0",
    prepare,
    children: &["codex"],
    words,
    resume: "resume",
    nobody: NO_UUID,
    prompt: |text| vec![text],
    starts: |event| event["type"] == "thread.started",
    id: "thread_id",
    says_end: true,
    keeps_files: true,
    said: |events| {
        let items = events.iter().map(|event| &event["item"]);
        let mut texts = items.filter(|item| item["type"] == "agent_message");
        texts.next_back()?["text"].as_str().map(str::to_owned)
    },
};

fn words(sandboxed: bool) -> Vec<&'static str> {
    let mut words = vec![
        "exec",
        "--json",
        "--skip-git-repo-check",
        "--dangerously-bypass-hook-trust",
    ];
    if sandboxed {
        words.extend(["--sandbox", "workspace-write"]);
    } else {
        words.push("--dangerously-bypass-approvals-and-sandbox");
    }
    words
}

/// Below /tmp everything would be writable in the sandbox, including the state directory. For a
/// real user it is not.
fn prepare(home: &Path, projects: &[&Path], url: &str) {
    let mut text = format!(
        r#"# The user's own comment.
model = "mock-model"
model_provider = "mock"
check_for_update_on_startup = false

[analytics]
enabled = false

[model_providers.mock]
name = "mock"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "MOCK_KEY"
request_max_retries = 1
stream_max_retries = 1

[sandbox_workspace_write]
exclude_slash_tmp = true
exclude_tmpdir_env_var = true
"#
    );
    for dir in projects {
        let entry = format!(
            "\n[projects.\"{}\"]\ntrust_level = \"trusted\"\n",
            dir.display()
        );
        text.push_str(&entry);
    }
    save_text(&home.join(".codex/config.toml"), &text);
}
