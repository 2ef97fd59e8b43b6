//! Whole turns of each agent: the ground that the other tests stand on.

use tenure_testkit::real::Real;

use crate::world;

/// A fresh turn, a tool call, and a resume that keeps the conversation; what the hooks are given agrees.
#[track_caller]
fn runs_turns(kind: Real) {
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

/// A conversation that nobody knows: tenure's row knows the exit code and the words on standard error.
#[track_caller]
fn says_that_a_conversation_is_unknown(kind: Real) {
    let world = world();
    let turn = world.agent(kind).resume(kind.nobody(), "hello").run();
    let (code, stderr) = (turn.output.code, &turn.output.stderr);
    assert!(kind.adapter().is_unknown(code, stderr), "{turn}");
    assert!(!world.mock().was_told("hello"));
}

all! { [runs_turns says_that_a_conversation_is_unknown] }
