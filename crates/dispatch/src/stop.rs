//! Stopping a dispatcher and, on request, its runs.
//!
//! A dispatcher is found by its note and signalled through a descriptor of exactly that process,
//! never by pid. It ends when every runner that it started has taken its job or given up, so no run
//! begins unnoticed afterwards. Runs do not depend on it: they continue, or get time to finish and
//! are then stopped, as `runs stop` does. *Crash* of the stopping process: the requests are
//! recorded, and the runners see them.

use std::time::Duration;

use rustix::process::Signal;
use tenure_core::process::Survivor;
use tenure_core::time::Span;
use tenure_host::clock;
use tenure_host::pidfd::{self, ProcessWatch};
use tenure_service::ListJobs;
use tenure_service::answer::{Class, Hint, Problem};
use tenure_service::view::{JobView, RunView};

use tenure_app::dispatchers::{self, RunningDispatcher};
use tenure_app::open::Context;
use tenure_app::watch::{Next, WatchEnd, serve};
use tenure_runs::{settle, stop};

/// How long a dispatcher may take to end: it finishes open requests, and waits for its runners to
/// report.
const ENDS_WITHIN: Duration = Duration::from_secs(60);
/// How often the queue is checked while runs finish; most ends are noticed at once.
const LOOKS_EVERY: Duration = Duration::from_millis(500);
const REST: Duration = Duration::from_millis(20);
/// How long jobs may stay taken: a runner that is about to begin does so, and is then stopped.
const FREE_WITHIN: Duration = Duration::from_secs(60);

/// What was stopped.
#[derive(Debug, Default)]
pub struct DispatchStop {
    pub dispatchers: Vec<RunningDispatcher>,
    /// How many runs finished during the wait.
    pub finished: usize,
    pub runs: Vec<RunView>,
    /// Processes that continue: other sessions', or ones that cannot be killed.
    pub survivors: Vec<Survivor>,
    /// The signal that ended the wait for runs, which were then left alone.
    pub signal: Option<i32>,
}

/// What happens to the runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runs {
    GoOn,
    /// Stop them after this time to finish.
    Stop(Duration),
}

/// Stops the dispatchers of this state directory.
pub fn stop_all(context: &mut Context, runs: Runs, why: &str) -> Result<DispatchStop, Problem> {
    let mut stopped = DispatchStop::default();
    for one in dispatchers::find(context) {
        end(&one)?;
        stopped.dispatchers.push(one);
    }
    let Runs::Stop(drain) = runs else {
        if stopped.dispatchers.is_empty() {
            let hint = Hint::verb("queue", "to see what waits and what runs");
            let message = "no dispatcher is running";
            return Err(Problem::new(
                Class::NotFound,
                "no_dispatcher",
                message,
                hint,
            ));
        }
        return Ok(stopped);
    };
    let before = taken(context)?.len();
    match wait(context, drain)? {
        WatchEnd::Done(()) => {}
        WatchEnd::Signal(signal) => {
            stopped.signal = Some(signal);
            return Ok(stopped);
        }
    }
    stopped.finished = before.saturating_sub(taken(context)?.len());
    let until = clock::instant() + FREE_WITHIN;
    let left = loop {
        let jobs = taken(context)?;
        if jobs.is_empty() {
            return Ok(stopped);
        }
        if clock::instant() >= until {
            break jobs;
        }
        stop_runs(context, &jobs, why, &mut stopped)?;
        tenure_host::pause::sleep(LOOKS_EVERY / 5);
    };
    let left = left.into_iter().map(|job| job.id).collect();
    Err(NotStopped::Jobs(left).into())
}

/// What was not stopped, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotStopped {
    #[error("these jobs are still running: {}", .0.join(", "))]
    Jobs(Vec<String>),
    /// It may be alive, but not where this process can see it.
    #[error("the dispatcher with pid {pid} cannot be reached from here: {}", .why.as_deref().unwrap_or("it cannot be watched"))]
    Unseen { pid: u32, why: Option<String> },
    #[error(
        "the dispatcher with pid {pid} did not end within {}",
        Span(ENDS_WITHIN)
    )]
    Dispatcher { pid: u32 },
}

impl From<NotStopped> for Problem {
    fn from(not: NotStopped) -> Self {
        let said = not.to_string();
        match not {
            NotStopped::Jobs(_) => {
                let hint = Hint::verb("runs", "to see their runs");
                Problem::new(Class::TimedOut, "still_running", said, hint)
            }
            NotStopped::Unseen { .. } => {
                let hint = "run the same command where it was started, such as in its container";
                let hint = Hint::step(hint);
                Problem::new(Class::CannotTell, "dispatcher_unseen", said, hint)
            }
            NotStopped::Dispatcher { pid } => {
                let hint = Hint::step(format!(
                    "run `kill -9 {pid}` to end it; its runs and the queue are not affected"
                ));
                Problem::new(Class::TimedOut, "still_running", said, hint)
            }
        }
    }
}

/// Ends one dispatcher.
fn end(one: &RunningDispatcher) -> Result<(), Problem> {
    let pid = one.process.pid;
    let Some(watch) = ProcessWatch::open(&one.process) else {
        if pidfd::is_gone(&one.process) {
            return Ok(());
        }
        let why = one.doubt.clone();
        return Err(NotStopped::Unseen { pid, why }.into());
    };
    let sent = watch.signal(Signal::TERM);
    if sent
        .and_then(|()| watch.wait(ENDS_WITHIN))
        .is_ok_and(|gone| gone)
    {
        return Ok(());
    }
    Err(NotStopped::Dispatcher { pid }.into())
}

/// The jobs that runners have, after the jobs of dead runners were returned or ended.
fn taken(context: &mut Context) -> Result<Vec<JobView>, Problem> {
    let swept = context.service().sweep_jobs()?.value;
    for run in swept.settle {
        settle::one(context, &run)?;
    }
    let open = context.service().list_jobs(&ListJobs::default())?.value;
    let is_taken = |job: &JobView| ["starting", "begun"].contains(&job.state.as_str());
    Ok(open.items.into_iter().filter(is_taken).collect())
}

/// Waits until no runner has a job, for at most this long.
fn wait(context: &mut Context, drain: Duration) -> Result<WatchEnd<()>, Problem> {
    let began = clock::instant();
    serve(context, REST, |context| {
        let left = drain.saturating_sub(clock::instant().duration_since(began));
        if left.is_zero() || taken(context)?.is_empty() {
            return Ok(Next::Done(()));
        }
        Ok(Next::Again {
            processes: Vec::new(),
            limit: left.min(LOOKS_EVERY),
        })
    })
}

/// Asks all of them first, so that they end at the same time.
fn stop_runs(
    context: &mut Context,
    jobs: &[JobView],
    why: &str,
    stopped: &mut DispatchStop,
) -> Result<(), Problem> {
    let mut asked = Vec::new();
    for run in jobs.iter().filter_map(|job| job.run.as_deref()) {
        match context.service().ask_run_to_stop(run, why) {
            Ok(answer) => asked.push(answer.value),
            Err(failure) => {
                let problem = Problem::from(failure);
                // It ended meanwhile.
                if problem.class != Class::Refused {
                    return Err(problem);
                }
            }
        }
    }
    for one in asked {
        let done = stop::finish(context, one)?;
        stopped.survivors.extend(done.survivors);
        stopped.runs.retain(|run| run.id != done.run.id);
        stopped.runs.push(done.run);
    }
    Ok(())
}
