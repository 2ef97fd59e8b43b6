//! Waiting for one's turn: look, sleep until something happens, look again.
//!
//! Nothing is polled while nothing happens: the kernel wakes us when the store's files change, when a
//! holder's process ends, or when a signal comes. A file changes a moment before the commit that it
//! belongs to can be seen, so after a change the store's change counter is asked in short steps until it
//! has moved, or until the change turns out to have been none.
//!
//! Interrupted or out of time, the waiter leaves the line; killed, it is taken out by whoever sees it.

use std::time::{Duration, Instant};

use tenure_core::error::Error;
use tenure_core::id::Ticket;
use tenure_core::notice::Pending;
use tenure_core::process::Process;
use tenure_core::service::{Answer, Failure, Service, Wait, Waiting};
use tenure_core::world::World;
use tenure_host::pidfd::ProcessWatch;
use tenure_host::watch::{Watch, Woken};

use crate::app::Opened;
use crate::child::signal_exit;
use crate::exit::Exit;
use crate::output::Trouble;

/// How long after a change of the files its commit is looked for.
const SETTLING: Duration = Duration::from_secs(2);
/// For this long it is looked for in short steps: most commits are seen by then.
const SOON: Duration = Duration::from_millis(80);
/// The longest short step, and the longest step after that.
const STEPS: (Duration, Duration) = (Duration::from_millis(4), Duration::from_millis(25));
/// How many processes are watched at once; beyond that the waiter looks again each second.
const MOST_WATCHED: usize = 256;
/// How often a waiter looks again whatever happens, in case a change went by unseen.
const AT_LEAST_EVERY: Duration = Duration::from_secs(30);

/// What a look came to.
pub enum Step<T> {
    /// The wait is over.
    Done(T),
    /// It goes on.
    Wait(Wait),
}

/// Waits until `look` is done, for at most `patience`.
///
/// What the caller is told on the way is told with the outcome, whatever that is.
pub fn wait_for_turn<T>(
    opened: &mut Opened,
    watch: &mut Watch,
    patience: Duration,
    mut look: impl FnMut(&mut Service<'_>, Option<Ticket>) -> Result<Answer<Step<T>>, Failure>,
) -> Result<Answer<T>, Trouble> {
    let mut told = Pending::default();
    let outcome = wait(opened, watch, patience, &mut |service, ticket| {
        let answer = look(service, ticket)?;
        // They wait until they are told, so the last look has them all.
        told = answer.notices;
        Ok(answer.value)
    });
    match outcome {
        Ok(value) => Ok(Answer {
            value,
            notices: told,
        }),
        Err(mut trouble) => {
            if trouble.notices.is_empty() {
                trouble.notices = told;
            }
            Err(trouble)
        }
    }
}

/// One look at what is waited for.
type Look<'a, T> = dyn FnMut(&mut Service<'_>, Option<Ticket>) -> Result<Step<T>, Failure> + 'a;

fn wait<T>(
    opened: &mut Opened,
    watch: &mut Watch,
    patience: Duration,
    look: &mut Look<'_, T>,
) -> Result<T, Trouble> {
    let began = Instant::now();
    let mut ticket = None;
    loop {
        let seen = opened.service().changes()?;
        let wait = match look(&mut opened.service(), ticket)? {
            Step::Done(done) => return Ok(done),
            Step::Wait(wait) => wait,
        };
        ticket = Some(wait.ticket);
        let waited = began.elapsed();
        let left = patience.saturating_sub(waited);
        if left.is_zero() {
            opened.service().leave_queue(wait.ticket)?;
            let why = wait.why;
            return Err(Error::TimedOut { waited, why }.into());
        }
        let limit = wait.at_most.unwrap_or(AT_LEAST_EVERY).min(left);
        let mut until = Until {
            watch: &mut *watch,
            processes: &wait.watch,
            seen,
            limit,
        };
        if let Some(signal) = until.something_happens(opened)? {
            opened.service().leave_queue(wait.ticket)?;
            let message = format!("interrupted while waiting: {}", wait.why);
            let hint = "nothing was claimed and nobody waits any more";
            return Err(Trouble::new(
                signal_exit(signal),
                "interrupted",
                message,
                hint,
            ));
        }
    }
}

/// This process, as a waiter.
pub fn own_place(opened: &Opened) -> Result<Waiting, Trouble> {
    let observer = opened.machine().observer();
    let process = tenure_host::process::identify(std::process::id(), observer);
    let process = process.map_err(|error| {
        let message = format!("cannot wait in line: {error}");
        Trouble::new(Exit::INTERNAL, "internal", message, "claim without --wait")
    })?;
    Ok(Waiting {
        process,
        ticket: None,
    })
}

/// A watch on the store that signals wake up too.
pub fn watch_signals(opened: &Opened) -> Result<Watch, Trouble> {
    let mut watch = Watch::on(opened.dir());
    watch.catch_signals().map_err(|error| broken(&error))?;
    Ok(watch)
}

fn broken(error: &std::io::Error) -> Trouble {
    let message = format!("cannot wait: {error}");
    Trouble::new(
        Exit::INTERNAL,
        "internal",
        message,
        "nothing was claimed; run it again",
    )
}

/// One sleep.
pub struct Until<'a> {
    /// What wakes us up.
    pub watch: &'a mut Watch,
    /// Processes whose end does.
    pub processes: &'a [Process],
    /// The store's change counter before the last look.
    pub seen: u64,
    /// The longest sleep.
    pub limit: Duration,
}

impl Until<'_> {
    /// Sleeps until it is worth to look again; returns the signal that came, if one did.
    pub fn something_happens(&mut self, opened: &mut Opened) -> Result<Option<i32>, Trouble> {
        let watched: Vec<ProcessWatch> = self
            .processes
            .iter()
            .take(MOST_WATCHED)
            .filter_map(ProcessWatch::open)
            .collect();
        let end = Instant::now() + self.limit;
        let blind = self.processes.len() > MOST_WATCHED;
        let mut settled_by: Option<Instant> = None;
        let mut step = Duration::from_millis(1);
        loop {
            if opened.service().changes()? != self.seen {
                return Ok(None);
            }
            let now = Instant::now();
            let left = end.saturating_duration_since(now);
            if left.is_zero() {
                return Ok(None);
            }
            let limit = match settled_by {
                Some(settled) if now < settled => step.min(left),
                _ if blind => left.min(Duration::from_secs(1)),
                _ => left,
            };
            match self
                .watch
                .wait(&watched, Some(limit))
                .map_err(|error| broken(&error))?
            {
                Woken::Signal(signal) => return Ok(Some(signal)),
                Woken::Exit => return Ok(None),
                Woken::Change => {
                    settled_by = Some(Instant::now() + SETTLING);
                    step = Duration::from_millis(1);
                }
                Woken::Timeout if settled_by.is_some_and(|settled| now < settled) => {
                    let fresh = settled_by.is_some_and(|settled| now + SETTLING < settled + SOON);
                    step = (step * 2).min(if fresh { STEPS.0 } else { STEPS.1 });
                }
                Woken::Timeout => settled_by = None,
            }
        }
    }
}
