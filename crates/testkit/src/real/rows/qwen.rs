//! Qwen Code: a launcher starts it, and it re-executes itself once.

use std::path::Path;

use serde_json::json;

use super::{AgentCase, KEY, NO_UUID, last};
use crate::real::config::save;

pub(in super::super) const ROW: AgentCase = AgentCase {
    name: "qwen",
    version: "0.24.4",
    prepare,
    children: &["node", "node"],
    words: |_| vec!["-y", "-o", "stream-json"],
    resume: "--resume",
    nobody: NO_UUID,
    prompt: |text| vec!["-p", text],
    starts: |event| event["subtype"] == "init",
    id: "session_id",
    says_end: false,
    keeps_files: true,
    said: |events| last(events, "result", "/result"),
};

fn prepare(home: &Path, _: &[&Path], url: &str) {
    let settings = json!({
        "security": {"auth": {"selectedType": "openai"}, "folderTrust": {"enabled": false}},
        "env": {
            "OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": format!("{url}/v1"), "OPENAI_MODEL": "mock-model",
        },
        "privacy": {"usageStatisticsEnabled": false},
        "telemetry": {"enabled": false},
        "general": {"enableAutoUpdate": false, "disableAutoUpdate": true},
    });
    save(&home.join(".qwen/settings.json"), &settings);
}
