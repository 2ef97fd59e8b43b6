//! Whole turns of each agent: the ground that the other tests stand on.

use tenure_testkit::real::Real;

use crate::world;

/// A fresh turn, a tool call, and a resume that keeps the conversation; what the hooks are given agrees.
#[track_caller]
fn turns(kind: Real) {
    let world = world();
    let agent = world.agent(kind);
    let fresh = agent.fresh("hello").run().ok();
    assert_eq!(fresh.said(), "MOCK-OK", "{fresh}");

    let mark = world.scratch().join("mark");
    let line = format!(
        "MOCK:bash tenure --version > {} && echo done it",
        mark.display()
    );
    let tool = agent.fresh(&line).run().ok();
    assert!(tool.said().contains("done it"), "{tool}");
    assert!(std::fs::read_to_string(&mark).unwrap().contains("tenure"));
    assert_ne!(tool.id(), fresh.id());

    let resumed = agent.resume(&fresh.id(), "once more").run().ok();
    assert_eq!(resumed.said(), "MOCK-OK", "{resumed}");
    assert_eq!(resumed.id(), fresh.id());
    let last = world
        .mock()
        .asked()
        .into_iter()
        .rfind(|asked| asked.offers_tools());
    let last = last.unwrap();
    assert!(
        last.says("hello") && last.says("once more"),
        "{:#}",
        last.body
    );
}

/// A conversation that nobody knows: the exit code, and words that say so on standard error.
#[track_caller]
fn unknown(kind: Real, id: &str, code: i32, words: &str) {
    let world = world();
    let turn = world.agent(kind).resume(id, "hello").run().fails(code);
    assert!(turn.output.stderr.contains(words), "{turn}");
    assert!(!world.mock().was_told("hello"));
}

const NOBODY: &str = "00000000-0000-4000-8000-000000000000";

#[test]
#[ignore = "runs a real agent"]
fn claude_runs_turns() {
    turns(Real::Claude);
}

#[test]
#[ignore = "runs a real agent"]
fn claude_2_1_197_runs_turns() {
    turns(Real::ClaudeOld);
}

#[test]
#[ignore = "runs a real agent"]
fn codex_runs_turns() {
    turns(Real::Codex);
}

#[test]
#[ignore = "runs a real agent"]
fn gemini_runs_turns() {
    turns(Real::Gemini);
}

#[test]
#[ignore = "runs a real agent"]
fn opencode_runs_turns() {
    turns(Real::Opencode);
}

#[test]
#[ignore = "runs a real agent"]
fn claude_says_that_a_conversation_is_unknown() {
    let words = format!("No conversation found with session ID: {NOBODY}");
    unknown(Real::Claude, NOBODY, 1, &words);
    unknown(Real::ClaudeOld, NOBODY, 1, &words);
}

#[test]
#[ignore = "runs a real agent"]
fn codex_says_that_a_conversation_is_unknown() {
    unknown(Real::Codex, NOBODY, 1, "no rollout found for thread id");
}

#[test]
#[ignore = "runs a real agent"]
fn gemini_says_that_a_conversation_is_unknown() {
    unknown(Real::Gemini, NOBODY, 42, "Error resuming session");
}

#[test]
#[ignore = "runs a real agent"]
fn opencode_says_that_a_conversation_is_unknown() {
    unknown(
        Real::Opencode,
        "ses_0000000000000000000000000000",
        1,
        "Session not found",
    );
}
