//! The files of old runs are removed, by age and by count; those of a run that may still need them never.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use serde_json::Value;
use tenure_testkit::{Agent, Env, Scripted, poll};

use crate::env;
use crate::support::line::SOON;
use crate::support::run::{all, newest, outcome, run, start};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// An environment with a scripted agent and these settings.
fn place(settings: &[(&str, &str)]) -> (Env, Scripted, Agent) {
    let mut env = env();
    for (name, value) in settings {
        env.set(name, *value);
    }
    let mine = Scripted::new(&env, "mine", "init; done_");
    let ann = env.agent("ann");
    (env, mine, ann)
}

fn dir_of(run: &Value) -> PathBuf {
    PathBuf::from(run["log"].as_str().expect("a log"))
}

/// Makes a run look as if it had ended so long ago.
fn aged(env: &Env, run: &Value, age: Duration) {
    let then = SystemTime::now() - age;
    let dir = std::fs::File::open(dir_of(run)).expect("it is there");
    dir.set_modified(then).expect("it is ours");
    let ms = i64::try_from(age.as_millis()).expect("not that long");
    let id = run["id"].as_str().expect("an id");
    store(env)
        .execute(
            "UPDATE runs SET ended_at = ended_at - ?2 WHERE id = ?1",
            rusqlite::params![id, ms],
        )
        .expect("the store is writable");
}

fn store(env: &Env) -> rusqlite::Connection {
    rusqlite::Connection::open(env.state().join("tenure.db")).expect("it is there")
}

/// The next run looks for old files.
fn is_due(env: &Env) {
    std::fs::remove_file(env.state().join("runs/.swept")).ok();
}

#[test]
fn the_files_of_an_old_run_are_removed_and_its_record_stays() {
    let (env, _mine, ann) = place(&[]);
    run(&ann, "mine wp:1").ok();
    let old = newest(&env);
    run(&ann, "mine wp:2").ok();
    let younger = newest(&env);
    aged(&env, &old, DAY * 31);
    aged(&env, &younger, DAY * 29);
    run(&ann, "mine wp:3").ok();
    assert!(dir_of(&old).exists(), "not more than once in an hour");
    is_due(&env);
    run(&ann, "mine wp:4").ok();
    assert!(!dir_of(&old).exists());
    assert!(dir_of(&younger).exists());
    let id = old["id"].as_str().unwrap();
    let shown = ann.tenure(&["runs", "show", id, "--json"]).ok().json();
    assert_eq!(shown["run"]["outcome"], "done");
    let gone = ann.tenure(&["runs", "tail", id]).fails(4);
    assert!(gone.stderr.contains("the log of run"), "{gone}");
    let left: Vec<_> = std::fs::read_dir(env.state().join("runs"))
        .unwrap()
        .collect();
    assert_eq!(left.len(), 4, "three runs and the marker: {left:?}");
}

#[test]
fn of_many_runs_the_newest_keep_their_files() {
    let (env, _mine, ann) = place(&[("TENURE_RUN_KEEP_LAST", "2")]);
    for number in 1..=4 {
        run(&ann, &format!("mine wp:{number}")).ok();
        aged(&env, &newest(&env), DAY * (5 - number));
    }
    let before = all(&env);
    is_due(&env);
    run(&ann, "mine wp:5").ok();
    let there: Vec<bool> = before.iter().map(|run| dir_of(run).exists()).collect();
    assert_eq!(there, [true, false, false, false], "the newest first");
}

#[test]
fn a_run_that_is_live_parked_or_not_recorded_keeps_its_files() {
    let (env, mine, ann) = place(&[("TENURE_RUN_KEEP_FOR", "1s"), ("TENURE_RUN_KEEP_LAST", "0")]);
    run(&ann, "mine wp:1").ok();
    let parked = newest(&env);
    aged(&env, &parked, DAY);
    store(&env)
        .execute(
            "UPDATE runs SET outcome = 'parked', parked_until = created_at + 600000",
            [],
        )
        .unwrap();
    let unknown = env.state().join("runs/r-zzzzzzzzzz");
    std::fs::create_dir(&unknown).unwrap();
    // An agent wrote to it: another store has the record.
    std::fs::write(unknown.join("output.jsonl"), "{}\n").unwrap();
    let long_ago = SystemTime::now() - DAY * 400;
    std::fs::File::open(&unknown)
        .unwrap()
        .set_modified(long_ago)
        .unwrap();
    mine.does("init; ready $dir/on; hold $dir/flag; done_");
    mine.keep("flag");
    is_due(&env);
    let window = start(&ann, "mine wp:2");
    poll(SOON, "it works", || mine.wrote("on"));
    let live = newest(&env);
    std::fs::File::open(dir_of(&live))
        .unwrap()
        .set_modified(long_ago)
        .unwrap();
    mine.does("init c-3; done_");
    is_due(&env);
    run(&ann, "mine wp:3 --share-dir").ok();
    let done = newest(&env);
    for kept in [dir_of(&parked), dir_of(&live), unknown.clone()] {
        assert!(kept.exists(), "{}", kept.display());
    }
    std::fs::remove_file(mine.file("flag")).unwrap();
    window.wait().ok();
    assert_eq!(outcome(&env), "done");
    // The others may go now.
    aged(&env, &live, DAY);
    aged(&env, &done, DAY);
    is_due(&env);
    run(&ann, "mine wp:4").ok();
    assert!(!dir_of(&live).exists() && !dir_of(&done).exists());
    assert!(dir_of(&parked).exists() && unknown.exists());
}

