//! Runs: one execution of an agent for an item, from its start to a recorded end.

mod record;

pub use crate::id::RunId;
pub use record::{Outcome, Park, Run, RunEnd, RunState, StopAsked, Trigger, Usage};
