//! The record of a conversation, its history, and what is known of an item.

use std::fmt;

use crate::conversation::fitness::Left;
use crate::id::{AgentName, HostId, NativeId, RunId, SessionId, WorkerRole, stored_enum};
use crate::key::Key;
use crate::time::Timestamp;

/// What continues for an agent in a role and an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conversation {
    pub agent: AgentName,
    pub role: WorkerRole,
    /// The item, in canonical form.
    pub item: Key,
    /// The native id that it has; none before the first one and after a drop.
    pub current: Option<Current>,
    /// When the last of its items was closed. What it had then comes back when an item is reopened in time.
    pub closed_at: Option<Timestamp>,
    /// Counts the changes of this record; never goes back, not even after a drop.
    pub revision: u64,
}

impl Conversation {
    /// The record before anything was set.
    pub fn none(agent: AgentName, role: WorkerRole, item: Key) -> Self {
        Self {
            agent,
            role,
            item,
            current: None,
            closed_at: None,
            revision: 0,
        }
    }

    /// What a run continues: nothing if it was dropped or is closed.
    pub fn open(&self) -> Option<&Current> {
        self.current.as_ref().filter(|_| self.closed_at.is_none())
    }
}

/// The native id of a conversation, where it lives and who set it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Current {
    pub native_id: NativeId,
    pub home: Home,
    pub by: Author,
    pub at: Timestamp,
}

/// Where an agent keeps a conversation: it can be resumed there and nowhere else.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Home {
    pub host: HostId,
    /// The user, by number.
    pub user: String,
    /// The agent's own home directory if that is not the usual one (`CODEX_HOME`, `CLAUDE_CONFIG_DIR`).
    pub agent_home: Option<String>,
    /// The directory that the agent works in, absolute. A run starts there.
    pub dir: String,
    /// The host of the item's repository, if the directory is in a clone of it.
    pub repo_host: Option<String>,
}

stored_enum! {
    /// In what a conversation's home differs from where it would be resumed.
    Elsewhere, "place" {
        Host = "host",
        User = "user",
        AgentHome = "agent_home",
        Repository = "repository",
    }
}

impl Home {
    /// Whether the conversation can be resumed from `here`. The directory does not matter: a run changes to it.
    pub fn is_here(&self, here: &Home) -> Result<(), Elsewhere> {
        if self.host != here.host {
            return Err(Elsewhere::Host);
        }
        if self.user != here.user {
            return Err(Elsewhere::User);
        }
        if self.agent_home != here.agent_home {
            return Err(Elsewhere::AgentHome);
        }
        // Where one of the two is in no clone of the repository, its host is not known.
        match (&self.repo_host, &here.repo_host) {
            (Some(own), Some(other)) if own != other => Err(Elsewhere::Repository),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Elsewhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Elsewhere::Host => "on another host",
            Elsewhere::User => "another user's",
            Elsewhere::AgentHome => "in another home directory of the agent",
            Elsewhere::Repository => "in a clone from another host",
        })
    }
}

/// Who changed a conversation, as far as that is known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Author {
    pub session: Option<SessionId>,
    pub run: Option<RunId>,
}

/// One native id in a conversation's history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastId {
    pub native_id: NativeId,
    pub from: Timestamp,
    pub by: Author,
    /// None while it is the current one.
    pub ended: Option<IdEnd>,
}

/// When and why a native id stopped being the current one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdEnd {
    pub at: Timestamp,
    pub why: WhyEnded,
    pub by: Author,
}

stored_enum! {
    /// Why a conversation's native id is no longer the current one.
    WhyEnded, "end of a native id" {
        /// Another one was set.
        Replaced = "replaced",
        Dropped = "dropped",
        /// The agent has no such conversation.
        Unknown = "unknown",
        /// The agent or its provider refuses to continue it.
        Unusable = "unusable",
        /// The last of its items was closed.
        Closed = "closed",
    }
}

impl WhyEnded {
    /// Why a native id ends when another one is set, by what the newest run of it left.
    pub fn by_another(left: Option<Left>) -> WhyEnded {
        match left {
            Some(Left::Unusable) => WhyEnded::Unusable,
            Some(Left::Unknown) => WhyEnded::Unknown,
            Some(Left::Sound | Left::Overflowed) | None => WhyEnded::Replaced,
        }
    }
}

/// What is known of an item beyond its conversations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemState {
    pub item: Key,
    pub link: Option<ItemLink>,
    /// When it was closed at its forge.
    pub closed_at: Option<Timestamp>,
}

impl ItemState {
    /// An item of which nothing is known.
    pub fn plain(item: Key) -> Self {
        Self {
            item,
            link: None,
            closed_at: None,
        }
    }

    /// The item whose conversations it continues: itself, unless it is linked.
    pub fn root(&self) -> &Key {
        self.link.as_ref().map_or(&self.item, |link| &link.root)
    }
}

/// A link to the item whose conversations are continued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemLink {
    /// Never itself linked.
    pub root: Key,
    pub at: Timestamp,
    pub by: Option<SessionId>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_is_here_whatever_the_directory() {
        let home = Home {
            host: HostId::new("h"),
            user: "alice".into(),
            agent_home: None,
            dir: "/a".into(),
            repo_host: Some("github.com".into()),
        };
        let moved = Home {
            dir: "/b".into(),
            ..home.clone()
        };
        assert_eq!(home.is_here(&moved), Ok(()));
        let host = Home {
            host: HostId::new("other"),
            user: "bob".into(),
            ..home.clone()
        };
        assert_eq!(home.is_here(&host), Err(Elsewhere::Host));
        let user = Home {
            user: "bob".into(),
            ..home.clone()
        };
        assert_eq!(home.is_here(&user), Err(Elsewhere::User));
        let agent_home = Home {
            agent_home: Some("/codex".into()),
            ..home.clone()
        };
        assert_eq!(home.is_here(&agent_home), Err(Elsewhere::AgentHome));
        let repository = Home {
            repo_host: Some("evil.example".into()),
            ..home.clone()
        };
        assert_eq!(home.is_here(&repository), Err(Elsewhere::Repository));
        let unknown = Home {
            repo_host: None,
            ..home.clone()
        };
        assert_eq!(home.is_here(&unknown), Ok(()));
        assert_eq!(unknown.is_here(&home), Ok(()));
    }
}
