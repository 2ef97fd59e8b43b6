//! Why a run failed, in classes that decide what happens to it and to its conversation.
//!
//! A class comes from a structured field of the agent's stream or files, or from its standard error after a failed
//! exit. Text of the model and output of tools never reach this module.

use crate::conversation::fitness::ResumeRefusal;
use crate::id::stored_enum;
use crate::text;

/// No text of an error is kept beyond this many characters.
const MAX_TEXT: usize = 2000;

stored_enum! {
    /// The class of an error.
    ErrorClass {
        /// The agent has no such conversation.
        UnknownConversation = "unknown_conversation",
        /// The agent cannot read its own file of the conversation.
        Damaged = "damaged",
        /// The history is longer than the model takes.
        Overflow = "overflow",
        /// The provider refuses what is in the history.
        History = "history",
        /// A usage limit or a rate limit that the agent gave up on.
        Limit = "limit",
        Authentication = "authentication",
        Billing = "billing",
        /// The provider failed or is overloaded.
        Server = "server",
        /// The provider could not be reached, or its answer was cut off.
        Network = "network",
        /// Another process is in the conversation.
        Busy = "busy",
        /// The agent refuses to work in a directory that is not trusted.
        Untrusted = "untrusted",
        /// A limit that the run was given: turns, budget.
        Cap = "cap",
        /// The turn was cancelled from outside.
        Aborted = "aborted",
        /// The model was asked again and again without a result.
        Loop = "loop",
        Other = "other",
    }
}

impl ErrorClass {
    /// The class of a provider's HTTP status. The status alone of a refused request shows too little.
    pub fn of_status(status: u64) -> ErrorClass {
        match status {
            401 | 403 => ErrorClass::Authentication,
            402 => ErrorClass::Billing,
            413 => ErrorClass::Overflow,
            429 => ErrorClass::Limit,
            500..=599 => ErrorClass::Server,
            _ => ErrorClass::Other,
        }
    }

    /// Whether this is decided before the agent takes the prompt. Once a turn began, words to this effect mean
    /// something else.
    pub fn precedes_turn(self) -> bool {
        matches!(
            self,
            ErrorClass::UnknownConversation
                | ErrorClass::Damaged
                | ErrorClass::Busy
                | ErrorClass::Untrusted
        )
    }

    /// How a resume was refused that ended so; none if the conversation is not the reason.
    pub fn refusal(self, compacts: bool) -> Option<ResumeRefusal> {
        match self {
            ErrorClass::UnknownConversation => Some(ResumeRefusal::Unknown),
            ErrorClass::Damaged => Some(ResumeRefusal::Damaged),
            ErrorClass::Overflow => Some(ResumeRefusal::Overflow { compacts }),
            ErrorClass::History => Some(ResumeRefusal::History),
            _ => None,
        }
    }
}

/// An error of the agent or its provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentFailure {
    pub class: ErrorClass,
    /// What the agent wrote, for people.
    pub text: String,
}

impl AgentFailure {
    pub fn new(class: ErrorClass, text: &str) -> Self {
        let text = text::clipped(text.trim(), MAX_TEXT);
        Self { class, text }
    }
}
