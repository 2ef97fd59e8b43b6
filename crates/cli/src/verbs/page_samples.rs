//! What commands say about failures of the machine that no test can make, and about what is too large or too rare
//! for one.

use std::io::{Error, ErrorKind};

use tenure_app::kill::EndedBy;
use tenure_app::store_admin::{Backend, StoreView};
use tenure_core::time::Timestamp;
use tenure_host::kernel_lock::LockError;

use super::demo::worker::Fault;
use super::hook::deadline::{NO_EVENT, Step, timed_out};
use super::{end, locks, man, ps, resume, runs, store};
use crate::error_samples::shown;
use crate::hooks_setup::register;
use crate::lines::Lines;
use crate::message_page::compare;
use crate::output::{CliError, ago};
use crate::unexpected;

#[test]
fn every_failure_of_the_machine_is_on_its_page() {
    let mut page = "## A failure of the machine\n\n".to_owned();
    for error in machine() {
        page += &shown(&error);
    }
    page += "\n## A worker of the demo that fails\n\n";
    for fault in faults() {
        page += &shown(&CliError::from(fault));
    }
    page += "\n## A panic, to people and to programs\n\n";
    let told = unexpected::told(&"panicked at crates/cli/src/verbs/ps.rs:7:5: seven of nine");
    told.as_str()
        .lines()
        .for_each(|line| page += &format!("! {line}\n"));
    page += "exit 70\n\n";
    page += &shown(&unexpected::failure(&"seven of nine", &[]));
    page += &shown(&unexpected::failure(&7, &[]));
    page += "\n## A hook without an event\n\n";
    page += &format!("! {}exit 0\n\n", String::from_utf8_lossy(NO_EVENT));
    page += "\n## What ended a process\n\n";
    for ended_by in [EndedBy::Itself, EndedBy::Term, EndedBy::Kill] {
        page += &format!("{}\n", end::how(4711, ended_by));
    }
    page += "\n\n## How many runs are not listed\n\n";
    for is_least in [false, true] {
        let mut lines = Lines::default();
        runs::list::rest(&mut lines, 1_000, is_least);
        page += &format!("{}\n", lines.as_str());
    }
    page += "\n\n## A store on a server that was migrated, and a standby\n\n";
    page += &format!("{}\n", store::migrate::done(&migrated()).as_str());
    page += "\n\n## How long ago\n\n";
    for age in [0, 999, 1_000, 90_000] {
        page += &format!("{}\n", ago(Timestamp(0), Timestamp(age)));
    }
    compare("99-machine-failures", &page);
}

fn machine() -> Vec<CliError> {
    let failed = || Error::from(ErrorKind::PermissionDenied);
    let held = |name: &str| LockError::Held { name: name.into() };
    let mut all = vec![
        register::lock_error(held("/home/dev/.tenure/installed.json")),
        resume::busy(&held("tenure-resume-all")),
        locks::unlisted(&failed()),
        ps::no_terminal(&failed()),
        man::unmade(&failed()),
    ];
    all.extend([Step::Settings, Step::Processes, Step::Store].map(timed_out));
    all
}

fn faults() -> Vec<Fault> {
    let failed = || Error::from(ErrorKind::BrokenPipe);
    vec![
        Fault::NoProgram(failed()),
        Fault::NotStarted(failed()),
        Fault::NoPipes,
        Fault::NotWritten(failed()),
        Fault::NotRead(failed()),
        Fault::Nonsense("no JSON".into()),
        Fault::NotDead(failed()),
        Fault::NotStopped,
        Fault::NotSignalled(failed()),
    ]
}

fn migrated() -> StoreView {
    StoreView {
        location: "postgres://ann@db.example/work".into(),
        backend: Backend::Postgres,
        shared: true,
        server: Some("17.2".into()),
        role: Some("ann".into()),
        schema: Some(2),
        supported: Some(2),
        standby: true,
        warnings: Vec::new(),
        migrated_from: Some(1),
        copied_from: None,
        copied_rows: None,
    }
}
