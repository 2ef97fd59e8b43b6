//! What a run that was cut off left running keeps its conversation and its directory from the next run.

use serde_json::Value;
use tenure_testkit::{Agent, Env, Scripted, poll};

use crate::env;
use crate::support::line::SOON;
use crate::support::run::{is_gone, kill9, lines, newest, pid_of, run, runner_of, start, until};

/// An agent that starts a process which stays as long as `$dir/flag` is there.
const LEAVES: &str = "export dir; init; setsid sh -c 'echo $$ >$dir/child; while [ -e $dir/flag ]; do sleep 0.02; done' >/dev/null 2>&1 &
     while [ ! -s $dir/child ]; do sleep 0.02; done";

fn refused(ann: &Agent, line: &str) -> Value {
    let said = run(ann, line).fails(125);
    lines(&said).pop().expect("an object")["error"].clone()
}

fn store(env: &Env) -> rusqlite::Connection {
    rusqlite::Connection::open(env.state().join("tenure.db")).expect("it is there")
}

fn is_over(mine: &Scripted) {
    let child = mine.wrote("child").expect("it ran");
    std::fs::remove_file(mine.file("flag")).expect("it is there");
    poll(SOON, "it is gone", || {
        is_gone(child.trim().parse().expect("a pid")).then_some(())
    });
}

#[test]
fn what_a_run_left_is_found_however_many_runs_failed_since() {
    let env = env();
    let mine = Scripted::new(&env, "mine", &format!("{LEAVES}; kill -9 $$"));
    mine.keep("flag");
    let ann = env.agent("ann");
    run(&ann, "mine wp:1 --leave").fails(137);
    let cut_off = newest(&env);
    let columns = "agent, role, host_id, session, life, runner_host, boot_id, boot_private, pid_ns, pid, start_ticks, \
         start_shifted, before_id, intended_id, after_id, shares_dir, exclusive, started_by, skill, prompt_hash, log, \
         goes_on, begun_at, fell_back, turns, tokens_in, tokens_out, cost, ended_at, why, exit_code, \
         conversation_left, parked_until, revision";
    store(&env)
        .execute_batch(&format!(
            "WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i < 300)
             INSERT INTO runs (id, item, root, dir, outcome, created_at, {columns})
             SELECT replace(replace(printf('r-%010d', i), '0', 'z'), '1', 'b'), 'wp:x', 'wp:x', '/elsewhere', 'interrupted', created_at + i, {columns}
             FROM n, runs"
        ))
        .unwrap();
    for line in [
        "mine wp:1 --json",
        "mine wp:1 --share-dir --json",
        "mine wp:2 --json",
    ] {
        let error = refused(&ann, line);
        assert_eq!(error["kind"], "survivors", "{line}: {error}");
        assert_eq!(error["run"], cut_off["id"], "{line}");
    }
    mine.does("init c-2; done_");
    run(&ann, "mine wp:2 --share-dir").ok();
    is_over(&mine);
    run(&ann, "mine wp:1 --fresh").ok();
}

#[test]
fn a_run_that_was_cut_off_while_it_was_stopped_counts_too() {
    let env = env();
    let mine = Scripted::new(&env, "mine", &format!("{LEAVES}; hold $dir/flag"));
    mine.keep("flag");
    let ann = env.agent("ann");
    let window = start(&ann, "mine wp:1");
    poll(SOON, "it works", || mine.wrote("child"));
    let run_ = until(&env, "it is named", |run| run["native_id"] == "c-1");
    let (runner, agent) = (runner_of(&run_), pid_of(&run_));
    window.kill9();
    // As if its runner had died right after it recorded the request.
    store(&env)
        .execute(
            "UPDATE runs SET stop_at = created_at, stop_why = 'enough'",
            [],
        )
        .unwrap();
    kill9(&ann, runner);
    kill9(&ann, agent);
    let error = refused(&ann, "mine wp:1 --json");
    assert_eq!(error["kind"], "survivors", "{error}");
    assert_eq!(newest(&env)["outcome"], "stopped");
    is_over(&mine);
    mine.does("init; done_");
    run(&ann, "mine wp:1").ok();
}

#[test]
fn what_an_agent_leaves_running_is_ended_and_named_unless_it_is_to_be_left() {
    let env = env();
    let mine = Scripted::new(&env, "mine", &format!("{LEAVES}; done_ made"));
    mine.keep("flag");
    let ann = env.agent("ann");
    run(&ann, "mine wp:1").ok();
    let child: u32 = mine.wrote("child").unwrap().trim().parse().unwrap();
    assert!(is_gone(child));
    let ended = newest(&env);
    assert_eq!(ended["outcome"], "done");
    let why = ended["why"].as_str().unwrap();
    let named = format!("the agent reported success; ended what it left running: pid {child} (");
    assert!(why.starts_with(&named), "{why}");
    std::fs::remove_file(mine.file("child")).unwrap();
    let said = run(&ann, "mine wp:1 --leave").ok();
    let child: u32 = mine.wrote("child").unwrap().trim().parse().unwrap();
    assert!(!is_gone(child), "{said}");
    assert_eq!(newest(&env)["why"], "the agent reported success");
    is_over(&mine);
}
