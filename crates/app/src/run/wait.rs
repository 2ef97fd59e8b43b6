//! Waiting until what a run needs is free.

use std::time::{Duration, Instant};

use tenure_core::process::Process;
use tenure_host::clock;
use tenure_host::watch::Watch;
use tenure_service::answer::{Class, Hint, Problem};
use tenure_service::error::Error;

use crate::open::Context;
use crate::unfinished::Unfinished;
use crate::watch::{Until, watch_signals};

/// How often it is looked again whatever happens.
const AT_LEAST_EVERY: Duration = Duration::from_secs(5);

/// How long a run waits before it starts, all waits together.
pub(super) struct Patience {
    began: Instant,
    most: Duration,
    watch: Option<Watch>,
}

impl Patience {
    pub fn new(most: Duration) -> Self {
        Self {
            began: clock::instant(),
            most,
            watch: None,
        }
    }

    /// Waits for a change; refused with the reason where there is no time left, or the window is gone.
    pub fn wait(
        &mut self,
        context: &mut Context,
        error: Box<Error>,
        processes: &[Process],
    ) -> Result<(), Unfinished> {
        let waited = self.began.elapsed();
        let left = self.most.saturating_sub(waited);
        if left.is_zero() {
            let timed_out = Error::TimedOut { waited, why: error };
            let is_first = self.most.is_zero();
            return Err(Unfinished::from(match timed_out {
                Error::TimedOut { why, .. } if is_first => *why,
                late => late,
            }));
        }
        let watch = match &mut self.watch {
            Some(watch) => watch,
            none => {
                let mut watch = watch_signals(context)?;
                watch.end_with_reader();
                none.insert(watch)
            }
        };
        let mut until = Until {
            watch,
            processes,
            seen: Some(context.service().changes()?),
            limit: left.min(AT_LEAST_EVERY),
        };
        match until.something_happens(context)? {
            None => Ok(()),
            Some(_) => {
                let message = format!("interrupted while waiting: {error}");
                let hint = Hint::step("run it again to keep waiting; nothing was started");
                Err(Problem::new(Class::TimedOut, "interrupted", message, hint).into())
            }
        }
    }
}