/// A runner that is killed while it waits to start its agent leaves its order and its prompt.
#[test]
fn what_is_left_of_a_run_that_was_never_recorded_goes_after_a_day_unless_a_process_uses_it() {
    let (env, mine, ann) = place(&[]);
    mine.does("init; ready $dir/on; hold $dir/flag; done_");
    mine.keep("flag");
    let holder = start(&ann, "mine wp:1");
    poll(SOON, "it works", || mine.wrote("on"));
    let before = dirs(&env);
    let waits = [
        start(&ann, "mine wp:1 --wait 10m"),
        start(&ann, "mine wp:1 --wait 10m"),
    ];
    let left = poll(SOON, "both wait", || {
        let new: Vec<PathBuf> = dirs(&env)
            .into_iter()
            .filter(|dir| !before.contains(dir))
            .collect();
        let has_prompt = |dir: &PathBuf| dir.join("prompt").exists();
        (new.len() == 2 && new.iter().all(has_prompt)).then_some(new)
    });
    let runners = left.iter().map(|dir| runner_with(dir)).collect::<Vec<_>>();
    crate::support::run::kill9(&ann, runners[0]);
    for dir in &left {
        let dir = std::fs::File::open(dir).unwrap();
        dir.set_modified(SystemTime::now() - DAY * 2).unwrap();
    }
    mine.does("init c-$$; done_");
    is_due(&env);
    run(&ann, "mine wp:9 --share-dir").ok();
    assert!(!left[0].exists(), "its runner was killed");
    assert!(left[1].exists(), "its runner waits");
    std::fs::remove_file(mine.file("flag")).unwrap();
    holder.wait().ok();
    let codes = waits.map(|window| window.wait().code);
    let good = codes.iter().filter(|code| **code == 0);
    assert_eq!(good.count(), 1, "the other's runner was killed: {codes:?}");
}

fn dirs(env: &Env) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(env.state().join("runs"))
        .expect("a scratch directory can be read and written");
    let paths = entries.map(|entry| {
        entry
            .expect("a scratch directory can be read and written")
            .path()
    });
    paths.filter(|path| path.is_dir()).collect()
}

/// The process that was started with this directory.
fn runner_with(dir: &std::path::Path) -> u32 {
    let entries = std::fs::read_dir("/proc")
        .expect("a scratch directory can be read and written")
        .flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_it = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let mut words = line.split(|byte| *byte == 0);
        words.any(|word| word == b"__runner")
            && words.any(|word| word == dir.as_os_str().as_encoded_bytes())
    };
    let mut found = pids.filter(is_it);
    found.next().expect("a runner")
}

#[test]
fn a_run_that_was_refused_leaves_nothing() {
    let (env, mine, ann) = place(&[]);
    mine.does("init; ready $dir/on; hold $dir/flag; done_");
    mine.keep("flag");
    let holder = start(&ann, "mine wp:1");
    poll(SOON, "it works", || mine.wrote("on"));
    run(&ann, "mine wp:1").fails(125);
    assert_eq!(dirs(&env).len(), 1);
    let temporary = std::fs::read_dir(env.state().join("tmp")).unwrap();
    assert_eq!(temporary.count(), 1, "the run that works has one");
    std::fs::remove_file(mine.file("flag")).unwrap();
    holder.wait().ok();
}

#[test]
fn what_a_removal_that_was_killed_left_is_removed_by_the_next() {
    let (env, _mine, ann) = place(&[]);
    run(&ann, "mine wp:1").ok();
    let half = env.state().join("runs/.gone-r-zzzzzzzzzz");
    std::fs::create_dir(&half).unwrap();
    std::fs::write(half.join("output.jsonl"), "half").unwrap();
    is_due(&env);
    run(&ann, "mine wp:2").ok();
    assert!(!half.exists());
}

#[test]
fn the_temporary_files_of_a_run_whose_runner_died_go_with_its_end() {
    let (env, mine, ann) = place(&[]);
    mine.does("init; : >$TMPDIR/left; ready $dir/on; hold $dir/flag; done_");
    mine.keep("flag");
    let window = start(&ann, "mine wp:1");
    poll(SOON, "it works", || mine.wrote("on"));
    let id = newest(&env)["id"].as_str().unwrap().to_owned();
    let temporary = env.state().join("tmp").join(id);
    assert!(temporary.join("left").exists());
    crate::support::run::kill9(&ann, crate::support::run::runner_of(&newest(&env)));
    std::fs::remove_file(mine.file("flag")).unwrap();
    window.wait().ok();
    assert_eq!(outcome(&env), "done");
    assert!(!temporary.exists());
}
