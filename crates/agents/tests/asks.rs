//! What a session waits for, from each agent's events, and which of them show that a person is present.

#![allow(clippy::disallowed_methods)]

use serde_json::{Value, json};
use tenure_agents::{Report, adapter};
use tenure_core::agent_event::QuestionText;
use tenure_core::session::Doing;

fn read(agent: &str, name: &str, more: &Value) -> Report {
    let mut event = json!({"hook_event_name": name, "session_id": "s1", "cwd": "/w"});
    let parts = more.as_object().expect("an object").clone();
    event.as_object_mut().expect("an object").extend(parts);
    let row = adapter(agent).expect("there is such an agent");
    let report = row.read(event.to_string().as_bytes());
    assert_eq!(report.problems, Vec::<String>::new(), "{agent} {name}");
    report
}

#[test]
fn a_summary_that_a_person_asked_for_ends_at_the_prompt() {
    for agent in ["claude", "codex", "qwen"] {
        let after = |trigger: &str| read(agent, "PostCompact", &json!({"trigger": trigger})).doing;
        assert_eq!(after("manual"), Some(Doing::Idle), "{agent}");
        assert_eq!(after("auto"), None, "{agent}: its turn goes on");
        let plain = read(agent, "PostCompact", &json!({})).doing;
        assert_eq!(plain, None, "{agent}: it does not say who asked");
    }
}

#[test]
fn what_an_agent_asks_is_read_from_its_event() {
    let bash = |tool: &str| json!({"tool_name": tool, "tool_input": {"command": "rm -rf build"}});
    let edit =
        json!({"tool_name": "Edit", "tool_input": {"file_path": "/w/a.rs", "old_string": "x"}});
    let patch = json!({"tool_name": "apply_patch", "tool_input": {"command": "*** Begin Patch"}});
    let exec = json!({"notification_type": "ToolPermission", "message": "Tool Shell requires execution",
        "details": {"type": "exec", "command": "rm -rf build", "rootCommand": "rm"}});
    let write = json!({"notification_type": "ToolPermission", "message": "Tool Edit requires editing",
        "details": {"type": "edit", "filePath": "/w/a.rs", "newContent": "x"}});
    let opens = json!({"tool_name": "edit", "tool_input": {"filePath": "/w/a.rs"}});
    for (agent, name, event, asks) in [
        (
            "claude",
            "PermissionRequest",
            bash("Bash"),
            "permission for `rm -rf build`",
        ),
        (
            "claude",
            "PermissionRequest",
            edit,
            "permission for Edit of /w/a.rs",
        ),
        (
            "claude",
            "PermissionRequest",
            json!({"tool_name": "WebFetch"}),
            "permission for WebFetch",
        ),
        (
            "claude",
            "PermissionRequest",
            json!({"tool_name": "ExitPlanMode"}),
            "approval of its plan",
        ),
        (
            "claude",
            "Elicitation",
            json!({"message": "Which branch?"}),
            "Which branch?",
        ),
        (
            "codex",
            "PermissionRequest",
            bash("Bash"),
            "permission for `rm -rf build`",
        ),
        (
            "codex",
            "PermissionRequest",
            patch,
            "permission for apply_patch",
        ),
        (
            "qwen",
            "PermissionRequest",
            bash("run_shell_command"),
            "permission for `rm -rf build`",
        ),
        (
            "gemini",
            "Notification",
            exec,
            "permission for `rm -rf build`",
        ),
        (
            "gemini",
            "Notification",
            write,
            "permission to write /w/a.rs",
        ),
        (
            "opencode",
            "PermissionRequest",
            bash("bash"),
            "permission for `rm -rf build`",
        ),
        (
            "opencode",
            "PermissionRequest",
            opens,
            "permission for edit of /w/a.rs",
        ),
        (
            "opencode",
            "PermissionRequest",
            json!({"tool_name": "question"}),
            "an answer to its question",
        ),
        (
            "claude",
            "PermissionRequest",
            json!({"tool_name": "AskUserQuestion", "tool_input": {"questions": [
                {"question": "Which colour?", "options": [{"label": "Red"}]},
                {"question": "Which size?"},
            ]}}),
            "Which colour?",
        ),
    ] {
        let report = read(agent, name, &event);
        assert_eq!(report.doing, Some(Doing::Waiting), "{agent} {event}");
        assert_eq!(
            report.asks,
            Some(QuestionText::Exactly(asks.into())),
            "{agent} {event}"
        );
    }
    let notified = json!({"notification_type": "permission_prompt", "message": "Claude needs you"});
    let rough = read("claude", "Notification", &notified);
    assert_eq!(
        rough.asks,
        Some(QuestionText::Roughly("Claude needs you".into()))
    );
    let rests = json!({"notification_type": "idle_prompt", "message": "Claude is waiting"});
    assert_eq!(read("claude", "Notification", &rests).asks, None);
    assert_eq!(read("claude", "PreToolUse", &bash("Bash")).asks, None);
    assert_eq!(
        read("opencode", "PermissionReply", &json!({})).doing,
        Some(Doing::Busy)
    );
}

