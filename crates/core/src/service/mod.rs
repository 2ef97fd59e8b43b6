//! The use cases, each in one transaction.
//!
//! A surface builds a request, calls one method of [`Service`], and renders what comes back. The service
//! alone begins and commits transactions. A use case is a closure over a [`Ctx`] that may be run several
//! times: it runs first as cheaply as it can, and stops when it needs more than it has.
//!
//! - It needs to know whether a process lives: the transaction is dropped, the process is looked at,
//!   and the use case runs again with what was seen. No process is looked at while a lock is held. What was
//!   seen is kept for the whole process record (pid and start), so that a sighting of one process is
//!   never used for another, and a session that changed in between is looked at anew.
//! - It needs to write and was reading: it runs again as a writer.
//! - Somebody else was faster: it runs again.
//!
//! A refusal commits: what was learnt on the way (a death, a delivered notice) stays. A failure does not.
//! *Crash*: before the commit nothing happened, after it everything did.

mod caller;
mod claims;
mod context;
mod look;
mod register;
mod sessions;

use std::time::Duration;

pub use caller::{Caller, Naming, ResolvedBy};
pub use claims::{
    ClaimRequest, Grant, GuardRequest, HandoffRequest, ReleaseRequest, TakeoverRequest,
};
pub use look::{ListRequest, Status, Whoami, Why};
pub use register::{RegisterRequest, Registered, Subject};
pub use sessions::{MetaChange, RenewRequest};

use context::{Ctx, Stop};

use crate::error::Error;
use crate::notice::Notice;
use crate::process::{CallerFacts, Process, Sighting};
use crate::store::{Mode, Store, StoreError};
use crate::world::World;

/// The times that decide where nobody can prove anything, in one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// How long a session counts as living where nobody can tell.
    pub lease: Duration,
    /// How much longer its claims stay its own after that.
    pub lock_delay: Duration,
    /// After how much silence in one turn a session is shown as stalled.
    pub stalled_after: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(10 * 60),
            lock_delay: Duration::from_secs(15),
            stalled_after: Duration::from_secs(15 * 60),
        }
    }
}

impl Policy {
    /// The longest silence that a session may declare.
    pub const LONGEST_SILENCE: Duration = Duration::from_secs(4 * 3600);

    /// How old a heartbeat may get before another is written.
    fn beat_every(&self) -> Duration {
        Duration::from_secs(10).min(self.lease / 4)
    }
}

/// A use case's answer, with what the caller must be told.
#[derive(Debug, Clone)]
pub struct Answer<T> {
    /// The answer.
    pub value: T,
    /// Notices of the calling session, delivered by this answer.
    pub notices: Vec<Notice>,
}

/// A use case's refusal or failure, with what the caller must be told.
#[derive(Debug, Clone)]
pub struct Failure {
    /// What went wrong.
    pub error: Error,
    /// Notices of the calling session, delivered by this answer.
    pub notices: Vec<Notice>,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self {
            error,
            notices: Vec::new(),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Error::Store(error).into()
    }
}

/// What every use case returns.
pub type Reply<T> = Result<Answer<T>, Failure>;

/// How often a use case is run again before the store counts as busy. Each repetition means that some
/// other caller got further, so this is met only where something is wrong.
const MOST_RUNS: usize = 200;

/// The use cases.
pub struct Service<'a> {
    store: &'a mut dyn Store,
    world: &'a dyn World,
    facts: &'a CallerFacts,
    policy: Policy,
}

impl<'a> Service<'a> {
    /// A service for one caller.
    pub fn new(
        store: &'a mut dyn Store,
        world: &'a dyn World,
        facts: &'a CallerFacts,
        policy: Policy,
    ) -> Self {
        Self {
            store,
            world,
            facts,
            policy,
        }
    }

    /// Where the store is, for people.
    pub fn location(&self) -> String {
        self.store.location()
    }

    /// Runs a use case until it has what it needs.
    fn run<T>(
        &mut self,
        mode: Mode,
        mut case: impl FnMut(&mut Ctx<'_>) -> Result<T, Stop>,
    ) -> Reply<T> {
        let mut mode = mode;
        let mut seen: Vec<(Process, Sighting)> = Vec::new();
        for _ in 0..MOST_RUNS {
            let location = self.store.location();
            let mut tx = match self.store.begin(mode) {
                Err(StoreError::Conflict) => continue,
                other => other?,
            };
            let now = tx.now()?;
            let mut ctx = Ctx {
                tx: tx.as_mut(),
                mode,
                now,
                policy: &self.policy,
                facts: self.facts,
                world: self.world,
                location,
                seen: &seen,
                notices: Vec::new(),
                own: None,
            };
            let outcome = case(&mut ctx);
            let notices = std::mem::take(&mut ctx.notices);
            match outcome {
                Ok(value) => match tx.commit() {
                    Ok(()) => return Ok(Answer { value, notices }),
                    Err(StoreError::Conflict) => {}
                    Err(error) => return Err(error.into()),
                },
                Err(Stop::Refuse(error)) => match tx.commit() {
                    Ok(()) => {
                        return Err(Failure {
                            error: *error,
                            notices,
                        });
                    }
                    Err(StoreError::Conflict) => {}
                    Err(error) => return Err(error.into()),
                },
                Err(Stop::Look(processes)) => {
                    drop(tx);
                    for process in processes {
                        let sighting = self.world.look(process.pid);
                        seen.push((process, sighting));
                    }
                }
                Err(Stop::Write(stronger)) => mode = stronger,
                Err(Stop::Store(StoreError::Conflict)) => {}
                Err(Stop::Store(error)) => return Err(error.into()),
            }
        }
        Err(StoreError::Busy {
            store: self.store.location(),
        }
        .into())
    }
}
