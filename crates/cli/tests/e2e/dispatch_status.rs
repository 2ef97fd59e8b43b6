//! What a dispatcher tells: its log, `dispatch status`, `status` and `/healthz`; and reloading its file.

use serde_json::Value;
use tenure_testkit::{Background, Scripted, poll};

use crate::env;
use crate::support::dispatch::fill_in;
use crate::support::forge_api::jobs;
use crate::support::line::{SOON, text};
use crate::support::webhook::{Dispatcher, comment, issue, set_up};

/// The lines that a dispatcher printed about one thing.
fn said(process: &Background, event: &str) -> Vec<Value> {
    let lines = process.stdout();
    let lines = lines
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    lines
        .filter(|line: &Value| line["event"] == event)
        .collect()
}

#[test]
fn ten_refused_deliveries_in_a_row_are_named_and_one_that_is_accepted_ends_it() {
    let env = env();
    Scripted::new(&env, "mine", "init; done_");
    set_up(&env, "");
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    let healthy = || door.send("GET", "/healthz", &[], b"").0;
    let headers = [
        ("X-Forgejo-Event", "issues"),
        ("X-Forgejo-Signature", "00"),
        ("Content-Type", "application/json"),
    ];
    for count in 0..10 {
        assert_eq!(healthy(), 200, "after {count}");
        let (status, _) = door.send("POST", "/hooks/home", &headers, b"{}");
        assert_eq!(status, 401);
    }
    assert_eq!(healthy(), 503);
    poll(SOON, "the log names it", || {
        let mut told = said(&door.process, "endpoint.refuses");
        told.pop().filter(|line| line["endpoint"] == "home")
    });
    let endpoint = || {
        let shown = env.tenure(&["dispatch", "status", "--json"]).ok().json();
        shown["dispatch_status"]["dispatchers"][0]["endpoints"][0].clone()
    };
    let told = poll(SOON, "the status names it", || {
        Some(endpoint()).filter(|one| one["refusing"].is_string())
    });
    assert_eq!(told["refused"]["signature"], 10, "{told}");
    let why = text(&told["refusing"]);
    assert!(why.contains("signature does not match"), "{why}");
    let status = env.tenure(&["status"]).ok();
    let all = format!("{}{}", status.stdout, status.stderr);
    assert!(all.contains("webhooks of forge home: the last 10"), "{all}");
    door.deliver("issues", "d-1", &issue(6, "opened"));
    assert_eq!(healthy(), 200);
    poll(SOON, "it is over", || {
        Some(endpoint()).filter(|one| one["refusing"].is_null() && one["accepted"] == 1)
    });
    assert_eq!(said(&door.process, "endpoint.refuses").len(), 1);
}

#[test]
fn the_log_tells_how_runs_begin_and_end() {
    let env = env();
    let mine = Scripted::new(&env, "mine", "init; done_");
    set_up(&env, "");
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    let ended = |count: usize| {
        poll(SOON, "the end is told", || {
            let told = said(&door.process, "job.ended");
            (told.len() == count).then(|| told[count - 1]["run"].clone())
        })
    };
    door.deliver("issues", "d-1", &issue(6, "opened"));
    assert_eq!(ended(1)["outcome"], "done");
    mine.does("init; exit 3");
    door.deliver("issue_comment", "d-2", &comment(6, 41, "alice", "more"));
    let failed = ended(2);
    assert_eq!(failed["outcome"], "failed", "{failed:#}");
    let started = said(&door.process, "job.started");
    let resumed: Vec<bool> = started
        .iter()
        .map(|line| line["run"]["before"].is_string())
        .collect();
    assert_eq!(resumed, [false, true]);
    assert_eq!(started[0]["run"]["skill"], "fix");
}

#[test]
fn a_faulty_file_is_not_reloaded_and_a_good_one_is() {
    let env = env();
    Scripted::new(&env, "mine", "init; done_");
    set_up(&env, "");
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    let reload = |count: usize| {
        door.process.signal(rustix::process::Signal::HUP);
        poll(SOON, "it read the file", || {
            let told = said(&door.process, "reloaded");
            (told.len() == count).then(|| told[count - 1]["fault"].clone())
        })
    };
    let rule_of = |number: usize| {
        poll(SOON, "it ran", || {
            let jobs = jobs(&env);
            let is_over = jobs.len() == number && jobs.iter().all(|job| job["state"] == "ended");
            is_over.then(|| text(&jobs[0]["rule"]))
        })
    };
    // It has only just said where it listens.
    assert_eq!(reload(1), Value::Null);
    door.deliver("issues", "d-1", &issue(6, "opened"));
    assert_eq!(rule_of(1), "fix", "it works");
    fill_in(&env, "skill = \"fix\"", "skill = \"missing\"");
    let fault = reload(2);
    assert!(fault.is_string(), "{fault}");
    door.deliver("issues", "d-2", &issue(7, "opened"));
    assert_eq!(rule_of(2), "fix", "the old rules stay");
    fill_in(&env, "skill = \"missing\"", "skill = \"fix\"");
    fill_in(&env, "name = \"fix\"", "name = \"other\"");
    assert_eq!(reload(3), Value::Null);
    door.deliver("issue_comment", "d-3", &comment(6, 41, "alice", "more"));
    assert_eq!(rule_of(3), "other");
    assert!(door.process.is_alive());
}
