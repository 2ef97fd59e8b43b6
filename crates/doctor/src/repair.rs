//! Repairing what can be repaired.

use std::os::unix::fs::PermissionsExt;

use schemars::JsonSchema;
use serde::Serialize;
use tenure_app::location::{is_absent, machine_of, peeked_state_dir_of};
use tenure_app::mirror;
use tenure_app::store_place::StorePlace;
use tenure_core::store::Checkpoint;
use tenure_service::answer::Problem;

use crate::backup;
use crate::code::Code;
use crate::command;
use crate::finding::{Finding, Repair};
use crate::patient::Patient;

/// Something that was repaired.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Repaired {
    pub code: Code,
    pub what: String,
    /// What was done.
    pub done: String,
}

#[derive(Debug, Default)]
pub(crate) struct Done {
    pub repaired: Vec<Repaired>,
    pub backup: Option<String>,
    /// What could not be repaired, and why.
    pub failed: Vec<(Code, String)>,
}

fn apply(repair: &Repair, patient: &mut Patient) -> Result<(), String> {
    let said = |problem: Problem| problem.message;
    match repair {
        Repair::Mode(files) => files.iter().try_for_each(|(file, mode)| {
            let mode = std::fs::Permissions::from_mode(*mode);
            fs_err::set_permissions(file, mode).map_err(|error| error.to_string())
        }),
        Repair::RecordDeaths => {
            let store = patient.store().map_err(said)?;
            let failed = |failure| Problem::from(failure).message;
            let dead = store.service().dead_sessions().map_err(failed)?.value;
            let recorded = store.service().record_dead_sessions(&dead);
            recorded.map_err(failed)?;
            // A problem of a mirror is a finding of its own.
            mirror::catch_up(store);
            Ok(())
        }
        Repair::SettleMirrors(left) => {
            let failed = mirror::left::settle(patient.store().map_err(said)?, left);
            if failed.is_empty() {
                Ok(())
            } else {
                Err(failed.join("; "))
            }
        }
        Repair::CutLog => {
            patient.store().map_err(said)?.checkpoint(Checkpoint::Final);
            Ok(())
        }
        Repair::Run(words) => command::run(words),
    }
}

/// Repairs what can be repaired, modes first: with wrong ones the store may not open.
pub(crate) fn all(findings: &[Finding]) -> Result<Done, Problem> {
    let mut done = Done::default();
    let of = |changes_data: bool| {
        findings.iter().filter_map(move |finding| {
            let repair = finding.repair.as_ref()?;
            (repair.changes_data() == changes_data).then_some((finding, repair))
        })
    };
    let mut patient = Patient::treated();
    for (finding, repair) in of(false) {
        done.note(finding, repair, apply(repair, &mut patient));
    }
    if of(true).next().is_none() {
        return Ok(done);
    }
    let mut patient = Patient::treated();
    if !is_absent(patient.place()?) {
        let place = patient.place()?.clone();
        match backed_up(&place) {
            Ok(file) => done.backup = Some(file),
            Err(problem) => {
                let why = format!("no backup could be made: {}", problem.message);
                let failed = of(true).map(|(finding, _)| (finding.code, why.clone()));
                done.failed.extend(failed);
                return Ok(done);
            }
        }
    }
    for (finding, repair) in of(true) {
        done.note(finding, repair, apply(repair, &mut patient));
    }
    Ok(done)
}

/// Backs the store up, before anything opens it that would remove what is old.
fn backed_up(place: &StorePlace) -> Result<String, Problem> {
    let file = backup::kept_beside(place, "doctor");
    let machine = machine_of(&peeked_state_dir_of(place)?)?;
    let made = backup::back_up_of(place, &machine, &file)?;
    backup::remove_old_copies(place, "doctor", &file);
    Ok(made.file)
}

impl Done {
    fn note(&mut self, finding: &Finding, repair: &Repair, outcome: Result<(), String>) {
        match outcome {
            Ok(()) => self.repaired.push(Repaired {
                code: finding.code,
                what: finding.what.clone(),
                done: repair.plan(),
            }),
            Err(why) => self.failed.push((finding.code, why)),
        }
    }
}
