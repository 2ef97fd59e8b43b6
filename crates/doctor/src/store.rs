//! The store: whether it opens, its content, its log, and whether there is another one.

use std::time::{Duration, SystemTime};

use tenure_app::location::{self, is_absent};
use tenure_app::outage;
use tenure_app::store_place::StorePlace;
use tenure_core::world::World;
use tenure_host::env::{self, Environment};
use tenure_host::state_dir::StateDir;
use tenure_host::{running, system};
use tenure_service::answer::Hint;

use crate::backup;
use crate::code::Code;
use crate::finding::{Finding, Found, Repair};
use crate::patient::Patient;

/// Agents are not shown the command.
const RESTORE: &str = "a person can put a backup in its place (`tenure help store restore` says how); what is there is kept";
/// A log that is longer is not being copied: somebody reads all the time.
const LONG_LOG: u64 = 4 << 20;
/// A store that changed within this time is in use.
const IN_USE: Duration = Duration::from_secs(7 * 24 * 3600);

pub fn opens(patient: &mut Patient) -> Found {
    if is_absent(patient.place()?) {
        return Ok(Vec::new());
    }
    let shown = patient.place()?.shown();
    let Err(problem) = patient.store().map(|_| ()) else {
        return Ok(Vec::new());
    };
    let mut advice: Vec<String> = problem.shown_hints().iter().map(Hint::sentence).collect();
    if ["store_damaged", "store_log_lost"].contains(&problem.kind.as_str()) {
        advice.push(RESTORE.to_owned());
    }
    Ok(vec![
        Finding::error(
            Code::StoreUnusable,
            format!("the store {shown} cannot be used"),
        )
        .seen(format!("{}: {}", problem.kind, problem.message))
        .advise(advice.join("; ")),
    ])
}

pub fn integrity(patient: &mut Patient) -> Found {
    let place = patient.place()?.clone();
    if is_absent(&place) || patient.store().is_err() {
        return Ok(Vec::new());
    }
    let faults = backup::faults(&place)?;
    if faults.is_empty() {
        return Ok(Vec::new());
    }
    let what = format!("the content of the store {} is damaged", place.shown());
    let mut finding = Finding::error(Code::StoreIntegrity, what).advise(RESTORE);
    finding.evidence = faults;
    Ok(vec![finding])
}

pub fn log(patient: &mut Patient) -> Found {
    let place = patient.place()?.clone();
    let StorePlace::File(file) = &place else {
        return Ok(Vec::new());
    };
    let bytes = backup::log_bytes(&place);
    if bytes < LONG_LOG {
        return Ok(Vec::new());
    }
    let what = format!(
        "the log of the store has {} KiB, which every hook reads",
        bytes >> 10
    );
    let mut finding = Finding::warning(Code::StoreLogLong, what);
    let readers = system::readers_of_log(&file.with_extension("db-shm"));
    let own = std::process::id();
    for reader in readers.iter().filter(|reader| reader.pid != own) {
        finding = finding.seen(format!("process {} ({}) reads it", reader.pid, reader.name));
    }
    finding = finding.repaired_by(Repair::CutLog);
    if !finding.evidence.is_empty() {
        finding = finding.advise("end those that read for a long time; then it is copied");
    }
    Ok(vec![finding])
}

/// Another store that is in use by the usual settings.
pub fn second(patient: &mut Patient) -> Found {
    let place = patient.place()?.clone();
    let StorePlace::File(own) = &place else {
        return Ok(Vec::new());
    };
    let without = |name: &str| match name {
        "TENURE_HOME" | "XDG_STATE_HOME" | "TENURE_TEST" => None,
        other => env::var(other),
    };
    let Ok(usual) = StateDir::locate(&without) else {
        return Ok(Vec::new());
    };
    let other = usual.join("tenure.db");
    let real = |path| fs_err::canonicalize(path).ok();
    if real(&other).is_none() || real(&other) == real(own) {
        return Ok(Vec::new());
    }
    let changed = ["", "-wal"].into_iter().filter_map(|suffix| {
        let found = fs_err::metadata(format!("{}{suffix}", other.display())).ok()?;
        found.modified().ok()
    });
    let is_in_use = |at: SystemTime| at.elapsed().is_ok_and(|age| age < IN_USE);
    if !changed.max().is_some_and(is_in_use) {
        return Ok(Vec::new());
    }
    let what = format!(
        "another store is in use: {}; sessions of the one are not seen in the other",
        other.display()
    );
    Ok(vec![
        Finding::warning(Code::SecondStore, what)
            .seen(format!("the settings here name {}", place.shown()))
            .seen("the other one is that of callers without these settings, and changed within a week")
            .advise("give every agent the same TENURE_HOME and TENURE_STORE, or none"),
    ])
}

/// Agents that run with an environment that names another store.
pub fn agents_elsewhere(patient: &mut Patient) -> Found {
    let own = patient.place()?.clone();
    let is_wanted = patient
        .settings
        .as_ref()
        .is_ok_and(|(all, _)| all.unmanaged);
    if !is_wanted {
        return Ok(Vec::new());
    }
    let machine = location::peeked_machine()?;
    let mut found = Vec::new();
    for agent in running::agents(machine.observer()) {
        let pid = agent.process.process.pid;
        let Some(other) = Environment::of(pid).and_then(|theirs| place_of(&theirs)) else {
            continue;
        };
        if is_same(&own, &other) || is_absent(&other) {
            continue;
        }
        let what = format!("{} (pid {pid}) runs with another store", agent.agent);
        found.push(
            Finding::warning(Code::AgentOtherStore, what)
                .seen(format!("its environment names {}", other.shown()))
                .seen(format!("the settings here name {}", own.shown()))
                .advise("start it again with the same HOME, TENURE_HOME and TENURE_STORE"),
        );
    }
    Ok(found)
}

/// Where a process with this environment keeps its store; none if that cannot be told, or if it is a test's on purpose.
fn place_of(theirs: &Environment) -> Option<StorePlace> {
    const TEST: &str = "TENURE_TEST";
    if theirs.var(TEST) != env::var(TEST) {
        return None;
    }
    let var = |name: &str| theirs.var(name).filter(|_| name != TEST);
    location::place_of(&var).ok()
}

fn is_same(one: &StorePlace, other: &StorePlace) -> bool {
    match (one, other) {
        (StorePlace::File(one), StorePlace::File(other)) => {
            let real = |path| fs_err::canonicalize(path).ok();
            one == other || (real(one).is_some() && real(one) == real(other))
        }
        (one, other) => one.shown() == other.shown(),
    }
}

pub fn missed_events(patient: &mut Patient) -> Found {
    let missed = outage::lately(&patient.dir()?);
    Ok(missed
        .map(|said| {
            Finding::warning(Code::EventsMissed, said)
                .advise("it is forgotten a day after the last one")
        })
        .into_iter()
        .collect())
}
