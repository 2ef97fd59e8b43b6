//! Waiting until what a run needs is free.
//!
//! A run that claims its item waits in the line of that key, as `claim --wait` does. There is no
//! line for a conversation or a directory: the run checks again with every change of the store.

use std::time::{Duration, Instant};

use tenure_core::process::Process;
use tenure_core::store::WaitTopic;
use tenure_host::clock;
use tenure_host::watch::Watch;
use tenure_service::answer::{Class, Hint, Problem};
use tenure_service::error::Error;
use tenure_service::{Wait, WaitingCaller};

use tenure_app::open::Context;
use tenure_app::unfinished::Unfinished;
use tenure_app::watch::{Sleep, listen, watch_signals};

/// How often to check again whatever happens.
const AT_LEAST_EVERY: Duration = Duration::from_secs(5);

/// How long a run waits before it starts, over all waits.
pub(super) struct Patience {
    began: Instant,
    most: Duration,
    watch: Option<Watch>,
    /// The runner, with its position in the line for its item.
    waiting: WaitingCaller,
    /// The store's change counter before the last check.
    seen: Option<u64>,
    /// The topics that the watch listens to, and whether only they wake it; none if every change
    /// does.
    listening: Option<(Vec<WaitTopic>, bool)>,
}

impl Patience {
    pub fn new(most: Duration, runner: Process) -> Self {
        Self {
            began: clock::instant(),
            most,
            watch: None,
            waiting: WaitingCaller {
                process: runner,
                ticket: None,
                unconfirmed: false,
            },
            seen: None,
            listening: None,
        }
    }

    /// Its position in line; none if it does not wait.
    pub fn waiting(&self) -> Option<&WaitingCaller> {
        Some(&self.waiting).filter(|_| !self.most.is_zero())
    }

    /// Starts a new check: any change from now on ends the next wait.
    pub fn looks(&mut self, context: &mut Context) -> Result<(), Problem> {
        self.seen = Some(context.service().changes()?);
        Ok(())
    }

    /// Waits for a change; fails with the reason if the time is up, or the window is gone.
    pub fn wait(
        &mut self,
        context: &mut Context,
        error: Box<Error>,
        processes: &[Process],
    ) -> Result<(), Unfinished> {
        let Some(left) = self.left() else {
            return Err(self.too_late(context, error)?);
        };
        if self.listening.take().is_some() {
            let everything = context.service().watch(None);
            self.watch(context)?.turn_to(&everything);
            return Ok(());
        }
        let seen = self.seen;
        self.sleep(context, &error, processes, seen, left.min(AT_LEAST_EVERY))
    }

    /// Waits in line for this run's turn.
    pub fn for_turn(&mut self, context: &mut Context, wait: Wait) -> Result<(), Unfinished> {
        self.waiting.ticket = Some(wait.ticket);
        let Some(left) = self.left() else {
            return Err(self.too_late(context, wait.why)?);
        };
        let only_topics = match &self.listening {
            Some((about, only_topics)) if *about == wait.about => *only_topics,
            _ => {
                let watch = self.watch(context)?;
                let only_topics = listen(context, watch, &wait.about);
                self.listening = Some((wait.about, only_topics));
                // A wake file that was written before we listened is found by checking again.
                return Ok(());
            }
        };
        let seen = self.seen.filter(|_| !only_topics);
        let most = wait.at_most.unwrap_or(AT_LEAST_EVERY).min(AT_LEAST_EVERY);
        self.sleep(context, &wait.why, &wait.watch, seen, most.min(left))
    }

    fn left(&self) -> Option<Duration> {
        let left = self.most.saturating_sub(self.began.elapsed());
        Some(left).filter(|left| !left.is_zero())
    }

    fn watch(&mut self, context: &mut Context) -> Result<&mut Watch, Problem> {
        match &mut self.watch {
            Some(watch) => Ok(watch),
            none => {
                let mut watch = watch_signals(context)?;
                watch.end_with_reader();
                Ok(none.insert(watch))
            }
        }
    }

    fn sleep(
        &mut self,
        context: &mut Context,
        error: &Error,
        processes: &[Process],
        seen: Option<u64>,
        limit: Duration,
    ) -> Result<(), Unfinished> {
        let mut until = Sleep {
            watch: self.watch(context)?,
            processes,
            seen,
            limit,
        };
        if until.something_happens(context)?.is_none() {
            return Ok(());
        }
        self.leave_line(context)?;
        let message = format!("interrupted while waiting: {error}");
        let hint = Hint::step("run it again to keep waiting; nothing was started");
        Err(Problem::new(Class::TimedOut, "interrupted", message, hint).into())
    }

    fn too_late(
        &mut self,
        context: &mut Context,
        error: Box<Error>,
    ) -> Result<Unfinished, Problem> {
        self.leave_line(context)?;
        if self.most.is_zero() {
            return Ok(Unfinished::from(*error));
        }
        let waited = self.began.elapsed();
        Ok(Unfinished::from(Error::TimedOut { waited, why: error }))
    }

    fn leave_line(&mut self, context: &mut Context) -> Result<(), Problem> {
        if let Some(ticket) = self.waiting.ticket.take() {
            context.service().leave_line(ticket)?;
        }
        Ok(())
    }
}
