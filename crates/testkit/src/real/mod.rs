//! The real agents, run offline: pinned programs, a private home, and the mock model.
//!
//! `scripts/real-agents` installs the programs into a cache, and `scripts/test --real` sets
//! `TENURE_REAL_AGENTS` to its path. A [`RealWorld`] is an [`Env`](crate::Env) in which these
//! programs find a prepared home, a repository to work in, and a model. A [`RealAgent`] is one of
//! the programs, an [`TurnBuilder`] one turn of it, a [`FinishedTurn`] the result, a [`BackgroundTurn`] a turn in
//! progress, a [`Screen`] an agent at a terminal.
//!
//! Real agents start processes that no test knows of. Some are in process sessions of their own,
//! and some outlive the agent. All of them have the HOME of their world, which no other process
//! has. A keeper, which is itself detached, ends every process with that HOME when the world is
//! dropped, and also when the test is killed.

mod ask;
mod config;
mod hooks;
mod keeper;
mod kind;
mod rows;
mod screen;
mod turn;
mod world;

pub use ask::{BackgroundTurn, TurnBuilder};
pub(crate) use ask::{child_of, children};
pub use hooks::Hooked;
pub use keeper::end_all_at_home;
pub use kind::Real;
pub use screen::Screen;
pub use turn::FinishedTurn;
pub use world::{RealAgent, RealWorld};
