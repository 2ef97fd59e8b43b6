//! The queue: jobs that wait for a run, and deliveries that ask for them.
//!
//! A job belongs to its conversation: every change of one happens under the lock of that conversation, so that
//! joining, taking, cancelling and linking are serialised. It is taken by the runner of its run. The steps of a
//! run and those of its job are in the same transactions: [`step`] is called where a run starts, begins and
//! ends.
//!
//! *Crash*: a delivery and its job are stored together, or neither is. A job whose taker is proved dead goes back
//! into the queue if its agent was not started, else it ends with its run. *Clock jump*: the wall clock decides
//! only when a parked or delayed job is tried again.

mod accept;
mod act;
mod error;
mod look;
mod reply;
pub(crate) mod step;
mod sweep;
mod take;
pub mod view;

pub use accept::{Accept, Accepted, NewJob, Person, Queued};
pub use error::QueueError;
pub use look::{Explained, ListJobs};
pub use reply::{DueReply, Written};
pub use step::JobRef;
pub use sweep::Swept;
pub use take::{GiveBack, LookForJobs, TakeJob, TakenJob, Waiting as WaitingJobs};
