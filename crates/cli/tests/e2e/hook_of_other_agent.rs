//! Hooks of one agent that another one runs: which agent it is, is decided by the processes above the hook.

use std::path::Path;

use serde_json::Value;
use tenure_testkit::{Agent, Env, Output};

use crate::env;
use crate::support::answer::{events, refused};
use crate::support::hook::{captured, claude, send, session_of, sessions};
use crate::support::person::seeing;

const COPILOT: [&str; 6] = [
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "Stop",
    "SessionEnd",
];

/// What Copilot CLI 1.0.102 sends to the hooks of a project that are Claude Code's.
fn copilots(env: &Env, event: &str) -> Value {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/foreign/copilot-1.0.102")
        .join(format!("{event}.json"));
    let text = std::fs::read_to_string(file).expect("it was captured");
    let text = text
        .replace("/home/dev/proj", &env.work().display().to_string())
        .replace("/home/dev", &env.home().display().to_string());
    serde_json::from_str(&text).expect("captured events are JSON")
}

#[track_caller]
fn assert_silent(said: &Output) {
    let words = (said.code, said.stdout.as_str(), said.stderr.as_str());
    assert_eq!(words, (0, "", ""), "{said}");
}

#[track_caller]
fn assert_no_trace(env: &Env) {
    assert_eq!(sessions(env), Vec::<Value>::new());
    for kind in ["contamination", "session.registered", "session.ended"] {
        assert_eq!(events(env, kind), Vec::<Value>::new(), "{kind}");
    }
}

#[test]
fn copilot_that_runs_the_hooks_of_claude_is_not_taken_for_claude() {
    let env = env();
    let copilot = env.agent("copilot");
    for event in COPILOT {
        assert_silent(&send(&copilot, "claude", &copilots(&env, event)));
    }
    assert_no_trace(&env);
    let error = refused(&copilot, 4, &["whoami"]);
    assert!(
        error["message"].as_str().unwrap().contains("copilot"),
        "{error}"
    );
}

#[test]
fn copilot_inside_claude_leaves_the_outer_session_alone() {
    let env = env();
    let outer = env.agent("claude");
    claude(&env, &outer, "SessionStart.startup", "a1");
    let before = session_of(&outer);
    let copilot = outer.nest("copilot");
    for event in COPILOT {
        assert_silent(&send(&copilot, "claude", &copilots(&env, event)));
    }
    let after = session_of(&outer);
    for part in ["id", "native_id", "state", "native_ids"] {
        assert_eq!(after[part], before[part], "{part}");
    }
    assert_eq!(sessions(&env).len(), 1);
}

/// Every pair: what the argument says decides nothing.
#[test]
fn no_agent_is_registered_by_the_hook_of_another() {
    let env = env();
    let rows = [
        ("claude", "claude-2.1.325/SessionStart.startup"),
        ("codex", "codex-0.166.0/SessionStart.startup"),
        ("gemini", "gemini-0.61.0/SessionStart.startup"),
        ("qwen", "qwen-0.24.4/SessionStart.startup"),
    ];
    for runner in ["claude", "codex", "gemini", "qwen", "opencode", "copilot"] {
        let agent: Agent = env.agent(runner);
        for (name, fixture) in rows.iter().filter(|(name, _)| *name != runner) {
            let event = captured(&env, fixture, &format!("{name}-by-{runner}"));
            assert_silent(&send(&agent, name, &event));
        }
    }
    assert_no_trace(&env);
}

#[test]
fn an_agent_that_tenure_has_no_hooks_for_is_shown_and_said_so() {
    let env = seeing();
    let copilot = env.agent("copilot");
    let listed = env.tenure(&["ps", "--json"]).ok().json();
    let all = listed["unmanaged"].as_array().unwrap().clone();
    let mine = all.iter().find(|one| one["pid"] == copilot.pid());
    let mine = mine.unwrap_or_else(|| panic!("{listed:#}"));
    assert_eq!(mine["agent"], "copilot");
    assert_eq!(mine["hooks"], "none");
    assert_eq!(mine["why"], "tenure has no hooks for copilot");
    let table = env.tenure(&["ps"]).ok().stdout;
    assert!(
        table.contains("tenure has no hooks for copilot. Run `tenure adopt "),
        "{table}"
    );
}
