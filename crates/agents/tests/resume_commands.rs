//! The command line that resumes a conversation, from the one that started it.

#![allow(clippy::disallowed_methods)]

use tenure_agents::{TurnRequest, adapter};
use tenure_core::agent;
use tenure_core::id::{AgentName, NativeId};
use tenure_core::process::ProcessAppearance;

/// How to resume a session that was started with this line.
fn resumed(name: &str, line: &str) -> String {
    let looks = ProcessAppearance {
        exe: format!("/opt/{name}"),
        argv: line.split_whitespace().map(str::to_owned).collect(),
        comm: String::new(),
    };
    let agent = AgentName::parse(name).expect("it is a name");
    let start = agent::started(&agent, &looks).expect("it looks like the agent");
    let id = NativeId::parse("7f3c").expect("it is an id");
    let turn = TurnRequest {
        resume: Some(&id),
        address: None,
        prompt: None,
        flags: &start.flags,
    };
    let row = adapter(name).expect("it has a row");
    let words = row.command(&turn).expect("it can be resumed");
    let words: Vec<String> = words
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    words.join(" ")
}

#[test]
fn a_resume_repeats_the_flags_that_the_agent_does_not_restore() {
    for (name, started, expected) in [
        ("claude", "claude", "claude --resume 7f3c"),
        (
            "claude",
            "claude --permission-mode plan --allowedTools Bash Edit --model opus --session-id x hello",
            "claude --permission-mode plan --allowedTools Bash Edit --model opus --resume 7f3c",
        ),
        (
            "claude",
            "claude -p --output-format stream-json --add-dir ../lib --mcp-config a.json --settings s.json -- hello",
            "claude --add-dir ../lib --mcp-config a.json --settings s.json --resume 7f3c",
        ),
        ("codex", "codex fix it", "codex resume 7f3c"),
        (
            "codex",
            "codex -m o3 -s workspace-write -a on-request -p work -c model_reasoning_effort=high fix",
            "codex resume -m o3 -s workspace-write -a on-request -p work -c model_reasoning_effort=high 7f3c",
        ),
        (
            "codex",
            "codex exec --json --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox hello",
            "codex resume --dangerously-bypass-approvals-and-sandbox 7f3c",
        ),
        (
            "gemini",
            "gemini -m gemini-2.5-flash --approval-mode auto_edit -p hello -o stream-json",
            "gemini -m gemini-2.5-flash --approval-mode auto_edit --resume 7f3c",
        ),
        (
            "gemini",
            "gemini -y --resume latest",
            "gemini -y --resume 7f3c",
        ),
        // Each of these takes one word in Gemini: the next one is the prompt.
        (
            "gemini",
            "gemini --policy p.toml fix --allowed-mcp-server-names a the --allowed-tools b login",
            "gemini --policy p.toml --allowed-mcp-server-names a --allowed-tools b --resume 7f3c",
        ),
        (
            "gemini",
            "gemini --admin-policy p -y -e one fix --include-directories ../lib,../doc it",
            "gemini -y -e one --include-directories ../lib,../doc --resume 7f3c",
        ),
        (
            "opencode",
            "opencode run --format json -m mock/m --agent build -- hello",
            "opencode -m mock/m --agent build --session 7f3c",
        ),
        (
            "qwen",
            "qwen -y -m coder --openai-api-key sk-1 -o stream-json hello",
            "qwen -y -m coder --resume 7f3c",
        ),
        (
            "qwen",
            "qwen --fallback-model a b --allowed-tools c d -y",
            "qwen --fallback-model a b --allowed-tools c d -y --resume 7f3c",
        ),
    ] {
        assert_eq!(resumed(name, started), expected, "{started}");
    }
}

#[test]
fn a_resumed_session_is_resumed_the_same_way_again() {
    for (name, line) in [
        (
            "claude",
            "claude --permission-mode plan --allowedTools Bash Edit --resume 7f3c",
        ),
        ("codex", "codex resume -m o3 -a never 7f3c"),
        ("gemini", "gemini -y --resume 7f3c"),
        ("opencode", "opencode -m mock/m --session 7f3c"),
        ("qwen", "qwen --approval-mode plan --resume 7f3c"),
    ] {
        assert_eq!(resumed(name, line), line);
    }
}

/// Permissions are only lifted by the command line that started the session.
#[test]
fn no_dangerous_flag_is_added() {
    for name in ["claude", "codex", "gemini", "opencode", "qwen"] {
        let line = resumed(
            name,
            &format!("{name} -- --yolo -y --auto --dangerously-skip-permissions"),
        );
        for word in ["yolo", "-y", "auto", "danger", "bypass"] {
            assert!(!line.contains(word), "{line}");
        }
    }
}
