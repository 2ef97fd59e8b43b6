//! Views of conversations.

use schemars::JsonSchema;
use serde::Serialize;
use tenure_core::conversation::Home;
use tenure_core::time::Timestamp;

use crate::session::view::NameView;

/// The conversation that an agent continues for an item.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ConversationView {
    pub agent: String,
    /// The role of the agent; null by default.
    pub role: Option<String>,
    /// The item in the request.
    pub item: String,
    /// The item whose conversation it is: `item`, unless that is linked.
    pub root: String,
    /// Other items that continue it.
    pub linked: Vec<String>,
    /// Whether `item` is now linked elsewhere, and this conversation waits until it is unlinked.
    pub set_aside: bool,
    /// The agent's own id for it; none after a drop.
    pub native_id: Option<String>,
    pub home: Option<HomeView>,
    /// `host`, `user`, `agent_home` or `repository`: what differs from here, so that it cannot be resumed here.
    pub elsewhere: Option<&'static str>,
    pub set_at: Option<Timestamp>,
    /// The session that set it.
    pub set_by: Option<NameView>,
    /// The run that set it.
    pub set_by_run: Option<String>,
    /// `resume`, `unknown` or `unusable`: whether it may be resumed.
    pub fitness: Option<&'static str>,
    /// `present`, `absent` or `cannot_tell`; null if the agent's files were not checked.
    pub existence: Option<&'static str>,
    /// The run in it now.
    pub run: Option<String>,
    pub closed_at: Option<Timestamp>,
    /// Counts the changes of its record.
    pub revision: u64,
}

/// Where an agent keeps a conversation.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct HomeView {
    pub host_id: String,
    /// The user, by number.
    pub user: String,
    /// The agent's own directory, if it is not the default.
    pub agent_home: Option<String>,
    /// The directory that the agent works in.
    pub dir: String,
    /// The host of the item's repository, if the directory is in a clone of it.
    pub repo_host: Option<String>,
}

impl From<&Home> for HomeView {
    fn from(home: &Home) -> Self {
        Self {
            host_id: home.host.to_string(),
            user: home.user.clone(),
            agent_home: home.agent_home.clone(),
            dir: home.dir.clone(),
            repo_host: home.repo_host.clone(),
        }
    }
}

/// A native id in a conversation's history.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PastIdView {
    pub native_id: String,
    pub from: Timestamp,
    /// The session that set it.
    pub set_by: Option<NameView>,
    /// The run that set it.
    pub set_by_run: Option<String>,
    /// Null while it is the current one.
    pub until: Option<Timestamp>,
    /// `replaced`, `dropped`, `unknown`, `unusable` or `closed`.
    pub why: Option<&'static str>,
    /// The session that ended it.
    pub ended_by: Option<NameView>,
    /// The run that ended it.
    pub ended_by_run: Option<String>,
}

/// An item and the item whose conversations it continues.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct LinkView {
    pub item: String,
    /// Null if the item is not linked.
    pub root: Option<String>,
    /// Its previous root.
    pub before: Option<String>,
    /// Items that were linked to `item` and are now linked to `root`.
    pub moved: Vec<String>,
    /// The conversations of `item` itself: set aside by a link, restored by an unlink.
    pub own: Vec<ConversationView>,
}
