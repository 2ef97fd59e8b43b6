//! What each agent passes on to its model of what hooks say; tenure speaks nowhere else.

use tenure_agents::{Means, Note};
use tenure_testkit::real::Real;

use crate::world;

/// Every hook says in which event it was run, in a fresh turn with two tools; gives the events that the model
/// heard of in that turn, and in a second one that goes on with the conversation.
fn received(kind: Real, events: &[&str]) -> (Vec<String>, Vec<String>) {
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

/// The model hears what tenure counts on in a turn with a tool call, at the first start and at the next; before
/// a tool it hears something if the row says so, and only then.
///
/// What is said when Claude Code stops makes the model go on, so tenure says nothing there.
#[track_caller]
fn passes_on(kind: Real) {
    let row = kind.adapter();
    let events: Vec<&str> = row.events.iter().map(|event| event.name).collect();
    let (first, second) = received(kind, &events);
    assert_eq!(first, second, "a resumed turn is as a fresh one");
    for event in row.events {
        let (reached, name) = (first.iter().any(|one| one == event.name), event.name);
        let counted_on = event.notes.contains(&Note::ModelReads);
        assert!(reached || !counted_on, "{name} is not heard: {first:?}");
        let before = event.means == Means::BeforeTool;
        assert!(!before || reached == row.reads_before_tool, "{name}");
    }
}

with_hooks! { [passes_on] }

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
