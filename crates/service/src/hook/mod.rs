//! Events that agents send through their hooks, and the answers.

mod enrol;
mod event;
mod handle_event;
mod note;
mod tools;
mod worktree_changes;

pub(crate) use handle_event::handle;

pub use event::{AgentEvent, Brief, HandledEvent, Repeat};
pub use tools::{Advice, GuardPolicy, ToolUse};
