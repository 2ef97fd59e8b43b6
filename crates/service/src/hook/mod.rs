//! What agents tell their hooks, and what is answered.

mod hear;
mod meanwhile;
mod tools;

pub use hear::{AgentEvent, Brief, Heard};
pub use tools::{Advice, GuardPolicy, ToolUse};
