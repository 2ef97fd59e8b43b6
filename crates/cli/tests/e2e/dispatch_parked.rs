//! Jobs that wait for a person: who is told, and how.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tenure_testkit::fake_forge::Dialect;
use tenure_testkit::{Agent, Background, Cmd, Env, Scripted, poll};

use crate::env;
use crate::support::dispatch::fill_in;
use crate::support::forge::forge;
use crate::support::forge_api::set_up_forge;
use crate::support::line::{SOON, text};
use crate::support::run::fake_claude;
use crate::support::webhook::{Dispatcher, comment, set_up};

fn jobs(env: &Env) -> Vec<Value> {
    let answer = env.tenure(&["queue", "--all", "--json"]).ok().json();
    answer["jobs"].as_array().expect("a list").clone()
}

/// Lets a program ask twice where one run is the most.
fn loops(env: &Env, door: &Dispatcher) -> Value {
    let pong = |number: u64| {
        let mut pong = comment(6, 1_000 + number, "bob", "ping");
        pong["sender"]["type"] = json!("Bot");
        let (status, answer) = door.deliver("issue_comment", &format!("pong-{number}"), &pong);
        assert_eq!(status, 202, "{answer}");
    };
    pong(0);
    poll(SOON, "it ran", || {
        (jobs(env).first()?["state"] == "ended").then_some(())
    });
    pong(1);
    poll(SOON, "it is parked", || {
        let job = jobs(env).into_iter().next()?;
        (job["state"] == "parked").then_some(job)
    })
}

/// Nobody may be watching: one comment is written whatever the rule's `reply` says.
#[test]
fn f_r15_the_breaker_is_told_in_the_forge_by_a_rule_that_replies_nothing() {
    let env = env();
    Scripted::new(&env, "mine", "init; done_");
    let fake = set_up_forge(&env, Dialect::Forgejo, "breaker = 1", "reply = \"none\"");
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    loops(&env, &door);
    let told = poll(SOON, "it is told", || fake.own_comments().pop());
    assert!(
        told.body.contains("Parked: `1 run of issue:acme/web#6"),
        "{}",
        told.body
    );
    assert!(fake.state().eyes.is_empty());
}

/// Without a token nothing can be written there: it is shown here.
#[test]
fn f_r15_without_a_token_the_breaker_is_told_by_the_dispatcher_and_the_queue() {
    let env = env();
    Scripted::new(&env, "mine", "init; done_");
    set_up(&env, "reply = \"none\"");
    fill_in(&env, "listen", "breaker = 1\nlisten");
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    let job = loops(&env, &door);
    assert_eq!(job["parked"]["reason"], "breaker", "{job:#}");
    assert_eq!(job["parked"]["until"], Value::Null);
    let id = text(&job["id"]);
    poll(SOON, "the dispatcher prints it", || {
        let printed = door.process.stdout();
        let mut lines = printed
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines
            .any(|line| line["event"] == "job.parked" && line["job"]["id"] == json!(id))
            .then_some(())
    });
    let store = rusqlite::Connection::open(env.state().join("tenure.db")).expect("it is there");
    let count = "SELECT count(*) FROM replies";
    let count: i64 = store
        .query_row(count, [], |row| row.get(0))
        .expect("a table");
    assert_eq!(count, 0, "nothing waits to be written");
}

fn enqueue(agent: &Agent, name: &str, item: &str, prompt: &str) {
    let words = [
        "run",
        name,
        item,
        "--queue",
        "--share-dir",
        "--prompt",
        prompt,
    ];
    agent.tenure(&words).ok();
}

fn dispatch(agent: &Agent) -> Background {
    agent.start(Cmd::new("tenure").args(["dispatch", "--json"]))
}

/// The seconds since 1970, so many from now.
fn in_seconds(more: u64) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.expect("it is later than 1970").as_secs() + more
}

fn job_of(env: &Env, item: &str) -> Option<Value> {
    jobs(env).into_iter().find(|job| job["item"] == item)
}

#[track_caller]
fn parked(env: &Env, item: &str) -> Value {
    poll(SOON, "it waits for the usage limit", || {
        let job = job_of(env, item)?;
        (job["parked"]["reason"] == "limit").then_some(job)
    })
}

