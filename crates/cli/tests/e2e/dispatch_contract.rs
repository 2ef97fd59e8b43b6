//! What a dispatcher promises, one sentence each, where no other file has it.

use serde_json::{Value, json};
use tenure_testkit::{Env, Scripted, poll};

use crate::env;
use crate::support::cloned::private;
use crate::support::dispatch::fill_in;
use crate::support::line::{SOON, text};
use crate::support::run::all;
use crate::support::small_disk::SmallDisk;
use crate::support::webhook::{Dispatcher, SECRET, comment, issue, set_up, sign_with};

fn jobs(env: &Env) -> Vec<Value> {
    let answer = env.tenure(&["queue", "--all", "--json"]).ok().json();
    answer["jobs"].as_array().expect("a list").clone()
}

/// Waits until so many jobs are over; the newest first.
#[track_caller]
fn over(env: &Env, count: usize) -> Vec<Value> {
    poll(SOON, "the jobs are over", || {
        let jobs = jobs(env);
        let over = jobs.iter().filter(|job| job["state"] == "ended").count();
        (over == count).then_some(jobs)
    })
}

/// While a secret is replaced, the old one and the new one are valid.
#[test]
fn two_secrets_are_valid_at_once_and_a_third_is_not() {
    let env = env();
    Scripted::new(&env, "mine", "init; done_");
    set_up(&env, "");
    let next = env.home().join(".config/tenure/next.secret");
    private(&next, "the next secret");
    fill_in(
        &env,
        "secret_files = [\"home.secret\"]",
        "secret_files = [\"next.secret\", \"home.secret\"]",
    );
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    for (secret, number, status) in [
        (SECRET, 1, 202),
        ("the next secret", 2, 202),
        ("another secret", 3, 401),
    ] {
        let body = issue(number, "opened").to_string();
        let id = format!("d-{number}");
        let signature = sign_with(secret, body.as_bytes());
        let headers = [
            ("X-Forgejo-Event", "issues"),
            ("X-Forgejo-Delivery", id.as_str()),
            ("X-Forgejo-Signature", &signature),
            ("Content-Type", "application/json"),
        ];
        let (answered, told) = door.send("POST", "/hooks/home", &headers, body.as_bytes());
        assert_eq!(answered, status, "{secret}: {told}");
    }
    over(&env, 2);
}

#[test]
fn a_comment_resets_the_conversation_if_its_author_may_start_a_run() {
    let env = env();
    let mine = Scripted::new(
        &env,
        "mine",
        "echo $mode >>$dir/calls; test $mode = fresh && id=c-$TENURE_RUN; init; done_",
    );
    set_up(&env, "");
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    door.deliver("issues", "d-1", &issue(6, "opened"));
    over(&env, 1);
    let mallory = comment(6, 1, "mallory", "/tenure reset");
    let (_, refused) = door.deliver("issue_comment", "d-2", &mallory);
    assert_ne!(refused["verdict"], "acted", "{refused}");
    door.deliver("issue_comment", "d-3", &comment(6, 2, "alice", "go on"));
    over(&env, 2);
    let reset = comment(6, 3, "alice", "/tenure reset");
    let (status, told) = door.deliver("issue_comment", "d-4", &reset);
    assert_eq!((status, &told["verdict"]), (202, &json!("acted")), "{told}");
    let item = [
        "conversation",
        "history",
        "mine",
        "issue:acme/web#6",
        "--json",
    ];
    let history = env.tenure(&item).ok().json()["history"].clone();
    assert_eq!(history[0]["why"], "dropped", "{history:#}");
    door.deliver("issue_comment", "d-5", &comment(6, 4, "alice", "again"));
    over(&env, 3);
    let calls = mine.wrote("calls").expect("it ran");
    assert_eq!(calls, "fresh\nresume\nfresh\n");
}

#[test]
fn an_exclusive_rule_claims_its_item_while_it_runs() {
    let env = env();
    let mine = Scripted::new(&env, "mine", "init; ready $dir/on; hold $dir/flag; done_");
    mine.keep("flag");
    set_up(&env, "exclusive = true");
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    door.deliver("issues", "d-1", &issue(6, "opened"));
    poll(SOON, "the agent works", || mine.wrote("on"));
    let claims = || {
        let said = env.tenure(&["claims", "--json"]).ok().json();
        said["claims"].as_array().expect("a list").clone()
    };
    let held = claims();
    assert_eq!(held.len(), 1, "{held:#?}");
    assert_eq!(held[0]["key"], "issue:acme/web#6");
    assert_eq!(
        held[0]["holder"]["handle"],
        all(&env)[0]["session"],
        "{held:#?}"
    );
    std::fs::remove_file(mine.file("flag")).expect("it was kept");
    over(&env, 1);
    poll(SOON, "it is free", || claims().is_empty().then_some(()));
}

/// The agent does not know that its last turn was cut off, or failed.
#[test]
fn the_next_run_is_told_how_the_last_one_ended() {
    let env = env();
    let mine = Scripted::new(
        &env,
        "mine",
        "cat >>$dir/prompts; init; if [ $mode = fresh ]; then exit 3; fi; done_",
    );
    set_up(&env, "");
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    door.deliver("issues", "d-1", &issue(6, "opened"));
    let failed = over(&env, 1);
    assert_eq!(failed[0]["outcome"], "failed", "{failed:#?}");
    let first = mine.wrote("prompts").expect("it was asked");
    assert!(!first.contains("did not finish"), "{first}");
    door.deliver("issue_comment", "d-2", &comment(6, 1, "alice", "go on"));
    over(&env, 2);
    let prompts = mine.wrote("prompts").expect("it was asked");
    let told = prompts.strip_prefix(&first).expect("more was said");
    let note = "Your last turn here did not finish (";
    assert_eq!(told.matches(note).count(), 1, "{told}");
    door.deliver("issue_comment", "d-3", &comment(6, 2, "alice", "and more"));
    over(&env, 3);
    let all = mine.wrote("prompts").expect("it was asked");
    assert_eq!(all.matches(note).count(), 1, "the last one was done: {all}");
}

/// No forge tries again by itself, but each shows what was not accepted.
#[test]
fn a_delivery_that_cannot_be_stored_is_answered_with_503_and_stored_when_there_is_room() {
    let env = env();
    Scripted::new(&env, "mine", "init; done_");
    set_up(&env, "");
    let ann = env.agent("ann");
    let (disk, door) = SmallDisk::dispatcher(&env, &ann);
    disk.fill();
    // Large, so that what is left of a page does not hold it.
    let mut long = issue(6, "opened");
    long["issue"]["body"] = json!("x".repeat(200_000));
    let (status, told) = door.deliver("issues", "d-1", &long);
    assert_eq!(status, 503, "{told}");
    disk.make_room();
    let (status, told) = door.deliver("issues", "d-1", &long);
    assert_eq!(status, 202, "{told}");
    assert_eq!(
        told["verdict"], "queued",
        "nothing was stored before: {told}"
    );
    assert!(text(&told["job"]).starts_with("j-"), "{told}");
}
