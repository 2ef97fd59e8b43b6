//! What dies under a run: its window, its runner, its agent, both, the store; and what is recorded then.

use serde_json::Value;
use tenure_testkit::{Scripted, Signal, poll};

use crate::env;
use crate::support::line::SOON;
use crate::support::run::{kill9, lines, newest, outcome, pid_of, run, runner_of, start, until};

#[test]
fn the_death_of_the_window_touches_no_run() {
    let env = env();
    let mine = Scripted::new(
        &env,
        "mine",
        "init; ready $dir/on; hold $dir/flag; done_ late",
    );
    mine.keep("flag");
    let ann = env.agent("ann");
    for signal in [Signal::KILL, Signal::HUP, Signal::TERM] {
        std::fs::remove_file(mine.file("on")).ok();
        mine.keep("flag");
        let window = start(&ann, "mine wp:1");
        poll(SOON, "the agent works", || mine.wrote("on"));
        assert!(window.signal(signal));
        poll(SOON, "the window is gone", || {
            (!window.is_alive()).then_some(())
        });
        assert_eq!(newest(&env)["state"], "running");
        assert_eq!(newest(&env)["runner"], "live");
        std::fs::remove_file(mine.file("flag")).unwrap();
        assert_eq!(outcome(&env), "done");
    }
}

#[test]
fn where_the_runner_dies_the_agent_goes_on_and_its_end_is_recorded_as_its_log_shows_it() {
    let env = env();
    let mine = Scripted::new(
        &env,
        "mine",
        "init; work; ready $dir/on; hold $dir/flag; work more; done_ 'without a runner'",
    );
    mine.keep("flag");
    let ann = env.agent("ann");
    let window = start(&ann, "mine wp:1 --json");
    poll(SOON, "the agent works", || mine.wrote("on"));
    let run = until(&env, "it is named", |run| run["native_id"] == "c-1");
    kill9(&ann, runner_of(&run));
    assert_eq!(newest(&env)["runner"], "dead");
    std::fs::remove_file(mine.file("flag")).unwrap();
    let said = window.wait().ok();
    let last = lines(&said).pop().unwrap();
    assert_eq!(last["event"], "run.ended");
    assert_eq!(last["run"]["outcome"], "done");
    assert_eq!(last["answer"], "without a runner");
    assert!(said.stderr.contains("the runner died"), "{said}");
    assert_eq!(newest(&env)["outcome"], "done");
}

#[test]
fn a_run_whose_processes_were_all_killed_is_interrupted_and_goes_on_in_its_conversation() {
    let env = env();
    let mine = Scripted::new(
        &env,
        "mine",
        "echo $mode >>$dir/calls; init; work; ready $dir/on; hold $dir/flag",
    );
    mine.keep("flag");
    let ann = env.agent("ann");
    let window = start(&ann, "mine wp:1");
    poll(SOON, "the agent works", || mine.wrote("on"));
    let dead = until(&env, "it is named", |run| run["native_id"] == "c-1");
    let (runner, agent) = (runner_of(&dead), pid_of(&dead));
    window.kill9();
    kill9(&ann, runner);
    kill9(&ann, agent);
    let ended = newest(&env);
    assert_eq!(ended["outcome"], "interrupted");
    let offered = ann.tenure(&["resume", "--json"]).ok().json();
    assert_eq!(
        offered["resume"],
        Value::Array(vec![]),
        "runs are taken up as runs"
    );
    std::fs::remove_file(mine.file("flag")).unwrap();
    mine.does("echo $mode $id >>$dir/calls; cat >$dir/prompt; init; done_");
    let id = ended["id"].as_str().unwrap();
    ann.tenure(&["runs", "resume", id]).ok();
    assert_eq!(mine.wrote("calls").unwrap(), "fresh\nresume c-1\n");
    let prompt = mine.wrote("prompt").unwrap();
    assert!(
        prompt.contains("Your last turn was cut off (it was interrupted"),
        "{prompt}"
    );
    assert!(!prompt.contains("do it"), "{prompt}");
    let next = newest(&env);
    assert_eq!(
        (next["goes_on"].as_str(), next["trigger"].as_str()),
        (Some(id), Some("resume"))
    );
    let again = ann
        .tenure(&["runs", "resume", next["id"].as_str().unwrap()])
        .fails(125);
    assert!(again.stderr.contains("it is done"), "{again}");
}

