//! The sequential model: what one call may be answered in a given state, and the state after it.
//!
//! It is the contract of claims written down a second time, apart from the product's code, for a few
//! keys that are judged together (a [`Space`]). A call that names other keys too is judged by its part in
//! the space. [`Liveness`] comes from outside: where several standings of a holder are possible, so are several
//! answers, and where one is, one is.
//!
//! Two drivers use it. The history checker of this crate knows real processes within bounds, and puts calls
//! that overlap in order; to it nobody is [`Standing::Unknown`]. `tests/claims_model.rs` knows all about a
//! service in process, leases too, and takes one step after another.

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
pub use state::{End, Hold, Item, Space, State};
pub use step::{Model, Step};
