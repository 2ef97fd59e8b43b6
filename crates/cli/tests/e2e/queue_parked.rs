//! Jobs that wait: what is shown of them, and what `queue retry` does.

use serde_json::{Value, json};
use tenure_testkit::{Env, Scripted, poll};

use crate::env;
use crate::support::line::{SOON, session, text};
use crate::support::webhook::{Dispatcher, comment, issue, set_up};

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

/// Opens issues in the repository that has this id.
fn opened(door: &Dispatcher, repository: u64, numbers: &[u64]) {
    for number in numbers {
        let mut payload = issue(*number, "opened");
        payload["repository"]["id"] = json!(repository);
        let (status, answer) = door.deliver("issues", &format!("d-{number}"), &payload);
        assert_eq!(status, 202, "{answer}");
    }
}

/// The jobs of these issues, when each of them is in this state.
#[track_caller]
fn in_state(env: &Env, numbers: &[u64], state: &str) -> Vec<String> {
    let find = |number: &u64| {
        let item = format!("issue:acme/web#{number}");
        let mut all = jobs(env).into_iter();
        let job = all.find(|job| job["item"] == json!(item))?;
        (job["state"] == state).then(|| text(&job["id"]))
    };
    poll(SOON, state, || numbers.iter().map(find).collect())
}

#[test]
fn another_repository_under_its_name_parks_its_jobs_until_a_person_retries_them() {
    let env = env();
    Scripted::new(&env, "mine", "init; done_");
    set_up(&env, "");
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    opened(&door, 17, &[6]);
    in_state(&env, &[6], "ended");
    opened(&door, 18, &[7]);
    let id = parked(&env, "repository");
    let shown = env.tenure(&["queue", "explain", &id]).ok().stdout;
    assert!(shown.contains("acme/web has the id 18 at its forge and had 17"));
    assert!(shown.contains("a person retries the job"), "{shown}");
    let mut closed = issue(7, "closed");
    closed["repository"]["id"] = json!(17);
    let (_, answer) = door.deliver("issues", "late", &closed);
    assert_eq!(answer["verdict"], "acted", "the old one's: {answer}");
    let mut closed = issue(6, "closed");
    closed["repository"]["id"] = json!(18);
    let (_, answer) = door.deliver("issues", "other", &closed);
    assert_eq!(answer["verdict"], "refused", "{answer}");
    opened(&door, 18, &[10]);
    let id = parked(&env, "repository");
    let agent = session(&env, "claude");
    let refused = agent.tenure(&["queue", "retry", &id, "--json"]).fails(1);
    assert_eq!(refused.json()["error"]["kind"], "not_yet");
    env.tenure(&["queue", "retry", &id]).ok();
    opened(&door, 18, &[8]);
    in_state(&env, &[10, 8], "ended");
    let gone = json!({
        "action": "deleted",
        "repository": issue(6, "opened")["repository"],
        "sender": issue(6, "opened")["sender"],
    });
    let mut gone = gone;
    gone["repository"]["id"] = json!(18);
    let (_, answer) = door.deliver("repository", "gone", &gone);
    assert!(text(&answer["why"]).contains("was deleted"), "{answer}");
    opened(&door, 18, &[9]);
    parked(&env, "repository");
}

#[test]
fn several_jobs_are_cancelled_and_retried_by_their_ids_their_item_or_as_parked() {
    let env = env();
    Scripted::new(&env, "mine", "init; done_");
    set_up(&env, "");
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    opened(&door, 17, &[1]);
    in_state(&env, &[1], "ended");
    opened(&door, 18, &[2, 3, 4, 5]);
    let ids = in_state(&env, &[2, 3, 4, 5], "parked");
    let count = |args: &[&str]| {
        let answer = env.tenure(args).ok().json();
        answer["jobs"].as_array().expect("a list").len()
    };
    assert_eq!(count(&["queue", "cancel", &ids[0], &ids[1], "--json"]), 2);
    let by_item = ["queue", "cancel", "--item", "issue:acme/web#4", "--json"];
    assert_eq!(count(&by_item), 1);
    in_state(&env, &[2, 3, 4], "cancelled");
    in_state(&env, &[5], "parked");
    env.tenure(&["queue", "retry"]).fails(2);
    assert_eq!(count(&["queue", "retry", "--all-parked", "--json"]), 1);
    in_state(&env, &[5], "ended");
    in_state(&env, &[2, 3, 4], "cancelled");

    opened(&door, 19, &[6, 7]);
    let ids = in_state(&env, &[6, 7], "parked");
    // One that is unknown: nothing is changed.
    let unknown = ["queue", "retry", &ids[0], "j-0000000000", "--json"];
    env.tenure(&unknown).fails(4);
    in_state(&env, &[6, 7], "parked");
    assert_eq!(count(&["queue", "retry", &ids[0], &ids[1], "--json"]), 2);
    in_state(&env, &[6, 7], "ended");
    opened(&door, 20, &[8]);
    in_state(&env, &[8], "parked");
    let by_item = ["queue", "retry", "--item", "issue:acme/web#8", "--json"];
    assert_eq!(count(&by_item), 1);
    in_state(&env, &[8], "ended");
}
