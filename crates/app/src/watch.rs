//! Waiting: check, sleep until something happens, check again.
//!
//! The store defines how to wait for its changes ([`StoreWatch`]). If they can be watched, nothing
//! is polled while nothing happens: the kernel wakes us when the store changes, when a process
//! exits, when a signal arrives, or when our reader leaves. Otherwise the store's change counter is
//! read at the interval that the store gives. There are two ways to sleep.
//!
//! A waiter in line watches the wake files of what it waits for ([`listen`]), which are written right after
//! a commit that may matter to it, so heartbeats and the traffic of other sessions wake no one. It
//! also checks every few seconds, because a process that is killed right after its commit writes
//! none. On a store on a server the keeper of the machine looks for all waiters of the machine and
//! says whose turn it is; without a keeper, each waiter looks for itself. A waiter outlasts a store
//! that is away: it keeps its place in line and tries again until its time is over.
//!
//! A display ([`on_change`]) wakes with every commit but heartbeats, or with all of them if the store cannot
//! distinguish them. Then a file may change a moment before its commit becomes visible. So after a change, the store's
//! change counter is read in short steps until it has moved, or until the change turns out to be none.
//!
//! [`StoreWatch`]: tenure_core::store::StoreWatch
//!
//! Interrupted or out of time, a waiter leaves the line; if it is killed, the next process that
//! notices removes it. A store that is removed or replaced ends every wait, because every call to
//! it fails.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use tenure_core::id::{RequestId, Ticket};
use tenure_core::notice::Pending;
use tenure_core::process::Process;
use tenure_core::store::{StoreError, WaitTopic};
use tenure_core::world::World;
use tenure_host::pidfd::{ProcessWatch, ProcessWatches};
use tenure_host::watch::{WakeCause, Watch};
use tenure_service::answer::{Class, Hint, Problem};
use tenure_service::error::Error;
use tenure_service::{Answer, ClaimRequest, Failure, Reply, Service, Wait, WaitingCaller};

use crate::keeper::{self, Turns};
use crate::open::Context;
use crate::unfinished::{By, Unfinished};

/// How long after a file change its commit is searched for.
const SETTLING: Duration = Duration::from_secs(2);
/// How long that happens in short steps: most commits are visible by then.
const SOON: Duration = Duration::from_millis(80);
/// The longest short step, and the longest step after that.
const STEPS: (Duration, Duration) = (Duration::from_millis(4), Duration::from_millis(25));
/// How many processes are watched at once; beyond that the waiter checks every second.
const MAX_WATCHED: usize = 256;
/// How soon to check again if something changed before it could be watched.
const AGAIN: Duration = Duration::from_millis(5);
/// How often to check something whose own files cannot be watched.
const UNWATCHED_EVERY: Duration = Duration::from_secs(1);
/// How often to check whether a missing store was created: it has no file that can be watched.
const APPEARS_WITHIN: Duration = Duration::from_millis(500);
/// How often a waiter checks whatever happens, in case a change was missed.
const AT_LEAST_EVERY: Duration = Duration::from_secs(10);
/// The same if a keeper says when.
const BESIDE_KEEPER_EVERY: Duration = Duration::from_secs(60);
/// How soon a waiter tries again after the store did not answer: at first, and at most.
const AWAY: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(2));

/// The result of a check.
pub enum CheckResult<T> {
    /// The wait is over.
    Done(T),
    /// It continues.
    Wait(Wait),
    /// Nobody waits any more.
    GivenUp(Problem),
}

