//! The coding agents: what each sends to its hooks and understands in return, how it is started and resumed,
//! and which settings make it call tenure.
//!
//! Pure: text comes in and goes out; nothing here opens a file or inspects a process. The appearance of an
//! agent in the process table is in core, because identity is decided there. A new agent needs a file here with
//! its row, a line in [`ADAPTERS`], and its row in core's table; names, help texts, settings and tests follow
//! from these.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod adapter;
mod asked;
mod background;
mod claude;
mod claude_background;
mod codex;
mod event;
mod gemini;
mod generic;
mod hooks;
pub mod install;
pub mod last_words;
mod marks;
mod openclaw;
mod opencode;
pub mod own_title;
mod payload;
mod qwen;
mod report;
pub mod run;
pub mod token_records;
pub mod turn_records;

pub use adapter::{Adapter, FirstEvent, Registry, Says, TurnRequest, Waking};
pub use asked::{Asked, AskedKind, AskedQuestion, Misfit, PersonsAnswer};
pub use background::{Background, BackgroundJob};
pub use event::{EventSpec, Means, Note};
pub use marks::MARKS;
pub use openclaw::KEY_SCHEME;
pub use report::{EventAnswer, Report, Tool};

/// Every agent whose events tenure understands.
pub static ADAPTERS: &[Adapter] = &[
    claude::ROW,
    codex::ROW,
    gemini::ROW,
    opencode::ROW,
    qwen::ROW,
    openclaw::ROW,
    generic::ROW,
];

/// The agent of this name.
pub fn adapter(name: &str) -> Option<&'static Adapter> {
    ADAPTERS.iter().find(|one| one.name == name)
}

/// The names of the agents for which this is true, in display order.
pub fn names(is_meant: fn(&Adapter) -> bool) -> Vec<&'static str> {
    let meant = ADAPTERS.iter().filter(|one| is_meant(one));
    meant.map(|one| one.name).collect()
}
