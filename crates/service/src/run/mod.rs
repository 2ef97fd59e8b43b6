//! Runs: an agent that works on an item, from a recorded start to a recorded end.
//!
//! A run is written in four steps, each one transaction: it is *started* (with the session that the agent's
//! process is, the conversation and the directory, before the agent exists), it *began* (before the agent is let
//! go), it was *named* (when the agent says which conversation it is in), and it *ended*. Between the first step
//! and the last it holds its conversation and its directory.
//!
//! The runner writes all four. Someone else ends a run only if its runner and its agent are both proved dead.
//!
//! *Crash*: a run without an end is judged by its two processes. *Clock jump*: the wall clock decides only until
//! when an agent is parked.

mod claims;
mod end;
mod error;
mod life;
mod look;
mod plan;
pub(crate) mod program;
mod progress;
mod start;
mod stop;
pub mod view;

pub use end::EndRun;
pub use error::RunError;
pub use look::{LeftRun, ListRuns};
pub use plan::{Begin, PlanRequest, Planned};
pub use progress::NextProcess;
pub use start::{StartRun, StartTurn, Started};
pub use stop::{RunProcesses, Stoppable};
