//! A job that cannot be read: it is named, and all others go on.

use serde_json::Value;
use tenure_testkit::{Cmd, Env, Scripted, poll};

use crate::env;
use crate::support::forge::forge;
use crate::support::line::{SOON, text};
use crate::support::run::enqueue;

fn jobs(env: &Env) -> Vec<Value> {
    let answer = env.tenure(&["queue", "--all", "--json"]).json();
    answer["jobs"].as_array().expect("a list").clone()
}

#[test]
fn a_job_that_cannot_be_read_is_named_and_the_others_run() {
    let env = env();
    Scripted::new(&env, "mine", "cat >/dev/null; init; done_");
    let ann = env.agent("ann");
    for item in ["wp:1", "wp:2", "wp:3"] {
        enqueue(&ann, item, "do it");
    }
    let all = jobs(&env);
    let of = |item: &str| all.iter().find(|job| job["item"] == item).expect("a job");
    let id = text(&of("wp:1")["id"]);
    // As a later version may write it.
    forge(
        &env,
        &format!("UPDATE jobs SET spec = '{{\"by\":\"later\"}}' WHERE id = '{id}'"),
    );
    let dispatcher = ann.start(Cmd::new("tenure").args(["dispatch", "--json"]));
    poll(SOON, "the others are done", || {
        let done = jobs(&env);
        let done = done.iter().filter(|job| job["outcome"] == "done").count();
        (done == 2).then_some(())
    });
    assert!(dispatcher.is_alive(), "{}", dispatcher.stderr());
    let printed = dispatcher.stdout();
    let lines = printed
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let named: Vec<Value> = lines
        .filter(|line| line["event"] == "store.damaged")
        .collect();
    assert_eq!(named.len(), 1, "it is reported once: {printed}");
    assert_eq!(named[0]["kind"], "store_damaged");
    let message = text(&named[0]["message"]);
    assert!(message.contains(&id), "{message}");
    let shown = env.tenure(&["queue", "--all"]);
    let shown = format!("{}{}", shown.stdout, shown.stderr);
    assert!(
        shown.contains(&id) && shown.contains("column spec"),
        "{shown}"
    );
}

#[test]
fn a_short_list_goes_on_behind_a_job_whose_events_cannot_be_read() {
    let env = env();
    Scripted::new(&env, "mine", "cat >/dev/null; init; done_");
    let ann = env.agent("ann");
    for item in ["wp:1", "wp:2"] {
        enqueue(&ann, item, "do it");
    }
    let all = jobs(&env);
    let newest = text(&all[0]["id"]);
    // Not UTF-8.
    forge(
        &env,
        &format!("UPDATE job_events SET summary = CAST(x'ff' AS TEXT) WHERE job = '{newest}'"),
    );
    let words = ["queue", "--all", "--limit", "1", "--json"];
    let listed = env.tenure(&words).json();
    let found: Vec<&Value> = listed["jobs"].as_array().expect("a list").iter().collect();
    assert_eq!(found.len(), 1, "{listed}");
    assert_eq!(found[0]["id"], all[1]["id"], "{listed}");
}
