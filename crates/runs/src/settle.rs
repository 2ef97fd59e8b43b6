//! Ending runs whose runner can no longer do it.
//!
//! If a run's runner and agent are both proved dead, the run gets the end that its runner had
//! written to disk, or else the one that its log shows: an agent that reported success before it
//! died is done. Every command that reads runs does this, and so does a start that needs what a
//! dead run holds. If the end is already recorded, nothing changes.

use std::path::Path;
use std::time::Duration;

use tenure_core::conversation::Home;
use tenure_core::id::{NativeId, RunId};
use tenure_core::ignore::Ignore;
use tenure_core::process::Survivor;
use tenure_core::run::end::{Ending, Exit, Start, judge};
use tenure_core::run::progress::{RunProgress, Totals};
use tenure_core::run::{Run, RunState};
use tenure_host::clock;
use tenure_service::answer::Problem;
use tenure_service::error::Error;
use tenure_service::view::RunView;
use tenure_service::{LeftRun, ListRuns};

use super::driver::Driver;
use super::files::RunFiles;
use super::log::{Follower, OutputLine};
use super::order::RunOrder;
use super::runner::Runner;
use super::spool::{SpooledEnd, TotalsView};
use super::{end, environment, existence, model};
use tenure_app::conversation;
use tenure_app::open::Context;

/// How many of the newest runs are checked for warnings.
const MAX_WARNED: usize = 50;
/// How much of a log is read at once.
const CHUNK: usize = 256 << 10;

/// Ends every run of this host that is over; returns those that are left without a runner.
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

/// Ends one run if it is over; returns its new state.
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

/// Warnings for a person: runs without a runner, and runs that were cut off within this time and
/// not followed by another run of the same agent and item.
pub fn warnings(context: &mut Context, within: Duration) -> Result<Vec<String>, Problem> {
    let mut found = Vec::new();
    for LeftRun { run, .. } in all(context)? {
        let (id, agent, item) = (&run.id, &run.agent, &run.item);
        found.push(format!(
            "run {id} ({agent} on {item}) has lost its runner; run `tenure runs stop {id}` to end it"
        ));
    }
    let request = ListRuns {
        limit: MAX_WARNED,
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
                "run {id} ({agent} on {item}) was interrupted; run `tenure runs resume {id}` to continue it"
            ));
        }
    }
    Ok(found)
}

/// Processes that the runner reported as left running.
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
    let result = spooled.as_ref().and_then(|end| end.result.clone());
    let end = match recorded.filter(|end| end.id == run.id) {
        Some(end) => end,
        None => {
            let end = from_log(context, run)?;
            if let Some(log) = &run.log {
                end.write(&RunFiles::at(log))
                    .ignore("the store has everything except the answer");
            }
            end.record()?
        }
    };
    let mut service = context.service();
    let ended = service.end_dead_run_with(&end, result.as_ref())?.value;
    environment::remove_temporary(context.dir(), run.id.as_str())
        .ignore("it is removed with the files of the run");
    model::remove(context.dir(), run.id.as_str()).ignore("nobody listens there any more");
    Ok(ended)
}

/// The end that a run's log shows. The conversation that it names is recorded first, because the
/// end frees it.
fn from_log(context: &mut Context, run: &Run) -> Result<SpooledEnd, Problem> {
    let exit = Exit::Unknown;
    let driver = Driver::of(&context.settings, &run.agent).ok();
    let mut seen = RunProgress::new(Totals::default());
    if let (Some(driver), Some(log)) = (&driver, &run.log) {
        read(&RunFiles::at(log), driver, &mut seen);
    }
    let resumed = run.before.is_some() && !run.fell_back;
    let start = if resumed {
        Start::Resumed {
            compacts: driver
                .as_ref()
                .is_some_and(|driver| driver.runs().spec().compacts),
            before: None,
        }
    } else {
        Start::Fresh
    };
    let judged = judge(&Ending {
        seen: &seen,
        exit,
        stop: run.stop.as_ref().map(|stop| stop.cause),
        stderr: None,
        start,
        parked_before: 0,
        now: clock::wall(),
    });
    let why = run.stop.as_ref().map(|stop| stop.why.as_str());
    let mut end = end::spooled(&run.id, &judged, &seen, exit, why);
    if run.state() == RunState::Starting {
        end.why = "its runner died before it started the agent".to_owned();
    }
    let named = names(context, run, &seen, resumed)?;
    end.after = named.as_ref().map(ToString::to_string);
    end.totals = TotalsView::default();
    Ok(end)
}

/// The conversation with the title of a run whose agent was started and named none.
fn titled(run: &Run, home: &Home) -> Option<NativeId> {
    if run.begun_at.is_none() || run.after.is_some() || run.intended.is_some() {
        return None;
    }
    let runner = Runner::prepare(&RunFiles::at(run.log.as_ref()?)).ok()?;
    runner.titled(&home.dir)
}

/// Records the conversation that a dead run was in. If that is refused, now or earlier by its
/// runner, the recorded one stays.
fn names(
    context: &mut Context,
    run: &Run,
    seen: &RunProgress,
    resumed: bool,
) -> Result<Option<NativeId>, Problem> {
    let order = run
        .log
        .as_ref()
        .map(|log| RunOrder::read(&RunFiles::at(log)));
    let order = order.and_then(Result::ok);
    let home = match order.as_ref().filter(|order| order.place.is_some()) {
        Some(order) => order.home(context, &run.agent, &run.item, &run.dir)?,
        None => Home {
            dir: run.dir.clone(),
            repo_host: conversation::repo_host(context, Path::new(&run.dir), &run.item),
            agent_home: order.and_then(|order| order.agent_home),
            ..conversation::here(context, &run.agent, &run.item)
        },
    };
    // A refused resume may name an id that does not exist.
    let is_certain = !resumed || seen.turn_began();
    let named = seen.id().filter(|_| is_certain).cloned();
    let named = named.or_else(|| existence::intended(run, &home));
    let named = named.or_else(|| titled(run, &home).filter(|_| !resumed));
    let Some(named) = named.filter(|named| run.after.as_ref() != Some(named)) else {
        return Ok(run.after.clone());
    };
    match context.service().dead_run_is_named(&run.id, &named, &home) {
        Ok(_) => Ok(Some(named)),
        Err(failure) if matches!(failure.error, Error::Store(_)) => Err(failure.into()),
        Err(_) => Ok(run.after.clone()),
    }
}

/// Reads the whole log again.
fn read(files: &RunFiles, driver: &Driver, seen: &mut RunProgress) {
    let Ok(mut follower) = Follower::open(&files.output()) else {
        return;
    };
    let runs = driver.runs();
    let mut each = |line: OutputLine<'_>| {
        if let OutputLine::Whole(line) = line {
            let at = clock::wall();
            runs.read(line)
                .into_iter()
                .for_each(|line| seen.feed(line, at));
        }
    };
    while follower.follow(CHUNK, &mut each).unwrap_or(false) {}
    follower.end(&mut each);
}
