//! A session is ended together with its process: by a person, with a reason, and no other process is ever hit.

use serde_json::Value;
use tenure_testkit::pinned::Stat;
use tenure_testkit::{Agent, Env};

use crate::env;
use crate::support::answer::{ask, events};
use crate::support::forge::forge_process;
use crate::support::line::{refused, register, run, session, take, text};

/// An agent in a conversation, and its session's handle.
fn talking(env: &Env, name: &str, conversation: &str) -> (Agent, String) {
    let agent = env.agent(name);
    let born = register(&agent, name, &format!("--native-id {conversation}"));
    (agent, text(&born["session"]["handle"]))
}

#[track_caller]
fn end(env: &Env, code: i32, words: &[&str]) -> Value {
    let output = env.tenure(&[&["end", "--json"], words].concat());
    assert_eq!(output.code, code, "{output}");
    output.json()
}

fn state(env: &Env, handle: &str) -> Value {
    env.tenure(&["show", handle, "--json"]).ok().json()["session"].clone()
}

#[test]
fn the_session_is_ended_and_its_process_too() {
    let env = env();
    let (gemini, handle) = talking(&env, "gemini", "g-1");
    take(&gemini, "wp:1");
    let why = "its window was closed";
    let ended = end(&env, 0, &[&handle, "--kill", "--reason", why]);
    assert_eq!(ended["killed"]["pid"], gemini.pid());
    assert_eq!(ended["killed"]["signal"], "TERM");
    assert!(!gemini.is_alive());
    let session = &ended["session"];
    assert_eq!(
        (&session["state"], &session["end_kind"]),
        (&"ended".into(), &"left".into())
    );
    let reason = text(&session["end_reason"]);
    assert!(
        reason.contains(why) && reason.contains("SIGTERM"),
        "{reason}"
    );
    let log = events(&env, "session.ended");
    assert_eq!(log.last().unwrap()["reason"], why, "{log:#?}");
    // What it held is free, and its conversation can be resumed by name.
    let other = session_of_another(&env);
    take(&other, "wp:1");
    let resume = env
        .tenure(&["resume", &handle, "--print", "--json"])
        .ok()
        .json();
    assert_eq!(resume["resume"][0]["problem"], Value::Null, "{resume}");
    // A person ended it: after a crash it is not brought back with the others.
    let all = env
        .tenure(&["resume", "--all", "--print", "--json"])
        .ok()
        .json();
    assert_eq!(all["resume"], Value::Array(Vec::new()));
}

fn session_of_another(env: &Env) -> Agent {
    session(env, "claude")
}

/// A process that does not end when it is asked to: here it is stopped.
#[test]
fn what_does_not_end_in_time_is_killed() {
    let env = env();
    let (gemini, handle) = talking(&env, "gemini", "g-1");
    gemini.stop();
    let words = [
        handle.as_str(),
        "--kill",
        "--reason",
        "it hangs",
        "--grace",
        "1s",
    ];
    let ended = end(&env, 0, &words);
    assert_eq!(ended["killed"]["signal"], "KILL");
    assert!(!gemini.is_alive());
    assert_eq!(state(&env, &handle)["state"], "ended");
}

#[test]
fn it_takes_a_reason_and_a_person() {
    let env = env();
    let (gemini, handle) = talking(&env, "gemini", "g-1");
    let unsaid = env.tenure(&["end", &handle, "--kill"]);
    assert_eq!(unsaid.code, 2, "{unsaid}");
    // An agent may not, its own parent's or anybody's, with a session or without.
    let claude = session(&env, "claude");
    let stranger = env.agent("codex");
    for agent in [&claude, &stranger, &gemini] {
        let line = format!("end {handle} --kill --reason because");
        refused(agent, 1, "person_only", &line);
    }
    assert!(gemini.is_alive());
    assert_eq!(state(&env, &handle)["state"], "live");
    // A person in a shell may.
    let person = env.agent("bash");
    register(&person, "human", "");
    let ended = run(&person, 0, &format!("end {handle} --kill --reason because"));
    assert_eq!(ended["session"]["state"], "ended");
    assert!(!gemini.is_alive());
    // Not the session that the command itself runs in.
    let own = text(&ask(&person, &["whoami"])["session"]["handle"]);
    refused(
        &person,
        2,
        "usage",
        &format!("end {own} --kill --reason because"),
    );
    assert!(person.is_alive());
}

/// The pid is another process's by now: nothing is sent to it.
#[test]
fn a_process_that_took_over_the_pid_is_never_hit() {
    let env = env();
    let (gemini, handle) = talking(&env, "gemini", "g-1");
    let id = text(&state(&env, &handle)["id"]);
    let start = Stat::read(gemini.pid()).unwrap().start;
    forge_process(&env, &id, &format!("start_ticks = {}", start - 1));
    let error = end(&env, 1, &[&handle, "--kill", "--reason", "because"]);
    assert_eq!(error["error"]["kind"], "not_live", "{error}");
    assert!(gemini.is_alive());
}

/// If it is unknown whether the process is alive, nothing is killed.
#[test]
fn a_process_that_cannot_be_seen_is_not_killed() {
    let env = env();
    let (gemini, handle) = talking(&env, "gemini", "g-1");
    let id = text(&state(&env, &handle)["id"]);
    forge_process(&env, &id, "pid_ns = 1");
    let error = end(&env, 9, &[&handle, "--kill", "--reason", "because"]);
    assert_eq!(error["error"]["kind"], "cannot_tell", "{error}");
    assert!(gemini.is_alive());
}

#[test]
fn without_kill_the_process_goes_on() {
    let env = env();
    let (gemini, handle) = talking(&env, "gemini", "g-1");
    let ended = end(&env, 0, &[&handle, "--reason", "over"]);
    assert_eq!(ended["session"]["state"], "ended");
    assert!(gemini.is_alive());
}