#[test]
fn the_agent_that_is_killed_leaves_a_run_that_is_interrupted() {
    let env = env();
    let mine = Scripted::new(&env, "mine", "init; work; ready $dir/on; hold $dir/flag");
    mine.keep("flag");
    let ann = env.agent("ann");
    let window = start(&ann, "mine wp:1");
    poll(SOON, "the agent works", || mine.wrote("on"));
    kill9(&ann, pid_of(&newest(&env)));
    assert_eq!(window.wait().code, 137);
    let ended = newest(&env);
    assert_eq!(ended["outcome"], "interrupted");
    // What it was in the middle of is ended with it.
    let why = ended["why"].as_str().unwrap();
    assert!(why.starts_with("the agent was killed by signal 9"), "{why}");
}

#[test]
fn f_r10_an_end_that_the_store_could_not_take_is_recorded_later_and_once() {
    let env = env();
    let mine = Scripted::new(
        &env,
        "mine",
        "init; ready $dir/on; hold $dir/flag; done_ spooled",
    );
    mine.keep("flag");
    let ann = env.agent("ann");
    let window = start(&ann, "mine wp:1");
    poll(SOON, "the agent works", || mine.wrote("on"));
    let run = until(&env, "it is named", |run| run["native_id"] == "c-1");
    let runner = runner_of(&run);
    window.kill9();
    let log = std::path::PathBuf::from(run["log"].as_str().unwrap());
    let mut store = rusqlite::Connection::open(env.state().join("tenure.db")).unwrap();
    let busy = store
        .transaction_with_behavior(rusqlite::TransactionBehavior::Exclusive)
        .unwrap();
    std::fs::remove_file(mine.file("flag")).unwrap();
    poll(SOON, "the end is spooled", || {
        log.join("end.json").exists().then_some(())
    });
    kill9(&ann, runner);
    drop(busy);
    drop(store);
    let ended = newest(&env);
    assert_eq!(ended["outcome"], "done");
    let events = ann.tenure(&["log", "wp:1", "--json"]).ok().json();
    let ends = events["events"].as_array().unwrap().iter();
    assert_eq!(ends.filter(|one| one["kind"] == "run.ended").count(), 1);
}

#[test]
fn f_r12_an_agent_whose_runner_is_killed_before_the_record_never_runs() {
    let env = env();
    let mine = Scripted::new(&env, "mine", "ready $dir/ran; init; done_");
    let ann = env.agent("ann");
    // The store cannot be written, so the runner waits with its agent behind the gate.
    run(&ann, "mine wp:0").ok();
    std::fs::remove_file(mine.file("ran")).unwrap();
    let mut store = rusqlite::Connection::open(env.state().join("tenure.db")).unwrap();
    let busy = store
        .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
        .unwrap();
    let window = start(&ann, "mine wp:1");
    let gate = poll(SOON, "the agent waits at its gate", || {
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        pids.into_iter().find(|pid| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).into_owned();
            line.contains("__exec") && line.contains(mine.dir().to_str().unwrap())
        })
    });
    let runner = tenure_testkit::pinned::Stat::read(gate).unwrap().parent;
    kill9(&ann, runner);
    poll(SOON, "the gate's process ends", || {
        crate::support::run::is_gone(gate).then_some(())
    });
    drop(busy);
    drop(store);
    assert_eq!(window.wait().code, 125);
    assert_eq!(mine.wrote("ran"), None);
    run(&ann, "mine wp:1").ok();
}

