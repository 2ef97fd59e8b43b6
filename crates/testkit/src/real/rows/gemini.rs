//! Gemini CLI: it re-executes itself once.

use std::path::Path;

use serde_json::{Value, json};

use super::{AgentCase, NO_UUID};
use crate::real::config::save;

pub(in super::super) const ROW: AgentCase = AgentCase {
    name: "gemini",
    version: "0.61.0",
    prepare,
    children: &["node"],
    words: |_| vec!["-m", "gemini-2.5-flash", "-o", "stream-json", "--yolo"],
    resume: "--resume",
    nobody: NO_UUID,
    prompt: |text| vec!["-p", text],
    starts: |event| event["type"] == "init",
    id: "session_id",
    says_end: true,
    keeps_files: true,
    said,
};

/// The text comes in pieces, and a tool call separates two texts.
fn said(events: &[Value]) -> Option<String> {
    let after = events.iter().rposition(|one| one["type"] == "tool_result");
    let pieces = events[after.unwrap_or(0)..].iter();
    let of_model = pieces.filter(|one| one["type"] == "message" && one["role"] == "assistant");
    Some(of_model.filter_map(|one| one["content"].as_str()).collect())
}

fn prepare(home: &Path, _: &[&Path], _: &str) {
    let settings = json!({
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": false}},
        "privacy": {"usageStatisticsEnabled": false},
        "telemetry": {"enabled": false},
        "general": {"enableAutoUpdate": false, "enableAutoUpdateNotification": false},
        "hooksConfig": {"enabled": true},
    });
    save(&home.join(".gemini/settings.json"), &settings);
}
