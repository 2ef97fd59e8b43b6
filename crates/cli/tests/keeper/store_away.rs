//! While the store is away: answers from memory, and what is given up meanwhile.

use serde_json::json;
use tenure_testkit::{Agent, Signal, poll};

use crate::machine::{Machine, SOON, kept, signal};

/// A list is good for four fifths of this.
const LEASE: &[(&str, &str)] = &[("TENURE_HOST_LEASE", "20s"), ("TENURE_LOCK_DELAY", "1s")];

#[test]
#[ignore = "needs PostgreSQL"]
fn a_held_claim_may_be_written_from_memory_until_the_margin_is_over() {
    let (mut server, env) = kept(LEASE);
    let a = Machine::new(&env, "a");
    let claude = a.session("claude");
    let other = a.session("codex");
    a.run(&claude, 0, "claim wp:1");
    a.lists(1);
    server.stop(true);
    let yes = a.run(&claude, 0, "guard wp:1");
    assert_eq!(yes["permitted"]["epoch"], 1, "{yes}");
    assert!(yes["permitted"]["until"].is_string(), "{yes}");
    let no = a.run(&other, 9, "guard wp:1");
    assert_eq!(no["error"]["kind"], "store_away", "{no}");
    for verb in ["ps", "status"] {
        let shown = a.run(&claude, 0, verb);
        let sessions = shown["remembered"]["sessions"].as_array().unwrap();
        let held: Vec<_> = sessions
            .iter()
            .filter(|one| one["claims"][0]["key"] == "wp:1")
            .collect();
        assert_eq!((sessions.len(), held.len()), (2, 1), "{shown}");
    }
    let why = a.run(&other, 0, "why wp:1");
    let holders = why["remembered"]["sessions"].as_array().unwrap();
    assert_eq!(
        (holders.len(), &holders[0]["agent"]),
        (1, &"claude".into()),
        "{why}"
    );
    assert!(why["remembered"]["as_of"].is_string(), "{why}");
    let why = a.run(&claude, 0, "why wp:2");
    assert_eq!(
        why["remembered"]["sessions"],
        serde_json::json!([]),
        "{why}"
    );
    a.run(&claude, 9, "guard wp:1 --epoch 2");
    a.run(&claude, 9, "guard wp:2");
    a.run(&claude, 8, "claim wp:2");
    poll(SOON, "the margin is over", || {
        (a.ask(&claude, "guard wp:1").code == 9).then_some(())
    });
    server.start();
    poll(SOON, "the store is back", || {
        (a.ask(&claude, "guard wp:1").code == 0).then_some(())
    });
    a.run(&claude, 0, "claim wp:1");
}

#[test]
#[ignore = "needs PostgreSQL"]
fn what_is_given_up_while_the_store_is_away_is_no_longer_permitted_and_is_recorded_later() {
    let (mut server, env) = kept(LEASE);
    let (a, b) = (Machine::new(&env, "a"), Machine::new(&env, "b"));
    let claude = a.session("claude");
    a.run(&claude, 0, "claim wp:1");
    a.run(&claude, 0, "claim wp:2");
    a.lists(2);
    let codex = b.session("codex");
    server.stop(true);
    let spooled = a.run(&claude, 0, "release wp:1");
    assert_eq!(spooled["spooled"]["epoch"], 1, "{spooled}");
    a.run(&claude, 9, "guard wp:1");
    a.run(&claude, 0, "guard wp:2");
    server.start();
    // The first command of that machine brings it to the store before it does anything else.
    poll(SOON, "the store is back", || {
        (a.ask(&claude, "guard wp:2").code == 0).then_some(())
    });
    let granted = b.run(&codex, 0, "claim wp:1");
    assert_eq!(granted["claim"]["epoch"], 2, "{granted}");
    a.run(&claude, 3, "claim wp:1");
    let log = a.person(0, "log wp:1");
    assert!(
        log.to_string().contains("while the store was away"),
        "{log}"
    );
}

