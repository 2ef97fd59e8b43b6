//! Events that agents send through their hooks, and the answers.

mod handle_event;
mod tools;
mod worktree_changes;

pub use handle_event::{AgentEvent, Brief, HandledEvent};
pub use tools::{Advice, GuardPolicy, ToolUse};
