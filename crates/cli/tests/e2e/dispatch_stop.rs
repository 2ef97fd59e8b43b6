//! `dispatch stop`: the dispatcher alone, or with its runs.

use serde_json::{Value, json};
use tenure_testkit::{Agent, Background, Cmd, Env, Scripted, Signal, poll};

use crate::env;
use crate::support::line::{SOON, text};
use crate::support::run::all;

fn dispatch(agent: &Agent) -> Background {
    let words = ["dispatch", "--concurrency", "10", "--json"];
    let process = agent.start(Cmd::new("tenure").args(words));
    poll(SOON, "it works", || {
        process.stdout().contains("working").then_some(())
    });
    process
}

fn enqueue(agent: &Agent, item: &str) {
    let words = [
        "run",
        "mine",
        item,
        "--prompt",
        "do it",
        "--queue",
        "--share-dir",
    ];
    agent.tenure(&words).ok();
}

fn jobs(env: &Env) -> Vec<Value> {
    let answer = env.tenure(&["queue", "--all", "--json"]).ok().json();
    answer["jobs"].as_array().expect("a list").clone()
}

#[track_caller]
fn begun(env: &Env, count: usize) {
    poll(SOON * 2, "all work", || {
        let is_begun = |job: &&Value| job["state"] == "begun";
        (jobs(env).iter().filter(is_begun).count() == count).then_some(())
    });
}

/// Processes that carry a variable of this environment's runs.
fn carriers(env: &Env) -> Vec<u32> {
    let home = format!("TENURE_HOME={}", env.state().display());
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")
        .expect("there is /proc")
        .flatten()
    {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<u32>().ok())
        else {
            continue;
        };
        let Ok(all) = std::fs::read(entry.path().join("environ")) else {
            continue;
        };
        let mut parts = all.split(|byte| *byte == 0);
        let is_run = parts.clone().any(|part| part.starts_with(b"TENURE_RUN="));
        if is_run && parts.any(|part| part == home.as_bytes()) {
            found.push(pid);
        }
    }
    found
}

#[test]
fn f_r09_stopping_the_dispatcher_leaves_its_run_which_is_recorded_once_and_frees_its_slot() {
    let env = env();
    let mine = Scripted::new(
        &env,
        "mine",
        "echo ran >>$dir/calls; init; ready $dir/on; hold $dir/flag; done_",
    );
    mine.keep("flag");
    let ann = env.agent("ann");
    let words = ["dispatch", "--concurrency", "1", "--json"];
    let first = ann.start(Cmd::new("tenure").args(words));
    enqueue(&ann, "wp:1");
    begun(&env, 1);
    let said = env.tenure(&["dispatch", "stop", "--json"]).ok().json();
    let stopped = said["stopped"]["dispatchers"].as_array().unwrap();
    assert_eq!(stopped.len(), 1, "{said:#}");
    assert_eq!(said["stopped"]["runs"], json!([]));
    first.wait().ok();
    assert_eq!(all(&env)[0]["state"], "running", "it goes on");
    enqueue(&ann, "wp:2");
    let second = ann.start(Cmd::new("tenure").args(words));
    std::fs::remove_file(mine.file("flag")).unwrap();
    poll(SOON, "the slot is free again", || {
        jobs(&env)
            .iter()
            .all(|job| job["state"] == "ended")
            .then_some(())
    });
    assert!(jobs(&env).iter().all(|job| job["outcome"] == "done"));
    assert_eq!(mine.wrote("calls").unwrap(), "ran\nran\n", "each once");
    let log = env.tenure(&["log", "wp:1", "--json"]).ok().json();
    let ends = log["events"].as_array().unwrap().iter();
    assert_eq!(ends.filter(|event| event["kind"] == "run.ended").count(), 1);
    assert!(second.signal(Signal::TERM));
    second.wait().ok();
}

#[test]
fn f_r11_runs_that_were_stopped_with_the_dispatcher_go_on_in_their_conversation() {
    let env = env();
    let mine = Scripted::new(
        &env,
        "mine",
        "echo $mode $id >>$dir/calls; cat >$dir/prompt; init; ready $dir/on; hold $dir/flag; done_",
    );
    mine.keep("flag");
    let ann = env.agent("ann");
    let dispatcher = dispatch(&ann);
    enqueue(&ann, "wp:1");
    begun(&env, 1);
    poll(SOON, "its conversation is known", || {
        (all(&env)[0]["native_id"] == "c-1").then_some(())
    });
    let words = ["dispatch", "stop", "--runs", "--reason", "reboot", "--json"];
    let said = env.tenure(&words).ok().json();
    let run = &said["stopped"]["runs"][0];
    assert_eq!(
        (&run["outcome"], &run["why"]),
        (&json!("stopped"), &json!("reboot"))
    );
    dispatcher.wait().ok();
    assert_eq!(jobs(&env)[0]["outcome"], "stopped");
    std::fs::remove_file(mine.file("flag")).unwrap();
    ann.tenure(&["runs", "resume", &text(&run["id"])]).ok();
    assert_eq!(mine.wrote("calls").unwrap(), "fresh c-1\nresume c-1\n");
    let prompt = mine.wrote("prompt").unwrap();
    assert!(prompt.contains("Your last turn was cut off"), "{prompt}");
}