#[test]
#[ignore = "needs PostgreSQL"]
fn what_moved_on_meanwhile_is_left_alone() {
    let (mut server, env) = kept(LEASE);
    let (a, b) = (Machine::new(&env, "a"), Machine::new(&env, "b"));
    let claude = a.session("claude");
    a.run(&claude, 0, "claim wp:1");
    a.lists(1);
    let codex = b.session("codex");
    let keeper = a.keeper_pid();
    server.stop(true);
    a.run(&claude, 0, "release wp:1 --done");
    // The keeper would bring it to the store before the key moves on.
    signal(keeper, Signal::STOP);
    server.start();
    poll(SOON, "the key moves on", || {
        let taken = b.ask(&codex, "takeover wp:1 --reason urgent").code;
        (taken == 0).then_some(())
    });
    signal(keeper, Signal::CONT);
    a.person(0, "ps");
    let shown = b.run(&codex, 0, "guard wp:1");
    assert_eq!(shown["claim"]["epoch"], 2, "{shown}");
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_release_is_not_permitted_from_an_older_list() {
    let (mut server, env) = kept(&[]);
    let a = Machine::new(&env, "a");
    let claude = a.session("claude");
    a.run(&claude, 0, "claim wp:1");
    a.lists(1);
    a.run(&claude, 0, "release wp:1");
    server.stop(true);
    a.run(&claude, 9, "guard wp:1");
    server.start();
}

#[test]
#[ignore = "needs PostgreSQL"]
fn an_end_while_the_store_is_away_is_recorded_later() {
    let (mut server, env) = kept(&[]);
    let a = Machine::new(&env, "a");
    let claude = a.session("claude");
    a.run(&claude, 0, "claim wp:1");
    a.lists(1);
    server.stop(true);
    let ended = a.run(&claude, 0, "end");
    assert_eq!(ended["spooled"]["act"], "end", "{ended}");
    a.run(&claude, 9, "guard wp:1");
    server.start();
    let b = Machine::new(&env, "b");
    let codex = b.session("codex");
    // No command of that machine is needed: its keeper brings it to the store.
    poll(SOON, "the claim is free", || {
        (b.ask(&codex, "claim wp:1").code == 0).then_some(())
    });
}

#[test]
#[ignore = "needs PostgreSQL"]
fn f_s15_f_s26_what_no_keeper_has_listed_is_not_permitted_from_memory() {
    let (mut server, mut env) = kept(&[]);
    env.set("TENURE_KEEPER_START", "false");
    let a = Machine::new(&env, "a");
    let claude = a.env_agent("claude");
    let pid = claude.pid();
    a.run(&claude, 0, &format!("register --agent claude --pid {pid}"));
    a.run(&claude, 0, "claim wp:1");
    server.stop(true);
    let no = a.run(&claude, 9, "guard wp:1");
    assert_eq!(no["error"]["kind"], "store_away", "{no}");
    // Nor can it be given up: nobody here knows at which epoch.
    a.run(&claude, 8, "release wp:1");
    server.start();
}

#[test]
#[ignore = "needs PostgreSQL"]
fn f_s25_a_store_that_is_away_is_said_once_to_each_session_and_counted() {
    let (mut server, env) = kept(&[]);
    let a = Machine::new(&env, "a");
    let (claude, other) = (a.session("claude"), a.session("claude"));
    let event = |agent: &Agent, name: &str| {
        let event = json!({
            "hook_event_name": name, "session_id": format!("c-{}", agent.pid()), "tool_name": "Bash",
            "tool_input": {"command": "true"}, "cwd": env.work().display().to_string(),
        });
        let hook = a.hook("claude").stdin(event.to_string());
        let said = agent.run(hook);
        assert_eq!(said.code, 0, "{said}");
        said.stdout
    };
    server.stop(true);
    let words = "tenure cannot record this session";
    for agent in [&claude, &other] {
        let first = event(agent, "PreToolUse");
        assert!(first.contains(words), "{first}");
        for _ in 0..3 {
            let later = event(agent, "PreToolUse");
            assert!(!later.contains(words), "{later}");
        }
    }
    let counted = fs_err::read_to_string(env.dir().join("a/outages.log")).unwrap();
    assert_eq!(counted.lines().count(), 8, "{counted}");
    server.start();
    poll(SOON, "people are told too", || {
        let shown = a.ask(&claude, "status");
        shown.stdout.contains("8 agent events").then_some(())
    });
}