#[test]
fn f_r21_jobs_wait_until_the_same_time_after_their_dispatcher_was_killed() {
    let env = env();
    let reset = in_seconds(7_200);
    let claude = fake_claude(&env, &format!("keeps; init; limited {reset}"));
    Scripted::new(&env, "mine", "init; done_");
    let ann = env.agent("ann");
    enqueue(&ann, "claude", "wp:1", "first");
    let first = dispatch(&ann);
    let begun = parked(&env, "wp:1");
    // The agent waits as a whole: another item does not start it.
    enqueue(&ann, "claude", "wp:2", "second");
    let fresh = parked(&env, "wp:2");
    assert_eq!(begun["parked"]["until"], fresh["parked"]["until"]);
    first.kill9();
    poll(SOON, "it is gone", || (!first.is_alive()).then_some(()));
    let _second = dispatch(&ann);
    enqueue(&ann, "claude", "wp:1", "first");
    enqueue(&ann, "mine", "wp:3", "so that it looks");
    poll(SOON, "it looked", || {
        (job_of(&env, "wp:3")?["outcome"] == "done").then_some(())
    });
    for before in [begun, fresh] {
        let after = parked(&env, &text(&before["item"]));
        for field in ["id", "state", "parked", "attempt", "run"] {
            assert_eq!(after[field], before[field], "{field}: {after:#}");
        }
    }
    let joined = job_of(&env, "wp:1").expect("a job");
    let events = joined["events"].as_array().map(Vec::len);
    assert_eq!(events, Some(2), "what came meanwhile joined it");
    let calls = std::fs::read_to_string(claude.join("calls")).expect("it ran");
    assert_eq!(calls.lines().count(), 1, "{calls}");
}

#[test]
fn a_job_that_waited_for_a_usage_limit_goes_on_in_its_conversation_when_that_is_over() {
    let env = env();
    let reset = in_seconds(7_200);
    let claude = fake_claude(
        &env,
        &format!(
            "echo \"$prompt\" >>$dir/prompts; keeps; init; if [ $mode = fresh ]; then limited {reset}; fi; ok hi"
        ),
    );
    let ann = env.agent("ann");
    enqueue(&ann, "claude", "wp:1", "THE-PROMPT");
    let _dispatcher = dispatch(&ann);
    parked(&env, "wp:1");
    // As if two hours had passed.
    forge(
        &env,
        "UPDATE parks SET until_at = 1; UPDATE jobs SET parked_until = 1",
    );
    let job = poll(SOON, "it is done", || {
        let job = job_of(&env, "wp:1")?;
        (job["outcome"] == "done").then_some(job)
    });
    assert_eq!((&job["attempt"], &job["failures"]), (&json!(2), &json!(0)));
    let calls = std::fs::read_to_string(claude.join("calls")).expect("it ran");
    let calls: Vec<(&str, &str)> = calls.lines().filter_map(|l| l.split_once(' ')).collect();
    assert_eq!((calls[0].0, calls[1].0), ("fresh", "resume"), "{calls:?}");
    assert_eq!(calls[0].1, calls[1].1, "one conversation");
    let prompts = std::fs::read_to_string(claude.join("prompts")).expect("it was asked");
    assert_eq!(prompts.matches("THE-PROMPT").count(), 1, "{prompts}");
    assert!(prompts.contains("Your last turn was cut off"), "{prompts}");
}

/// A person began the conversation in a directory of their own.
#[test]
fn a_webhook_never_works_in_the_directory_of_a_person_and_is_not_parked_for_it() {
    let env = env();
    let mine = Scripted::new(
        &env,
        "mine",
        "pwd >>$dir/dirs; echo $mode >>$dir/calls; init c-$$; done_",
    );
    set_up(&env, "");
    let ann = env.agent("ann");
    let own = env.dir().join("own");
    std::fs::create_dir(&own).unwrap();
    let by_hand = [
        "run",
        "mine",
        "issue:acme/web#6",
        "--prompt",
        "do it",
        "--dir",
    ];
    let own = own.to_string_lossy().into_owned();
    ann.tenure(&[&by_hand[..], &[&own]].concat()).ok();
    let door = Dispatcher::start(&ann);
    for number in [1, 2] {
        let more = comment(6, 1_000 + number, "alice", "go on");
        let (status, answer) = door.deliver("issue_comment", &format!("more-{number}"), &more);
        assert_eq!(status, 202, "{answer}");
        poll(SOON, "it ran", || {
            let jobs = jobs(&env);
            let ended = jobs.iter().filter(|job| job["outcome"] == "done");
            (ended.count() as u64 == number).then_some(())
        });
    }
    let dirs = mine.wrote("dirs").unwrap();
    let dirs: Vec<&str> = dirs.lines().collect();
    assert_eq!(dirs[0], own);
    assert!(dirs[1..].iter().all(|dir| *dir != own), "{dirs:?}");
    assert_eq!(dirs[1], dirs[2]);
    let calls = mine.wrote("calls").unwrap();
    assert_eq!(
        calls, "fresh\nfresh\nresume\n",
        "begun anew once, then continued"
    );
    let runs = env.tenure(&["runs", "--json"]).ok().json();
    let log = text(&runs["runs"][1]["log"]);
    let said = std::fs::read_dir(&log).unwrap().flatten().any(|file| {
        let text = std::fs::read_to_string(file.path()).unwrap_or_default();
        text.contains("a new one was begun")
    });
    assert!(said, "it is said in {log}");
}
