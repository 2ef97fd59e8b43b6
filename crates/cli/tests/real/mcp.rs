//! The real agents call a tool of ours over MCP, and their models read its answer.

use tenure_testkit::real::Real;

use crate::state::{handle, only};

/// The model calls `status` once by the name under which this agent offers it.
#[track_caller]
fn status_comes_back(kind: Real, tool: &str, more: &[&str]) {
    let world = crate::world();
    let agent = world.agent(kind);
    let _installed = world.tenure(&["install", kind.name(), "--mcp"]).ok();
    let prompt = format!("MOCK:tool {tool} {{}}");
    let turn = agent.fresh(&prompt).args(more).run().ok();
    let session = only(&world);
    // A part of the answer that nothing else says.
    assert!(world.mock().was_told("cut_off_elsewhere"), "{turn}");
    let me = format!("you are {}", handle(&session));
    let own = session["id"].as_str().unwrap();
    assert!(
        world.mock().was_told(&me) || world.mock().was_told(own),
        "{turn}"
    );
}

#[test]
#[ignore = "runs a real agent"]
fn claude_calls_status_over_mcp() {
    let allowed = ["--allowedTools=mcp__tenure__status"];
    status_comes_back(Real::Claude, "mcp__tenure__status", &allowed);
}

#[test]
#[ignore = "runs a real agent"]
fn codex_calls_status_over_mcp() {
    status_comes_back(Real::Codex, "mcp__tenure.status", &[]);
}

#[test]
#[ignore = "runs a real agent"]
fn gemini_calls_status_over_mcp() {
    status_comes_back(Real::Gemini, "mcp_tenure_status", &[]);
}

#[test]
#[ignore = "runs a real agent"]
fn opencode_calls_status_over_mcp() {
    status_comes_back(Real::Opencode, "tenure_status", &[]);
}
