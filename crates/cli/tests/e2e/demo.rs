//! The demo: it shows what it says, and leaves nothing behind.

use std::time::{Duration, Instant};

use tenure_testkit::pinned::Stat;
use tenure_testkit::{Cmd, Env, Output, poll};

use crate::env;

const CHAPTERS: [&str; 5] = [
    "three agents want one item at the same moment",
    "the winner is killed with -9; the next one asks once",
    "the new holder is stopped for longer than every timer",
    "a takeover, with a reason, on record",
    "a holder of two items is killed; another takes one; then it resumes",
];

/// Runs it in less than ten seconds.
fn demo(env: &Env, args: &[&str]) -> Output {
    let worker = env.agent("w");
    worker.set_patience(Duration::from_secs(10));
    let output = worker.tenure(&[&["demo"], args].concat());
    assert_nothing_is_left(env);
    output
}

/// The state directory of every process of the demo lies in this environment's TMPDIR.
fn processes_in(env: &Env) -> Vec<u32> {
    let scratch = env.dir().join("tmp/tenure-demo-");
    let scratch = scratch.to_str().expect("paths of tests are text");
    let all = std::fs::read_dir("/proc")
        .expect("there is a /proc")
        .flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let within = |pid: &u32| {
        let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        String::from_utf8_lossy(&environ).contains(scratch)
    };
    pids.filter(within).collect()
}

fn assert_nothing_is_left(env: &Env) {
    poll(
        Duration::from_secs(5),
        "the demo's processes are gone",
        || processes_in(env).is_empty().then_some(()),
    );
    let left: Vec<_> = std::fs::read_dir(env.dir().join("tmp"))
        .expect("it is there")
        .flatten()
        .collect();
    assert!(left.is_empty(), "{left:?}");
    assert!(!env.state().exists(), "the demo used the state directory");
}

#[test]
fn the_demo_plays_its_five_chapters_and_leaves_nothing_behind() {
    let env = env();
    let output = demo(&env, &[]).ok();
    let chapter = |line: &&str| !line.is_empty() && !line.starts_with(' ');
    let chapters: Vec<&str> = output.stdout.lines().filter(chapter).collect();
    assert_eq!(chapters[..5], CHAPTERS, "{output}");
    assert_eq!(chapters[5..], ["nothing is left behind"], "{output}");
    assert!(output.stdout.contains("refused, exit 5"), "{output}");
    assert_eq!(output.stderr, "");
}

#[test]
fn the_demo_is_one_json_object_for_programs() {
    let env = env();
    let output = demo(&env, &["--json"]).ok();
    let json = output.json();
    assert_eq!(json["v"], 1);
    assert!(json["notices"].is_array());
    assert!(
        json["demo"].as_array().is_some_and(|told| told.len() >= 10),
        "{output}"
    );
    assert_eq!(output.stdout.lines().count(), 1);
}

#[test]
fn a_demo_inside_a_session_is_not_that_session() {
    let env = env();
    let outer = env.dir().join("outer");
    let home = [("TENURE_HOME", outer.to_str())];
    let claude = env.agent("claude");
    claude.tenure_env(&home, &["register"]).ok();
    claude.tenure_env(&home, &["demo"]).ok();
    let after = claude
        .tenure_env(&home, &["ps", "-a", "--json"])
        .ok()
        .json();
    assert_eq!(after["sessions"].as_array().map(Vec::len), Some(1));
    assert_nothing_is_left(&env);
}

/// A worker that is stopped does not see that its input closed.
#[test]
fn a_demo_that_is_killed_leaves_no_process() {
    let env = env();
    let worker = env.agent("w");
    let playing = worker.start(Cmd::new("tenure").arg("demo"));
    poll(Duration::from_secs(10), "a worker is stopped", || {
        processes_in(&env)
            .iter()
            .any(|pid| is_stopped(*pid))
            .then_some(())
    });
    playing.kill9();
    let end = Instant::now() + Duration::from_secs(5);
    let left = poll(Duration::from_secs(10), "its workers are gone", || {
        let left = processes_in(&env);
        (left.is_empty() || Instant::now() > end).then_some(left)
    });
    for pid in &left {
        env.agent("cleaner")
            .run(Cmd::shell(&format!("kill -9 {pid}")))
            .ok();
    }
    assert!(left.is_empty(), "{left:?} were left");
}

fn is_stopped(pid: u32) -> bool {
    Stat::read(pid).is_some_and(|stat| stat.state == 'T')
}