#[test]
fn status_names_runs_without_a_runner_and_runs_that_were_cut_off() {
    let env = env();
    let mine = Scripted::new(&env, "mine", "init; ready $dir/on; hold $dir/flag");
    mine.keep("flag");
    let ann = env.agent("ann");
    let window = start(&ann, "mine wp:1");
    poll(SOON, "the agent works", || mine.wrote("on"));
    let run = newest(&env);
    let (id, agent) = (run["id"].as_str().unwrap(), pid_of(&run));
    window.kill9();
    kill9(&ann, runner_of(&run));
    let warned = |what: &str| {
        let status = env.tenure(&["status", "--json"]).ok().json();
        let warnings = status["status"]["warnings"].to_string();
        assert!(warnings.contains(what), "{warnings}");
    };
    warned(&format!(
        "has lost its runner; run `tenure runs stop {id}` to end it"
    ));
    kill9(&ann, agent);
    warned(&format!(
        "was interrupted; run `tenure runs resume {id}` to continue it"
    ));
}

#[test]
fn the_session_of_a_run_that_was_killed_is_dead_and_names_its_run() {
    // Who looks first finds the death: `ps`, or who records the end of the run.
    for first in ["ps", "runs"] {
        let env = env();
        let mine = Scripted::new(&env, "mine", "init; ready $dir/on; hold $dir/flag");
        mine.keep("flag");
        let ann = env.agent("ann");
        let window = start(&ann, "mine wp:1");
        poll(SOON, "the agent works", || mine.wrote("on"));
        let run = until(&env, "it is named", |run| run["native_id"] == "c-1");
        let (runner, agent) = (runner_of(&run), pid_of(&run));
        let handle = run["session"].as_str().unwrap();
        window.kill9();
        kill9(&ann, runner);
        kill9(&ann, agent);
        let shown = || ann.tenure(&["show", handle, "--json"]).ok().json()["session"].clone();
        ann.tenure(&[first]).ok();
        let dead = shown();
        assert_eq!(
            (&dead["state"], &dead["end_kind"]),
            (&"dead".into(), &"cut_off".into()),
            "{first}: {dead:#}"
        );
        assert_eq!(newest(&env)["outcome"], "interrupted");
        let dead = shown();
        assert_eq!(dead["state"], "dead", "{first}: {dead:#}");
        let why = dead["why"].as_str().unwrap();
        assert!(why.contains(run["id"].as_str().unwrap()), "{first}: {why}");
        let offered = ann.tenure(&["resume", "--json"]).ok().json();
        assert_eq!(offered["resume"], Value::Array(vec![]), "{first}");
        let status = env.tenure(&["status", "--json"]).ok().json();
        assert_eq!(status["status"]["cut_off"], Value::Array(vec![]), "{first}");
    }
}

#[test]
fn the_timeout_ends_an_agent_whose_runner_was_killed() {
    let env = env();
    let mine = Scripted::new(&env, "mine", "init; ready $dir/on; hold $dir/flag");
    mine.keep("flag");
    let ann = env.agent("ann");
    let window = start(&ann, "mine wp:1 --timeout 2s");
    poll(SOON, "the agent works", || mine.wrote("on"));
    let hangs = newest(&env);
    let agent = pid_of(&hangs);
    kill9(&ann, runner_of(&hangs));
    window.kill9();
    let overdue = until(&env, "its time is over", |run| run["past_timeout"] == true);
    assert_eq!(overdue["state"], "running", "who only reads ends nothing");
    let said = ann.tenure(&["runs"]).ok();
    assert!(said.stdout.contains("past its timeout"), "{said}");
    let queued = ["run", "mine", "wp:2", "--prompt", "do it", "--queue"];
    ann.tenure(&queued).ok();
    let ended = newest(&env);
    assert_eq!(ended["outcome"], "timeout", "{ended}");
    assert!(crate::support::run::is_gone(agent));
}
