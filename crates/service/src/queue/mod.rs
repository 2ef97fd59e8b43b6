//! The queue: jobs that wait for a run, and deliveries that ask for them.
//!
//! A job belongs to its conversation: every change to a job happens under the lock of that
//! conversation, which serialises joining, taking, cancelling and linking. A job is taken by the
//! runner of its run. A run and its job change in the same transactions: runs call [`step`] when
//! they start, begin and end.
//!
//! *Crash*: a decision and its jobs are stored together, or neither is. A job whose taker is proved
//! dead is queued again if its agent was not started; otherwise it ends with its run. *Clock jump*:
//! the wall clock only decides when a parked or delayed job is tried again.

mod accept;
mod act;
mod error;
mod look;
mod publish;
mod reply;
pub(crate) mod step;
mod sweep;
mod take;
mod undecided;
pub mod view;

pub use accept::{Accept, Accepted, NewJob, Queued};
pub use act::WhichJobs;
pub use error::{JobAhead, QueueError};
pub use look::{Explained, ListJobs};
pub use reply::{DueReply, ReplyAttempt};
pub use step::JobRef;
pub use sweep::Swept;
pub use take::{GiveBack, LookForJobs, TakeJob, TakenJob, WaitingJobs};
pub use tenure_core::queue::breaker::Person;
pub use undecided::{Arrival, Decided, Oldest, StoredDelivery, Undecided};
