//! Waiting in line: who is served, when, and what waiting leaves behind and costs.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::Value;
use tenure_testkit::pinned::Stat;
use tenure_testkit::{Agent, Background, Cmd, Env, Signal, poll};

use crate::env;
use crate::support::line::{SOON, crew, handle, refused, run, session, take, text};
use crate::support::waiter::{AT_ONCE, ends, holder, in_line, waits, why};

#[track_caller]
fn waits_for(env: &Env, agent: &Agent, key: &str) -> Background {
    let waiter = waits(env, agent, key, &format!("claim {key} --wait 5m"));
    // Until it sleeps it looks once more, and what it saw counts even if it is stopped before it answers.
    poll(SOON, "it sleeps", || sleeps(waiter.pid).then_some(()));
    waiter
}

/// Whether a process waits for something to happen: it is in `poll` or `ppoll`.
fn sleeps(pid: u32) -> bool {
    let call = std::fs::read_to_string(format!("/proc/{pid}/syscall")).unwrap_or_default();
    let number = call.split_whitespace().next();
    matches!(number, Some("7" | "271"))
}

/// Lets time pass.
fn pass(span: Duration) {
    let end = Instant::now() + span;
    poll(SOON, "time passes", || (Instant::now() > end).then_some(()));
}

/// Sends a signal and waits until it shows.
fn send(waiter: &Background, signal: Signal, shows: impl Fn(char) -> bool) {
    assert!(waiter.signal(signal));
    poll(SOON, "the signal shows", || {
        Stat::read(waiter.pid).filter(|stat| shows(stat.state))
    });
}

/// Nobody waits for the key, and no session shows that it waits for anything.
#[track_caller]
fn assert_no_trace(env: &Env, key: &str) {
    assert_eq!(in_line(env, key), [0; 0]);
    let seen = env.tenure(&["ps", "--json"]).ok().json();
    for session in seen["sessions"].as_array().expect("a list") {
        assert_eq!(session["waits_for"], Value::Array(vec![]), "{session}");
    }
}

#[test]
fn a_waiter_gets_the_claim_at_once_when_it_is_released() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    take(&ann, "wp:1");
    let waiter = waits_for(&env, &bob, "wp:1");
    run(&ann, 0, "release wp:1");
    let claim = ends(waiter).ok().json()["claim"].clone();
    assert_eq!(claim["epoch"], 2);
    assert_eq!(claim["holder"]["handle"], handle(&bob).as_str());
    assert_eq!(claim["taken_from"], Value::Null);
    assert_no_trace(&env, "wp:1");
}

#[test]
fn a_waiter_gets_the_claim_at_once_when_its_holder_is_killed() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    take(&ann, "wp:1");
    let waiter = waits_for(&env, &bob, "wp:1");
    ann.kill9();
    let claim = ends(waiter).ok().json()["claim"].clone();
    assert_eq!(claim["epoch"], 2);
    assert_eq!(claim["taken_from"]["by"], "death");
    assert_no_trace(&env, "wp:1");
}

#[test]
fn of_32_waiters_each_is_served_alone_and_in_order_of_arrival() {
    let env = env();
    let (ann, crowd) = (session(&env, "ann"), 32);
    let (served, alone) = (env.dir().join("served"), env.dir().join("alone"));
    let (served, alone) = (served.display(), alone.display());
    take(&ann, "wp:1");
    let mut waiters = Vec::new();
    let mut expected = String::new();
    for number in 0..crowd {
        let agent = session(&env, "w");
        let line = format!(
            "tenure claim wp:1 --wait 5m && mkdir {alone} && echo {number} >>{served} \
             && rmdir {alone} && tenure release wp:1"
        );
        let waiter = agent.start(Cmd::shell(&line));
        poll(SOON, "it waits", || {
            (in_line(&env, "wp:1").len() == number + 1).then_some(())
        });
        waiters.push((agent, waiter));
        writeln!(expected, "{number}").expect("text can be written");
    }
    run(&ann, 0, "release wp:1");
    for (_agent, waiter) in waiters {
        waiter.wait().ok();
    }
    let order = std::fs::read_to_string(env.dir().join("served")).unwrap();
    assert_eq!(order, expected);
    assert_eq!(holder(&env, "wp:1"), (None, 33));
    assert_no_trace(&env, "wp:1");
}

