//! The coding agents: what each sends to its hooks and understands in return, how it is started and
//! resumed, and which settings make it call us.
//!
//! Pure: text comes in and goes out, nothing here opens a file or looks at a process. What an agent looks
//! like in the process table is core's, because identity is decided there. One more agent is one more
//! file here, a row in [`ADAPTERS`], and its row in core's table of looks.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod adapter;
mod claude;
mod codex;
mod gemini;
mod generic;
pub mod install;
mod opencode;
mod payload;
mod report;

pub use adapter::{Adapter, Failed, Registry, Turn};
pub use report::{Answer, Report, Tool};

/// Every agent whose events are understood.
pub const ADAPTERS: &[&dyn Adapter] = &[
    &claude::Claude,
    &codex::Codex,
    &gemini::Gemini,
    &opencode::Opencode,
    &generic::Generic,
];

/// The agent of this name.
pub fn adapter(name: &str) -> Option<&'static dyn Adapter> {
    ADAPTERS.iter().find(|one| one.name() == name).copied()
}
