//! Turns that fail, as the agents' own events report them.

#![allow(clippy::disallowed_methods)]

use serde_json::{Value, json};
use tenure_agents::{Report, adapter};
use tenure_core::session::Doing;
use tenure_core::time::Timestamp;

fn read(agent: &str, name: &str, more: &Value) -> Report {
    let mut event = json!({"hook_event_name": name, "session_id": "s1", "cwd": "/w"});
    let parts = more.as_object().expect("an object").clone();
    event.as_object_mut().expect("an object").extend(parts);
    let row = adapter(agent).expect("there is such an agent");
    let report = row.read(event.to_string().as_bytes());
    assert_eq!(report.problems, Vec::<String>::new(), "{agent} {name}");
    report
}

/// Payloads as Claude Code 2.1.325, Qwen Code 0.24.4, Gemini CLI 0.61.0 and the plugin for opencode 1.18.33 send them.
#[test]
fn a_turn_that_failed_says_why() {
    let claude = |error: &str, said: &str| {
        let more =
            json!({"error": error, "last_assistant_message": said, "effort": {"level": "medium"}});
        read("claude", "StopFailure", &more)
    };
    let overloaded = claude(
        "server_error",
        "API Error: Repeated 529 Overloaded errors. The API is at capacity — this is usually temporary.",
    );
    assert_eq!(overloaded.doing, Some(Doing::Failed));
    assert_eq!(
        overloaded.why.as_deref(),
        Some("Repeated 529 Overloaded errors")
    );
    assert_eq!(overloaded.why_kind.as_deref(), Some("server error"));
    let limited = claude(
        "rate_limit",
        "You've hit your 5-hour limit · resets 12:48am (UTC)",
    );
    assert_eq!(limited.doing, Some(Doing::Limited));
    assert_eq!(limited.why.as_deref(), Some("You've hit your 5-hour limit"));
    let qwen = json!({"error": "invalid_request", "error_details": "400 Invalid value: text content must be non-empty",
        "last_assistant_message": "[API Error: 400 Invalid value: text content must be non-empty]"});
    let qwen = read("qwen", "StopFailure", &qwen);
    assert_eq!(qwen.doing, Some(Doing::Failed));
    assert_eq!(
        qwen.why.as_deref(),
        Some("400 Invalid value: text content must be non-empty")
    );
    let opencode = json!({"error": "APIError", "error_details": "Incorrect API key provided"});
    let opencode = read("opencode", "StopFailure", &opencode);
    assert_eq!(
        (opencode.doing, opencode.why.as_deref()),
        (Some(Doing::Failed), Some("Incorrect API key provided"))
    );
    let gemini = |said: &str| {
        let more = json!({"prompt": "hi", "prompt_response": said, "stop_hook_active": false});
        read("gemini", "AfterAgent", &more).doing
    };
    assert_eq!(gemini("[no response text]"), Some(Doing::Failed));
    assert_eq!(gemini("Done."), Some(Doing::Finished));
}

#[test]
fn opencode_says_when_it_asks_again() {
    let retry = json!({"message": "The server had an error", "next_at": 1_794_955_873_187_u64});
    let report = read("opencode", "Retry", &retry);
    assert_eq!(report.doing, Some(Doing::Retrying));
    assert_eq!(report.why.as_deref(), Some("The server had an error"));
    assert_eq!(report.until, Some(Timestamp(1_794_955_873_187)));
    assert_eq!(
        read("opencode", "ModelAnswer", &json!({})).doing,
        Some(Doing::Busy)
    );
}

#[test]
fn what_a_person_ends_is_idle_and_a_turn_that_ends_by_itself_is_finished() {
    for (agent, name) in [("codex", "Interrupt"), ("opencode", "Interrupt")] {
        let report = read(agent, name, &json!({}));
        assert_eq!(
            (report.doing, report.attended),
            (Some(Doing::Idle), true),
            "{agent}"
        );
    }
    for agent in ["claude", "codex", "qwen", "opencode"] {
        assert_eq!(
            read(agent, "Stop", &json!({})).doing,
            Some(Doing::Finished),
            "{agent}"
        );
    }
}

#[test]
fn a_request_to_the_model_is_only_that() {
    for (agent, name) in [("codex", "PreModelRequest"), ("gemini", "BeforeModel")] {
        assert!(
            read(agent, name, &json!({"turn_id": "t1"})).asks_model,
            "{agent}"
        );
    }
}
