//! What an agent's stream reports, in one vocabulary for all agents.
//!
//! Each agent's reader turns one line of its stream into any number of these. A line that means nothing to a run
//! gives none.

use crate::id::NativeId;
use crate::run::failure::AgentFailure;
use crate::time::Timestamp;

/// One statement of an agent's stream.
#[derive(Debug, Clone, PartialEq)]
pub enum RunLine {
    /// The agent named its conversation.
    Named(NativeId),
    /// The agent has the prompt and works on it. A final event before this one is void.
    TurnBegan,
    /// The model answered with something that is not shown.
    Thought,
    /// A tool is called, or was called if the agent reports it afterwards.
    Tool {
        what: String,
    },
    /// A tool call was refused for lack of permission. Its `Tool` comes as well.
    Denied {
        what: String,
    },
    /// Text of the model. A `part` continues the part before it.
    Text {
        text: String,
        part: bool,
    },
    /// The agent waits for its provider and tries again by itself.
    WaitsForProvider {
        why: String,
    },
    /// The model was asked once. `finished` if it gave a reason for its end.
    StepEnded {
        finished: bool,
        used_tokens: bool,
    },
    Spent(Spent),
    /// The provider refused the request because of a usage limit.
    Limit {
        resets_at: Option<Timestamp>,
    },
    /// An error that the agent may recover from.
    Problem(AgentFailure),
    /// An error that rules success out.
    Failure(AgentFailure),
    Final(Final),
    /// Not a line of this agent's format.
    Unreadable,
}

/// What was used, and by what.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spent {
    pub of: SpentBy,
    pub tokens: Option<Tokens>,
    pub cost_usd: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpentBy {
    /// One step of this run; steps are added up.
    Step,
    /// This run.
    Run,
    /// The conversation since its beginning.
    Conversation,
}

/// Tokens, those from a cache included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tokens {
    pub input: u64,
    pub output: u64,
}

impl Tokens {
    /// What a counter counted since it stood at `before`. One that fell began again: a compacted conversation does that.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        if self.input < before.input || self.output < before.output {
            return self;
        }
        Self {
            input: self.input - before.input,
            output: self.output - before.output,
        }
    }

    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
        }
    }
}

/// The event with which an agent ends its turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Final {
    pub ok: bool,
    /// How often the model answered, if the agent counts.
    pub turns: Option<u32>,
    pub text: Option<String>,
    /// Names of tools that were refused for lack of permission.
    pub denied: Vec<String>,
    /// What went wrong, unless `ok`.
    pub error: Option<AgentFailure>,
}

impl Final {
    pub fn success(text: Option<String>) -> Self {
        Self {
            ok: true,
            turns: None,
            text,
            denied: Vec::new(),
            error: None,
        }
    }

    pub fn failed(error: AgentFailure) -> Self {
        Self {
            ok: false,
            error: Some(error),
            ..Self::success(None)
        }
    }
}
