//! Claude Code: one process.

use std::path::Path;

use serde_json::{Value, json};

use super::{AgentCase, KEY, NO_UUID, last};
use crate::real::config::save;

pub(in super::super) const NOW: AgentCase = AgentCase {
    name: "claude",
    version: "2.1.325",
    prepare,
    children: &[],
    words: |_| vec!["-p", "--output-format", "stream-json", "--verbose"],
    resume: "--resume",
    nobody: NO_UUID,
    prompt: |text| vec![text],
    // Its first lines can carry a meaningless id; `init` has the right one.
    starts: |event| event["subtype"] == "init",
    id: "session_id",
    says_end: true,
    keeps_files: true,
    said: |events| last(events, "result", "/result"),
};

/// The version that npm installs with Node 20.
pub(in super::super) const OLD: AgentCase = AgentCase {
    version: "2.1.197",
    ..NOW
};

fn prepare(home: &Path, projects: &[&Path], _: &str) {
    let trusted = |dir: &&Path| {
        let entry = json!({"hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true});
        (dir.to_string_lossy().into_owned(), entry)
    };
    let trusted: serde_json::Map<String, Value> = projects.iter().map(trusted).collect();
    let end = &KEY[KEY.len().saturating_sub(20)..];
    let state = json!({
        "hasCompletedOnboarding": true,
        "theme": "dark",
        "customApiKeyResponses": {"approved": [end], "rejected": []},
        "projects": trusted,
    });
    save(&home.join(".claude.json"), &state);
    let allow = ["Bash", "Read", "Write", "Edit", "Agent", "Task"];
    let settings = json!({"permissions": {"allow": allow}});
    save(&home.join(".claude/settings.json"), &settings);
}
