//! What went wrong in other projects' queues: jobs that nobody finishes, and jobs that are run twice.

use std::collections::BTreeSet;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::Value;
use tenure_testkit::{Agent, Background, Cmd, Env, Scripted, Signal, poll};

use crate::env;
use crate::support::line::{SOON, text};
use crate::support::run::{all, enqueue, fake_claude, kill9, pid_of, runner_of};

/// Every run notes its id, once.
const NOTES: &str =
    "cat >/dev/null; echo $TENURE_RUN >>$dir/calls; init c-$TENURE_RUN; hold $dir/flag; done_";

fn dispatch(agent: &Agent) -> Background {
    let words = ["dispatch", "--concurrency", "5", "--json"];
    agent.start(Cmd::new("tenure").args(words))
}

fn jobs(env: &Env) -> Vec<Value> {
    let words = ["queue", "--all", "--limit", "0", "--json"];
    let answer = env.tenure(&words).ok().json();
    answer["jobs"].as_array().expect("a list").clone()
}

fn count(jobs: &[Value], field: &str, value: &str) -> usize {
    jobs.iter().filter(|job| job[field] == value).count()
}

fn calls(mine: &Scripted) -> Vec<String> {
    let text = mine.wrote("calls").unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn f_r02_of_fifty_jobs_each_has_a_recorded_state_after_the_dispatcher_and_all_that_ran_were_killed()
{
    let env = env();
    let mine = Scripted::new(&env, "mine", NOTES);
    mine.keep("flag");
    let ann = env.agent("ann");
    for n in 0..50 {
        enqueue(&ann, &format!("wp:{n}"), "do it");
    }
    let first = dispatch(&ann);
    poll(SOON, "five of them work", || {
        (calls(&mine).len() == 5).then_some(())
    });
    let runs = poll(SOON, "all five are named", || {
        let runs = all(&env);
        let named = runs.iter().filter(|run| run["native_id"].is_string());
        (named.count() == 5).then_some(runs)
    });
    let pids: Vec<(u32, u32)> = runs
        .iter()
        .map(|run| (runner_of(run), pid_of(run)))
        .collect();
    first.kill9();
    for (runner, agent) in pids {
        kill9(&ann, runner);
        kill9(&ann, agent);
    }
    std::fs::remove_file(mine.file("flag")).unwrap();
    let second = dispatch(&ann);
    let interrupted = poll(SOON, "what was cut off has an end", || {
        let jobs = jobs(&env);
        (count(&jobs, "outcome", "interrupted") == 5).then_some(jobs)
    });
    assert_eq!(interrupted.len(), 50, "none is lost");
    let ended = poll(SOON * 4, "all of them end", || {
        let jobs = jobs(&env);
        (count(&jobs, "state", "ended") == 50).then_some(jobs)
    });
    assert_eq!(count(&ended, "outcome", "done"), 45, "{ended:#?}");
    let calls = calls(&mine);
    let different: BTreeSet<&String> = calls.iter().collect();
    assert_eq!((calls.len(), different.len()), (50, 50), "each is run once");
    let of: BTreeSet<String> = ended.iter().map(|job| text(&job["run"])).collect();
    assert_eq!(of.len(), 50, "each by a run of its own");
    assert!(second.is_alive());
}

/// What is only in the dispatcher's memory is lost with it.
#[test]
fn f_r21_parked_jobs_and_runs_stay_parked_until_the_same_time_when_the_dispatcher_is_killed() {
    let env = env();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let reset = now.as_secs() + 7200;
    let claude = fake_claude(&env, &format!("keeps; init; limited {reset}"));
    Scripted::new(&env, "mine", "init; done_");
    let ann = env.agent("ann");
    for n in 0..3 {
        let item = format!("wp:{n}");
        let words = ["run", "claude", &item, "--queue", "--share-dir"];
        ann.tenure(&[&words[..], &["--prompt", "do it"]].concat())
            .ok();
    }
    let words = ["dispatch", "--concurrency", "1", "--json"];
    let first = ann.start(Cmd::new("tenure").args(words));
    let waiting = || -> Vec<(Value, Value, Value)> {
        let jobs = jobs(&env).into_iter();
        let of_claude = jobs.filter(|job| job["agent"] == "claude");
        of_claude
            .map(|job| {
                (
                    job["id"].clone(),
                    job["state"].clone(),
                    job["parked"].clone(),
                )
            })
            .collect()
    };
    let before = poll(SOON, "all are parked", || {
        let run = all(&env).into_iter().next()?;
        let jobs = waiting();
        let is_parked = run["outcome"] == "parked" && jobs.iter().all(|one| one.1 == "parked");
        is_parked.then(|| (jobs, run["parked_until"].clone()))
    });
    first.kill9();
    // It takes jobs: one of an agent that is not parked is run.
    enqueue(&ann, "wp:9", "do it");
    let second = ann.start(Cmd::new("tenure").args(words));
    poll(SOON, "the other agent's job is done", || {
        let jobs = jobs(&env);
        (count(&jobs, "outcome", "done") == 1).then_some(())
    });
    let of_claude = || all(&env).into_iter().find(|run| run["agent"] == "claude");
    let run = of_claude().unwrap();
    assert_eq!(run["outcome"], "parked", "{run:#}");
    assert_eq!((waiting(), run["parked_until"].clone()), before);
    let calls = std::fs::read_to_string(claude.join("calls")).unwrap();
    assert_eq!(calls.lines().count(), 1, "{calls}");
    assert!(second.is_alive());
}

/// A queue that frees jobs by a clock runs a slow one again.
#[test]
fn f_r03_a_job_whose_runner_is_stopped_longer_than_every_timer_is_not_run_again() {
    let mut env = env();
    env.set("TENURE_LEASE", "1s");
    env.set("TENURE_LOCK_DELAY", "1s");
    let mine = Scripted::new(&env, "mine", NOTES);
    mine.keep("flag");
    let ann = env.agent("ann");
    enqueue(&ann, "wp:1", "first");
    let dispatcher = dispatch(&ann);
    let running = poll(SOON, "the agent works and is named", || {
        all(&env)
            .into_iter()
            .find(|run| run["native_id"].is_string())
    });
    enqueue(&ann, "wp:1", "second");
    let stopped = [runner_of(&running), pid_of(&running)];
    let signal = |name: &str| {
        for pid in stopped {
            let words = [format!("-{name}"), pid.to_string()];
            ann.run(Cmd::new("kill").args(words)).ok();
        }
    };
    signal("STOP");
    let began = Instant::now();
    poll(SOON, "lease and lock delay are over", || {
        (began.elapsed() > Duration::from_secs(3)).then_some(())
    });
    // Each new dispatcher sweeps at once; the last one stays.
    dispatcher.kill9();
    for n in 2..5 {
        let next = dispatch(&ann);
        let item = format!("wp:{n}");
        enqueue(&ann, &item, "another item, so that it looks");
        poll(SOON, "it looked", || {
            let jobs = jobs(&env);
            let other = jobs.iter().find(|job| job["item"] == item)?;
            (other["state"] == "begun").then_some(())
        });
        assert!(next.signal(Signal::TERM));
        next.wait().ok();
        let of = jobs(&env);
        let of: Vec<&Value> = of.iter().filter(|job| job["item"] == "wp:1").collect();
        assert_eq!(of.len(), 2);
        assert!(of.iter().any(|job| job["state"] == "begun"), "{of:#?}");
        assert!(of.iter().any(|job| job["state"] == "queued"), "{of:#?}");
    }
    let _last = dispatch(&ann);
    std::fs::remove_file(mine.file("flag")).unwrap();
    signal("CONT");
    poll(SOON, "all end", || {
        let jobs = jobs(&env);
        (count(&jobs, "outcome", "done") == jobs.len()).then_some(())
    });
    let calls = calls(&mine);
    let different: BTreeSet<&String> = calls.iter().collect();
    assert_eq!(calls.len(), different.len(), "each is run once: {calls:?}");
    assert_eq!(calls.len(), jobs(&env).len());
}

/// The next dispatcher has the same host name, user and pid namespace as the one that died.
#[test]
fn f_r04_a_dispatcher_that_starts_again_takes_over_no_job_of_a_runner_that_lives() {
    let env = env();
    let mine = Scripted::new(&env, "mine", NOTES);
    mine.keep("flag");
    let ann = env.agent("ann");
    for n in 0..4 {
        enqueue(&ann, &format!("wp:{n}"), "do it");
    }
    let first = dispatch(&ann);
    poll(SOON, "all four work", || {
        (calls(&mine).len() == 4).then_some(())
    });
    let runs = poll(SOON, "all four are named", || {
        let runs = all(&env);
        let named = runs.iter().filter(|run| run["native_id"].is_string());
        (named.count() == 4).then_some(runs)
    });
    // Two lose their runner, and one of those its agent too.
    let dead = text(&runs[0]["id"]);
    let orphan = text(&runs[1]["id"]);
    let pids = [runner_of(&runs[0]), pid_of(&runs[0]), runner_of(&runs[1])];
    first.kill9();
    pids.iter().for_each(|pid| kill9(&ann, *pid));
    let _second = dispatch(&ann);
    let of = |run: &str| {
        let jobs = jobs(&env);
        jobs.into_iter().find(|job| job["run"] == *run)
    };
    poll(SOON, "the dead one has an end", || {
        (of(&dead)?["outcome"] == "interrupted").then_some(())
    });
    for run in &runs[1..] {
        let job = of(&text(&run["id"])).expect("it has a job");
        assert_eq!(job["state"], "begun", "its agent lives: {job:#}");
    }
    std::fs::remove_file(mine.file("flag")).unwrap();
    poll(SOON, "the others end", || {
        (count(&jobs(&env), "state", "ended") == 4).then_some(())
    });
    assert_eq!(of(&orphan).expect("a job")["outcome"], "done");
    assert_eq!(calls(&mine).len(), 4, "each is run once");
}
