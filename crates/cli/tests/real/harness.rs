//! The harness itself: hooks, what runs in the background, the terminal, and what is left behind.

use std::time::Duration;

use tenure_testkit::pinned::{Pinned, Stat};
use tenure_testkit::protocol::Started;
use tenure_testkit::real::Real;
use tenure_testkit::{Signal, poll};

use crate::world;

const LONG: Duration = Duration::from_secs(60);

#[test]
#[ignore = "runs a real agent"]
fn claude_in_the_background_is_held_and_killed_and_leaves_nothing() {
    let world = world();
    let claude = world.agent(Real::Claude);
    let pids = world.scratch().join("pids");
    let running = claude
        .fresh(&format!(
            "MOCK:bash echo $$ $PPID > {0}.new && mv {0}.new {0} && exec sleep 1000",
            pids.display()
        ))
        .start();
    let pids = poll(LONG, "the tool runs", || {
        std::fs::read_to_string(&pids).ok()
    });
    let pids: Vec<u32> = pids
        .split_whitespace()
        .map(|one| one.parse().unwrap())
        .collect();
    assert_eq!(pids[1], running.agent_pid());
    let (pid, start) = (pids[0], Stat::read(pids[0]).unwrap().start);
    let tool = Pinned::open(Started { pid, start }).unwrap();
    running.kill9();
    assert_eq!(running.wait().output.code, 137);
    assert!(!tool.is_gone(), "the tool outlives its agent");
    drop(world);
    assert!(tool.is_gone(), "nothing outlives the world");
}

#[test]
#[ignore = "runs a real agent"]
fn a_turn_that_the_model_holds_goes_on_when_it_is_released() {
    let world = world();
    let running = world
        .agent(Real::Claude)
        .fresh("MOCK:hold here\nand then")
        .start();
    let asked = |asked: &tenure_testkit::Asked| asked.offers_tools();
    world.mock().await_asked(LONG, "to hold", asked);
    assert!(running.is_alive());
    world.mock().release("here");
    assert_eq!(running.wait().ok().said(), "MOCK-SLEPT");

    let running = world
        .agent(Real::Claude)
        .fresh("MOCK:hold for ever")
        .start();
    let is_second = |asked: &tenure_testkit::Asked| asked.offers_tools() && asked.says("for ever");
    world.mock().await_asked(LONG, "to hold again", is_second);
    assert!(running.signal(Signal::TERM));
    assert!(running.wait().fails(143).of_type("result").next().is_none());
}

#[test]
#[ignore = "runs a real agent"]
fn claude_at_a_terminal_clears_and_compacts() {
    let world = world();
    let claude = world.agent(Real::Claude);
    let hooked = claude.record_hooks();
    let screen = claude.at_terminal(&[]);
    let starts = |number: usize| {
        poll(LONG, "a session starts", || {
            let starts = hooked.of("SessionStart");
            (starts.len() >= number).then(|| starts[number - 1].clone())
        })
    };
    let first = starts(1);
    assert_eq!(first["source"], "startup");
    screen.type_line("hello");
    screen.await_text("MOCK-OK");
    screen.type_line("/compact");
    let compacted = starts(2);
    assert_eq!(compacted["source"], "compact");
    assert_eq!(compacted["session_id"], first["session_id"]);
    screen.type_line("/clear");
    let cleared = starts(3);
    assert_eq!(cleared["source"], "clear");
    assert_ne!(cleared["session_id"], first["session_id"]);
    screen.type_line("/exit");
    screen.await_end();
    let ends = hooked.of("SessionEnd");
    assert_eq!(ends.last().unwrap()["reason"], "prompt_input_exit");
}
