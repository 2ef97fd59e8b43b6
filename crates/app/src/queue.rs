//! Working the queue: who starts a runner for each job that may be taken.
//!
//! The worker holds nothing that matters. A runner takes its job itself and records everything; the worker only
//! starts it and hears whether it began. Killed and started again, or twice on one store, it finds the same
//! queue and the same runs.
//!
//! *Crash*: runners go on. A runner that was started and had not taken its job yet takes it, or the next worker
//! starts another one; one of them gets it. *Clock jump*: the wall clock decides only when to look again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use tenure_core::id::JobId;
use tenure_core::process::Process;
use tenure_core::queue::choose::Limits;
use tenure_host::clock;
use tenure_service::LookForJobs;
use tenure_service::answer::Problem;
use tenure_service::view::{JobView, RunView};

use crate::dispatch::clerk::{Clerks, News};
use crate::open::Context;
use crate::run::launch::{Launched, launch_job, new_id};
use crate::run::{self, JobOrder};
use crate::run::{settle, worktree};
use crate::watch::{Ended, Next, serve};

/// How long a job is left alone whose runner ended before it took the job.
const LEFT_ALONE: Duration = Duration::from_secs(5);
/// The worker looks at least this often.
const AT_LEAST_EVERY: Duration = Duration::from_secs(10);
/// How often deliveries are forgotten that are kept no longer.
const FORGETS_EVERY: Duration = Duration::from_secs(3_600);
/// How often it is asked whether old files are to be removed and lost conversations to be found.
const SWEEPS_EVERY: Duration = Duration::from_secs(3_600);
/// The bodies of deliveries that are kept, in bytes.
const MOST_BYTES: u64 = 1 << 30;
/// How often worktrees are removed whose items were closed longer than the grace ago.
const TIDIES_EVERY: Duration = Duration::from_secs(60);
/// How long an ending worker waits for runners that it started.
const STARTS_WITHIN: Duration = Duration::from_secs(30);
/// It looks at most this often.
const REST: Duration = Duration::from_millis(20);

/// What happened in the queue.
#[derive(Debug)]
pub enum Report {
    /// A run began for a job.
    Started { job: JobId, run: Box<RunView> },
    /// A runner did not start its agent.
    Refused { job: JobId, problem: Box<Problem> },
    /// A job is over its caps.
    Parked(Box<JobView>),
    /// A runner died before it started its agent.
    Returned(Box<JobView>),
    /// The end of a run was recorded that had lost its runner.
    Settled(Box<RunView>),
    /// A forge was asked, or does not answer.
    Forge(News),
}

/// Starts runners.
pub struct Worker {
    limits: Limits,
    /// How long deliveries are kept, and when they were last looked through.
    keeps: Option<(Duration, Option<Instant>)>,
    /// When what is done from time to time was last asked for.
    swept: Option<Instant>,
    /// When worktrees were last looked through.
    tidied: Option<Instant>,
    clerks: Option<Clerks>,
    /// Runners that were started and have not said whether they began.
    starting: BTreeSet<JobId>,
    left_alone: BTreeMap<JobId, Instant>,
    results: Receiver<Started>,
    sender: Sender<Started>,
}

/// Whether the runner of a job began.
struct Started {
    job: JobId,
    result: Result<Box<RunView>, Box<Problem>>,
}

impl Worker {
    pub fn new(limits: Limits) -> Self {
        let (sender, results) = channel();
        Self {
            limits,
            keeps: None,
            swept: None,
            tidied: None,
            clerks: None,
            starting: BTreeSet::new(),
            left_alone: BTreeMap::new(),
            results,
            sender,
        }
    }

    /// Forgets deliveries that are older than this.
    #[must_use]
    pub fn keeping(mut self, deliveries: Duration) -> Self {
        self.keeps = Some((deliveries, None));
        self
    }

    /// Wakes these when something happened in the queue.
    #[must_use]
    pub fn with(mut self, clerks: Clerks) -> Self {
        self.clerks = Some(clerks);
        self
    }

    /// Works until a signal comes; which one.
    pub fn work(
        &mut self,
        context: &mut Context,
        report: &mut dyn FnMut(Report),
    ) -> Result<i32, Problem> {
        let ended = serve(context, REST, |context| {
            let (processes, limit) = self.look(context, report)?;
            Ok::<_, Problem>(Next::<()>::Again { processes, limit })
        })?;
        self.wait_for_starts(report);
        match ended {
            Ended::Done(()) => Ok(0),
            Ended::Signal(signal) => Ok(signal),
        }
    }

    /// Waits for the runners that were started: after this worker has ended, none begins that it started.
    fn wait_for_starts(&mut self, report: &mut dyn FnMut(Report)) {
        let until = clock::instant() + STARTS_WITHIN;
        while !self.starting.is_empty() {
            let left = until.saturating_duration_since(clock::instant());
            let Ok(started) = self.results.recv_timeout(left) else {
                return;
            };
            self.handle_start(started, report);
        }
    }

