//! Many processes on a store of a server, through a pooler that has three connections for all of them.

use std::time::Instant;

use tenure_testkit::postgres::{Bouncer, PoolMode, PostgresServer};
use tenure_testkit::{Agent, Env};

use crate::env;
use crate::support::crowd::at_once;
use crate::support::line::{SOON, register, run, take};

const CROWD: usize = 32;
const KEYS: usize = 200;

/// A store behind a pooler, on a server of its own whose log has every statement.
fn pooled() -> (Env, Bouncer, PostgresServer) {
    let server = PostgresServer::own(&["log_statement = all"]);
    let schema = server.new_schema();
    let bouncer = Bouncer::start(&server, PoolMode::Transaction, 3);
    let mut env = env();
    env.set("TENURE_STORE", bouncer.url(&schema));
    env.tenure(&["store", "migrate"]).ok();
    (env, bouncer, server)
}

/// Takes keys until none is free; how many it got. Two begin at each place, so that they meet there and later. Each
/// waits for its turn at the pooler, and none fails.
fn takes_what_it_gets(one: &Agent, number: usize) -> usize {
    let from = number / 2 * (KEYS / (CROWD / 2));
    let names = (0..KEYS).map(|key| format!("wp:race/{:03}\n", (from + key) % KEYS));
    let names: String = names.collect();
    let mut won = 0;
    loop {
        let said = one.tenure_stdin(&["claim", "--any", "-", "--json"], &names);
        match said.code {
            0 => won += 1,
            3 => {
                assert_eq!(said.json()["error"]["kind"], "none_free", "{said}");
                return won;
            }
            _ => panic!("an error: {said}"),
        }
    }
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn f_s03_of_32_processes_one_wins_each_of_200_keys_through_a_pooler() {
    let (env, _bouncer, _server) = pooled();
    let crowd: Vec<Agent> = (0..CROWD).map(|_| env.agent("w")).collect();
    for one in &crowd {
        register(one, "w", "");
    }
    let number = |one: &Agent| {
        let place = crowd.iter().position(|other| other.pid() == one.pid());
        place.expect("it is one of them")
    };
    let won = at_once(&crowd, |one| takes_what_it_gets(one, number(one)));
    assert_eq!(won.iter().sum::<usize>(), KEYS, "{won:?}");
    assert!(
        won.iter().filter(|won| **won > 0).count() > 1,
        "no race: {won:?}"
    );
    let held = env
        .tenure(&["claims", "--json", "--limit", "1000"])
        .ok()
        .json();
    let held = held["claims"].as_array().cloned().unwrap_or_default();
    assert_eq!(held.len(), KEYS);
    assert!(held.iter().all(|claim| claim["epoch"] == 1), "{held:?}");
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn f_s04_a_waiter_behind_a_pooler_is_granted_at_its_next_look_and_nobody_listens() {
    let (env, _bouncer, server) = pooled();
    let (ann, bob) = (env.agent("ann"), env.agent("bob"));
    for (one, name) in [(&ann, "ann"), (&bob, "bob")] {
        register(one, name, "");
    }
    take(&ann, "wp:1");
    let granted = std::thread::scope(|scope| {
        let waits = scope.spawn(|| bob.tenure(&["claim", "wp:1", "--wait", "1m", "--json"]));
        let line = "why wp:1";
        tenure_testkit::poll(SOON, "bob waits", || {
            let why = run(&ann, 0, line);
            (why["why"]["waiters"].as_array().map(Vec::len) == Some(1)).then_some(())
        });
        let freed = Instant::now();
        run(&ann, 0, "release wp:1");
        let said = waits.join().expect("it ends").ok().json();
        println!("granted after {:.2?}", freed.elapsed());
        said
    });
    assert_eq!(granted["claim"]["epoch"], 2, "{granted}");
    let log = std::fs::read_to_string(server.dir().join("log")).expect("its log");
    assert!(log.contains("FOR NO KEY UPDATE"), "statements are logged");
    assert!(!log.to_uppercase().contains("LISTEN "), "somebody listens");
}
