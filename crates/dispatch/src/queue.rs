//! Working the queue: starting a runner for each job that may be taken.
//!
//! The worker holds no important state. A runner takes its job itself and records everything; the
//! worker only starts it and waits for its report that it began. If it is killed and restarted, or
//! runs twice on one store, it finds the same queue and the same runs. If a store on a server is away, or the disk of one in
//! a file is full, it waits; what this machine gave up meanwhile is then brought to the server first (`keeper/away.rs`).
//!
//! *Crash*: runners continue. If a runner had not taken its job yet, it takes it, or the next
//! worker starts another runner; one of them gets it. *Clock jump*: the wall clock only decides
//! when to check again.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tenure_core::id::{JobId, RunId};
use tenure_core::ignore::Ignore;
use tenure_core::process::Process;
use tenure_core::queue::choose::Limits;
use tenure_core::store::StoreError;
use tenure_host::clock;
use tenure_service::answer::Problem;
use tenure_service::view::{JobView, RunView};
use tenure_service::{Failure, LookForJobs};

use crate::endpoints::{EndpointNews, Endpoints};
use crate::forge_worker::{ForgeWorkers, News};
use tenure_app::dispatchers::Note;
use tenure_app::keeper::is_away;
use tenure_app::open::{self, Context, Purpose};
use tenure_app::watch::{Next, WatchEnd, serve_on};
use tenure_runs::launch::{Launched, launch_job, new_id};
use tenure_runs::{self, JobOrder};
use tenure_runs::{result, settle, worktree};

/// How long a job is skipped after its runner ended before taking it; a shorter `retry_every` shortens it.
const LEFT_ALONE: Duration = Duration::from_secs(5);
/// How often the worker checks the queue, at least.
const AT_LEAST_EVERY: Duration = Duration::from_secs(10);
/// How often expired deliveries are deleted.
const FORGETS_EVERY: Duration = Duration::from_secs(3_600);
/// How often to check whether old files must be removed and lost conversations found.
const SWEEPS_EVERY: Duration = Duration::from_secs(3_600);
/// How many bytes of delivery bodies are kept.
const MAX_BYTES: u64 = 1 << 30;
/// How often worktrees are removed whose items were closed longer ago than the grace period.
const TIDIES_EVERY: Duration = Duration::from_secs(60);
/// How long an ending worker waits for runners that it started.
const STARTS_WITHIN: Duration = Duration::from_secs(30);
/// How long a worker waits after the first check that did not reach the store, and at most.
const AWAY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(10));
/// How often the note for other processes is written, at most.
const NOTES_EVERY: Duration = Duration::from_secs(1);
/// The shortest time between two checks.
const REST: Duration = Duration::from_millis(20);

/// What happened in the queue.
#[derive(Debug)]
pub enum Report {
    /// A run began for a job.
    Started { job: JobId, run: Box<RunView> },
    /// A runner did not start its agent.
    Refused { job: JobId, problem: Box<Problem> },
    /// A job exceeded its caps.
    Parked(Box<JobView>),
    /// A runner died before it started its agent.
    Returned(Box<JobView>),
    /// The end of a run that had lost its runner was recorded.
    Settled(Box<RunView>),
    /// The run of a job ended.
    Ended { job: JobId, run: Box<RunView> },
    /// News from a forge's thread.
    Forge(News),
    /// News from an endpoint.
    Endpoint(EndpointNews),
    /// Rows that cannot be read and are left out; reported once.
    Damaged(Box<Problem>),
    /// The store cannot be reached; reported once.
    Away(Box<Problem>),
    /// It is reached again.
    Back,
}

