//! Runs: one execution of an agent for an item, from its start to a recorded end.

pub mod abandon;
pub mod budget;
pub mod end;
pub mod failure;
pub mod fallback;
pub mod going_on;
pub mod line;
pub mod park;
pub mod program;
pub mod progress;
pub mod prompt;
mod record;
pub mod retention;
pub mod worktree;

pub use crate::id::RunId;
pub use record::{Outcome, Park, Run, RunEnd, RunState, StopAsked, Trigger, Usage};
