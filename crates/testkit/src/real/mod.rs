//! The real agents, run offline: pinned programs, a private home, and the mock model.
//!
//! `scripts/real-agents` installs the programs into a cache and `scripts/test --real` names it in
//! `TENURE_REAL_AGENTS`. A [`RealWorld`] is an [`Env`](crate::Env) in which these programs find a home that is set up for
//! them, a repository to work in, and a model. A [`RealAgent`] is one of the programs, an [`Ask`] one turn of
//! it, a [`Turn`] what came of it, a [`Running`] one that goes on, a [`Screen`] one at a terminal.
//!
//! Real agents start processes that no test knows of, some in sessions of their own, and some outlive
//! them. All of them have the HOME of their world, which nobody else has. A keeper, itself nobody's child,
//! ends every process with that HOME when the world is dropped, and also when the test is killed.

mod ask;
mod config;
mod hooks;
mod keeper;
mod kind;
mod rows;
mod screen;
mod turn;
mod world;

pub use ask::{Ask, Running};
pub(crate) use ask::{child_of, children};
pub use hooks::Hooked;
pub use keeper::end_all_at_home;
pub use kind::Real;
pub use screen::Screen;
pub use turn::Turn;
pub use world::{RealAgent, RealWorld};
