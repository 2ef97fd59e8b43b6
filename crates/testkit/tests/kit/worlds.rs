//! A world of real agents, without the agents: what it starts ends with it.

use std::path::Path;

use tenure_testkit::real::{Real, RealWorld};

use crate::crash::{all_end_with_the_test, is_to_die, wait_for_death};
use crate::pin;

fn world() -> RealWorld {
    RealWorld::with_agents_in(Path::new("/nonexistent"), Path::new("/usr/bin/env"))
}

/// Starts a process that nobody told the test of, in a session of its own, whose parent is gone.
fn stray(world: &RealWorld) -> u32 {
    let line = "setsid sleep 1000 </dev/null >/dev/null 2>&1 & echo $!";
    let started = world.driver().tenure_shell(line).ok();
    started.stdout.trim().parse().unwrap()
}

#[test]
fn what_a_world_started_ends_with_it() {
    let (one, other) = (world(), world());
    let (ours, theirs) = (pin(stray(&one)), pin(stray(&other)));
    drop(one);
    assert!(ours.is_gone());
    assert!(!theirs.is_gone(), "another world is left alone");
    drop(other);
    assert!(theirs.is_gone());
}

#[test]
fn what_a_world_started_ends_with_a_test_that_is_killed() {
    all_end_with_the_test("worlds::dies", 2);
}

#[test]
#[ignore = "another test runs it as a process of its own, and kills it"]
fn dies() {
    assert!(is_to_die(), "a test gives it this task");
    let world = world();
    let pids = [world.driver().pid(), stray(&world)];
    wait_for_death(world.env().dir(), &pids);
}

#[test]
fn a_world_is_a_repository_at_a_home_of_its_own() {
    let world = world();
    let seen = world
        .driver()
        .tenure_shell("git remote get-url origin; echo $HOME; echo $TENURE_HOME");
    let seen = seen.ok().stdout;
    let lines: Vec<&str> = seen.lines().collect();
    assert!(lines[0].starts_with("https://example.invalid/"), "{seen}");
    assert_eq!(Path::new(lines[1]), world.home());
    assert_eq!(Path::new(lines[2]), world.state());
    assert!(world.state().starts_with(world.home()));
    let network = world
        .driver()
        .tenure_shell("git ls-remote https://example.invalid/");
    assert!(network.fails(128).stderr.contains("not allowed"));
    let bash = world
        .driver()
        .tenure_shell("bash -lc 'command -v tenure'")
        .ok();
    assert!(Path::new(bash.stdout.trim()).starts_with(world.env().dir()));
}

#[test]
fn an_agent_that_is_not_installed_is_named() {
    let world = world();
    let asked = std::panic::AssertUnwindSafe(|| world.agent(Real::Gemini).kind());
    let message = *std::panic::catch_unwind(asked)
        .unwrap_err()
        .downcast::<String>()
        .unwrap();
    assert!(message.contains("gemini 0.61.0") && message.contains("scripts/real-agents"));
}