/// Starts runners.
pub struct DispatchWorker {
    limits: Limits,
    /// How long deliveries are kept, and when old ones were last deleted.
    keeps: Option<(Duration, Option<Instant>)>,
    /// When the periodic work was last checked.
    swept: Option<Instant>,
    /// When worktrees were last checked.
    tidied: Option<Instant>,
    /// When runs without a runner were last checked for their timeout.
    timed: Option<Instant>,
    /// Removes places, which may take long to answer.
    removal: Option<JoinHandle<()>>,
    forge_workers: Option<ForgeWorkers>,
    endpoints: Option<Endpoints>,
    /// What other processes can read, when it was written, and the forges that do not answer.
    note: Option<Note>,
    noted: Option<Instant>,
    /// Whether the last check wrote it.
    is_noted: bool,
    failing: BTreeMap<String, String>,
    /// Runners that were started and have not said whether they began.
    starting: BTreeSet<JobId>,
    /// Jobs whose runners ended before taking them, and when.
    left_alone: BTreeMap<JobId, Instant>,
    /// Jobs whose agents ran at the last check, with their runs.
    running: BTreeMap<JobId, RunId>,
    /// The unreadable rows that were last reported.
    damaged: Option<StoreError>,
    results: Receiver<Started>,
    sender: Sender<Started>,
}

/// Removes the places of items that are over.
fn remove_places() {
    let removed =
        open::open(Purpose::Write).and_then(|mut context| result::remove_over(&mut context));
    removed.ignore("the next check tries again, and `status` shows what was kept");
}

/// Whether the runner of a job began.
struct Started {
    job: JobId,
    result: Result<Box<RunView>, Box<Problem>>,
}

impl DispatchWorker {
    pub fn new(limits: Limits) -> Self {
        let (sender, results) = channel();
        Self {
            limits,
            keeps: None,
            swept: None,
            tidied: None,
            timed: None,
            removal: None,
            forge_workers: None,
            endpoints: None,
            note: None,
            noted: None,
            is_noted: true,
            failing: BTreeMap::new(),
            starting: BTreeSet::new(),
            left_alone: BTreeMap::new(),
            running: BTreeMap::new(),
            damaged: None,
            results,
            sender,
        }
    }

    /// Deletes deliveries that are older than this.
    #[must_use]
    pub fn keeping(mut self, deliveries: Duration) -> Self {
        self.keeps = Some((deliveries, None));
        self
    }

    /// Reports what arrives at these endpoints, and writes it into the dispatcher's note.
    #[must_use]
    pub fn noting(mut self, endpoints: Endpoints, note: Note) -> Self {
        self.endpoints = Some(endpoints);
        self.note = Some(note);
        self
    }

    /// Uses other limits from now on, and starts threads for forges that are new in the settings.
    pub fn reload(&mut self, limits: Limits, keeps: Duration) -> Result<(), Problem> {
        self.limits = limits;
        self.keeps = Some((keeps, None));
        match &mut self.forge_workers {
            Some(forge_workers) => forge_workers.start_new(),
            None => Ok(()),
        }
    }

    /// Wakes these threads when something happens in the queue.
    #[must_use]
    pub fn with(mut self, forge_workers: ForgeWorkers) -> Self {
        self.forge_workers = Some(forge_workers);
        self
    }

    /// Works until a signal arrives; returns the signal.
    pub fn work(
        &mut self,
        context: &mut Context,
        report: &mut dyn FnMut(Report),
    ) -> Result<i32, Problem> {
        let away = Outage::default();
        let report = RefCell::new(report);
        let ended = serve_on(
            context,
            REST,
            false,
            |context| {
                let mut report = report.borrow_mut();
                let (processes, limit) = self.look(context, &mut *report)?;
                if away.is_over() {
                    report(Report::Back);
                }
                Ok(Next::<()>::Again { processes, limit })
            },
            |context, problem| {
                if !passes(&problem, context.store.is_shared()) {
                    return Err(problem);
                }
                if away.begins() {
                    report.borrow_mut()(Report::Away(Box::new(problem)));
                }
                Ok(away.pause())
            },
        )?;
        let report = report.into_inner();
        self.wait_for_starts(report);
        match ended {
            WatchEnd::Done(()) => Ok(0),
            WatchEnd::Signal(signal) => Ok(signal),
        }
    }

    /// Waits for the started runners, so that none of them begins after this worker has ended.
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

