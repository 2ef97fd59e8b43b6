//! The queue: jobs that wait for a run, and the dispatcher that starts their runners.

use serde_json::Value;
use tenure_testkit::{Agent, Background, Cmd, Env, Scripted, Signal, poll};

use crate::env;
use crate::support::line::{SOON, text};
use crate::support::run::{all, kill9, pid_of, runner_of};

fn enqueue(agent: &Agent, line: &str) -> Value {
    let words = line.split_whitespace();
    let command = Cmd::new("tenure").arg("run").args(words);
    let command = command.args(["--prompt", "do it", "--queue", "--json"]);
    agent.run(command).ok().json()
}

fn dispatch(agent: &Agent) -> Background {
    agent.start(Cmd::new("tenure").args(["dispatch", "--json"]))
}

fn jobs(env: &Env) -> Vec<Value> {
    let answer = env.tenure(&["queue", "--all", "--json"]).ok().json();
    answer["jobs"].as_array().expect("a list").clone()
}

#[track_caller]
fn job_until(env: &Env, what: &str, is: impl Fn(&Value) -> bool) -> Value {
    poll(SOON, what, || jobs(env).into_iter().find(|job| is(job)))
}

#[track_caller]
fn all_end(env: &Env) -> Vec<Value> {
    poll(SOON, "all jobs end", || {
        let jobs = jobs(env);
        jobs.iter()
            .all(|job| job["state"] == "ended")
            .then_some(jobs)
    })
}

#[test]
fn a_queued_run_is_run_by_the_dispatcher_in_its_conversation() {
    let env = env();
    let mine = Scripted::new(
        &env,
        "mine",
        "echo $mode $id >>$dir/calls; cat >$dir/prompt; init; done_",
    );
    let ann = env.agent("ann");
    let queued = enqueue(&ann, "mine wp:1");
    assert_eq!(queued["job"]["state"], "queued");
    let again = enqueue(&ann, "mine wp:1");
    assert_eq!(again["job"]["id"], queued["job"]["id"], "the same, once");
    assert_eq!(again["already_queued"], true);
    let dispatcher = dispatch(&ann);
    let ended = all_end(&env);
    assert_eq!(ended.len(), 1);
    assert_eq!(ended[0]["outcome"], "done");
    let run = all(&env).remove(0);
    assert_eq!(ended[0]["run"], run["id"]);
    assert_eq!(run["trigger"], "queue");
    assert!(mine.wrote("prompt").unwrap().ends_with("\n\ndo it"));
    enqueue(&ann, "mine wp:1");
    poll(SOON, "the second one runs", || {
        (mine.wrote("calls")? == "fresh c-1\nresume c-1\n").then_some(())
    });
    all_end(&env);
    assert!(dispatcher.signal(Signal::TERM));
    let said = dispatcher.wait().ok();
    let events: Vec<&str> = said.stdout.matches("job.started").collect();
    assert_eq!(events.len(), 2, "{said}");
}

#[test]
fn one_job_at_a_time_runs_in_a_conversation_and_the_oldest_first() {
    let env = env();
    let mine = Scripted::new(
        &env,
        "mine",
        "echo $(cat | tail -n 1) >>$dir/order; init; mkdir $dir/busy || exit 9; hold $dir/flag; rmdir $dir/busy; done_",
    );
    mine.keep("flag");
    let ann = env.agent("ann");
    for prompt in ["one", "two", "three"] {
        let words = ["run", "mine", "wp:1", "--queue", "--prompt", prompt];
        ann.tenure(&words).ok();
    }
    let _dispatcher = dispatch(&ann);
    poll(SOON, "the first runs", || {
        mine.file("busy").exists().then_some(())
    });
    let second = text(&jobs(&env)[1]["id"]);
    let said = env
        .tenure(&["queue", "explain", &second, "--json"])
        .ok()
        .json();
    let why = text(&said["explanation"]["why"]);
    assert!(why.ends_with("is running and comes first"), "{why}");
    std::fs::remove_file(mine.file("flag")).unwrap();
    let ended = all_end(&env);
    assert!(
        ended.iter().all(|job| job["outcome"] == "done"),
        "{ended:#?}"
    );
    assert_eq!(mine.wrote("order").unwrap(), "one\ntwo\nthree\n");
}

/// The run is its runner's: nothing of it depends on who started that.
#[test]
fn f_r09_a_dispatcher_that_is_stopped_or_killed_leaves_its_runs_alone() {
    let env = env();
    let mine = Scripted::new(
        &env,
        "mine",
        "echo ran >>$dir/calls; init; ready $dir/on; hold $dir/flag; done_",
    );
    let ann = env.agent("ann");
    for signal in [Signal::TERM, Signal::KILL] {
        mine.keep("flag");
        std::fs::remove_file(mine.file("on")).ok();
        std::fs::remove_file(mine.file("calls")).ok();
        enqueue(&ann, "mine wp:1");
        let first = dispatch(&ann);
        poll(SOON, "the agent works", || mine.wrote("on"));
        assert!(first.signal(signal));
        poll(SOON, "the dispatcher is gone", || {
            (!first.is_alive()).then_some(())
        });
        let running = job_until(&env, "it is begun", |job| job["state"] == "begun");
        let second = dispatch(&ann);
        std::fs::remove_file(mine.file("flag")).unwrap();
        let ended = job_until(&env, "it ends", |job| {
            job["id"] == running["id"] && job["state"] == "ended"
        });
        assert_eq!(ended["outcome"], "done");
        assert_eq!(mine.wrote("calls").unwrap(), "ran\n", "once");
        second.kill9();
    }
}

