//! Gemini CLI with tenure's hooks. It starts itself once more, and its session is that child.

use tenure_testkit::real::Real;

use crate::state::{
    Left, assert_process, handle, hooked, of_process, only, other, sessions, times_told,
};

const KIND: Real = Real::Gemini;
const KEY: &str = "wp:041/WP03";

#[test]
#[ignore = "runs a real agent"]
fn a_fresh_turn_is_a_session_of_the_child_and_ends_with_it() {
    let world = hooked(KIND);
    let me = Left::new(&world, "me");
    let prompt = format!(
        "MOCK:bash {}\nMOCK:hold here",
        me.by("tenure whoami --json")
    );
    let turn = world.agent(KIND).fresh(&prompt).start();
    let whoami = me.json();
    let session = &whoami["session"];
    assert_ne!(turn.agent_pid(), turn.pid());
    assert_process(session, turn.agent_pid());
    assert_eq!(session["state"], "live");
    assert_eq!(session["activity"], "busy");
    assert_eq!(whoami["resolved"]["by"], "ancestry");
    world.mock().release("here");
    let turn = turn.wait().ok();
    let told = format!("tenure knows this session as {}", handle(session));
    assert_eq!(times_told(&world, &told), 1);
    let ended = only(&world);
    assert_eq!(ended["id"], session["id"]);
    assert_eq!(ended["native_id"], turn.id());
    assert_eq!(ended["state"], "ended", "{ended:#}");
    let shown = world.tenure(&["transcript", "show", handle(&ended), "--json"]);
    let path = shown.ok().json()["transcript"]["path"].clone();
    assert!(std::fs::exists(path.as_str().unwrap()).unwrap(), "{path}");
}

#[test]
#[ignore = "runs a real agent"]
fn a_resume_is_the_same_session_again() {
    let world = hooked(KIND);
    let agent = world.agent(KIND);
    let first = agent.fresh("hello").run().ok();
    let session = only(&world);
    let me = Left::new(&world, "me");
    let prompt = format!(
        "MOCK:bash {}\nMOCK:hold here",
        me.by("tenure whoami --json")
    );
    let again = agent.resume(&first.id(), &prompt).start();
    let resumed = me.json()["session"].clone();
    assert_process(&resumed, again.agent_pid());
    world.mock().release("here");
    assert_eq!(again.wait().ok().id(), first.id());
    assert_eq!(resumed["id"], session["id"]);
    assert_eq!(resumed["process"]["life"], 2);
    let ended = only(&world);
    assert_eq!(ended["state"], "ended");
    // The start of a resumed conversation names a path that is not its file.
    let shown = world.tenure(&["transcript", "show", handle(&ended), "--json"]);
    let path = shown.ok().json()["transcript"]["path"].clone();
    assert!(std::fs::exists(path.as_str().unwrap()).unwrap(), "{path}");
}

#[test]
#[ignore = "runs a real agent"]
fn f_h10_resuming_what_nobody_knows_changes_nothing() {
    let world = hooked(KIND);
    let agent = world.agent(KIND);
    let running = agent.fresh("MOCK:hold here").start();
    let session = of_process(&world, running.agent_pid());
    agent.resume(KIND.nobody(), "hello").run().fails(42);
    let after = only(&world);
    assert_eq!(after["id"], session["id"]);
    assert_eq!(after["state"], "live");
    world.mock().release("here");
    running.wait().ok();
    assert_eq!(sessions(&world).len(), 1);
}

#[test]
#[ignore = "runs a real agent"]
fn a_loser_is_told_once() {
    let world = hooked(KIND);
    let claimed = Left::new(&world, "claimed");
    let prompt = format!(
        "MOCK:bash {}\nMOCK:hold here\nMOCK:bash true\nMOCK:bash true",
        claimed.by(&format!("tenure claim {KEY}"))
    );
    let running = world.agent(KIND).fresh(&prompt).start();
    claimed.text();
    let taker = other(&world);
    let _taken = taker
        .tenure(&["takeover", KEY, "--reason", "it is urgent"])
        .ok();
    world.mock().release("here");
    running.wait().ok();
    assert_eq!(times_told(&world, "tenure notice (lost)"), 1);
}
