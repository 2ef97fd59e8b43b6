//! A disk that fails at each of its calls in turn, and a power cut at many moments.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use tempfile::TempDir;
use tenure_chaos::faults::{Failing, LIBRARY, environment, failed};
use tenure_chaos::record::JOURNAL;
use tenure_chaos::run::{Backend, Options, run};
use tenure_chaos::worker::{DATABASE, STATE};
use tenure_core::store::{Store, TxMode};
use tenure_store::SqliteStore;
use tenure_testkit::conformance::sample;

fn scratch() -> TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::create_dir(dir.path().join(STATE)).expect("a directory");
    dir
}

/// A process that keeps a session, and is gone before it closes anything.
fn keep_one(dir: &Path, number: u32, failing: Option<u64>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_chaos"));
    command.arg("keep-one").arg(dir).arg(number.to_string());
    if let Some(at) = failing {
        command.envs(environment(dir, Failing::At(at), 1).expect("a compiler"));
    }
    command.output().expect("it starts")
}

fn is_kept(dir: &Path, number: u32) -> bool {
    let database = dir.join(STATE).join(DATABASE);
    let mut store = SqliteStore::open(&database, sample::clock()).expect("the store opens");
    let mut tx = store.begin(TxMode::Read).expect("and is read");
    let found = tx.session(sample::id(number));
    found.expect("and is whole").is_some()
}

/// Lets each call of a process fail in turn. Before it, so many others have used the store.
fn each_call_fails(before: u32) {
    let compiled = scratch();
    environment(compiled.path(), Failing::At(1), 1).expect("a compiler");
    for at in 1.. {
        let scratch = scratch();
        let dir = scratch.path();
        let library = Path::new(LIBRARY);
        std::fs::copy(compiled.path().join(library), dir.join(library)).expect("a copy");
        (0..before).for_each(|number| assert!(keep_one(dir, number, None).status.success()));
        let kept = keep_one(dir, before, Some(at));
        let said = String::from_utf8_lossy(&kept.stderr).into_owned();
        let next = keep_one(dir, before + 1, None);
        assert!(next.status.success(), "call {at}, {said}: then {next:?}");
        for number in 0..before + 2 {
            let is_kept = is_kept(dir, number);
            match (number == before, kept.status.code()) {
                (true, Some(1)) => assert!(!is_kept, "call {at}: refused and kept: {said}"),
                (true, Some(2)) => {}
                _ => assert!(is_kept, "call {at}: {number} is lost: {said}"),
            }
        }
        if failed(&dir.join(JOURNAL)).expect("a journal") == 0 {
            assert!(kept.status.success() && at > 2, "call {at}: {said}");
            return;
        }
    }
}

#[test]
fn whichever_write_of_a_new_store_fails_it_is_made_whole_by_the_next() {
    each_call_fails(0);
}

#[test]
fn whichever_write_of_a_change_fails_it_is_made_or_refused() {
    each_call_fails(2);
}

/// A short run of what the long tier does for five minutes.
#[test]
fn a_power_cut_on_a_disk_that_fails_loses_nothing_that_was_acknowledged() {
    for (seed, faults) in [(1, 0), (2, 60)] {
        let report = run(&Options {
            store: Backend::Sqlite,
            program: PathBuf::from(env!("CARGO_BIN_EXE_chaos")),
            length: Duration::from_secs(4),
            workers: 8,
            seed,
            own_pids: false,
            keep: false,
            faults: Some(faults),
        })
        .expect("the chaos can be run");
        assert!(report.judgement.violations.is_empty(), "{report}");
        let disk = report.harm.failures;
        assert!(disk.cuts > 3 && disk.unsaved > 50, "{report}");
        assert_eq!(disk.failed > 0, faults > 0, "{report}");
    }
}

/// Where no write ever failed, nothing is known of failed writes.
#[test]
fn a_run_in_which_a_kind_of_harm_never_happened_is_inconclusive() {
    let run = |conclusive_from: &str| {
        Command::new(env!("CARGO_BIN_EXE_chaos"))
            .args(["--seconds", "4", "--workers", "4", "--seed", "5"])
            .args(["--faults", "1000000000"])
            .args(["--conclusive-from", conclusive_from])
            // Other tests have their processes in the same namespace.
            .env_remove("TENURE_APART")
            .output()
            .expect("it starts")
    };
    let told = |output: &Output| String::from_utf8_lossy(&output.stdout).into_owned();

    let long = run("4");
    let said = told(&long);
    assert_eq!(long.status.code(), Some(3), "{long:?}");
    let never = "claims: inconclusive, never happened: failed writes and syncs\n";
    assert!(said.contains(never), "{said}");
    let proof = said.lines().last().unwrap_or_default();
    assert!(proof.starts_with("proof: claims, seed 5, 4 s: "), "{said}");
    assert!(proof.contains(" 0 failed writes and syncs; "), "{said}");
    assert!(proof.ends_with(" 0 violations, inconclusive"), "{said}");

    let short = run("150");
    assert!(short.status.success(), "{short:?}");
    assert!(!told(&short).contains("inconclusive"), "{short:?}");
}
