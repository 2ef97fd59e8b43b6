//! Agents at their real terminals: a private tmux server, its windows, and what each agent shows
//! there.
//!
//! `scripts/tools` installs tmux, and `scripts/test` sets `TENURE_TMUX` to its path. A [`Tmux`] is
//! a private server with a socket in the test's directory, no configuration, a fixed size and the
//! environment of its [`RealWorld`](crate::real::RealWorld). A [`Window`] runs one program in it. A
//! [`Tui`] is a window with an agent whose screen can be read: whether it works, asks or waits for
//! a line.
//!
//! The server is detached, as a person's is. When it is dropped it is killed, with every process
//! that is below it at that moment. Processes that left its process tree have the HOME of the
//! world, and end with the world.

mod doing;
mod face;
mod faces;
mod tmux;
mod window;

pub use doing::Doing;
pub use face::Tui;
pub use tmux::Tmux;
pub use window::{Key, Window};
