//! What an event of an agent means, whatever the agent calls it.

/// What an event means for the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Happening {
    /// A conversation starts, or starts again.
    Start,
    /// A conversation starts as a copy of another.
    Fork,
    SubagentStart,
    SubagentStop,
    /// The worker is about to leave; should it go on, nothing was said.
    Leaves,
    End {
        /// Whether the worker ends with it.
        ends_worker: bool,
        /// What the agent says why.
        reason: String,
    },
    Other,
}

/// A worker inside a session, with no process of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subagent {
    /// The agent's id for it.
    pub id: String,
    pub kind: Option<String>,
}
