//! `tenure gc`: what ended long ago goes, what lives or is needed stays, and epochs stay for ever.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::Connection;
use serde_json::{Value, json};
use tenure_testkit::{Agent, Env};

use crate::support::line::{crew, handle, run, session, take};

fn database(env: &Env) -> Connection {
    Connection::open(env.state().join("tenure.db")).expect("the environment is ours")
}

/// Everything so far happened forty days ago.
fn long_ago(env: &Env) {
    let plain = database(env);
    plain
        .execute_batch(
            "UPDATE sessions SET closed_at = closed_at - 3456000000, started_at = started_at - 3456000000; \
             UPDATE events SET at = at - 3456000000",
        )
        .expect("sql");
}

fn count(env: &Env, table: &str) -> i64 {
    let sql = format!("SELECT count(*) FROM {table}");
    database(env)
        .query_row(&sql, [], |row| row.get(0))
        .expect("a number")
}

fn gc(env: &Env, more: &[&str]) -> Value {
    let words = [&["gc", "--json"], more].concat();
    env.tenure(&words).ok().json()["gc"].clone()
}

#[test]
fn what_ended_long_ago_and_nothing_needs_is_forgotten() {
    let (env, [ann, bob, eve, dan, fay]) = crew(["ann", "bob", "eve", "dan", "fay"]);
    take(&ann, "wp:1");
    take(&bob, "wp:2");
    run(&bob, 0, "release wp:2");
    take(&bob, "wp:2");
    take(&eve, "wp:3");
    run(&eve, 0, "release wp:3 --done");
    run(&dan, 0, "mission join m --role developer");
    run(&fay, 0, "conversation set fay wp:4 ses_1");
    let gone = handle(&bob);
    for agent in [&bob, &eve, &dan, &fay] {
        run(agent, 0, "end");
    }
    long_ago(&env);
    let (sessions, events) = (count(&env, "sessions"), count(&env, "events"));
    let dry = gc(&env, &[]);
    assert_eq!(dry["sessions"], 1, "{dry}");
    assert_eq!(
        dry["kept"],
        json!({"conversation": 1, "done": 1, "mission": 1})
    );
    assert_eq!(
        (sessions, events),
        (count(&env, "sessions"), count(&env, "events"))
    );
    let none = gc(&env, &["--older-than", "60d", "--apply"]);
    assert_eq!((&none["sessions"], &none["events"]), (&json!(0), &json!(0)));
    let done = gc(&env, &["--apply"]);
    assert_eq!(done["sessions"], 1, "{done}");
    assert_eq!(count(&env, "sessions"), sessions - 1);
    env.tenure(&["show", &gone]).fails(4);
    // The living and the needed are as they were, and nothing is damaged.
    run(&ann, 0, "guard wp:1");
    run(&ann, 1, "claim wp:3");
    env.tenure(&["doctor"]).ok();
    let log = env.tenure(&["log", "--limit", "0", "--json"]).ok();
    assert!(!log.stdout.contains("damaged"), "{log}");
    // Epochs go on.
    assert_eq!(take(&ann, "wp:2"), 3);
    assert_eq!(gc(&env, &["--apply"])["sessions"], 0, "twice is once");
}

#[test]
fn a_damaged_store_is_left_as_it_is() {
    let (env, [_ann, bob]) = crew(["ann", "bob"]);
    run(&bob, 0, "end");
    long_ago(&env);
    let plain = database(&env);
    plain
        .execute_batch(
            "PRAGMA foreign_keys = OFF; INSERT INTO metadata VALUES ('nobody', 'team', 'blue')",
        )
        .expect("sql");
    let refused = env.tenure(&["gc", "--apply", "--json"]).fails(8).json();
    assert_eq!(refused["error"]["kind"], "store_damaged", "{refused}");
    assert_eq!(count(&env, "sessions"), 2);
}

