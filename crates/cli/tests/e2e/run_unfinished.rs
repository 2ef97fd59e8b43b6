//! Runs that died at a doubtful point: after the time limit was recorded and before the end was, between the record
//! and the start of the agent, and with processes left that cannot be read.

use serde_json::Value;
use tenure_testkit::{Agent, Background, Env, Scripted, poll};

use crate::env;
use crate::support::line::SOON;
use crate::support::namespace::{Inside, pid_namespace};
use crate::support::run::{is_gone, kill9, lines, newest, pid_of, run, runner_of, start, until};

fn store(env: &Env) -> rusqlite::Connection {
    rusqlite::Connection::open(env.state().join("tenure.db")).expect("it is there")
}

/// A run with this time limit, at work, whose agent ignores SIGTERM.
#[track_caller]
fn deaf(env: &Env, by: &Agent, limit: &str) -> Background {
    let script = "trap '' TERM; init; ready $dir/on; hold $dir/flag";
    let mine = Scripted::new(env, "mine", script);
    mine.keep("flag");
    let window = start(by, &format!("mine wp:1 --timeout {limit}"));
    poll(SOON, "the agent works", || mine.wrote("on"));
    window
}

#[test]
fn a_run_whose_runner_dies_after_it_recorded_the_time_limit_timed_out() {
    let env = env();
    let ann = env.agent("ann");
    let window = deaf(&env, &ann, "2s");
    let run = until(&env, "the time limit is recorded", |run| {
        !run["stop_asked"].is_null()
    });
    assert_eq!(run["state"], "running", "{run}");
    let (runner, agent) = (runner_of(&run), pid_of(&run));
    window.kill9();
    kill9(&ann, runner);
    kill9(&ann, agent);
    let ended = newest(&env);
    assert_eq!(ended["outcome"], "timeout", "{ended}");
    assert_eq!(ended["why"], "it did not end within 2s");
    let failed = env.tenure(&["runs", "--failed", "--json"]).ok().json();
    assert_eq!(failed["runs"][0]["id"], run["id"], "{failed}");
}

#[test]
fn a_run_that_was_asked_to_stop_and_lost_its_runner_is_stopped() {
    let env = env();
    let ann = env.agent("ann");
    let window = deaf(&env, &ann, "10m");
    let run = until(&env, "it is named", |run| run["native_id"] == "c-1");
    let id = run["id"].as_str().unwrap().to_owned();
    let (runner, agent) = (runner_of(&run), pid_of(&run));
    let stop = ann.start(
        tenure_testkit::Cmd::new("tenure").args(["runs", "stop", &id, "--reason", "enough"]),
    );
    until(&env, "the request is recorded", |run| {
        !run["stop_asked"].is_null()
    });
    window.kill9();
    stop.kill9();
    kill9(&ann, runner);
    kill9(&ann, agent);
    let ended = newest(&env);
    assert_eq!(ended["outcome"], "stopped", "{ended}");
    assert_eq!(ended["why"], "enough");
}

/// The agent never saw the prompt, so `runs resume` sends the prompt and not a request to go on.
#[test]
fn a_prompt_whose_runner_died_before_the_agent_started_is_sent_again() {
    let env = env();
    let mine = Scripted::new(&env, "mine", "init; done_");
    let ann = env.agent("ann");
    run(&ann, "mine wp:1").ok();
    mine.does("ready $dir/ran; cat >$dir/prompt; init; done_");
    // Recording that the agent begins never ends, so the runner stays between the two records.
    store(&env)
        .execute_batch(
            "CREATE VIEW endless AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
                 SELECT count(*) AS count FROM n;
             CREATE TRIGGER waits BEFORE UPDATE ON runs WHEN OLD.begun_at IS NULL AND NEW.begun_at IS NOT NULL
             BEGIN SELECT count FROM endless; END",
        )
        .unwrap();
    let window = start(&ann, "mine wp:1");
    let starting = until(&env, "the run is recorded", |run| {
        run["state"] == "starting"
    });
    let (runner, gate) = (runner_of(&starting), pid_of(&starting));
    window.kill9();
    kill9(&ann, runner);
    poll(SOON, "the gate's process ends", || {
        is_gone(gate).then_some(())
    });
    store(&env)
        .execute_batch("DROP TRIGGER waits; DROP VIEW endless")
        .unwrap();
    let ended = newest(&env);
    assert_eq!(ended["outcome"], "interrupted", "{ended}");
    assert_eq!(ended["why"], "its runner died before it started the agent");
    assert_eq!(mine.wrote("ran"), None, "the agent never ran");
    let id = ended["id"].as_str().unwrap();
    ann.tenure(&["runs", "resume", id]).ok();
    let prompt = mine.wrote("prompt").unwrap();
    assert!(prompt.contains("do it"), "{prompt}");
    assert!(!prompt.contains("cut off"), "{prompt}");
    let next = newest(&env);
    assert_eq!(
        (&next["goes_on"], &next["native_id"]),
        (&ended["id"], &"c-1".into())
    );
}

/// In a pid namespace of its own, so that no other process of this machine is in doubt. Without capabilities root
/// cannot read the environment of a process that has them, as a user cannot read one that is not dumpable.
#[test]
fn a_run_is_not_replaced_while_what_it_left_cannot_be_read() {
    let env = env();
    let Some(flags) = pid_namespace(&env) else {
        return;
    };
    let mine = Scripted::new(
        &env,
        "mine",
        "export dir; init; setsid sh -c 'echo $$ >$dir/child; while [ -e $dir/flag ]; do sleep 0.02; done' >/dev/null 2>&1 &
         while [ ! -s $dir/child ]; do sleep 0.02; done; kill -9 $$",
    );
    mine.keep("flag");
    let inside = Inside::open(&env, flags, "inside");
    let again = "tenure run mine wp:1 --prompt again --json";
    let cut_off = inside.line("tenure run mine wp:1 --prompt it --leave --json");
    assert_eq!(cut_off.code, 137, "{cut_off}");
    let child = mine.wrote("child").unwrap().trim().to_owned();
    mine.does("echo $mode >>$dir/calls; init; done_");
    let error = |said: &tenure_testkit::Output| -> Value {
        assert_eq!(said.code, 125, "{said}");
        lines(said).pop().unwrap()["error"].clone()
    };
    let unknown = error(&inside.line(&format!(
        "setpriv --bounding-set=-all --inh-caps=-all {again}"
    )));
    assert_eq!(unknown["kind"], "survivors_unknown", "{unknown}");
    let message = unknown["message"].as_str().unwrap();
    assert!(message.contains(&format!("process {child}")), "{message}");
    let known = error(&inside.line(again));
    assert_eq!(known["kind"], "survivors", "{known}");
    assert_eq!(known["run"], unknown["run"]);
    assert_eq!(mine.wrote("calls"), None, "nothing was started beside it");
    std::fs::remove_file(mine.file("flag")).unwrap();
    inside
        .line(&format!("while [ -e /proc/{child} ]; do sleep 0.02; done"))
        .ok();
    inside
        .line(&format!(
            "setpriv --bounding-set=-all --inh-caps=-all {again}"
        ))
        .ok();
    assert_eq!(mine.wrote("calls").as_deref(), Some("resume\n"));
}
