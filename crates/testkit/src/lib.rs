//! The test environment: a private home, workers that look like agents, and worlds without
//! processes.
//!
//! tenure finds identity by walking up the process ancestry, and a coding agent may be running the
//! tests. So nothing above the test may be an ancestor of what the test runs. Workers are therefore
//! started detached: their parent exits at once, they are reparented to init (or to the nearest
//! subreaper), and only they start what is tested. [`Env`] holds the directories and starts
//! workers, [`Agent`] is one worker, [`Shell`] a real shell at a terminal. [`FakeWorld`] and
//! [`FakeClock`] serve tests of rules, which need no process at all.
//!
//! A test that fails or is killed leaves nothing behind: a worker ends, and ends what it started,
//! when the test's end of its socket closes. Processes are signalled through a pidfd that was
//! opened when they started, so a reused pid is never hit.

mod agent;
mod command;
pub mod conformance;
mod env;
mod fake_clock;
pub mod fake_forge;
mod fake_world;
mod git;
mod home;
mod host;
mod job;
mod mock;
mod output;
pub mod picture;
pub mod pinned;
mod place;
mod poll;
pub mod postgres;
mod program;
pub mod protocol;
pub mod real;
mod recording;
mod scripted;
pub mod seed;
mod shell;
mod space;
mod terminal;
pub mod tui;
mod worker;

pub use agent::{Agent, Background};
pub use command::Cmd;
pub use env::Env;
pub use fake_clock::FakeClock;
pub use fake_world::FakeWorld;
pub use git::{add_worktree, scratch_git};
pub use home::HomeGuard;
pub use host::Host;
pub use mock::{MockModel, ModelApi, RecordedRequest};
pub use output::Output;
pub use poll::poll;
pub use recording::RecordingStore;
pub use rustix::process::Signal;
pub use scripted::Scripted;
pub use shell::Shell;
pub use terminal::{Terminal, pair as terminal_pair};