#[test]
fn f_r13_no_process_of_ten_runs_is_left_when_they_were_stopped_with_the_dispatcher() {
    let env = env();
    let mine = Scripted::new(
        &env,
        "mine",
        "init c-$TENURE_RUN; setsid sleep 1000 & (sleep 1000 & wait) & ready $dir/on-$TENURE_RUN; hold $dir/flag; done_",
    );
    mine.keep("flag");
    let ann = env.agent("ann");
    let dispatcher = dispatch(&ann);
    for number in 0..10 {
        enqueue(&ann, &format!("wp:{number}"));
    }
    begun(&env, 10);
    poll(SOON, "each has its processes", || {
        (carriers(&env).len() >= 30).then_some(())
    });
    let said = env
        .tenure(&["dispatch", "stop", "--runs", "--json"])
        .ok()
        .json();
    let runs = said["stopped"]["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 10, "{said:#}");
    assert!(runs.iter().all(|run| run["outcome"] == "stopped"));
    assert_eq!(said["stopped"]["survivors"], json!([]));
    assert_eq!(carriers(&env), [0; 0]);
    assert!(!dispatcher.is_alive());
}

#[test]
fn runs_that_finish_in_time_are_done_and_what_waits_stays_queued() {
    let env = env();
    let mine = Scripted::new(&env, "mine", "init; ready $dir/on; hold $dir/flag; done_");
    mine.keep("flag");
    let ann = env.agent("ann");
    let words = ["dispatch", "--concurrency", "1", "--json"];
    let dispatcher = ann.start(Cmd::new("tenure").args(words));
    enqueue(&ann, "wp:1");
    begun(&env, 1);
    enqueue(&ann, "wp:2");
    let words = ["dispatch", "stop", "--runs", "--drain", "10m", "--json"];
    let stop = ann.start(Cmd::new("tenure").args(words));
    poll(SOON, "it takes no more", || {
        (!dispatcher.is_alive()).then_some(())
    });
    assert!(stop.is_alive(), "it waits for the run");
    std::fs::remove_file(mine.file("flag")).unwrap();
    let said = stop.wait().ok().json();
    assert_eq!(
        (&said["stopped"]["finished"], &said["stopped"]["runs"]),
        (&json!(1), &json!([]))
    );
    let states: Vec<String> = jobs(&env).iter().map(|job| text(&job["state"])).collect();
    assert_eq!(states, ["queued", "ended"]);
}

/// A note of a dispatcher that is gone, under a pid that another process has: it is never signalled.
#[test]
fn only_a_dispatcher_that_lives_is_signalled() {
    let env = env();
    Scripted::new(&env, "mine", "init; done_");
    let ann = env.agent("ann");
    env.tenure(&["dispatch", "stop"]).fails(4);
    let dispatcher = dispatch(&ann);
    let notes = env.state().join("dispatchers");
    let note = || std::fs::read_dir(&notes).unwrap().flatten().next();
    let path = note().expect("it left a note").path();
    let text = std::fs::read_to_string(&path).unwrap();
    dispatcher.kill9();
    poll(SOON, "it is gone", || {
        (!dispatcher.is_alive()).then_some(())
    });
    // The pid of a live process, with the start of the dead one.
    let mut stale: Value = serde_json::from_str(&text).unwrap();
    stale["process"]["pid"] = json!(ann.pid());
    std::fs::write(&path, stale.to_string()).unwrap();
    let said = env.tenure(&["dispatch", "stop", "--json"]).fails(4);
    assert_eq!(said.json()["error"]["kind"], "no_dispatcher");
    assert!(ann.is_alive());
    assert!(note().is_none(), "what is proved dead is forgotten");
    // With --runs it is no failure that none runs.
    env.tenure(&["dispatch", "stop", "--runs"]).ok();
}

/// A runner that was just started has not taken its job: nobody would see it begin after the stop.
#[test]
fn f_r13_no_run_begins_after_the_dispatcher_was_stopped_with_its_runs() {
    let env = env();
    let mine = Scripted::new(&env, "mine", "init c-$TENURE_RUN; hold $dir/flag; done_");
    mine.keep("flag");
    let ann = env.agent("ann");
    for round in 0..4 {
        for number in 0..4 {
            enqueue(&ann, &format!("wp:{round}-{number}"));
        }
        let dispatcher = dispatch(&ann);
        env.tenure(&["dispatch", "stop", "--runs"]).ok();
        assert!(!dispatcher.is_alive());
        assert_eq!(carriers(&env), [0; 0], "round {round}");
        let states = jobs(&env);
        let is_over = |job: &Value| job["state"] == "ended" || job["state"] == "queued";
        assert!(states.iter().all(is_over), "{states:#?}");
        // A runner that comes later would take one of those that wait.
        for job in states.iter().filter(|job| job["state"] == "queued") {
            env.tenure(&["queue", "cancel", &text(&job["id"])]).ok();
        }
    }
}
