//! Unattended runs: starting an agent, reading its output and recording its end.
//!
//! `launch` starts a runner, a process in its own process session. The runner ([`process`]) starts
//! the agent, follows its output ([`log`]) and records the end. The caller is only a window on it
//! ([`window`]): it reads the same log and may exit at any time. The files of a run are in a
//! directory of their own (`files`); anything that must not get lost is written there before it
//! goes to the store ([`spool`]). If a run's runner and agent are both dead, the next process that
//! reads runs records its end ([`settle`]).

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_methods))]

mod agent;
mod begin;
mod code;
pub mod compose;
pub mod credential;
mod driver;
mod end;
pub mod environment;
pub mod existence;
mod files;
mod following;
mod job;
mod job_order;
pub mod launch;
mod left_behind;
mod listing;
pub mod log;
mod lost;
pub mod model;
pub mod network;
mod order;
mod permission;
pub mod places;
pub mod process;
mod program;
pub mod provider;
pub mod publish;
pub mod result;
mod retention;
pub mod roots;
mod runner;
pub mod said;
pub mod settle;
pub mod skill;
pub mod spool;
pub mod status;
pub mod stop;
mod sweep;
pub mod template;
pub mod trust;
mod unanswered;
mod variables;
mod wait;
pub mod window;
mod wire;
mod workdir;
pub mod worktree;
pub mod wrap;
pub mod wraps;

pub use driver::{can_run, takes_arguments};
pub use files::RunFiles;
pub use job_order::JobOrder;
pub use order::{Prompts, RunOrder};
pub use program::can_start;
pub use sweep::sweep;
pub use variables::variables;