#[test]
fn f_r02_a_runner_that_dies_before_its_agent_starts_returns_its_job_and_later_ends_it() {
    let env = env();
    let mine = Scripted::new(
        &env,
        "mine",
        "echo ran >>$dir/calls; init; ready $dir/on; hold $dir/flag; done_",
    );
    mine.keep("flag");
    let ann = env.agent("ann");
    enqueue(&ann, "mine wp:1");
    let _dispatcher = dispatch(&ann);
    poll(SOON, "the agent works", || mine.wrote("on"));
    let run = poll(SOON, "it is named", || {
        all(&env).into_iter().find(|run| run["native_id"] == "c-1")
    });
    let agent = pid_of(&run);
    kill9(&ann, runner_of(&run));
    kill9(&ann, agent);
    let ended = job_until(&env, "it ends", |job| job["state"] == "ended");
    assert_eq!(ended["outcome"], "interrupted", "begun: never run again");
    assert_eq!(mine.wrote("calls").unwrap(), "ran\n");
}

#[test]
fn a_job_that_cannot_start_waits_and_says_why() {
    let env = env();
    Scripted::new(&env, "mine", "init; done_");
    let ann = env.agent("ann");
    let skill = ["run", "mine", "wp:1", "--queue", "--skill", "absent"];
    let alone = ann.tenure(&skill).ok().stdout;
    assert!(alone.contains("no dispatcher is running"), "{alone}");
    let _dispatcher = dispatch(&ann);
    let job = job_until(&env, "it was tried", |job| job["failures"] == 1);
    assert_eq!(job["state"], "queued");
    assert!(!job["not_before"].is_null(), "{job:#}");
    let listed = env.tenure(&["queue"]).ok().stdout;
    let failure = text(&job["failure"]);
    assert!(
        listed.contains("waiting to retry") && listed.contains(&failure),
        "{listed}"
    );
    let again = ann.tenure(&skill).ok().stdout;
    assert!(!again.contains("no dispatcher"), "{again}");
    let id = text(&job["id"]);
    let said = env
        .tenure(&["queue", "cancel", &id, "--reason", "not wanted"])
        .ok();
    assert!(said.stdout.contains("cancelled: not wanted"), "{said}");
    env.tenure(&["queue", "retry", &id]).fails(1);
    assert!(all(&env).is_empty(), "no run was recorded");
}

#[test]
fn a_job_that_runs_is_not_cancelled() {
    let env = env();
    let mine = Scripted::new(&env, "mine", "init; ready $dir/on; hold $dir/flag; done_");
    mine.keep("flag");
    let ann = env.agent("ann");
    let id = text(&enqueue(&ann, "mine wp:1")["job"]["id"]);
    let _dispatcher = dispatch(&ann);
    poll(SOON, "the agent works", || mine.wrote("on"));
    let said = env.tenure(&["queue", "cancel", &id, "--json"]).fails(1);
    let error = said.json()["error"].clone();
    assert_eq!(error["kind"], "wrong_state");
    let run = all(&env).remove(0);
    assert_eq!(error["run"], run["id"]);
    assert_eq!(error["hints"][0]["verb"], "runs", "{error:#}");
    assert_eq!(error["hints"][0]["args"][0], "stop");
    assert_eq!(error["hints"][0]["args"][1], run["id"]);
    let waits = env.tenure(&["runs", "--queued", "--json"]).ok().json();
    assert_eq!(waits["jobs"], serde_json::json!([]), "it is a run now");
    std::fs::remove_file(mine.file("flag")).unwrap();
    all_end(&env);
    env.tenure(&["queue", "show", "j-nothing"]).fails(4);
}

/// A runner that finds its directory used costs a start, and its job comes after others.
#[test]
fn jobs_that_share_a_directory_are_started_once_each_and_in_their_order() {
    let env = env();
    let mine = Scripted::new(
        &env,
        "mine",
        "cat >/dev/null; echo $TENURE_RUN >>$dir/order; init; done_",
    );
    let shared = env.dir().join("shared");
    std::fs::create_dir(&shared).expect("the environment is ours");
    let ann = env.agent("ann");
    let items: Vec<String> = (1..=20).map(|number| format!("wp:{number}")).collect();
    for item in &items {
        enqueue(&ann, &format!("mine {item} --dir {}", shared.display()));
    }
    let _dispatcher = dispatch(&ann);
    let jobs = poll(SOON * 4, "all are over", || {
        let jobs = jobs(&env);
        let over = jobs.iter().all(|job| job["state"] == "ended");
        (over && jobs.len() == items.len()).then_some(jobs)
    });
    let starts: u64 = jobs.iter().filter_map(|job| job["attempt"].as_u64()).sum();
    assert_eq!(starts, 20, "{jobs:#?}");
    let order = mine.wrote("order").expect("they ran");
    let item_of = |run: &str| {
        let job = jobs.iter().find(|job| job["run"] == run);
        job.map(|job| text(&job["item"]))
    };
    let order: Vec<String> = order.lines().filter_map(item_of).collect();
    assert_eq!(order, items);
}
