//! What a run of an agent needs around it: its prompt, its environment, its worktree, and what it may trust.

pub mod environment;
pub mod skill;
pub mod template;
pub mod trust;
pub mod worktree;
