//! Agents at their real terminals: a private tmux server, its windows, and what each agent shows there.
//!
//! `scripts/tools` brings tmux and `scripts/test` names it in `TENURE_TMUX`. A [`Tmux`] is a server of its own with
//! a socket in the test's directory, no configuration, a fixed size and the environment of its
//! [`RealWorld`](crate::real::RealWorld). A [`Window`] runs one program in it; a [`Tui`] is a window with an agent
//! whose screen can be read: whether it works, asks or waits for a line.
//!
//! The server is nobody's child, as a person's is. When it is dropped it is killed, with every process that
//! then is below it; what left its process tree has the HOME of the world, and ends with the world.

mod doing;
mod face;
mod faces;
mod tmux;
mod window;

pub use doing::Doing;
pub use face::Tui;
pub use tmux::Tmux;
pub use window::{Key, Window};
