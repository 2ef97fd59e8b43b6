//! Runs: an agent works on an item, from a recorded start to a recorded end.
//!
//! A run is written in four steps, each in one transaction. It is *started* before the agent
//! exists, with its session, conversation and directory. It has *begun* just before the agent is
//! let go. It is *named* when the agent reports its conversation. Finally it has *ended*. From the
//! first step to the last, the run holds its conversation and its directory.
//!
//! The runner writes all four. Another process ends a run only if its runner and its agent are both
//! proved dead.
//!
//! *Crash*: a run without an end is judged by its two processes. *Clock jump*: the wall clock only
//! decides until when an agent is parked.

pub(crate) mod budget;
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
pub use look::{LeftRun, ListRuns, RunPlace};
pub use plan::{Begin, PlanRequest, Planned};
pub use progress::NextProcess;
pub use start::{StartRun, StartTurn, Started};
pub use stop::{RunProcesses, Stoppable};
