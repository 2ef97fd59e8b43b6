//! What each agent passes on to its model of what hooks say; tenure speaks nowhere else.

use tenure_testkit::real::Real;

use crate::world;

/// Every hook says in which event it was run, in a fresh turn with two tools; gives the events that the model
/// heard of in that turn, and in a second one that goes on with the conversation.
fn heard(kind: Real, events: &[&str]) -> (Vec<String>, Vec<String>) {
    let world = world();
    let agent = world.agent(kind);
    let script = world.scratch().join("speak");
    let text = r#"#!/bin/sh
cat >/dev/null
printf '{"hookSpecificOutput":{"hookEventName":"%s","additionalContext":"said in %s of %s."}}' $1 $1 $TURN
"#;
    std::fs::write(&script, text).unwrap();
    agent.hook(&format!("sh {} {{}}", script.display()));
    let prompt = "MOCK:bash echo one\nMOCK:bash echo two";
    let in_turn = |turn: &str| {
        let told = |event: &&&str| {
            world
                .mock()
                .was_told(&format!("said in {event} of {turn}."))
        };
        let reached = events.iter().filter(told);
        reached.map(|event| (*event).to_owned()).collect()
    };
    let first = agent.fresh(prompt).env("TURN", "first").run().ok();
    // Looked at before the next turn repeats the whole conversation.
    let fresh = in_turn("first");
    let second = agent.resume(&first.id(), prompt);
    second.env("TURN", "second").run().ok();
    (fresh, in_turn("second"))
}

/// Exactly these events reach the model, at the first start and at the next, and tenure counts on no other.
#[track_caller]
fn reach(kind: Real, events: &[&str], reaching: &[&str]) {
    let (first, second) = heard(kind, events);
    assert_eq!(first, reaching, "in a fresh turn");
    assert_eq!(second, reaching, "in a resumed turn");
    let adapter = tenure_agents::adapter(kind.name()).unwrap();
    for event in events {
        let payload = format!(r#"{{"hook_event_name":"{event}","session_id":"x"}}"#);
        let counts = adapter.read(payload.as_bytes()).reaches_model;
        assert!(!counts || reaching.contains(event), "{event}");
    }
}

const CLAUDE: &[&str] = &[
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "Stop",
    "SessionEnd",
];

const CODEX: &[&str] = &[
    "SessionStart",
    "UserPromptSubmit",
    "PreModelRequest",
    "PreToolUse",
    "PostToolUse",
    "Stop",
    "SessionEnd",
];

const GEMINI: &[&str] = &[
    "SessionStart",
    "BeforeAgent",
    "BeforeModel",
    "BeforeTool",
    "AfterTool",
    "AfterAgent",
    "SessionEnd",
];

/// What is said when it stops makes the model go on, so tenure says nothing there.
#[test]
#[ignore = "runs a real agent"]
fn what_claude_passes_on() {
    reach(Real::Claude, CLAUDE, &CLAUDE[..5]);
}

#[test]
#[ignore = "runs a real agent"]
fn what_claude_2_1_197_passes_on() {
    reach(Real::ClaudeOld, CLAUDE, &CLAUDE[..5]);
}

#[test]
#[ignore = "runs a real agent"]
fn what_codex_passes_on() {
    reach(
        Real::Codex,
        CODEX,
        &[
            "SessionStart",
            "UserPromptSubmit",
            "PreToolUse",
            "PostToolUse",
        ],
    );
}

#[test]
#[ignore = "runs a real agent"]
fn what_gemini_passes_on() {
    reach(
        Real::Gemini,
        GEMINI,
        &["SessionStart", "BeforeAgent", "AfterTool"],
    );
}

/// What is said beside a refusal of the tool reaches the model too: a notice is told only once.
#[track_caller]
fn heard_beside_a_refusal(kind: Real) {
    let world = world();
    let agent = world.agent(kind);
    let script = world.scratch().join("refuse");
    let text = r#"#!/bin/sh
cat >/dev/null
[ $1 = PreToolUse ] || exit 0
echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny",
"permissionDecisionReason":"the reason","additionalContext":"the notice"}}'
"#;
    std::fs::write(&script, text).unwrap();
    agent.hook(&format!("sh {} {{}}", script.display()));
    let turn = agent.fresh("MOCK:bash echo one").run().ok();
    assert!(world.mock().was_told("the reason"), "{turn}");
    assert!(world.mock().was_told("the notice"), "{turn}");
}

#[test]
#[ignore = "runs a real agent"]
fn claude_passes_on_what_is_said_beside_a_refusal() {
    heard_beside_a_refusal(Real::Claude);
    heard_beside_a_refusal(Real::ClaudeOld);
}

#[test]
#[ignore = "runs a real agent"]
fn codex_passes_on_what_is_said_beside_a_refusal() {
    heard_beside_a_refusal(Real::Codex);
}