#[test]
fn a_person_is_there_when_a_prompt_comes() {
    for (agent, name, event, attended) in [
        (
            "claude",
            "UserPromptSubmit",
            json!({"prompt": "hello"}),
            true,
        ),
        (
            "claude",
            "UserPromptSubmit",
            json!({"prompt": "hello", "agent_id": "a1"}),
            false,
        ),
        ("claude", "PreToolUse", json!({"tool_name": "Bash"}), false),
        ("claude", "SessionStart", json!({"source": "resume"}), true),
        (
            "claude",
            "SessionStart",
            json!({"source": "compact"}),
            false,
        ),
        (
            "codex",
            "UserPromptSubmit",
            json!({"prompt": "hello"}),
            true,
        ),
        ("codex", "Interrupt", json!({}), true),
        ("gemini", "BeforeAgent", json!({"prompt": "hello"}), true),
        ("qwen", "UserPromptSubmit", json!({"prompt": "hello"}), true),
        ("qwen", "UserPromptSubmit", json!({"prompt": ""}), false),
        ("opencode", "UserPromptSubmit", json!({}), true),
        (
            "opencode",
            "UserPromptSubmit",
            json!({"parent_id": "s0"}),
            false,
        ),
    ] {
        assert_eq!(
            read(agent, name, &event).attended,
            attended,
            "{agent} {name} {event}"
        );
    }
}

#[test]
fn the_kind_of_a_question_has_none_of_its_words() {
    let command = json!({"tool_name": "Bash", "tool_input": {"command": "secret"}});
    let file = json!({"tool_name": "Edit", "tool_input": {"file_path": "/w/secret"}});
    let plan = json!({"tool_name": "ExitPlanMode", "tool_input": {"plan": "secret"}});
    let exec = json!({"notification_type": "ToolPermission", "message": "secret",
        "details": {"type": "exec", "command": "secret"}});
    let write = json!({"notification_type": "ToolPermission", "message": "secret",
        "details": {"type": "edit", "filePath": "/w/secret"}});
    let rough = json!({"notification_type": "permission_prompt", "message": "secret"});
    let input = json!({"notification_type": "agent_needs_input", "message": "secret"});
    for (agent, name, event, kind) in [
        (
            "claude",
            "PermissionRequest",
            command,
            "permission for Bash",
        ),
        ("claude", "PermissionRequest", file, "permission for Edit"),
        ("claude", "PermissionRequest", plan, "approval of its plan"),
        (
            "claude",
            "Elicitation",
            json!({"message": "secret?"}),
            "an answer to its question",
        ),
        ("claude", "Notification", rough, "permission"),
        ("claude", "Notification", input, "an answer to its question"),
        ("gemini", "Notification", exec, "permission for a command"),
        (
            "gemini",
            "Notification",
            write,
            "permission to write a file",
        ),
    ] {
        let report = read(agent, name, &event);
        assert!(report.asks.is_some(), "{agent} {event}");
        assert_eq!(report.asks_kind.as_deref(), Some(kind), "{agent} {event}");
    }
    let generic = adapter("generic").expect("there is such an agent");
    let event = json!({"event": "waiting", "agent": "nightly", "asks": "secret"});
    let report = generic.read(event.to_string().as_bytes());
    assert_eq!(
        report.asks_kind.as_deref(),
        Some("an answer to its question")
    );
}