#[test]
fn f_c22_a_stopped_waiter_is_passed_over_and_keeps_its_place() {
    let (env, [ann, bob, eve, dan]) = crew(["ann", "bob", "eve", "dan"]);
    take(&ann, "wp:1");
    let stopped = waits_for(&env, &bob, "wp:1");
    let second = waits_for(&env, &eve, "wp:1");
    send(&stopped, Signal::STOP, |state| state == 'T');
    run(&ann, 0, "release wp:1");
    ends(second).ok();
    let third = waits_for(&env, &dan, "wp:1");
    assert_eq!(in_line(&env, "wp:1"), [stopped.pid, third.pid]);
    send(&stopped, Signal::CONT, |state| state != 'T');
    run(&eve, 0, "release wp:1");
    ends(stopped).ok();
    assert_eq!(holder(&env, "wp:1"), (Some(handle(&bob)), 3));
    assert!(third.is_alive());
}

#[test]
fn a_dead_waiter_is_taken_out_of_line() {
    let (env, [ann, bob, eve]) = crew(["ann", "bob", "eve"]);
    take(&ann, "wp:1");
    let dead = waits_for(&env, &bob, "wp:1");
    let next = waits_for(&env, &eve, "wp:1");
    dead.kill9();
    assert_eq!(in_line(&env, "wp:1"), [next.pid]);
    run(&ann, 0, "release wp:1");
    ends(next).ok();
    assert_eq!(holder(&env, "wp:1"), (Some(handle(&eve)), 2));
    assert_no_trace(&env, "wp:1");
}

#[test]
fn a_waiter_whose_agent_dies_ends_at_once() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    take(&ann, "wp:1");
    let orphan = waits_for(&env, &bob, "wp:1");
    bob.kill9();
    poll(AT_ONCE, "it ends", || (!orphan.is_alive()).then_some(()));
    assert!(orphan.stdout().contains("not_live"), "{}", orphan.stdout());
    assert_no_trace(&env, "wp:1");
}

#[test]
fn a_waiter_whose_agent_died_while_it_was_stopped_gets_nothing() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    take(&ann, "wp:1");
    let orphan = waits_for(&env, &bob, "wp:1");
    send(&orphan, Signal::STOP, |state| state == 'T');
    bob.kill9();
    run(&ann, 0, "release wp:1");
    orphan.signal(Signal::CONT);
    poll(AT_ONCE, "it ends", || (!orphan.is_alive()).then_some(()));
    assert!(orphan.stdout().contains("not_live"), "{}", orphan.stdout());
    assert_eq!(holder(&env, "wp:1"), (None, 1));
}

#[test]
fn a_waiter_for_another_session_gets_nothing_after_that_session_died() {
    let (env, [ann, bob, eve]) = crew(["ann", "bob", "eve"]);
    take(&ann, "wp:1");
    let line = format!("claim wp:1 --wait 5m --session {} --reason x", handle(&eve));
    let waiter = waits(&env, &bob, "wp:1", &line);
    eve.kill9();
    run(&ann, 0, "release wp:1");
    let said = ends(waiter).fails(1).json();
    assert_eq!(said["error"]["kind"], "not_live");
    assert_eq!(holder(&env, "wp:1"), (None, 1));
}

