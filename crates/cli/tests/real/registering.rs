//! A turn with tenure's hooks: the session that tenure knows is the conversation, in the agent's own process.

use std::time::Duration;

use serde_json::Value;
use tenure_testkit::pinned::Stat;
use tenure_testkit::poll;
use tenure_testkit::real::Real;

use crate::world;

const LONG: Duration = Duration::from_secs(90);

/// What `whoami` says from inside a tool call while the turn goes on.
#[track_caller]
fn registers(kind: Real) {
    let world = world();
    let agent = world.agent(kind);
    agent.hook(&format!("tenure hook {}", kind.name()));
    let said = world.scratch().join("whoami");
    let line = format!(
        "MOCK:bash tenure whoami --json > {0}.new; mv {0}.new {0}\nMOCK:hold here",
        said.display()
    );
    let running = agent.fresh(&line).start();
    let text = poll(LONG, "the tool asks who it is", || {
        std::fs::read_to_string(&said).ok()
    });
    let pid = running.agent_pid();
    let start = Stat::read(pid).unwrap().start;
    world.mock().release("here");
    let turn = running.wait().ok();

    let who: Value = serde_json::from_str(&text).unwrap();
    let session = &who["session"];
    assert_eq!(session["agent"], kind.name(), "{who:#}");
    assert_eq!(session["native_id"], turn.id(), "{who:#}");
    assert_eq!(session["process"]["pid"], pid, "{who:#}");
    assert_eq!(session["process"]["start_ticks"], start, "{who:#}");
    let handle = session["handle"].as_str().unwrap();
    assert!(world.mock().was_told(handle), "the model knows who it is");
    let shown = world.tenure(&["show", handle, "--json"]).ok();
    assert_ne!(shown.json()["session"]["state"], "live", "{shown}");
}

with_hooks! { [registers] }