/// Checks until a check ends the wait, for at most `patience`.
///
/// Notices that arrive meanwhile are returned with the outcome.
pub fn wait_for_turn<S, T>(
    context: &mut Context,
    watch: &mut Watch,
    patience: Duration,
    mut look: impl FnMut(&mut Service<'_>, &WaitingCaller) -> Reply<S>,
    into_result: impl Fn(S) -> CheckResult<T>,
) -> Result<Answer<T>, Unfinished> {
    let mut told = Pending::default();
    let outcome = wait(context, watch, patience, &mut |service, waiting| {
        let answer = look(service, waiting)?;
        // Notices stay pending until they are delivered, so the last check returns all of them.
        told = answer.notices;
        Ok(into_result(answer.value))
    });
    match outcome {
        Ok(value) => Ok(Answer {
            damaged: None,
            value,
            notices: told,
        }),
        Err(mut failed) => {
            if failed.problem.notices.is_empty() {
                failed.problem.notices = told;
            }
            Err(failed)
        }
    }
}

/// The same claim with an id, which it needs to wait on a store on a server: a check whose answer did not come is made
/// again, and must find what it was granted.
pub fn repeatable(context: &Context, request: &ClaimRequest) -> ClaimRequest {
    let mut request = request.clone();
    if context.store.is_shared() && request.request.is_none() {
        let name = context.random().map(|byte| format!("{byte:02x}")).concat();
        request.request = RequestId::parse(&format!("wait-{name}")).ok();
    }
    request
}

/// One check of what is waited for.
type CheckFn<'a, T> =
    dyn FnMut(&mut Service<'_>, &WaitingCaller) -> Result<CheckResult<T>, Failure> + 'a;

fn wait<T>(
    context: &mut Context,
    watch: &mut Watch,
    patience: Duration,
    look: &mut CheckFn<'_, T>,
) -> Result<T, Unfinished> {
    let mut waiting = own_place(context)?;
    let outcome = wait_at(context, watch, patience, &mut waiting, look);
    if let (Err(failed), Some(ticket)) = (&outcome, waiting.ticket)
        && failed.by == By::Problem
        && leave_line(context, ticket).is_err()
    {
        // What ended the wait is told; the place ends with this process.
    }
    outcome
}

/// The same; a wait that fails, but not by a signal, leaves its place in line to the caller.
fn wait_at<T>(
    context: &mut Context,
    watch: &mut Watch,
    patience: Duration,
    waiting: &mut WaitingCaller,
    look: &mut CheckFn<'_, T>,
) -> Result<T, Unfinished> {
    let began = tenure_host::clock::instant();
    let mut ears = Ears::default();
    let mut away = AWAY.0;
    // A check that may have been granted what is waited for.
    let mut doubt: Option<Failure> = None;
    loop {
        let left = patience.saturating_sub(began.elapsed());
        let checked = ears.seen(context).and_then(|seen| {
            let step = look(&mut context.service(), waiting)?;
            Ok((seen, step))
        });
        let (seen, wait) = match checked {
            Ok((_, CheckResult::Done(done))) => return Ok(done),
            Ok((_, CheckResult::GivenUp(problem))) => return Err(problem.into()),
            Ok((seen, CheckResult::Wait(wait))) => (seen, wait),
            Err(failure) if outlasts(context, &failure) => {
                let failure = if is_unknown(&failure.error) {
                    waiting.unconfirmed = true;
                    doubt.insert(failure)
                } else {
                    doubt.as_ref().unwrap_or(&failure)
                };
                if left.is_zero() {
                    return Err(Unfinished::from(failure.clone()));
                }
                // Its place in line is kept.
                if let Some(signal) = wait_out(context, watch, away.min(left))? {
                    return Err(interrupted(&failure.error, signal));
                }
                away = (away * 2).min(AWAY.1);
                continue;
            }
            Err(failure) => return Err(Unfinished::from(failure)),
        };
        (away, doubt) = (AWAY.0, None);
        waiting.ticket = Some(wait.ticket);
        if left.is_zero() {
            let (waited, why) = (began.elapsed(), wait.why);
            let mut failed = Unfinished::from(Error::TimedOut { waited, why });
            failed.problem.reader = wait.reader;
            return Err(failed);
        }
        if ears.turn_to(context, watch, &wait) {
            // What happened before we listened is found by checking again.
            continue;
        }
        let mut until = Sleep {
            watch: &mut *watch,
            processes: &wait.watch,
            seen: seen.filter(|_| !ears.wake_files),
            limit: wait
                .at_most
                .unwrap_or(Duration::MAX)
                .min(ears.every())
                .min(left),
        };
        match until.something_happens(context) {
            Ok(None) => {}
            Ok(Some(signal)) => {
                leave_line(context, wait.ticket)?;
                return Err(interrupted(&wait.why, signal));
            }
            // The store was asked whether it changed.
            Err(problem) if context.store.is_shared() && keeper::is_away(&problem) => {}
            Err(problem) => return Err(problem.into()),
        }
    }
}

/// What a waiter listens to.
#[derive(Default)]
struct Ears {
    /// What it listens for.
    about: Option<Vec<WaitTopic>>,
    /// Whether only what matters wakes it.
    wake_files: bool,
    turns: Option<Turns>,
}

impl Ears {
    /// The store's change counter before a check; none if it is not needed.
    fn seen(&self, context: &mut Context) -> Result<Option<u64>, Failure> {
        match self.turns {
            Some(_) => Ok(None),
            None => context.service().changes().map(Some),
        }
    }

    /// Listens to the keeper, or to the wake files of the store; returns whether that is new.
    fn turn_to(&mut self, context: &mut Context, watch: &mut Watch, wait: &Wait) -> bool {
        let is_kept = |turns: &Turns| turns.is_for(wait.ticket);
        if self.turns.as_ref().is_some_and(is_kept) {
            return false;
        }
        self.turns = context.turns(wait.ticket).filter(|turns| {
            let stream = turns.stream();
            stream.is_ok_and(|stream| watch.turn_to_caller(stream).is_ok())
        });
        if self.turns.is_some() {
            self.wake_files = true;
            self.about = None;
            return true;
        }
        if self.about.as_ref() == Some(&wait.about) {
            return false;
        }
        self.wake_files = listen(context, watch, &wait.about);
        self.about = Some(wait.about.clone());
        true
    }

    fn every(&self) -> Duration {
        match self.turns {
            Some(_) => BESIDE_KEEPER_EVERY,
            None => AT_LEAST_EVERY,
        }
    }
}

/// Whether nobody knows if what was asked for has happened.
fn is_unknown(error: &Error) -> bool {
    matches!(error, Error::Store(StoreError::OutcomeUnknown { .. }))
}

/// Whether a check failed because a store on a server was away or in use, so that another check may succeed. It finds
/// what came of one whose outcome is unknown.
fn outlasts(context: &Context, failure: &Failure) -> bool {
    let may_pass = |error: &StoreError| {
        matches!(
            error,
            StoreError::Unavailable { .. }
                | StoreError::Interrupted { .. }
                | StoreError::Busy { .. }
                | StoreError::Conflict
                | StoreError::OutcomeUnknown { .. }
        )
    };
    context.store.is_shared() && matches!(&failure.error, Error::Store(error) if may_pass(error))
}

/// Leaves the line. If the store is away, its keeper finds that this process is gone.
fn leave_line(context: &mut Context, ticket: Ticket) -> Result<(), Unfinished> {
    match context.service().leave_line(ticket) {
        Err(failure) if !outlasts(context, &failure) => Err(failure.into()),
        _ => Ok(()),
    }
}

fn interrupted(why: &Error, signal: i32) -> Unfinished {
    let message = format!("interrupted while waiting: {why}");
    let hint = Hint::step(if is_unknown(why) {
        "run it again to see whether it was claimed, or to keep waiting"
    } else {
        "run it again to keep waiting; nothing was claimed"
    });
    let problem = Problem::new(Class::TimedOut, "interrupted", message, hint);
    let by = By::Signal(signal);
    Unfinished { problem, by }
}

/// From now on the watch wakes only for what may matter to a waiter for these topics. False if the
/// store or the kernel does not support that, so that every change wakes it.
pub fn listen(context: &mut Context, watch: &mut Watch, about: &[WaitTopic]) -> bool {
    watch.turn_to(&context.service().watch(Some(about)))
}

/// The result of a check for a display.
pub enum Next<T> {
    /// The display is complete.
    Done(T),
    /// Check again when the store changes.
    Again {
        /// Or when one of these processes exits.
        processes: Vec<Process>,
        /// Or after this long.
        limit: Duration,
    },
    /// The same if other files matter as well.
    AgainBeside {
        processes: Vec<Process>,
        /// Or when a file in one of these directories changes.
        dirs: Vec<PathBuf>,
        /// Or after this long if they can be watched; at least once a second if not.
        limit: Duration,
    },
}

/// How watching ended.
pub enum WatchEnd<T> {
    /// A check ended it.
    Done(T),
    /// By this signal; SIGPIPE if our output is not read any more.
    Signal(i32),
}

/// Checks once, and again whenever the store changes, but at most once per `rest`: until a check
/// ends it, a signal arrives, or our output is not read any more.
pub fn on_change<T, E: From<Problem>>(
    context: &mut Context,
    rest: Duration,
    look: impl FnMut(&mut Context) -> Result<Next<T>, E>,
) -> Result<WatchEnd<T>, E> {
    let mut watch = watch_signals(context)?;
    watch.end_with_reader();
    look_until_done(context, &mut watch, rest, look)
}

/// The same for a service, which continues when its output is not read.
pub fn serve<T, E: From<Problem>>(
    context: &mut Context,
    rest: Duration,
    look: impl FnMut(&mut Context) -> Result<Next<T>, E>,
) -> Result<WatchEnd<T>, E> {
    let mut watch = watch_signals(context)?;
    look_until_done(context, &mut watch, rest, look)
}

/// The same for a service that outlasts its store: `failed` says how long to wait after a failed check, or returns the
/// problem if another check is of no use. With `has_reader` it ends when its output is not read any more.
pub fn serve_on<T>(
    context: &mut Context,
    rest: Duration,
    has_reader: bool,
    mut look: impl FnMut(&mut Context) -> Result<Next<T>, Problem>,
    mut failed: impl FnMut(&Context, Problem) -> Result<Duration, Problem>,
) -> Result<WatchEnd<T>, Problem> {
    // One watch throughout, so that no signal is lost in between.
    let mut watch = watch_signals(context)?;
    if has_reader {
        watch.end_with_reader();
    }
    loop {
        match look_until_done(context, &mut watch, rest, &mut look) {
            Ok(ended) => return Ok(ended),
            Err(problem) => {
                let length = failed(context, problem)?;
                if let Some(signal) = wait_out(context, &mut watch, length)? {
                    return Ok(WatchEnd::Signal(signal));
                }
            }
        }
    }
}

/// Waits without asking the store; returns the signal that arrived, if any.
fn wait_out(
    context: &mut Context,
    watch: &mut Watch,
    length: Duration,
) -> Result<Option<i32>, Problem> {
    let end = tenure_host::clock::instant() + length;
    loop {
        let limit = end.saturating_duration_since(tenure_host::clock::instant());
        if limit.is_zero() {
            return Ok(None);
        }
        let mut until = Sleep {
            watch: &mut *watch,
            processes: &[],
            seen: None,
            limit,
        };
        if let Some(signal) = until.something_happens(context)? {
            return Ok(Some(signal));
        }
    }
}

fn look_until_done<T, E: From<Problem>>(
    context: &mut Context,
    watch: &mut Watch,
    rest: Duration,
    mut look: impl FnMut(&mut Context) -> Result<Next<T>, E>,
) -> Result<WatchEnd<T>, E> {
    let mut is_first = true;
    loop {
        if context.appeared()? {
            watch.turn_to(&context.service().watch(None));
        }
        let seen = Some(context.service().changes().map_err(Problem::from)?);
        let (processes, limit) = match look(context)? {
            Next::Done(done) => return Ok(WatchEnd::Done(done)),
            Next::Again { processes, limit } => (processes, limit),
            Next::AgainBeside {
                processes,
                dirs,
                limit,
            } => {
                let is_watched = watch.turn_beside(&dirs);
                if is_watched && is_first {
                    // A change before the watch began is found by checking again.
                    is_first = false;
                    continue;
                }
                if is_watched {
                    (processes, limit)
                } else {
                    (processes, limit.min(UNWATCHED_EVERY))
                }
            }
        };
        tenure_host::pause::sleep(rest);
        let limit = if context.absent.is_some() {
            limit.min(APPEARS_WITHIN)
        } else {
            limit
        };
        let mut until = Sleep {
            watch: &mut *watch,
            processes: &processes,
            seen,
            limit,
        };
        if let Some(signal) = until.something_happens(context)? {
            return Ok(WatchEnd::Signal(signal));
        }
    }
}

/// This process, as a waiter.
fn own_place(context: &Context) -> Result<WaitingCaller, Problem> {
    let observer = context.machine().observer();
    let process = tenure_host::process::identify(std::process::id(), observer);
    let process = process.map_err(|error| {
        let message = format!("cannot wait in the queue: {error}");
        let hint = Hint::step("claim without --wait");
        Problem::new(Class::Internal, "internal", message, hint)
    })?;
    Ok(WaitingCaller {
        process,
        ticket: None,
        unconfirmed: false,
    })
}

/// A watch on the store that signals wake too.
pub fn watch_signals(context: &mut Context) -> Result<Watch, Problem> {
    let mut watch = Watch::on(&context.service().watch(None));
    watch.catch_signals().map_err(|error| broken(&error))?;
    Ok(watch)
}

/// A watch on the store for a program that looks after signals itself.
pub fn watch_store(context: &mut Context) -> Watch {
    Watch::on(&context.service().watch(None))
}

fn broken(error: &std::io::Error) -> Problem {
    let message = format!("cannot wait: {error}");
    let hint = Hint::step("run it again; nothing was claimed");
    Problem::new(Class::Internal, "internal", message, hint)
}

/// One sleep.
pub struct Sleep<'a> {
    /// What wakes us up.
    pub watch: &'a mut Watch,
    /// Processes whose exit wakes us.
    pub processes: &'a [Process],
    /// The store's change counter before the last check; none if every wake needs a check.
    pub seen: Option<u64>,
    /// The longest sleep.
    pub limit: Duration,
}

impl Sleep<'_> {
    /// Sleeps until another check is useful; returns the signal that arrived, if any.
    pub fn something_happens(&mut self, context: &mut Context) -> Result<Option<i32>, Problem> {
        context.look_after_keeper();
        let watches = ProcessWatches::on(self.processes.iter().take(MAX_WATCHED));
        let longest = match (watches.some_gone, self.processes.len() > MAX_WATCHED) {
            // It exited after the last check, so nothing will wake us for it.
            (true, _) => self.limit.min(AGAIN),
            (false, true) => self.limit.min(Duration::from_secs(1)),
            (false, false) => self.limit,
        };
        let watched = watches.open;
        match self.seen {
            None => match self.sleep(&watched, longest)? {
                WakeCause::Signal(signal) => Ok(Some(signal)),
                WakeCause::Change | WakeCause::Beside | WakeCause::Exit | WakeCause::Timeout => {
                    Ok(None)
                }
            },
            Some(seen) => self.commit_is_seen(context, &watched, seen, longest),
        }
    }

    fn sleep(&self, watched: &[ProcessWatch], limit: Duration) -> Result<WakeCause, Problem> {
        let woken = self.watch.wait(watched, Some(limit));
        woken.map_err(|error| broken(&error))
    }

    /// Sleeps until the change counter has moved. Signals come first: in a busy store it has always
    /// moved.
    fn commit_is_seen(
        &self,
        context: &mut Context,
        watched: &[ProcessWatch],
        seen: u64,
        longest: Duration,
    ) -> Result<Option<i32>, Problem> {
        let end = tenure_host::clock::instant() + longest;
        let mut settled_by: Option<Instant> = None;
        let mut step = Duration::from_millis(1);
        let mut limit = Duration::ZERO;
        loop {
            let now = tenure_host::clock::instant();
            match self.sleep(watched, limit)? {
                WakeCause::Signal(signal) => return Ok(Some(signal)),
                WakeCause::Exit | WakeCause::Beside => return Ok(None),
                WakeCause::Change => {
                    settled_by = Some(tenure_host::clock::instant() + SETTLING);
                    step = Duration::from_millis(1);
                }
                WakeCause::Timeout if settled_by.is_some_and(|settled| now < settled) => {
                    let fresh = settled_by.is_some_and(|settled| now + SETTLING < settled + SOON);
                    step = (step * 2).min(if fresh { STEPS.0 } else { STEPS.1 });
                }
                WakeCause::Timeout => settled_by = None,
            }
            let now = tenure_host::clock::instant();
            let left = end.saturating_duration_since(now);
            if context.service().changes()? != seen || left.is_zero() {
                return Ok(None);
            }
            limit = match settled_by {
                Some(settled) if now < settled => step.min(left),
                _ => left,
            };
        }
    }
}

#[cfg(test)]
mod tests;
