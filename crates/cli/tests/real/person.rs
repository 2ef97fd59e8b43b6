//! What Claude Code shows the person at its screen of what hooks say.

use serde_json::json;
use tenure_testkit::Agent;
use tenure_testkit::real::{Real, RealWorld};

use crate::state::hooked;

both! {
    the_person_sees_what_the_model_is_warned_of
    the_person_sees_why_a_command_was_blocked
}

/// Another session, at work in the project.
pub(super) fn neighbour(world: &RealWorld) -> Agent {
    let other = world.env().agent("gemini");
    let start = json!({
        "hook_event_name": "SessionStart", "session_id": "other", "cwd": world.project(), "source": "startup",
    });
    let _answer = other
        .tenure_stdin(&["hook", "gemini"], &start.to_string())
        .ok();
    other
}

fn the_person_sees_what_the_model_is_warned_of(kind: Real) {
    let world = hooked(kind);
    let _other = neighbour(&world);
    let screen =
        world
            .agent(kind)
            .at_terminal(&["--permission-mode", "default", "--allowedTools", "Bash"]);
    screen.type_line("MOCK:bash git stash");
    screen.await_text("tenure: `git stash` changes files that gemini-");
    screen.until("the model is told as well", || {
        world.mock().was_told("git worktree add").then_some(())
    });
}

fn the_person_sees_why_a_command_was_blocked(kind: Real) {
    let world = hooked(kind);
    let _block = world
        .tenure(&["install", kind.name(), "--mode", "block"])
        .ok();
    let _other = neighbour(&world);
    let screen =
        world
            .agent(kind)
            .at_terminal(&["--permission-mode", "default", "--allowedTools", "Bash"]);
    screen.type_line("MOCK:bash git stash");
    screen.await_text("tenure blocked this: `git stash` changes files that gemini-");
}
