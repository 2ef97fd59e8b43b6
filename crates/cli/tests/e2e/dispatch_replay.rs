//! Deliveries that a person looks at again, or has done again: `dispatch explain` and `dispatch replay`.

use serde_json::{Value, json};
use tenure_testkit::{Env, Scripted, poll};

use crate::env;
use crate::support::line::{SOON, text};
use crate::support::run::all;
use crate::support::webhook::{Dispatcher, comment, issue, set_up};

fn jobs(env: &Env) -> Vec<Value> {
    let answer = env.tenure(&["queue", "--all", "--json"]).ok().json();
    answer["jobs"].as_array().expect("a list").clone()
}

#[track_caller]
fn all_end(env: &Env, count: usize) {
    poll(SOON, "all jobs end", || {
        let jobs = jobs(env);
        let over = |job: &Value| job["state"] == "ended";
        (jobs.len() == count && jobs.iter().all(over)).then_some(())
    });
}

#[track_caller]
fn again(env: &Env, verb: &str, args: &[&str]) -> (i32, Value) {
    let words = [&["dispatch", verb, "--json"], args].concat();
    let output = env.tenure(&words);
    (output.code, output.json())
}

/// A file with a delivery, as a person saves it.
fn captured(env: &Env, payload: &Value) -> String {
    let file = env.dir().join("delivery.json");
    std::fs::write(&file, payload.to_string()).expect("the environment is ours");
    file.display().to_string()
}

#[test]
fn a_delivery_that_was_done_is_done_again_and_the_first_run_is_named() {
    let env = env();
    let mine = Scripted::new(&env, "mine", "echo $mode >>$dir/calls; init; done_");
    set_up(&env, "");
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    door.deliver("issues", "d-1", &issue(6, "opened"));
    all_end(&env, 1);
    let first = text(&all(&env)[0]["id"]);
    let (code, said) = again(&env, "replay", &["1"]);
    let replayed = &said["replayed"];
    assert_eq!(code, 0, "{said:#}");
    assert_eq!(replayed["delivery"]["id"], 2);
    assert_eq!(replayed["delivery"]["verdict"], "queued");
    assert_eq!(replayed["delivery"]["why"], "rule fix matches (replayed)");
    assert_eq!(replayed["before"]["delivery"]["id"], 1);
    assert_eq!(replayed["before"]["run"], json!(first));
    assert_eq!(replayed["worked"], true, "the dispatcher takes it");
    all_end(&env, 2);
    assert_eq!(mine.wrote("calls").unwrap(), "fresh\nresume\n");
    // A file is the same delivery, and a replay is never the duplicate of another.
    let file = captured(&env, &issue(6, "opened"));
    let (code, said) = again(&env, "replay", &[&file, "--event", "issues"]);
    assert_eq!((code, &said["replayed"]["delivery"]["id"]), (0, &json!(3)));
    assert_eq!(said["replayed"]["before"]["run"], json!(first));
    all_end(&env, 3);
    // What a forge sends again is still a duplicate.
    let (status, answer) = door.deliver("issues", "d-1", &issue(6, "opened"));
    assert_eq!((status, &answer["duplicate"]), (200, &json!(true)));
    assert_eq!(jobs(&env).len(), 3);
}

#[test]
fn a_replay_needs_no_listener_and_its_job_waits_for_a_dispatcher() {
    let env = env();
    let mine = Scripted::new(&env, "mine", "cat >$dir/prompt; init; done_");
    set_up(&env, "");
    let ann = env.agent("ann");
    let file = captured(&env, &comment(6, 1, "bob", "and the docs"));
    let words = ["dispatch", "replay", &file, "--event", "issue_comment"];
    let said = env.tenure(&words).ok();
    assert!(said.stdout.contains("no dispatcher is running"), "{said}");
    assert!(!said.stdout.contains("did this before"), "{said}");
    let (_, json) = again(&env, "replay", &words[2..]);
    assert_eq!(json["replayed"]["worked"], false);
    assert_eq!(json["replayed"]["delivery"]["verdict"], "joined");
    assert_eq!(
        json["replayed"]["before"],
        Value::Null,
        "a replay is no delivery of a forge"
    );
    let _door = Dispatcher::start(&ann);
    all_end(&env, 1);
    let prompt = mine.wrote("prompt").unwrap();
    assert_eq!(prompt.matches("and the docs").count(), 2, "{prompt}");
}

