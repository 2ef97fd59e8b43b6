//! Lines that move: a free key reaches a waiter that can use it, and a line that stands still costs nothing.

use std::time::{Duration, Instant};

use rusqlite::Connection;
use tenure_testkit::{Agent, Background, Cmd, Env, Signal, poll};

use crate::env;
use crate::support::line::{SOON, crew, handle, run, session, take};
use crate::support::waiter::{ends, holder, waits};

/// When a waiter that nothing wakes has looked by itself, nearly.
const BY_ITSELF: Duration = Duration::from_secs(9);

/// How many commits are seen within a span.
fn commits_in(env: &Env, span: Duration) -> u32 {
    let end = Instant::now() + span;
    commits_while(env, || Instant::now() < end)
}

/// How many commits are seen while something goes on.
fn commits_while(env: &Env, goes_on: impl Fn() -> bool) -> u32 {
    let store = Connection::open(env.state().join("tenure.db")).expect("it is there");
    let version = || -> i64 {
        let asked = store.query_row("PRAGMA data_version", [], |row| row.get(0));
        asked.expect("a number")
    };
    let (mut seen, mut count) = (version(), 0);
    poll(SOON, "it is over", || {
        let now = version();
        count += u32::from(now != seen);
        seen = now;
        (!goes_on()).then_some(())
    });
    count
}

/// Something of a dead holder that goes on.
fn leaves_something(agent: &Agent) -> u32 {
    agent.orphan(Cmd::new("sleep").arg("1000"))
}

#[test]
fn f_c22_a_free_item_passes_a_waiter_whose_other_item_is_held() {
    let (env, [ann, zoe, bob, eve]) = crew(["ann", "zoe", "bob", "eve"]);
    take(&ann, "wp:1");
    take(&zoe, "wp:2");
    let blocked = waits(&env, &bob, "wp:1", "claim --all wp:1 wp:2 --wait 5m");
    let next = waits(&env, &eve, "wp:1", "claim wp:1 --wait 5m");
    run(&ann, 0, "release wp:1");
    ends(next).ok();
    assert_eq!(holder(&env, "wp:1"), (Some(handle(&eve)), 2));
    // It keeps its place: it comes before one that came later.
    let late = waits(&env, &ann, "wp:1", "claim wp:1 --wait 5m");
    run(&zoe, 0, "release wp:2");
    run(&eve, 0, "release wp:1");
    ends(blocked).ok();
    assert_eq!(holder(&env, "wp:1"), (Some(handle(&bob)), 3));
    assert!(late.is_alive());
}

#[test]
fn f_c22_a_free_item_passes_a_waiter_that_insists_on_quiet() {
    let (env, [ann, bob, eve]) = crew(["ann", "bob", "eve"]);
    take(&ann, "wp:1");
    let orphan = leaves_something(&ann);
    let picky = waits(&env, &bob, "wp:1", "claim wp:1 --require-quiet --wait 5m");
    let next = waits(&env, &eve, "wp:1", "claim wp:1 --wait 5m");
    ann.kill9();
    ends(next).ok();
    assert_eq!(holder(&env, "wp:1"), (Some(handle(&eve)), 2));
    assert!(picky.is_alive());
    eve.run(Cmd::new("kill").args(["-9".to_owned(), orphan.to_string()]))
        .ok();
    run(&eve, 0, "release wp:1");
    ends(picky).ok();
}

/// Two that cannot use a free item wait for it one behind the other.
fn stand_off(env: &Env) -> (Vec<Agent>, Vec<Background>) {
    let [ann, zoe, bob, eve] = ["ann", "zoe", "bob", "eve"].map(|name| session(env, name));
    take(&ann, "wp:1");
    run(&zoe, 0, "claim --all wp:2 wp:3");
    let waiters = vec![
        waits(env, &bob, "wp:1", "claim --all wp:1 wp:2 --wait 5m"),
        waits(env, &eve, "wp:1", "claim --all wp:1 wp:3 --wait 5m"),
    ];
    run(&ann, 0, "release wp:1");
    (vec![ann, zoe, bob, eve], waiters)
}

