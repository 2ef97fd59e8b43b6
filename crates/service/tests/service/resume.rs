//! What died and can be resumed.

use crate::words::line::{register, run, text};
use crate::words::{House, Worker, house};

/// A worker in a conversation, and its session's handle.
fn talking(env: &House, name: &str, conversation: &str) -> (Worker, String) {
    let worker = env.agent(name);
    let born = register(&worker, name, &format!("--native-id {conversation}"));
    (worker, text(&born["session"]["handle"]))
}

/// The sessions that can be resumed, with their conversations.
#[track_caller]
fn all(env: &House) -> Vec<(String, String)> {
    let answer = env.tenure(&["resume", "--all"]).ok().json();
    let found = answer["resume"].as_array().expect("a list").iter();
    found
        .map(|one| (text(&one["session"]["handle"]), text(&one["native_id"])))
        .collect()
}

#[test]
fn all_are_exactly_those_that_died() {
    let env = house();
    let (died, dead) = talking(&env, "claude", "c-died");
    let (other, also_dead) = talking(&env, "codex", "c-died");
    talking(&env, "claude", "c-lives");
    let (ended, _) = talking(&env, "claude", "c-ended");
    run(&ended, 0, "end");
    ended.kill9();
    // Its conversation continued: a second process is in it and alive.
    let (owner, _) = talking(&env, "claude", "c-twice");
    let (visitor, _) = talking(&env, "claude", "c-twice");
    let seen = run(&visitor, 0, "whoami");
    assert!(seen["session"]["twin_of"].is_string(), "{seen}");
    for killed in [&owner, &died, &other] {
        killed.kill9();
    }
    let one = |handle: String| (handle, "c-died".to_owned());
    assert_eq!(all(&env), [one(also_dead), one(dead)]);
    // Once no session is in it any more it is listed, and only once: two would mix their messages.
    visitor.kill9();
    let named = all(&env);
    let twice = named.iter().filter(|(_, id)| id == "c-twice").count();
    assert_eq!(twice, 1, "{named:?}");
}

#[test]
fn what_went_on_in_another_process_is_no_longer_named() {
    let env = house();
    let (first, handle) = talking(&env, "claude", "c-1");
    first.kill9();
    assert_eq!(all(&env), [(handle.clone(), "c-1".to_owned())]);
    let (second, same) = talking(&env, "claude", "c-1");
    assert_eq!(same, handle);
    assert_eq!(all(&env), []);
    run(&second, 0, "end");
    assert_eq!(all(&env), []);
    // By name it can be resumed although it ended itself.
    second.kill9();
    let one = env.tenure(&["resume", &handle]).ok().json();
    assert_eq!(one["resume"]["native_id"], "c-1");
}
