//! Jobs that wait: what is shown of them, and what `queue retry` does.

use serde_json::{Value, json};
use tenure_testkit::{Env, Scripted, poll};

use crate::env;
use crate::support::line::{SOON, session, text};
use crate::support::webhook::{Dispatcher, comment, set_up};

fn jobs(env: &Env) -> Vec<Value> {
    let answer = env.tenure(&["queue", "--all", "--json"]).ok().json();
    answer["jobs"].as_array().expect("a list").clone()
}

#[track_caller]
fn parked(env: &Env, reason: &str) -> String {
    let job = poll(SOON, "a job is parked", || {
        let mut all = jobs(env).into_iter();
        all.find(|job| job["state"] == "parked")
    });
    assert_eq!(job["parked"]["reason"], reason, "{job:#}");
    text(&job["id"])
}

/// One comment of a bot after the other.
fn said_by_bots(door: &Dispatcher, env: &Env, count: u64) {
    for number in 0..count {
        let mut pong = comment(6, 1_000 + number, "bob", "ping");
        pong["sender"]["type"] = json!("Bot");
        door.deliver("issue_comment", &format!("pong-{number}"), &pong);
        poll(SOON, "it ran, or is parked", || {
            let over = |job: &Value| job["state"] == "ended" || job["state"] == "parked";
            jobs(env).iter().all(over).then_some(())
        });
    }
}

#[test]
fn a_person_lifts_the_breaker_with_retry_and_an_agent_does_not() {
    let env = env();
    let mine = Scripted::new(&env, "mine", "echo ran >>$dir/calls; init; done_");
    set_up(&env, "");
    let file = env.home().join(".config/tenure/dispatch.toml");
    let rules = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("breaker = 1\n{rules}")).unwrap();
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    said_by_bots(&door, &env, 2);
    let id = parked(&env, "breaker");
    let agent = session(&env, "claude");
    let refused = agent.tenure(&["queue", "retry", &id, "--json"]).fails(1);
    assert_eq!(refused.json()["error"]["kind"], "not_yet");
    // A replay is nothing that a person says now.
    env.tenure(&["dispatch", "replay", "2"]).ok();
    assert_eq!(parked(&env, "breaker"), id, "it joined");
    let waits = ["runs", "--queued", "--item", "issue:acme/web#6", "--json"];
    let waits = env.tenure(&waits).ok().json();
    assert_eq!(waits["jobs"][0]["id"], json!(id));
    env.tenure(&["queue", "retry", &id]).ok();
    poll(SOON, "it ran", || {
        jobs(&env)
            .iter()
            .all(|job| job["state"] == "ended")
            .then_some(())
    });
    assert_eq!(mine.wrote("calls").unwrap(), "ran\nran\n");
}

#[test]
fn a_job_over_its_cap_stays_parked_and_says_until_when() {
    let env = env();
    Scripted::new(&env, "mine", "init; done_");
    set_up(&env, "caps = { runs_per_hour = 1 }");
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    said_by_bots(&door, &env, 2);
    let id = parked(&env, "cap");
    let refused = env.tenure(&["queue", "retry", &id, "--json"]).fails(1);
    let error = refused.json()["error"].clone();
    assert_eq!(error["kind"], "not_yet", "{error:#}");
    assert!(error["until"].is_string(), "{error:#}");
    assert_eq!(parked(&env, "cap"), id, "nothing changed");
    env.tenure(&["queue", "cancel", &id]).ok();
    assert_eq!(jobs(&env)[0]["state"], "cancelled");
}