    /// Checks the queue once; returns the processes whose exit should trigger the next check, and
    /// the longest time until then.
    pub fn look(
        &mut self,
        context: &mut Context,
        report: &mut dyn FnMut(Report),
    ) -> Result<(Vec<Process>, Duration), Problem> {
        self.take_results(report);
        self.tell_news(report);
        self.forget(context)?;
        self.sweep(context);
        self.tidy(context);
        self.end_overdue();
        let swept = context.service().sweep_jobs()?;
        let mut damaged = swept.damaged;
        let swept = swept.value;
        for job in swept.returned {
            report(Report::Returned(Box::new(job)));
        }
        self.tell_ends(context, swept.begun, report)?;
        for run in swept.settle {
            let settled = settle::one(context, &run)?;
            if settled.state == "ended" {
                self.running.retain(|_, known| *known != run);
                report(Report::Settled(Box::new(settled)));
            }
        }
        let now = clock::instant();
        let left_alone = LEFT_ALONE.min(context.settings.policy.retry_every);
        self.left_alone
            .retain(|_, since| now.duration_since(*since) < left_alone);
        let request = LookForJobs {
            limits: self.limits,
            starting: self.starting.iter().cloned().collect(),
            left_alone: self.left_alone.keys().cloned().collect(),
        };
        let waiting = context.service().waiting_jobs(&request)?;
        damaged = waiting.damaged.or(damaged);
        self.report_damage(damaged, report);
        let waiting = waiting.value;
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
            (true, false) => left_alone,
            // The runner reports through a pipe, which does not wake a watcher of the store.
            (false, _) => Duration::from_millis(100),
        };
        // A note that was not due yet is written then.
        let notes = if self.is_noted {
            AT_LEAST_EVERY
        } else {
            NOTES_EVERY
        };
        Ok((waiting.takers, wait.min(soon).min(notes)))
    }

    /// Reports what forges and senders did, and notes it for other processes.
    fn tell_news(&mut self, report: &mut dyn FnMut(Report)) {
        if let Some(forge_workers) = &self.forge_workers {
            forge_workers.wake();
            for news in forge_workers.news() {
                match &news {
                    News::Failed { forge, why } => {
                        self.failing.insert(forge.clone(), why.clone());
                    }
                    News::Answers { forge } => {
                        self.failing.remove(forge);
                    }
                    News::Swept { .. } => {}
                }
                report(Report::Forge(news));
            }
        }
        let Some(endpoints) = &self.endpoints else {
            return;
        };
        for news in endpoints.news() {
            report(Report::Endpoint(news));
        }
        let now = clock::instant();
        let is_due = |last: Instant| now.duration_since(last) >= NOTES_EVERY;
        self.is_noted = self.noted.is_none_or(is_due);
        if let Some(note) = self.note.as_mut().filter(|_| self.is_noted) {
            note.update(endpoints.states(), &self.failing);
            self.noted = Some(now);
        }
    }

    /// Reports the runs that ended since the last check.
    fn tell_ends(
        &mut self,
        context: &mut Context,
        begun: Vec<(JobId, RunId)>,
        report: &mut dyn FnMut(Report),
    ) -> Result<(), Problem> {
        let now: BTreeMap<JobId, RunId> = begun.into_iter().collect();
        let before = std::mem::replace(&mut self.running, now);
        for (job, run) in before {
            if self.running.get(&job) == Some(&run) {
                continue;
            }
            let view = context.service().show_run(run.as_str())?.value;
            if view.state == "ended" {
                let run = Box::new(view);
                report(Report::Ended { job, run });
            } else {
                self.running.insert(job, run);
            }
        }
        Ok(())
    }

    /// Reports unreadable rows, unless the same were reported before.
    fn report_damage(&mut self, found: Option<StoreError>, report: &mut dyn FnMut(Report)) {
        if found == self.damaged {
            return;
        }
        self.damaged.clone_from(&found);
        if let Some(error) = found {
            let problem = Problem::from(Failure::from(error));
            report(Report::Damaged(Box::new(problem)));
        }
    }

    fn sweep(&mut self, context: &mut Context) {
        let now = clock::instant();
        let is_due = |last: Instant| now.duration_since(last) >= SWEEPS_EVERY;
        if self.swept.is_none_or(is_due) {
            self.swept = Some(now);
            tenure_runs::sweep(context);
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
        let forgotten = context.service().forget_deliveries(before, MAX_BYTES)?;
        // If one transaction did not delete everything, continue at the next check.
        *last = (forgotten.value == 0).then_some(now);
        Ok(())
    }

    /// Ends runs that have lost their runner and are past their timeout. An agent may take its time to
    /// end, so a thread waits for it.
    fn end_overdue(&mut self) {
        let now = clock::instant();
        let is_due = |last: Instant| now.duration_since(last) >= AT_LEAST_EVERY;
        if !self.timed.is_none_or(is_due) {
            return;
        }
        self.timed = Some(now);
        let end = || {
            let ended = open::open(Purpose::Write)
                .and_then(|mut context| tenure_runs::stop::end_overdue(&mut context));
            ended.ignore("the next check tries again");
        };
        let thread = std::thread::Builder::new().name("timeouts".to_owned());
        thread.spawn(end).ignore("the next check tries again");
    }

    /// Removes worktrees of closed items. A run also does that when it ends, but the last run of an
    /// item ends before the grace period is over.
    fn tidy(&mut self, context: &mut Context) {
        let now = clock::instant();
        let is_due = |last: Instant| now.duration_since(last) >= TIDIES_EVERY;
        if self.tidied.is_none_or(is_due) {
            self.tidied = Some(now);
            worktree::remove_over(context)
                .ignore("the repository is in use; the next check tries again");
            if self.removal.as_ref().is_none_or(JoinHandle::is_finished) {
                self.removal = Some(std::thread::spawn(remove_places));
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
            Ok(run) => {
                if let Ok(id) = RunId::parse(&run.id) {
                    self.running.insert(job.clone(), id);
                }
                report(Report::Started { job, run });
            }
            Err(problem) => self.refused(job, problem, report),
        }
    }

    fn refused(&mut self, job: JobId, problem: Box<Problem>, report: &mut dyn FnMut(Report)) {
        self.left_alone.insert(job.clone(), clock::instant());
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

/// Checks in a row that did not reach the store.
#[derive(Default)]
struct Outage(Cell<u32>);

impl Outage {
    /// Whether the last check failed; it did not if this is asked again.
    fn is_over(&self) -> bool {
        self.0.take() > 0
    }

    /// Whether this is the first one that failed.
    fn begins(&self) -> bool {
        self.0.replace(self.0.get().saturating_add(1)) == 0
    }

    /// Until the next check: twice as long each time.
    fn pause(&self) -> Duration {
        let (first, longest) = AWAY;
        let doublings = self.0.get().saturating_sub(1).min(8);
        (first * (1 << doublings)).min(longest)
    }
}

/// Whether a problem with the store passes: a server comes back, and someone makes room on a disk. A file that is gone or
/// replaced does not come back.
fn passes(problem: &Problem, is_on_server: bool) -> bool {
    if is_on_server {
        // Every check may be repeated, so it does not matter whether this one was stored.
        is_away(problem) || problem.kind == "store_outcome_unknown"
    } else {
        matches!(problem.kind.as_str(), "store_full" | "store_busy")
    }
}

/// Reports whether a runner began, and reaps it when it ends.
fn watch_start(mut launched: Launched, job: JobId, sender: Sender<Started>) {
    let watch = move || {
        let result = match launched.wait_for_start() {
            Ok(began) => Ok(Box::new(began.run)),
            Err(refused) => Err(Box::new(refused.problem)),
        };
        sender
            .send(Started { job, result })
            .ignore("the worker has ended; the runner continues");
        launched.wait();
    };
    std::thread::Builder::new()
        .name("runner".to_owned())
        .stack_size(256 << 10)
        .spawn(watch).ignore("without a thread its start is not reported. The job shows as taken, or is skipped for a while");
}
