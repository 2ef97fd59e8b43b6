//! A queue that is worked off while the disk of its store is full.

use serde_json::Value;
use tenure_testkit::{Scripted, poll};

use crate::env;
use crate::support::line::SOON;
use crate::support::small_disk::SmallDisk;
use crate::support::webhook::{Dispatcher, issue, set_up};

const WORKS: &str =
    "echo $mode >>$dir/calls; init; ready $dir/on; hold $dir/flag; done_; ready $dir/done";

/// The events that a dispatcher printed, by name.
fn events(door: &Dispatcher) -> Vec<String> {
    let said = door.process.stdout();
    let lines = said
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines
        .filter_map(|line| line["event"].as_str().map(str::to_owned))
        .collect()
}

#[test]
fn a_full_disk_holds_the_queue_up_and_every_job_runs_once() {
    let env = env();
    let mine = Scripted::new(&env, "mine", WORKS);
    let flag = mine.keep("flag");
    set_up(&env, "");
    let ann = env.agent("ann");
    let (disk, door) = SmallDisk::dispatcher(&env, &ann);
    let accepts = |delivery: &str, number: u64| {
        let (status, answer) = door.deliver("issues", delivery, &issue(number, "opened"));
        assert_eq!(status, 202, "{answer}");
    };
    accepts("d-1", 6);
    poll(SOON, "the first job runs", || mine.wrote("on"));
    disk.fill();
    let (status, answer) = door.deliver("issues", "d-2", &issue(7, "opened"));
    // A log that was just copied into the store has room for a few more.
    assert!(matches!(status, 202 | 503), "{status}: {answer}");
    std::fs::remove_file(flag).expect("it was kept");
    poll(SOON, "the agent has ended", || mine.wrote("done"));
    disk.make_room();
    if status == 503 {
        accepts("d-2", 7);
    }
    accepts("d-3", 8);
    poll(SOON * 4, "all three have run", || {
        let calls = std::fs::read_to_string(mine.file("calls")).unwrap_or_default();
        let started = events(&door)
            .iter()
            .filter(|event| *event == "job.started")
            .count();
        (calls.lines().count() == 3 && started == 3).then_some(())
    });
    assert!(door.process.is_alive(), "{}", door.process.stderr());
}