/// Somebody who waits for two items, one of which is free, stands in the free one's line too.
#[test]
fn a_plain_claim_takes_a_free_item_even_when_others_wait() {
    let (env, [ann, bob, eve]) = crew(["ann", "bob", "eve"]);
    take(&ann, "wp:held");
    let ask = "claim --all wp:free wp:held --wait 5m";
    let waiter = waits(&env, &bob, "wp:free", ask);
    assert_eq!(take(&eve, "wp:free"), 1);
    run(&eve, 0, "release wp:free");
    eve.tenure(&["claim", "wp:free", "--", "true"]).ok();
    run(&ann, 0, "release wp:held");
    ends(waiter).ok();
    assert_eq!(holder(&env, "wp:free").0, Some(handle(&bob)));
}

#[test]
fn an_interrupted_waiter_leaves_no_trace() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    take(&ann, "wp:1");
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let waiter = waits_for(&env, &bob, "wp:1");
        waiter.signal(signal);
        let said = ends(waiter).fails(code).json();
        assert_eq!(said["error"]["kind"], "interrupted");
        assert_no_trace(&env, "wp:1");
    }
    assert_eq!(holder(&env, "wp:1"), (Some(handle(&ann)), 1));
}

#[test]
fn a_waiter_out_of_time_names_the_holder_and_leaves_no_trace() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    take(&ann, "wp:1");
    let error = refused(&bob, 7, "timed_out", "claim wp:1 --wait 50ms");
    assert_eq!(error["holder"]["handle"], handle(&ann).as_str(), "{error}");
    assert!(text(&error["message"]).contains(&handle(&ann)), "{error}");
    assert_no_trace(&env, "wp:1");
}

#[test]
fn no_wait_at_all_is_a_plain_claim_and_an_absurd_one_is_refused() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    take(&ann, "wp:1");
    refused(&bob, 3, "held", "claim wp:1 --wait 0s");
    bob.tenure(&["claim", "wp:1", "--wait", "100y"]).fails(2);
    bob.tenure(&["claim", "wp:2", "--wait", "-1s"]).fails(2);
    assert_no_trace(&env, "wp:1");
    assert_eq!(holder(&env, "wp:2"), (None, 0));
    run(&bob, 0, "claim wp:2 --wait 0s");
}

#[test]
fn ps_and_why_show_who_waits_for_what_since_when() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    take(&ann, "wp:1");
    let waiter = waits_for(&env, &bob, "wp:1");
    let why = why(&env, "wp:1");
    let [shown] = &why["why"]["waiters"].as_array().expect("a list")[..] else {
        panic!("one waiter: {why}")
    };
    assert_eq!(shown["session"], handle(&bob).as_str());
    assert_eq!(shown["key"], "wp:1");
    assert_eq!(shown["pid"], waiter.pid);
    assert!(text(&shown["since"]).ends_with('Z'), "{shown}");
    let seen = env.tenure(&["ps", "--json"]).ok().json();
    for session in seen["sessions"].as_array().expect("a list") {
        let waits = session["waits_for"].as_array().expect("a list");
        let is_bob = session["handle"] == handle(&bob).as_str();
        assert_eq!(waits.first(), is_bob.then_some(shown), "{session}");
    }
    let said = env.tenure(&["why", "wp:1"]).ok();
    assert!(said.stdout.contains(&handle(&bob)), "{said}");
    let said = env.tenure(&["ps"]).ok();
    assert!(said.stdout.contains("wp:1"), "{said}");
}

/// Clock ticks and voluntary switches that a process has cost so far.
fn cost(pid: u32) -> (u64, u64) {
    let read = |file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}"));
    let (stat, status) = (read("stat"), read("status"));
    let (stat, status) = stat.and_then(|stat| Ok((stat, status?))).expect("it lives");
    let (_, rest) = stat.rsplit_once(')').expect("a name in parentheses");
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let ticks = |field: &str| field.parse::<u64>().expect("a number");
    let switches = status
        .lines()
        .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))
        .and_then(|count| count.trim().parse().ok());
    let ticks = ticks(fields[11]) + ticks(fields[12]);
    (ticks, switches.expect("the kernel counts them"))
}

