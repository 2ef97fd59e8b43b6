//! The sequential model: what one call may be answered in a given state, and the state after it.
//!
//! It is the contract of claims written down a second time, apart from the product's code, for a few
//! keys that are judged together (a [`Space`]). A call that names other keys too is judged by its part in
//! the space. Liveness comes from outside: a process counts as dead or alive as far as the time of the
//! call allows, and where both are possible both answers are. Leases do not exist here, for all processes
//! can be seen: an answer that speaks of a lease is wrong.

mod acts;
mod claim;
mod guard;
mod judge;
mod resume;
mod state;
mod step;
#[cfg(test)]
mod tests;

pub use state::{End, Hold, Item, Space, State};
pub use step::{Model, Step};
