//! What was read ahead about the sessions of a list; [`crate::read_ahead`] reads it and answers from it.

use std::collections::{HashMap, HashSet};

use tenure_core::claim::Hold;
use tenure_core::id::{AgentName, NativeId, SessionId};
use tenure_core::line::Waiter;
use tenure_core::run::Run;
use tenure_core::session::Session;
use tenure_core::store::LineageEntry;

/// What was read ahead.
#[derive(Debug, Default)]
pub struct SessionBatch {
    pub sessions: HashMap<SessionId, Session>,
    /// All that have no recorded end, once they were read.
    pub open_runs: Option<HashMap<SessionId, Run>>,
    pub newest_runs: HashMap<SessionId, Run>,
    pub lineages: HashMap<SessionId, Vec<LineageEntry>>,
    pub open_holds: HashMap<SessionId, Vec<Hold>>,
    pub newest_holds: HashMap<SessionId, Vec<Hold>>,
    pub waits: HashMap<SessionId, Vec<Waiter>>,
    pub transcripts: HashMap<(SessionId, NativeId), String>,
    pub conversations: HashSet<(AgentName, NativeId)>,
    pub members: HashMap<(AgentName, NativeId), Vec<SessionId>>,
}