#[test]
fn waiting_costs_nothing_while_nothing_happens() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    take(&ann, "wp:1");
    let name = handle(&ann);
    let waiter = waits_for(&env, &bob, "wp:1");
    let watcher = bob.start(Cmd::new("tenure").args(["wait", &name]));
    for pid in [waiter.pid, watcher.pid] {
        poll(SOON, "it has gone to sleep", || {
            let before = cost(pid);
            pass(Duration::from_millis(200));
            (before == cost(pid)).then_some(())
        });
        let before = cost(pid);
        pass(Duration::from_secs(1));
        let after = cost(pid);
        assert!(after.0 - before.0 <= 1, "{before:?} {after:?}");
        assert!(after.1 - before.1 <= 2, "{before:?} {after:?}");
    }
}

#[test]
fn what_a_session_lost_is_told_to_it_although_its_next_call_waits() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    take(&ann, "wp:held");
    let told = |said: &Value| {
        let notices = said["notices"].as_array().expect("a list").iter();
        notices.filter(|notice| notice["kind"] == "lost").count()
    };
    let lose = |key: &str| {
        take(&bob, key);
        run(&ann, 0, &format!("takeover {key} --reason test"));
    };
    lose("wp:1");
    let said = run(&bob, 7, "claim wp:held --wait 50ms");
    assert_eq!(told(&said), 1, "timed out: {said}");
    lose("wp:2");
    let waiter = waits_for(&env, &bob, "wp:held");
    waiter.signal(Signal::INT);
    assert_eq!(told(&ends(waiter).json()), 1, "interrupted");
    lose("wp:3");
    let waiter = waits_for(&env, &bob, "wp:held");
    run(&ann, 0, "release wp:held");
    assert_eq!(told(&ends(waiter).ok().json()), 1, "granted");
    lose("wp:4");
    let said = run(&bob, 7, &format!("wait {} --timeout 50ms", handle(&ann)));
    assert_eq!(told(&said), 1, "waited for a session: {said}");
    assert_eq!(told(&run(&bob, 0, "whoami")), 0, "told once");
}

/// A session and a process that waits for its end.
fn awaited(env: &Env) -> (Agent, Agent, Background) {
    let (ann, bob) = (session(env, "ann"), env.agent("bob"));
    let name = handle(&ann);
    let watcher = bob.start(Cmd::shell(&format!("exec tenure wait {name} --json")));
    poll(SOON, "it sleeps", || {
        assert!(watcher.is_alive());
        let is_there = Stat::read(watcher.pid).is_some_and(|stat| stat.state == 'S');
        let exe = std::fs::read_link(format!("/proc/{}/exe", watcher.pid));
        let is_ours = |exe: PathBuf| exe.ends_with("tenure") || exe.ends_with("tenure-server");
        (is_there && exe.is_ok_and(is_ours)).then_some(())
    });
    (ann, bob, watcher)
}

#[test]
fn waiting_for_a_session_ends_with_its_end_and_with_its_death() {
    let env = env();
    let (ann, _bob, watcher) = awaited(&env);
    run(&ann, 0, "end");
    assert_eq!(ends(watcher).ok().json()["session"]["state"], "ended");
    let (eve, _bob, watcher) = awaited(&env);
    eve.kill9();
    assert_eq!(ends(watcher).ok().json()["session"]["state"], "dead");
}

#[test]
fn waiting_for_a_session_ends_with_its_time() {
    let (_env, [ann, bob]) = crew(["ann", "bob"]);
    let name = handle(&ann);
    refused(&bob, 7, "timed_out", &format!("wait {name} --timeout 50ms"));
    refused(&bob, 4, "no_such_session", "wait nobody-zzzz");
    ann.kill9();
    run(&bob, 0, &format!("wait {name} --timeout 50ms"));
}