    /// One look at the queue: the processes whose end is worth the next one, and how long until then, at most.
    pub fn look(
        &mut self,
        context: &mut Context,
        report: &mut dyn FnMut(Report),
    ) -> Result<(Vec<Process>, Duration), Problem> {
        self.take_results(report);
        if let Some(clerks) = &self.clerks {
            clerks.wake();
            clerks
                .news()
                .into_iter()
                .map(Report::Forge)
                .for_each(&mut *report);
        }
        self.forget(context)?;
        self.sweep(context);
        self.tidy(context);
        let swept = context.service().sweep_jobs()?.value;
        for job in swept.returned {
            report(Report::Returned(Box::new(job)));
        }
        for run in swept.settle {
            let settled = settle::one(context, &run)?;
            if settled.state == "ended" {
                report(Report::Settled(Box::new(settled)));
            }
        }
        let now = clock::instant();
        self.left_alone.retain(|_, until| *until > now);
        let request = LookForJobs {
            limits: self.limits,
            starting: self.starting.iter().cloned().collect(),
            left_alone: self.left_alone.keys().cloned().collect(),
        };
        let waiting = context.service().waiting_jobs(&request)?.value;
        // Behind those that were parked there may be others.
        let looks_again = !waiting.parked.is_empty();
        for job in waiting.parked {
            report(Report::Parked(Box::new(job)));
        }
        for job in waiting.jobs {
            self.start(context, job, report);
        }
        let wait = waiting.next_at.map_or(AT_LEAST_EVERY, |at| {
            clock::wall().age_at(at) + Duration::from_millis(1)
        });
        if looks_again {
            return Ok((waiting.takers, Duration::ZERO));
        }
        let soon = match (self.starting.is_empty(), self.left_alone.is_empty()) {
            (true, true) => AT_LEAST_EVERY,
            (true, false) => LEFT_ALONE,
            // Its first word comes through a pipe, which wakes no one who watches the store.
            (false, _) => Duration::from_millis(100),
        };
        Ok((waiting.takers, wait.min(soon).min(AT_LEAST_EVERY)))
    }

    fn sweep(&mut self, context: &mut Context) {
        let now = clock::instant();
        let is_due = |last: Instant| now.duration_since(last) >= SWEEPS_EVERY;
        if self.swept.is_none_or(is_due) {
            self.swept = Some(now);
            run::sweep(context);
        }
    }

    fn forget(&mut self, context: &mut Context) -> Result<(), Problem> {
        let now = clock::instant();
        let Some((keeps, last)) = &mut self.keeps else {
            return Ok(());
        };
        if last.is_some_and(|last| now.duration_since(last) < FORGETS_EVERY) {
            return Ok(());
        }
        let before = clock::wall().minus(*keeps);
        let forgotten = context.service().forget_deliveries(before, MOST_BYTES)?;
        // What one transaction leaves is looked through again at once.
        *last = (forgotten.value == 0).then_some(now);
        Ok(())
    }

    /// Removes worktrees of closed items. A run does that too when it ends, but the last one of an item ends before its
    /// grace is over.
    fn tidy(&mut self, context: &mut Context) {
        let now = clock::instant();
        let is_due = |last: Instant| now.duration_since(last) >= TIDIES_EVERY;
        if self.tidied.is_none_or(is_due) {
            self.tidied = Some(now);
            if worktree::remove_over(context).is_err() {
                // Somebody uses the repository; the next look comes.
            }
        }
    }

    fn take_results(&mut self, report: &mut dyn FnMut(Report)) {
        while let Ok(started) = self.results.try_recv() {
            self.handle_start(started, report);
        }
    }

    fn handle_start(&mut self, started: Started, report: &mut dyn FnMut(Report)) {
        let Started { job, result } = started;
        self.starting.remove(&job);
        match result {
            Ok(run) => report(Report::Started { job, run }),
            Err(problem) => self.refused(job, problem, report),
        }
    }

    fn refused(&mut self, job: JobId, problem: Box<Problem>, report: &mut dyn FnMut(Report)) {
        let until = clock::instant() + LEFT_ALONE;
        self.left_alone.insert(job.clone(), until);
        report(Report::Refused { job, problem });
    }

    fn start(&mut self, context: &Context, job: JobId, report: &mut dyn FnMut(Report)) {
        let order = JobOrder::new(&new_id(context), &job, &self.limits);
        match launch_job(context, &order) {
            Ok(launched) => {
                self.starting.insert(job.clone());
                watch_start(launched, job, self.sender.clone());
            }
            Err(problem) => self.refused(job, Box::new(problem), report),
        }
    }
}

/// Reports whether a runner began, and waits for its end so that it leaves no zombie.
fn watch_start(mut launched: Launched, job: JobId, sender: Sender<Started>) {
    let watch = move || {
        let result = match launched.wait_for_start() {
            Ok(began) => Ok(Box::new(began.run)),
            Err(refused) => Err(Box::new(refused.problem)),
        };
        if sender.send(Started { job, result }).is_err() {
            // The worker has ended; the runner goes on.
        }
        launched.wait();
    };
    if std::thread::Builder::new()
        .name("runner".to_owned())
        .stack_size(256 << 10)
        .spawn(watch)
        .is_err()
    {
        // Without a thread its start is not reported. The job is seen as taken, or left alone for a while.
    }
}
