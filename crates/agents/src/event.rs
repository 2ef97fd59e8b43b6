//! The names of each agent's events, and their meaning: a table per agent.

use tenure_core::session::Doing;

/// One event of an agent.
#[derive(Debug, Clone, Copy)]
pub struct EventSpec {
    /// The agent's own name for it.
    pub name: &'static str,
    /// How long our hook may take, in the agent's own unit; none for an event that its settings do not ask for.
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

/// Other properties of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Note {
    /// The model reads the answer.
    ModelReads,
    /// It names the transcript reliably.
    File,
    /// The same, unless the conversation was resumed.
    FreshFile,
    /// A person does it.
    Attends,
    /// If a person requested what it ends, the session is idle from then on. Otherwise it was part of a turn.
    EndsManual,
    /// If it has no text of the model, the turn failed.
    FailsIfEmpty,
    /// The model is asked. A second time without an answer between means that the first failed.
    AsksModel,
    /// The person reads the answer to this event, and to no other of this agent.
    Recaps,
    /// Unattended, the answer goes in front of the prompt, and a resume forgets a prompt that begins so.
    HidesPrompt,
    /// After it a hook may wait for messages that start a turn.
    Waits,
    /// The agent asks a person and goes on showing that while the hook runs, so that one elsewhere may answer.
    Answerable,
}

pub(crate) use Note::{
    Answerable, AsksModel, Attends, EndsManual, FailsIfEmpty, File, FreshFile, HidesPrompt,
    ModelReads, Recaps, Waits,
};

pub(crate) const IDLE: Option<Doing> = Some(Doing::Idle);
pub(crate) const BUSY: Option<Doing> = Some(Doing::Busy);
/// Its turn ended by itself.
pub(crate) const FINISHED: Option<Doing> = Some(Doing::Finished);
/// Its turn failed, or its provider's limit ended it.
pub(crate) const FAILED: Option<Doing> = Some(Doing::Failed);
pub(crate) const RETRYING: Option<Doing> = Some(Doing::Retrying);
pub(crate) const WAITING: Option<Doing> = Some(Doing::Waiting);
/// Its activity does not change.
pub(crate) const SAME: Option<Doing> = None;

/// An event for which the agent's settings call tenure.
pub(crate) const fn event(
    name: &'static str,
    limit: u32,
    means: Means,
    doing: Option<Doing>,
    notes: &'static [Note],
) -> EventSpec {
    EventSpec {
        name,
        limit: Some(limit),
        means,
        doing,
        notes,
    }
}

/// An event that is understood when it arrives, although our settings do not ask for it.
pub(crate) const fn unasked(
    name: &'static str,
    means: Means,
    doing: Option<Doing>,
    notes: &'static [Note],
) -> EventSpec {
    EventSpec {
        name,
        limit: None,
        means,
        doing,
        notes,
    }
}

impl EventSpec {
    pub(crate) fn is(&self, note: Note) -> bool {
        self.notes.contains(&note)
    }
}