#[test]
fn a_line_that_stands_still_writes_nothing() {
    let env = env();
    let (agents, waiters) = stand_off(&env);
    let fresh = session(&env, "max");
    let third = waits(&env, &fresh, "wp:1", "claim --all wp:1 wp:2 --wait 5m");
    poll(SOON, "it has come to rest", || {
        (commits_in(&env, Duration::from_millis(300)) == 0).then_some(())
    });
    assert_eq!(commits_in(&env, Duration::from_secs(3)), 0);
    // And yet it moves at once when it can.
    run(&agents[1], 0, "release wp:3");
    let [bob, eve] = <[Background; 2]>::try_from(waiters).expect("two");
    ends(eve).ok();
    assert!(bob.is_alive() && third.is_alive());
}

#[test]
fn a_waiter_that_comes_later_gets_what_those_before_it_cannot_use() {
    let env = env();
    let (_agents, waiters) = stand_off(&env);
    let max = session(&env, "max");
    let came = max.start(Cmd::new("tenure").args(["claim", "wp:1", "--wait", "30s"]));
    let commits = commits_while(&env, || came.is_alive());
    ends(came).ok();
    assert!(commits <= 8, "{commits} commits");
    assert_eq!(holder(&env, "wp:1").0, Some(handle(&max)));
    assert!(waiters.iter().all(Background::is_alive));
}

/// The clock ticks that a process has used.
fn ticks(waiter: &Background) -> (u64, u64) {
    let read = |file: &str| {
        std::fs::read_to_string(format!("/proc/{}/{file}", waiter.pid)).expect("it lives")
    };
    let stat = read("stat");
    let (_, rest) = stat.rsplit_once(')').expect("a name in parentheses");
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let ticks = |field: &str| field.parse::<u64>().expect("a count of ticks");
    let spent = ticks(fields[11]) + ticks(fields[12]);
    let switches = read("status")
        .lines()
        .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))
        .and_then(|count| count.trim().parse().ok());
    (spent, switches.expect("the kernel counts them"))
}

#[test]
fn what_strangers_do_wakes_no_waiter() {
    let (env, [ann, bob, max]) = crew(["ann", "bob", "max"]);
    take(&ann, "wp:1");
    let waiter = waits(&env, &bob, "wp:1", "claim wp:1 --wait 5m");
    poll(SOON, "it has gone to sleep", || {
        let before = ticks(&waiter);
        commits_in(&env, Duration::from_millis(300));
        (ticks(&waiter) == before).then_some(())
    });
    let before = ticks(&waiter).1;
    for _ in 0..20 {
        run(&max, 0, "renew");
        run(&max, 0, "meta set team x");
    }
    let after = ticks(&waiter).1;
    // It looks by itself every few seconds; one wake for each commit would be forty.
    assert!(after - before <= 8, "{} wakes", after - before);
    run(&ann, 0, "release wp:1");
    ends(waiter).ok();
}

#[test]
fn a_waiter_is_told_at_once_that_its_own_session_ended() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    take(&ann, "wp:1");
    let name = handle(&bob);
    let waiter = waits(&env, &bob, "wp:1", "claim wp:1 --wait 5m");
    let began = Instant::now();
    run(&ann, 0, &format!("end --session {name} --reason test"));
    let said = ends(waiter);
    assert_ne!(said.code, 0, "{said}");
    assert!(began.elapsed() < BY_ITSELF, "{said}");
}

#[test]
fn a_key_that_frees_another_path_moves_its_line() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    take(&ann, "path:acme/web:src/db/x.rs");
    let key = "path:acme/web:src/**";
    let waiter = waits(&env, &bob, key, &format!("claim {key} --wait 5m"));
    run(&ann, 0, "release path:acme/web:src/db/x.rs");
    let began = Instant::now();
    ends(waiter).ok();
    assert!(began.elapsed() < BY_ITSELF);
}

#[test]
fn a_waiter_that_is_stopped_in_its_turn_is_passed_over() {
    let (env, [ann, bob, eve]) = crew(["ann", "bob", "eve"]);
    take(&ann, "wp:1");
    let first = waits(&env, &bob, "wp:1", "claim wp:1 --wait 5m");
    let next = waits(&env, &eve, "wp:1", "claim wp:1 --wait 5m");
    first.signal(Signal::STOP);
    run(&ann, 0, "release wp:1");
    ends(next).ok();
    first.signal(Signal::CONT);
    run(&eve, 0, "release wp:1");
    ends(first).ok();
}
