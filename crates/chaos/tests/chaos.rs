//! A short run of the chaos with fixed seeds; `scripts/chaos` runs it for longer.

use std::path::PathBuf;
use std::time::Duration;

use tenure_chaos::run::{Options, Report, run, run_queue};

fn no_wrong_answer(seed: u64) {
    nothing_wrong(run, seed);
}

fn nothing_wrong(run: fn(&Options) -> std::io::Result<Report>, seed: u64) {
    let report = run(&Options {
        program: PathBuf::from(env!("CARGO_BIN_EXE_chaos")),
        length: Duration::from_secs(3),
        workers: 8,
        seed,
        // Other tests have their processes in the same namespace.
        own_pids: false,
    })
    .expect("the chaos can be run");
    assert!(report.judgement.violations.is_empty(), "{report}");
    assert!(report.judgement.calls > 50, "nothing happened: {report}");
    assert!(report.harm.kills > 0 && report.harm.stops > 0, "{report}");
}

#[test]
fn killed_and_stopped_workers_get_no_wrong_answer_first_seed() {
    no_wrong_answer(1);
}

#[test]
fn killed_and_stopped_workers_get_no_wrong_answer_second_seed() {
    no_wrong_answer(2);
}

#[test]
fn f_r02_f_r06_killed_and_stopped_workers_lose_no_job_and_run_none_twice_first_seed() {
    nothing_wrong(run_queue, 1);
}

#[test]
fn f_r02_f_r06_killed_and_stopped_workers_lose_no_job_and_run_none_twice_second_seed() {
    nothing_wrong(run_queue, 2);
}
