//! What an agent calls the things that happen to its sessions, and what each means here: a table per agent.

use tenure_core::session::Doing;

/// One event of an agent.
#[derive(Debug, Clone, Copy)]
pub struct Event {
    /// The agent's own name for it.
    pub name: &'static str,
    /// How long our hook may take, in the agent's own unit of time; none for an event that its settings do
    /// not ask for.
    pub limit: Option<u32>,
    pub means: Means,
    /// What the session does from then on.
    pub doing: Option<Doing>,
    pub notes: &'static [Note],
}

/// What an event means for the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Means {
    Start,
    End,
    Leaves,
    SubagentStart,
    SubagentStop,
    BeforeTool,
    AfterTool,
    Other,
}

/// What else is true of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Note {
    /// The model reads what is answered.
    Heard,
    /// It can be trusted to name the transcript.
    File,
    /// The same, unless the conversation was resumed.
    FreshFile,
    /// A person does it.
    Attends,
    /// Where a person asked for what it ends, the session rests from then on. Otherwise it was done in a turn.
    EndsManual,
    /// The person reads what is answered to it, and to no other event of this agent.
    Recaps,
}

pub(crate) use Note::{Attends, EndsManual, File, FreshFile, Heard, Recaps};

pub(crate) const IDLE: Option<Doing> = Some(Doing::Idle);
pub(crate) const BUSY: Option<Doing> = Some(Doing::Busy);
pub(crate) const WAITING: Option<Doing> = Some(Doing::Waiting);
/// It does what it did before.
pub(crate) const SAME: Option<Doing> = None;

/// An event for which the agent's settings call us.
pub(crate) const fn event(
    name: &'static str,
    limit: u32,
    means: Means,
    doing: Option<Doing>,
    notes: &'static [Note],
) -> Event {
    Event {
        name,
        limit: Some(limit),
        means,
        doing,
        notes,
    }
}

/// An event that is understood when it comes, although no settings of ours ask for it.
pub(crate) const fn unasked(
    name: &'static str,
    means: Means,
    doing: Option<Doing>,
    notes: &'static [Note],
) -> Event {
    Event {
        name,
        limit: None,
        means,
        doing,
        notes,
    }
}

impl Event {
    pub(crate) fn is(&self, note: Note) -> bool {
        self.notes.contains(&note)
    }
}
