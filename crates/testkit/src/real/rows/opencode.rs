//! opencode: one process.

use std::path::Path;

use serde_json::json;

use super::{AgentCase, KEY, last};
use crate::real::config::save;

pub(in super::super) const ROW: AgentCase = AgentCase {
    name: "opencode",
    version: "1.18.33",
    prepare,
    children: &[],
    words: |_| vec!["run", "--format", "json"],
    resume: "--session",
    nobody: "ses_0000000000000000000000000000",
    // It quotes arguments that contain spaces, so it gets the words one by one.
    prompt: |text| std::iter::once("--").chain(text.split(' ')).collect(),
    starts: |_| true,
    id: "sessionID",
    says_end: false,
    keeps_files: false,
    said: |events| last(events, "text", "/part/text"),
};

fn prepare(home: &Path, _: &[&Path], url: &str) {
    let model = json!({
        "name": "mock", "tool_call": true, "limit": {"context": 100_000, "output": 8_000},
    });
    let settings = json!({
        "$schema": "https://opencode.ai/config.json",
        "autoupdate": false,
        "share": "disabled",
        "model": "mock/mock-model",
        "small_model": "mock/mock-model",
        "permission": {"bash": "allow", "edit": "allow"},
        "provider": {"mock": {
            "npm": "@ai-sdk/openai-compatible",
            "name": "mock",
            "options": {"baseURL": format!("{url}/v1"), "apiKey": KEY},
            "models": {"mock-model": model},
        }},
    });
    save(&home.join(".config/opencode/opencode.json"), &settings);
}
