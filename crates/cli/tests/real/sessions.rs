//! Every agent with tenure's hooks or its plugin: a turn is a session of the agent's own process, never of a wrapper
//! around it. What only one agent does is in its own file.

use std::path::Path;

use serde_json::Value;
use tenure_testkit::real::{Real, RealWorld};

use crate::state::{
    Left, assert_process, handle, hooked, of_process, only, other, sessions, times_told,
};

const KEY: &str = "wp:041/WP03";

all! { [
    a_fresh_turn_is_a_session_of_the_agents_process_and_ends_with_it
    a_resume_is_the_same_session_again
    f_h10_resuming_what_nobody_knows_changes_nothing
    a_loser_is_told_once
] }

fn a_fresh_turn_is_a_session_of_the_agents_process_and_ends_with_it(kind: Real) {
    let world = hooked(kind);
    let me = Left::in_project(&world, "me");
    let turn = world.agent(kind).fresh(&who(&me)).start();
    let whoami = me.json();
    let session = &whoami["session"];
    assert_eq!(kind.wrapped().is_empty(), turn.agent_pid() == turn.pid());
    assert_process(session, turn.agent_pid());
    assert_eq!(session["state"], "live");
    assert_eq!(session["activity"], "busy");
    assert_eq!(whoami["resolved"]["by"], "ancestry");
    world.mock().release("here");
    let turn = turn.wait().ok();
    let told = format!("tenure knows this session as {}", handle(session));
    assert_eq!(times_told(&world, &told), 1);
    let after = only(&world);
    assert_eq!(after["id"], session["id"]);
    assert_eq!(after["native_id"], turn.id());
    assert_eq!(after["state"], "ended", "{after:#}");
    // Its only turn was over: it left, and is not offered for a resume.
    assert_eq!(after["end_kind"], "left", "{after:#}");
    assert_transcript(&world, kind, &after);
    assert_last_words(&world, kind, &after);
}

fn a_resume_is_the_same_session_again(kind: Real) {
    let world = hooked(kind);
    let agent = world.agent(kind);
    let first = agent.fresh("hello").run().ok();
    let session = only(&world);
    let me = Left::in_project(&world, "me");
    let again = agent.resume(&first.id(), &who(&me)).start();
    let resumed = me.json()["session"].clone();
    assert_process(&resumed, again.agent_pid());
    world.mock().release("here");
    assert_eq!(again.wait().ok().id(), first.id());
    assert_eq!(resumed["id"], session["id"]);
    assert_eq!(resumed["process"]["life"], 2);
    let after = only(&world);
    assert_eq!(after["state"], "ended", "{after:#}");
    // The hook at such a start may name a path that is not the conversation's file.
    assert_transcript(&world, kind, &after);
}

/// With what the row of the agent names as the words of its refusal: `turns::says_that_a_conversation_is_unknown`.
fn f_h10_resuming_what_nobody_knows_changes_nothing(kind: Real) {
    let world = hooked(kind);
    let agent = world.agent(kind);
    let running = agent.fresh("MOCK:hold here").start();
    let session = of_process(&world, running.agent_pid());
    let refused = agent.resume(kind.nobody(), "hello").run();
    assert_ne!(refused.output.code, 0, "{refused}");
    let after = only(&world);
    assert_eq!(after["id"], session["id"]);
    assert_eq!(after["state"], "live");
    world.mock().release("here");
    running.wait().ok();
    assert_eq!(sessions(&world).len(), 1);
}

fn a_loser_is_told_once(kind: Real) {
    let world = hooked(kind);
    let claimed = Left::in_project(&world, "claimed");
    let prompt = format!(
        "MOCK:bash {}\nMOCK:hold here\nMOCK:bash true\nMOCK:bash true",
        claimed.by(&format!("tenure claim {KEY}"))
    );
    let running = world.agent(kind).fresh(&prompt).start();
    claimed.text();
    let taker = other(&world);
    let _taken = taker
        .tenure(&["takeover", KEY, "--reason", "it is urgent"])
        .ok();
    world.mock().release("here");
    running.wait().ok();
    assert_eq!(times_told(&world, "tenure notice (lost)"), 1);
}

/// Leaves what tenure says of the agent, and waits.
fn who(me: &Left) -> String {
    let asks = me.by("tenure whoami --json");
    format!("MOCK:bash {asks}\nMOCK:hold here")
}

#[track_caller]
fn assert_transcript(world: &RealWorld, kind: Real, session: &Value) {
    if !kind.keeps_files() {
        return;
    }
    let shown = world.tenure(&["transcript", "show", handle(session), "--json"]);
    let path = shown.ok().json()["transcript"]["path"].clone();
    let path = Path::new(path.as_str().unwrap());
    // Some name the file after the beginning of the id.
    let id = &session["native_id"].as_str().unwrap()[..8];
    let name = path.file_name().unwrap().to_str().unwrap();
    assert!(name.contains(id), "{path:?} of {id}");
    assert!(path.exists(), "{path:?}");
}

/// `show` has the last prompt and the last answer.
#[track_caller]
fn assert_last_words(world: &RealWorld, kind: Real, session: &Value) {
    if !kind.keeps_files() {
        return;
    }
    let shown = world.tenure(&["show", handle(session), "--json"]).ok();
    let last = shown.json()["session"]["last_words"].clone();
    let has = |part: &str, said: &str| last[part].as_str().is_some_and(|text| text.contains(said));
    assert!(has("prompt", "MOCK:hold here"), "{last:#}");
    assert!(has("words", "MOCK-TOOL-DONE"), "{last:#}");
}
