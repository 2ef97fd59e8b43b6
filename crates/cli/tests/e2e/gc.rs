//! `tenure gc`: what ended long ago goes, what lives or is needed stays, and epochs stay for ever.

use rusqlite::Connection;
use serde_json::{Value, json};
use tenure_testkit::Env;

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
