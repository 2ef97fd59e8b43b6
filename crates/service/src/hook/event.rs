//! An event as an agent reported it, and what came of it.

use std::time::Duration;

use crate::conversation::Address;
use crate::hook::tools::{Advice, ToolUse};
use crate::session::view::{HeldView, SessionView};
use serde::{Deserialize, Serialize};
use tenure_core::agent_event::{Happening, QuestionText, Subagent};
use tenure_core::end::Terminal;
use tenure_core::id::{AgentName, NativeId, SessionId};
use tenure_core::key::Key;
use tenure_core::notice::NoticeId;
use tenure_core::process::Ancestor;
use tenure_core::program::Program;
use tenure_core::session::Doing;
use tenure_core::time::Timestamp;
use tenure_core::worktree_changes::WorktreeChanges;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentEvent {
    pub agent: Option<AgentName>,
    /// The agent's own process; none if it could not be identified.
    pub process: Option<Ancestor>,
    /// Where to look for it, for a program that tenure cannot recognise.
    pub program: Option<Program>,
    pub native_id: Option<NativeId>,
    /// The item whose conversation the native id is, for an agent that addresses conversations by keys of its own.
    pub address: Option<Address>,
    pub what: Happening,
    /// The subagent in which it happened.
    pub subagent: Option<Subagent>,
    /// What the session is doing now.
    pub doing: Option<Doing>,
    /// What it waits for a person to answer.
    pub asks: Option<QuestionText>,
    /// Why it failed, is limited or retries.
    pub why: Option<String>,
    /// Until when it is limited, or when it tries again.
    pub until: Option<Timestamp>,
    /// Whether it only shows that the model is asked.
    pub asks_model: bool,
    /// Whether it shows that a person is present.
    pub attended: bool,
    /// The messages that started its turn.
    #[serde(default)]
    pub woken_by: Vec<NoticeId>,
    /// What the agent's terminal shows; checked only for an end.
    pub terminal: Terminal,
    pub dir: String,
    /// The agent's file for the conversation.
    pub transcript: Option<String>,
    /// The tool that is about to run, or ran.
    pub tool: Option<ToolUse>,
    /// What a person asked it to do; none if that must not be stored.
    pub prompt: Option<String>,
    /// What the agent calls its work.
    pub title: Option<String>,
    /// Whether the model reads the answer. If not, nothing is delivered with it.
    pub reaches_model: bool,
    /// Whether answers to this agent's events can reach the model at all.
    pub speaks: bool,
    /// Whether the session's first event is answered with a brief.
    pub wants_brief: bool,
    /// Whether a known session gets a brief now, because its first event could not have one.
    pub briefs_late: bool,
    /// Whether the answer shows the person the turn's findings, because no other answer reaches the person.
    pub wants_recap: bool,
}

/// An event that only says that a session is still at work. If the store has had the same one, it says nothing new.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repeat {
    pub doing: Option<String>,
    /// Everything of it that could be new.
    pub says: String,
}

impl AgentEvent {
    /// The event as one that may repeat an earlier one; none if it says more.
    pub fn repeat(&self) -> Option<Repeat> {
        let says_more = self.what != Happening::Other
            || self.program.is_some()
            || self.process.is_none()
            || self.subagent.is_some()
            || self.asks.is_some()
            || self.why.is_some()
            || self.until.is_some()
            || self.asks_model
            || self.attended
            || !self.woken_by.is_empty()
            || self.tool.is_some()
            || self.prompt.is_some()
            || self.title.is_some()
            || self.wants_brief
            || self.wants_recap
            // The end of a turn, and waiting for a person.
            || self.doing.is_some_and(|doing| doing != Doing::Busy);
        if says_more {
            return None;
        }
        let text = |value: Option<&str>| value.unwrap_or_default().to_owned();
        let says = [
            text(self.agent.as_ref().map(AgentName::as_str)),
            text(self.native_id.as_ref().map(NativeId::as_str)),
            text(self.address.as_ref().map(|address| address.item.as_str())),
            text(self.transcript.as_deref()),
            format!("{} {}", self.reaches_model, self.speaks),
        ];
        Some(Repeat {
            doing: self.doing.map(|doing| doing.as_str().to_owned()),
            says: says.join("\n"),
        })
    }
}

#[derive(Debug, Clone, Default)]
pub struct HandledEvent {
    pub session: Option<String>,
    pub id: Option<SessionId>,
    /// Whether anything besides its activity changed.
    pub changed: bool,
    /// How it was registered, if it was.
    pub registered: Option<&'static str>,
    /// The value for TENURE_SESSION, at a start.
    pub token: Option<String>,
    /// What the model reads at a start.
    pub brief: Option<Brief>,
    /// What to report about a tool call.
    pub advice: Advice,
    /// Why the program's process is unknown, if it is.
    pub unclear: Option<String>,
    /// The item that owns the conversation, if the event named another with it. Nothing else was recorded.
    pub foreign_to: Option<Key>,
    /// How long the same event would change nothing, as long as nothing else does.
    pub quiet_for: Duration,
}

/// What a model should know when it starts.
#[derive(Debug, Clone)]
pub struct Brief {
    pub me: SessionView,
    pub regranted: Vec<HeldView>,
    /// What changed in its worktree while it was away.
    pub worktree_changes: WorktreeChanges,
    /// The other sessions in the same repository, or in the same directory if there is none.
    pub others: Vec<SessionView>,
    pub more_others: usize,
}
