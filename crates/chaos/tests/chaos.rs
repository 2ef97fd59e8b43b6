//! A short run of the chaos with fixed seeds; `scripts/chaos` runs it for longer.

use std::path::PathBuf;
use std::time::Duration;

use tenure_chaos::run::{Backend, Options, Report, run, run_queue};

fn no_wrong_answer(seed: u64) {
    nothing_wrong(run, seed);
}

fn nothing_wrong(run: fn(&Options) -> std::io::Result<Report>, seed: u64) {
    nothing_wrong_on(Backend::Sqlite, 3, run, seed);
}

fn nothing_wrong_on(
    store: Backend,
    seconds: u64,
    run: fn(&Options) -> std::io::Result<Report>,
    seed: u64,
) {
    let report = run(&Options {
        store,
        program: PathBuf::from(env!("CARGO_BIN_EXE_chaos")),
        length: Duration::from_secs(seconds),
        workers: 8,
        seed,
        // Other tests have their processes in the same namespace.
        own_pids: false,
        keep: false,
        faults: None,
    })
    .expect("the chaos can be run");
    assert!(report.judgement.violations.is_empty(), "{report}");
    // On a server that is down or cut off half of the time, the many small steps of a job get few answers.
    let least = if store == Backend::Sqlite { 50 } else { 10 };
    assert!(report.judgement.calls > least, "nothing happened: {report}");
    assert!(report.harm.kills > 0 && report.harm.stops > 0, "{report}");
    // Others may get no namespaces.
    let is_root = rustix::process::geteuid().is_root();
    assert!(report.harm.apart || !is_root, "{report}");
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

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn a_server_that_is_harmed_gives_no_wrong_answer() {
    nothing_wrong_on(Backend::Postgres, 20, run, 1);
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn f_s03_a_server_behind_a_pooler_that_is_harmed_gives_no_wrong_answer() {
    nothing_wrong_on(Backend::Pooled, 20, run, 2);
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn a_server_that_is_harmed_loses_no_job_and_runs_none_twice() {
    nothing_wrong_on(Backend::Postgres, 30, run_queue, 3);
}
