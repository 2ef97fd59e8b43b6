//! The sequential model: which answers a call may get in a given state, and the state after it.
//!
//! It is the contract of claims written a second time, independently of the product's code, for a
//! few keys that are judged together (a [`Space`]). A call that names other keys too is judged by
//! its part in the space. [`Liveness`] comes from outside: if several standings of a holder are
//! possible, so are several answers; if only one is, so is only one answer.
//!
//! Two drivers use it. The history checker of this crate knows the lives of real processes within
//! bounds, and puts overlapping calls in order; for it no session is [`Standing::Unknown`].
//! `tests/claims_model.rs` knows everything about a service in process, including leases, and takes
//! one step after another.

mod acts;
mod claim;
mod guard;
mod judge;
mod liveness;
mod resume;
mod state;
mod step;
#[cfg(test)]
mod tests;

pub use liveness::{Liveness, Standing};
pub use state::{Hold, HoldEnd, Item, KeyStates, Space};
pub use step::{Model, Transition};
