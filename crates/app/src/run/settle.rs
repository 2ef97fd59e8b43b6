//! Ending runs that nobody ends any more.
//!
//! A run whose runner and agent are both proved dead gets the end that its runner had written down, else the one
//! that its log shows: an agent that reported success before it died is done. Every command that looks at runs does this, and
//! who starts one that needs what a dead run holds. It changes nothing where the end is recorded already.

use std::path::Path;
use std::time::Duration;

use tenure_core::id::{NativeId, RunId};
use tenure_core::process::Survivor;
use tenure_core::run::end::{Ending, Exit, Start, Stop, judge};
use tenure_core::run::seen::{Seen, Totals};
use tenure_core::run::{Run, RunState};
use tenure_host::clock;
use tenure_service::answer::Problem;
use tenure_service::view::RunView;
use tenure_service::{LeftRun, ListRuns};

use super::driver::Driver;
use super::end;
use super::files::RunFiles;
use super::log::{Follower, Line};
use super::runner::Runner;
use super::spool::{SpooledEnd, TotalsView};
use crate::conversation;
use crate::open::Context;

/// How many of the newest runs are looked at for warnings.
const MOST_WARNED: usize = 50;
/// How much of a log is read at once.
const CHUNK: usize = 256 << 10;

/// Ends every run of this host that is over; what is left without a runner is told.
pub fn all(context: &mut Context) -> Result<Vec<LeftRun>, Problem> {
    let mut without_runner = Vec::new();
    for left in context.service().left_runs()?.value {
        if left.is_over {
            record(context, &left.record)?;
        } else {
            without_runner.push(left);
        }
    }
    Ok(without_runner)
}

/// Ends one run if it is over; the run as it is then.
pub fn one(context: &mut Context, id: &RunId) -> Result<RunView, Problem> {
    let run = context.service().run_record(id.as_str())?.value;
    if run.is_open() {
        let left = context.service().left_runs()?.value;
        if let Some(left) = left
            .iter()
            .find(|left| left.record.id == *id && left.is_over)
        {
            return record(context, &left.record);
        }
    }
    Ok(context.service().show_run(id.as_str())?.value)
}

/// What a person should look at: runs without a runner, and those that were cut off within this time and that no
/// later run of the same agent and item followed.
pub fn warnings(context: &mut Context, within: Duration) -> Result<Vec<String>, Problem> {
    let mut found = Vec::new();
    for LeftRun { run, .. } in all(context)? {
        let (id, agent, item) = (&run.id, &run.agent, &run.item);
        found.push(format!(
            "run {id} ({agent} on {item}) is running, no runner: tenure runs stop {id}"
        ));
    }
    let request = ListRuns {
        limit: MOST_WARNED,
        ..ListRuns::default()
    };
    let mut known: Vec<(String, String)> = Vec::new();
    let now = clock::wall();
    for run in context.service().list_runs(&request)?.value.items {
        let work = (run.agent.clone(), run.item.clone());
        if known.contains(&work) {
            continue;
        }
        known.push(work);
        let is_new = run.ended_at.is_some_and(|at| at.age_at(now) < within);
        if is_new && run.outcome.as_deref() == Some("interrupted") {
            let (id, agent, item) = (&run.id, &run.agent, &run.item);
            found.push(format!(
                "run {id} ({agent} on {item}) was interrupted: tenure runs resume {id}"
            ));
        }
    }
    Ok(found)
}

/// What the runner of a run named as left running.
pub(super) fn survivors(run: &RunView) -> Vec<Survivor> {
    let end = run
        .log
        .as_ref()
        .and_then(|log| SpooledEnd::read(&RunFiles::at(log)).ok()?);
    end.map_or_else(Vec::new, |end| end.survivors)
}

fn record(context: &mut Context, run: &Run) -> Result<RunView, Problem> {
    let spooled = match &run.log {
        Some(log) => SpooledEnd::read(&RunFiles::at(log)).ok().flatten(),
        None => None,
    };
    let recorded = spooled.as_ref().and_then(|end| end.record().ok());
    let end = match recorded.filter(|end| end.id == run.id) {
        Some(end) => end,
        None => {
            let mut end = from_log(context, run);
            if end.after.is_none() && run.begun_at.is_some() {
                end.after = unnamed(context, run).map(|id| id.to_string());
            }
            if let Some(log) = &run.log
                && end.write(&RunFiles::at(log)).is_err()
            {
                // The store has all of it but the answer.
            }
            end.record()?
        }
    };
    Ok(context.service().end_dead_run(&end)?.value)
}

/// The conversation that a run began, where neither its agent nor its runner lived to record it.
fn unnamed(context: &mut Context, run: &Run) -> Option<NativeId> {
    if run.before.is_some() && !run.fell_back {
        return None;
    }
    let runner = Runner::prepare(&RunFiles::at(run.log.as_ref()?)).ok()?;
    let home = conversation::home(context, &run.agent, Path::new(&run.dir)).ok()?;
    let found = runner.unnamed(run.intended.as_ref(), &home);
    runner.clean_up();
    let found = found?;
    let recorded = context.service().run_was_in(&run.id, &found, &home);
    recorded.is_ok().then_some(found)
}

/// The end that a run's log shows.
fn from_log(context: &Context, run: &Run) -> SpooledEnd {
    let exit = Exit::Unknown;
    let driver = Driver::of(&context.settings, &run.agent).ok();
    let mut seen = Seen::new(Totals::default());
    if let (Some(driver), Some(log)) = (&driver, &run.log) {
        read(&RunFiles::at(log), driver, &mut seen);
    }
    let resumed = run.before.is_some() && !run.fell_back;
    let start = if resumed {
        Start::Resumed {
            compacts: driver.is_some_and(|driver| driver.runs().spec().compacts),
            before: None,
        }
    } else {
        Start::Fresh
    };
    let judged = judge(&Ending {
        seen: &seen,
        exit,
        stop: run.stop.as_ref().map(|_| Stop::Asked),
        stderr: None,
        start,
        parked_before: 0,
        now: clock::wall(),
    });
    let why = run.stop.as_ref().map(|stop| stop.why.as_str());
    let mut end = end::spooled(&run.id, &judged, &seen, exit, why);
    if run.state() == RunState::Starting {
        end.why = "its runner died before the agent was let go".to_owned();
    }
    // An id in the log was perhaps refused when the runner tried to record it.
    end.after = run.after.as_ref().map(ToString::to_string);
    end.totals = TotalsView::default();
    end
}

/// Reads a whole log again.
fn read(files: &RunFiles, driver: &Driver, seen: &mut Seen) {
    let Ok(mut follower) = Follower::open(&files.output()) else {
        return;
    };
    let runs = driver.runs();
    let mut each = |line: Line<'_>| {
        if let Line::Whole(line) = line {
            let at = clock::wall();
            runs.read(line)
                .into_iter()
                .for_each(|line| seen.feed(line, at));
        }
    };
    while follower.follow(CHUNK, &mut each).unwrap_or(false) {}
    follower.end(&mut each);
}
