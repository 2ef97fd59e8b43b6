//! Runs that wait for their item stand in its line, beside everybody else who waits for it.

use tenure_testkit::{Scripted, Signal, poll};

use crate::support::line::{SOON, crew, take};
use crate::support::run::{all, is_gone, kill9, lines, newest, run, start, until};
use crate::support::waiter::{ends, in_line, waits};

/// Starts an exclusive run that waits, and returns with its window and its runner's pid.
fn waiting_run(
    env: &tenure_testkit::Env,
    agent: &tenure_testkit::Agent,
    line: &str,
) -> (tenure_testkit::Background, u32) {
    let before = in_line(env, "wp:1");
    let window = start(agent, line);
    let runner = poll(SOON, "the run is in line", || {
        assert!(window.is_alive(), "{}{}", window.stdout(), window.stderr());
        let now = in_line(env, "wp:1");
        now.into_iter().find(|pid| !before.contains(pid))
    });
    (window, runner)
}

#[test]
fn a_run_that_waits_for_its_item_is_served_in_order_of_arrival() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    let mine = Scripted::new(&env, "mine", "init; ready $dir/on; hold $dir/flag; done_");
    mine.keep("flag");
    take(&ann, "wp:1");
    let (window, _) = waiting_run(&env, &bob, "mine wp:1 --exclusive --wait 5m");
    let later = waits(&env, &bob, "wp:1", "claim wp:1 --wait 5m");
    ann.tenure(&["release", "wp:1"]).ok();
    poll(SOON, "the agent works", || mine.wrote("on"));
    let running = newest(&env);
    assert_eq!(running["exclusive"], true);
    assert_eq!(in_line(&env, "wp:1"), [later.pid], "the run left the line");
    assert!(later.is_alive());
    std::fs::remove_file(mine.file("flag")).unwrap();
    window.wait().ok();
    let granted = ends(later).ok().json();
    assert_eq!(granted["claim"]["epoch"], 3);
}

#[test]
fn a_run_that_gives_up_or_is_killed_leaves_the_line_to_the_next() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    let mine = Scripted::new(&env, "mine", "ready $dir/ran; init; done_");
    take(&ann, "wp:1");
    let late = run(&bob, "mine wp:1 --exclusive --wait 200ms --json").fails(125);
    assert_eq!(lines(&late)[0]["error"]["kind"], "timed_out");
    assert_eq!(in_line(&env, "wp:1"), Vec::<u32>::new());
    let (window, runner) = waiting_run(&env, &bob, "mine wp:1 --exclusive --wait 5m");
    let next = waits(&env, &bob, "wp:1", "claim wp:1 --wait 5m");
    kill9(&bob, runner);
    ann.tenure(&["release", "wp:1"]).ok();
    ends(next).ok();
    assert_eq!(window.wait().code, 125);
    let (window, runner) = waiting_run(&env, &ann, "mine wp:1 --exclusive --wait 5m");
    assert!(window.signal(Signal::KILL), "the caller is gone");
    poll(SOON, "its runner gives up", || {
        is_gone(runner).then_some(())
    });
    assert_eq!(in_line(&env, "wp:1"), Vec::<u32>::new());
    assert_eq!(mine.wrote("ran"), None);
    assert!(all(&env).is_empty());
}

#[test]
fn a_conversation_that_changed_while_a_run_was_in_line_is_seen_at_its_turn() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    let mine = Scripted::new(&env, "mine", "echo $mode $id >>$dir/calls; init; done_");
    take(&ann, "wp:1");
    let (window, _) = waiting_run(&env, &bob, "mine wp:1 --exclusive --wait 5m");
    let set = ["conversation", "set", "mine", "wp:1", "c-9"];
    ann.tenure(&set).ok();
    ann.tenure(&["release", "wp:1"]).ok();
    window.wait().ok();
    until(&env, "it ended", |run| run["state"] == "ended");
    assert_eq!(mine.wrote("calls").unwrap(), "resume c-9\n");
}