#[test]
fn rules_that_changed_decide_about_a_replay() {
    let env = env();
    Scripted::new(&env, "mine", "init; done_");
    set_up(&env, "");
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    door.deliver("issue_comment", "d-1", &comment(6, 1, "carol", "do it"));
    door.process.kill9();
    let (code, said) = again(&env, "explain", &["1"]);
    assert_eq!(code, 1);
    assert_eq!(said["explained"]["delivery"]["verdict"], "refused");
    assert_eq!(said["explained"]["rules"][0]["kind"], "not_an_author");
    let (code, said) = again(&env, "replay", &["1"]);
    assert_eq!(
        (code, &said["replayed"]["jobs"]),
        (1, &json!([])),
        "{said:#}"
    );
    let file = env.home().join(".config/tenure/dispatch.toml");
    let rules = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, rules.replace("\"bob\"", "\"carol\"")).unwrap();
    let (code, said) = again(&env, "explain", &["1"]);
    assert_eq!(
        (code, &said["explained"]["runs"][0]["rule"]),
        (0, &json!("fix"))
    );
    let (code, said) = again(&env, "replay", &["1"]);
    assert_eq!(code, 0, "{said:#}");
    assert_eq!(said["replayed"]["jobs"][0]["item"], "issue:acme/web#6");
}

/// What a text started is started again by its replay alone, never by an edit.
#[test]
fn an_edit_that_started_a_run_is_replayed_and_one_that_could_not_is_not() {
    let env = env();
    Scripted::new(&env, "mine", "init; done_");
    set_up(&env, "");
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    let mut first = comment(6, 1, "bob", "do it");
    let mut edited = first.clone();
    edited["action"] = json!("edited");
    edited["comment"]["updated_at"] = json!("2026-11-16T06:09:00Z");
    let (status, answer) = door.deliver("issue_comment", "d-1", &edited);
    assert_eq!(
        (status, &answer["verdict"]),
        (202, &json!("queued")),
        "{answer}"
    );
    all_end(&env, 1);
    assert_eq!(again(&env, "replay", &["1"]).0, 0);
    all_end(&env, 2);
    first["comment"]["id"] = json!(2);
    door.deliver("issue_comment", "d-2", &first);
    all_end(&env, 3);
    edited["comment"]["id"] = json!(2);
    let (_, answer) = door.deliver("issue_comment", "d-3", &edited);
    assert_eq!(answer["verdict"], "refused", "{answer}");
    let id = answer["delivery"].to_string();
    assert_eq!(again(&env, "replay", &[&id]).0, 1);
    assert_eq!(jobs(&env).len(), 3);
}

#[test]
fn a_delivery_that_is_not_there_or_not_whole_is_named() {
    let env = env();
    Scripted::new(&env, "mine", "init; done_");
    set_up(&env, "");
    for verb in ["explain", "replay"] {
        let (code, said) = again(&env, verb, &["7"]);
        assert_eq!(
            (code, &said["error"]["kind"]),
            (4, &json!("no_such_delivery"))
        );
        let (code, said) = again(&env, verb, &["7", "--forge", "home"]);
        assert_eq!((code, &said["error"]["kind"]), (2, &json!("usage")));
        let (code, _) = again(&env, verb, &["absent.json"]);
        assert_eq!(code, 4);
        // Digits are a delivery; a file of that name has a path.
        std::fs::write(env.work().join("7"), "{}").unwrap();
        let (code, said) = again(&env, verb, &["./7"]);
        assert_eq!(
            (code, &said["error"]["kind"]),
            (6, &json!("unreadable_delivery"))
        );
    }
    let file = captured(&env, &issue(6, "opened"));
    let (code, said) = again(&env, "replay", &[&file, "--event", "fork"]);
    assert_eq!((code, &said["error"]["kind"]), (1, &json!("no_event")));
    assert!(jobs(&env).is_empty());
}

#[test]
fn a_delivery_whose_body_is_not_kept_any_more_is_named() {
    let env = env();
    Scripted::new(&env, "mine", "init; done_");
    set_up(&env, "");
    let file = captured(&env, &issue(6, "opened"));
    assert_eq!(again(&env, "replay", &[&file, "--event", "issues"]).0, 0);
    let store = rusqlite::Connection::open(env.state().join("tenure.db")).unwrap();
    store
        .execute("UPDATE deliveries SET size = NULL, body = NULL", [])
        .unwrap();
    for verb in ["explain", "replay"] {
        let (code, said) = again(&env, verb, &["1"]);
        assert_eq!(
            (code, &said["error"]["kind"]),
            (1, &json!("body_forgotten"))
        );
    }
}
