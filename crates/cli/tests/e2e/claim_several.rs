//! Several items in one request: the first free one, or all of them or none.

use std::fmt::Write as _;

use serde_json::Value;
use tenure_testkit::{Agent, Cmd, Env, scratch_git};

use crate::support::line::{crew, refused, run, take, text};
use crate::support::waiter::holder;

/// The one key that was granted.
#[track_caller]
fn takes(agent: &Agent, line: &str) -> String {
    text(&run(agent, 0, line)["claim"]["key"])
}

/// Everything that anybody holds.
#[track_caller]
fn held(env: &Env) -> Vec<String> {
    let all = ["claims", "--json", "--limit", "100000"];
    let claims = env.tenure(&all).ok().json()["claims"].clone();
    let claims = claims.as_array().expect("a list");
    claims.iter().map(|claim| text(&claim["key"])).collect()
}

#[test]
fn any_takes_the_first_free_one_in_the_order_named() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    assert_eq!(takes(&ann, "claim --any wp:c wp:b wp:a"), "wp:c");
    assert_eq!(takes(&bob, "claim --any wp:c wp:b wp:a"), "wp:b");
    assert_eq!(held(&env), ["wp:b", "wp:c"]);
}

#[test]
fn any_and_all_of_nothing_are_refused() {
    let (env, [ann]) = crew(["ann"]);
    for line in ["claim --any", "claim --all", "claim --any -", "claim"] {
        refused(&ann, 2, "usage", line);
    }
    ann.tenure_stdin(&["claim", "--any", "-"], "\n \n").fails(2);
    refused(&ann, 2, "usage", "claim wp:1 wp:2");
    ann.tenure(&["claim", "--any", "--all", "wp:1"]).fails(2);
    assert_eq!(held(&env), [""; 0]);
}

fn keys(count: usize) -> String {
    let mut keys = String::new();
    for number in 0..count {
        writeln!(keys, "wp:many/{number}").expect("text can be written");
    }
    keys
}

const ANY: [&str; 4] = ["claim", "--any", "-", "--json"];

#[test]
fn any_reads_10_000_items_from_stdin_and_no_more() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    take(&ann, "wp:many/0");
    let claim = bob.tenure_stdin(&ANY, &keys(10_000)).ok().json()["claim"].clone();
    assert_eq!(claim["key"], "wp:many/1");
    assert_eq!(held(&env), ["wp:many/0", "wp:many/1"]);
    bob.tenure_stdin(&ANY, &keys(10_001)).fails(2);
}

#[test]
fn one_malformed_item_spoils_the_request_and_nothing_is_taken() {
    let (env, [ann]) = crew(["ann"]);
    let lines = format!("{}no-scheme\n", keys(100));
    let said = ann.tenure_stdin(&["claim", "--any", "-"], &lines).fails(2);
    assert!(said.stderr.contains("no-scheme"), "{said}");
    ann.tenure(&["claim", "--all", "wp:1", "wp:"]).fails(2);
    ann.tenure(&["claim", "--any", "wp:1", "wp:2", "wp:\u{200b}"])
        .fails(2);
    assert_eq!(held(&env), [""; 0]);
}

#[test]
fn any_leaves_alone_what_a_dead_sessions_processes_may_still_write() {
    let (_env, [ann, bob, eve]) = crew(["ann", "bob", "eve"]);
    take(&ann, "wp:1");
    let left = ann.orphan(Cmd::new("sleep").arg("1000"));
    ann.kill9();
    assert_eq!(takes(&bob, "claim --any wp:1 wp:2"), "wp:2");
    refused(&bob, 3, "survivors", "claim --any wp:1");
    let claim = run(&eve, 0, "claim --any wp:1 --allow-survivors")["claim"].clone();
    assert_eq!(claim["taken_from"]["survivors"][0]["pid"], left);
}

#[test]
fn all_takes_all_or_none() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    take(&ann, "wp:2");
    let error = refused(&bob, 3, "held", "claim --all wp:1 wp:2 wp:3");
    assert_eq!(error["key"], "wp:2");
    for key in ["wp:1", "wp:3"] {
        assert_eq!(holder(&env, key), (None, 0), "{key}");
    }
    run(&ann, 0, "release wp:2");
    let claims = run(&bob, 0, "claim --all wp:3 wp:1 wp:2")["claims"].clone();
    let epoch = |place: usize, part: &str| claims[place][part].clone();
    assert_eq!([0, 1, 2].map(|n| epoch(n, "key")), ["wp:3", "wp:1", "wp:2"]);
    assert_eq!([0, 1, 2].map(|n| epoch(n, "epoch")), [1, 1, 2]);
    let one = run(&bob, 0, "claim --all wp:4")["claims"].clone();
    assert_eq!(one.as_array().map(Vec::len), Some(1));
}

#[test]
fn f_c20_an_item_that_is_named_twice_is_refused() {
    let (env, [ann]) = crew(["ann"]);
    let repo = env.dir().join("repo");
    scratch_git(&repo, Some("git@github.com:acme/web.git"));
    for pick in ["--any", "--all"] {
        refused(&ann, 2, "usage", &format!("claim {pick} wp:1 wp:2 wp:1"));
        for twice in ["issue:42", "issue:acme/web#42", "issue:#42"] {
            let ask = ["claim", pick, "#42", twice];
            let said = ann.tenure_in(&repo, &ask).fails(2);
            assert!(said.stderr.contains("issue:acme/web#42"), "{said}");
        }
    }
    assert_eq!(held(&env), [""; 0]);
}

#[test]
fn callers_that_name_the_same_items_in_opposite_order_never_wait_for_each_other() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    let rounds = |agent: &Agent, keys: &str| {
        let line = format!(
            "n=0; while [ $n -lt 50 ]; do n=$((n+1)); \
             tenure claim --all {keys} --wait 1m && tenure release wp:a && tenure release wp:b \
             || exit 9; done"
        );
        agent.start(Cmd::shell(&line))
    };
    let both = [rounds(&ann, "wp:a wp:b"), rounds(&bob, "wp:b wp:a")];
    for running in both {
        running.wait().ok();
    }
    assert_eq!(holder(&env, "wp:a"), (None, 100));
    assert_eq!(holder(&env, "wp:b"), (None, 100));
}

#[test]
fn a_waiter_for_any_takes_whichever_becomes_free_first() {
    let (env, [ann, bob, eve]) = crew(["ann", "bob", "eve"]);
    take(&ann, "wp:1");
    take(&bob, "wp:2");
    let ask = "claim --any wp:1 wp:2 --wait 5m";
    let waiter = crate::support::waiter::waits(&env, &eve, "wp:2", ask);
    bob.kill9();
    let said: Value = crate::support::waiter::ends(waiter).ok().json();
    assert_eq!(said["claim"]["key"], "wp:2");
    assert_eq!(crate::support::waiter::in_line(&env, "wp:1"), [0; 0]);
}