/// A parent goes after its children, and a live child keeps it.
#[test]
fn kin_of_the_living_stay() {
    let (env, [ann]) = crew(["ann"]);
    let kid = session(&env, "kid");
    run(&ann, 0, "end");
    let sql = "UPDATE sessions SET parent_life = 1, parent_id = (SELECT id FROM sessions WHERE agent = 'ann') WHERE agent = 'kid'";
    database(&env).execute_batch(sql).expect("sql");
    long_ago(&env);
    take(&kid, "wp:1");
    assert_eq!(gc(&env, &["--apply"])["kept"], json!({"kin": 1}));
    run(&kid, 0, "end");
    long_ago(&env);
    let other = session(&env, "other");
    take(&other, "wp:2");
    assert_eq!(gc(&env, &["--apply"])["sessions"], 1);
    assert_eq!(gc(&env, &["--apply"])["sessions"], 1, "in small steps");
    assert_eq!(count(&env, "sessions"), 1);
}

#[test]
fn with_the_setting_commands_forget_by_themselves() {
    let (mut env, [ann, bob]) = crew(["ann", "bob"]);
    run(&bob, 0, "end");
    for _ in 0..3 {
        long_ago(&env);
    }
    take(&ann, "wp:1");
    let events = count(&env, "events");
    env.tenure(&["ps"]).ok();
    assert_eq!(count(&env, "sessions"), 2, "it is off");
    assert_eq!(count(&env, "events"), events, "it is off, for events too");
    env.set("TENURE_RETENTION", "30d");
    env.tenure(&["ps"]).ok();
    assert_eq!(count(&env, "sessions"), 1);
    assert_eq!(count(&env, "events"), 1, "the newest");
}

/// How many work while it forgets, and how many sessions ended long ago.
const WRITERS: usize = 8;
const OLD: usize = 12;

/// How many items each claims at least.
const ROUNDS: usize = 6;

/// Claims items until it is told to stop, and gives every third one back. Returns those it still holds, with their epochs.
fn work(writer: &Agent, at: usize, stop: &AtomicBool) -> BTreeMap<String, u64> {
    let mut held = BTreeMap::new();
    for number in 0.. {
        if number >= ROUNDS && stop.load(Ordering::SeqCst) {
            break;
        }
        let key = format!("wp:{at}x{number}");
        let epoch = take(writer, &key);
        if number % 3 == 0 {
            run(writer, 0, &format!("release {key}"));
        } else {
            held.insert(key, epoch);
        }
    }
    held
}

#[test]
fn beside_writers_only_what_ended_long_ago_is_forgotten() {
    let env = crate::env();
    for number in 0..OLD {
        let agent = session(&env, "old");
        take(&agent, &format!("wp:old{number}"));
        run(&agent, 0, "end");
    }
    long_ago(&env);
    let writers: Vec<Agent> = (0..WRITERS).map(|_| session(&env, "writer")).collect();
    let stop = AtomicBool::new(false);
    let held: Vec<BTreeMap<String, u64>> = std::thread::scope(|scope| {
        let working = writers.iter().enumerate().map(|(at, writer)| {
            let stop = &stop;
            scope.spawn(move || work(writer, at, stop))
        });
        let working: Vec<_> = working.collect();
        let mut gone = 0;
        for _ in 0..6 {
            let done = gc(&env, &["--apply"]);
            gone += done["sessions"].as_u64().expect("a number");
        }
        stop.store(true, Ordering::SeqCst);
        assert_eq!(gone, u64::try_from(OLD).expect("it fits"), "each once");
        let ended = working.into_iter().map(|one| one.join());
        ended
            .map(|held| held.expect("no writer was refused"))
            .collect()
    });

    assert_eq!(
        count(&env, "sessions"),
        i64::try_from(WRITERS).expect("it fits")
    );
    let log = env.tenure(&["log", "--limit", "0", "--json"]).ok().json();
    let log = log["events"].as_array().expect("a list");
    for (writer, held) in writers.iter().zip(&held) {
        assert!(held.len() > 2, "it worked meanwhile: {held:?}");
        for (key, epoch) in held {
            let guard = run(writer, 0, &format!("guard {key}"));
            assert_eq!(guard["claim"]["epoch"], *epoch, "{guard}");
            let is_its_grant = |one: &&Value| one["key"] == **key && one["kind"] == "claim.granted";
            assert_eq!(log.iter().filter(is_its_grant).count(), 1, "{key}");
        }
    }
    // Epochs of forgotten sessions' items go on.
    assert_eq!(take(&writers[0], "wp:old0"), 2);
    env.tenure(&["doctor"]).ok();
}
