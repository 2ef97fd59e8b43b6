use tenure_doctor::{DoctorReport, Finding};

use crate::app::App;
use crate::exit::Exit;
use crate::lines::Lines;
use crate::output::{Outcome, Output};

/// Look for what is wrong with this installation: exit 0, or 6 with every finding
///
/// Checks settings, file modes, the store and its log, sessions, what they hold and what they left running, transcripts,
/// conversations, mirrors, hooks, keepers, the queue and the dispatcher. Each finding has a code that stays, what it was
/// found by, and what helps.
///
/// Without --fix nothing is changed: no death is recorded, no notice counts as delivered, nothing old is removed.
///
/// --fix repairs what it says it would: it backs the store up first, deletes no data, and says what it did. Agents may run
/// meanwhile.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure doctor
  tenure doctor --fix
  tenure doctor --json | jq -r '.doctor.findings[].code'")]
pub struct Args {
    /// Repair what can be repaired
    #[arg(long)]
    fix: bool,
}

pub fn run(args: &Args, _: &App) -> Outcome {
    let report = tenure_doctor::examine(args.fix)?;
    let exit = if report.findings.is_empty() {
        Exit::DONE
    } else {
        Exit::INVALID
    };
    let text = shown(&report, args.fix);
    Ok(Output::new("doctor", &report, text).exit(exit))
}

fn shown(report: &DoctorReport, fix: bool) -> Lines {
    let mut text = Lines::default();
    for one in &report.repaired {
        text.line(format!("repaired {}: {}", one.code.as_str(), one.what));
        text.line(format!("  done: {}", one.done));
    }
    if let Some(file) = &report.backup {
        text.line(format!("the store from before is kept in {file}"));
    }
    for finding in &report.findings {
        show(finding, &mut text);
    }
    for of_one_reason in report.skipped.chunk_by(|one, next| one.why == next.why) {
        let names: Vec<&str> = of_one_reason.iter().map(|one| one.check).collect();
        let why = &of_one_reason[0].why;
        text.line(format!("not checked, because {why}: {}", names.join(", ")));
    }
    let (checks, findings) = (report.checks, report.findings.len());
    text.line(match findings {
        0 => format!("{checks} checks passed"),
        1 => format!("{checks} checks, 1 finding"),
        several => format!("{checks} checks, {several} findings"),
    });
    let fixable = report.findings.iter().filter(|one| one.fix.is_some());
    if !fix && fixable.count() > 0 {
        text.line("run `tenure doctor --fix` to repair what can be repaired");
    }
    text
}

fn show(finding: &Finding, text: &mut Lines) {
    let severity = finding.severity.as_str();
    text.line(format!(
        "{severity}: {}: {}",
        finding.code.as_str(),
        finding.what
    ));
    for seen in &finding.evidence {
        text.line(format!("  {seen}"));
    }
    if let Some(fix) = &finding.fix {
        text.line(format!("  --fix would {fix}"));
    }
    if let Some(advice) = &finding.advice {
        text.line(format!("  {advice}"));
    }
}
