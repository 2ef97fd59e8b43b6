//! The table of checks, and an examination.

use std::panic::{self, AssertUnwindSafe};

use schemars::JsonSchema;
use serde::Serialize;
use tenure_service::answer::Problem;

use crate::code::Code;
use crate::finding::{Finding, Found};
use crate::patient::{Needs, Patient};
use crate::repair::{self, Repaired};
use crate::{asked, files, sessions, store, team};

/// A check that could not be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Skipped {
    pub check: &'static str,
    pub why: String,
}

/// What was found, and what was done about it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct DoctorReport {
    /// How many checks were made.
    pub checks: usize,
    /// What is wrong now.
    pub findings: Vec<Finding>,
    pub skipped: Vec<Skipped>,
    /// What was repaired; empty without `--fix`.
    pub repaired: Vec<Repaired>,
    /// The backup of the store from before the repairs.
    pub backup: Option<String>,
}

struct Check {
    name: &'static str,
    needs: Needs,
    look: fn(&mut Patient) -> Found,
}

const fn check(name: &'static str, needs: Needs, look: fn(&mut Patient) -> Found) -> Check {
    Check { name, needs, look }
}

/// Every check, in the order in which they are made: what others stand on comes first.
const CHECKS: &[Check] = &[
    check("settings", Needs::Nothing, files::settings),
    check("settings-ignored", Needs::Settings, files::ignored),
    check("settings-modes", Needs::Nothing, files::settings_modes),
    check("state-directory", Needs::Settings, files::state_directory),
    check("file-modes", Needs::Settings, files::modes),
    check("file-owners", Needs::Settings, files::owners),
    check("free-space", Needs::Settings, files::free_space),
    check("store-opens", Needs::Settings, store::opens),
    check("store-integrity", Needs::Settings, store::integrity),
    check("store-log", Needs::Store, store::log),
    check("second-store", Needs::Settings, store::second),
    check("agents-elsewhere", Needs::Settings, store::agents_elsewhere),
    check("missed-events", Needs::Settings, store::missed_events),
    check("dead-sessions", Needs::Store, sessions::dead_but_open),
    check("unreadable-rows", Needs::Store, sessions::unreadable_rows),
    check("twins", Needs::Store, sessions::twins),
    check("survivors", Needs::Store, sessions::survivors),
    check("silent-holders", Needs::Store, sessions::silent_holders),
    check("doubtful-holders", Needs::Store, sessions::doubtful_holders),
    check("lost-claims", Needs::Store, sessions::lost_claims),
    check("collisions", Needs::Store, sessions::collisions),
    check("transcripts", Needs::Store, sessions::transcripts),
    check("conversations", Needs::Store, sessions::conversations),
    check("mirrors", Needs::Store, sessions::mirrors),
    check(
        "mirrors-of-the-dead",
        Needs::Store,
        sessions::mirrors_of_the_dead,
    ),
    check("own-identity", Needs::Store, asked::own_identity),
    check("hooks", Needs::Settings, asked::hooks),
    check("openclaw", Needs::Store, asked::openclaw),
    check("program-beside", Needs::Nothing, asked::program_beside),
    check("server", Needs::Settings, team::server),
    check("keepers", Needs::Settings, team::keepers),
    check("dispatch-config", Needs::Settings, asked::dispatch_config),
    check("dispatchers", Needs::Store, team::dispatchers),
    check("jobs", Needs::Store, team::jobs),
];

/// Makes every check; `fix` repairs what can be repaired, and checks again.
pub fn examine(fix: bool) -> Result<DoctorReport, Problem> {
    let mut report = look(CHECKS);
    if !fix || report.findings.iter().all(|one| one.repair.is_none()) {
        return Ok(report);
    }
    let done = repair::all(&report.findings)?;
    report = look(CHECKS);
    report.repaired = done.repaired;
    report.backup = done.backup;
    for (code, why) in done.failed {
        for finding in report.findings.iter_mut().filter(|one| one.code == code) {
            finding
                .evidence
                .push(format!("it could not be repaired: {why}"));
        }
    }
    Ok(report)
}

/// Why a check that crashed gave no answer.
const CRASHED: &str = "it crashed; its message is in the output of this command";

fn failed(check: &str, why: String) -> Finding {
    Finding::error(
        Code::CheckFailed,
        format!("the check {check} could not be made"),
    )
    .seen(why)
    .advise("`tenure doctor` made the other checks; report this if it stays")
}

fn look(checks: &[Check]) -> DoctorReport {
    let mut patient = Patient::examined();
    let mut report = DoctorReport {
        checks: 0,
        findings: Vec::new(),
        skipped: Vec::new(),
        repaired: Vec::new(),
        backup: None,
    };
    for check in checks {
        if let Some(why) = patient.lacks(check.needs) {
            let check = check.name;
            report.skipped.push(Skipped { check, why });
            continue;
        }
        report.checks += 1;
        // A check that crashes is a finding, and the others go on.
        let looked = panic::catch_unwind(AssertUnwindSafe(|| (check.look)(&mut patient)));
        match looked {
            Ok(Ok(found)) => report.findings.extend(found),
            Ok(Err(problem)) => report.findings.push(failed(check.name, problem.message)),
            Err(_) => {
                patient = Patient::examined();
                report.findings.push(failed(check.name, CRASHED.to_owned()));
            }
        }
    }
    report.skipped.sort_by(|one, other| one.why.cmp(&other.why));
    report
        .findings
        .sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    report
}

#[cfg(test)]
mod tests {
    use tenure_service::answer::{Class, Hint};

    use super::*;

    #[test]
    fn a_check_that_fails_or_crashes_is_a_finding_and_the_others_are_made() {
        let checks = [
            check("fails", Needs::Nothing, |_| {
                let hint = Hint::step("nothing");
                Err(Problem::new(Class::Internal, "internal", "no answer", hint))
            }),
            check("crashes", Needs::Nothing, |_| panic!("on purpose")),
            check("finds", Needs::Nothing, |_| {
                Ok(vec![Finding::warning(Code::DiskFull, "found")])
            }),
        ];
        let report = look(&checks);
        assert_eq!(report.checks, 3);
        let codes: Vec<&str> = report
            .findings
            .iter()
            .map(|one| one.code.as_str())
            .collect();
        assert_eq!(codes, ["check_failed", "check_failed", "disk_full"]);
        assert_eq!(report.findings[0].evidence, ["no answer"]);
        assert!(report.findings[1].what.contains("crashes"));
    }
}
