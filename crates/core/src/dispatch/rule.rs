//! Rules: when one matches, and what it starts.

use std::fmt;
use std::time::Duration;

use super::publish::Publishing;
use crate::forge::{Association, EventKind, Person};
use crate::glob::Glob;
use crate::id::{AgentName, Malformed, WorkerRole, stored_enum};
use crate::queue::code::ModelSocket;
use crate::skill::SkillName;

/// Names of branches: `main`, `release/*`, `feature/**`.
#[derive(Debug, Clone)]
pub struct BranchPattern {
    text: String,
    glob: Glob,
}

impl BranchPattern {
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let glob = Glob::parse(text).map_err(|why| Malformed::new("branch", text, why))?;
        Ok(Self {
            text: text.to_owned(),
            glob,
        })
    }

    pub fn matches(&self, branch: &str) -> bool {
        self.glob.matches(branch)
    }

    /// Whether this matches every branch that the other does.
    pub fn includes(&self, other: &Self) -> bool {
        self.glob.includes(&other.glob)
    }
}

impl PartialEq for BranchPattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl fmt::Display for BranchPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The conditions of a rule; all of them must hold.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct When {
    /// The canonical name of a repository; every one that is configured if none is named.
    pub repo: Option<String>,
    pub on: Vec<EventKind>,
    /// Logins, or `id:NUMBER`.
    pub authors: Vec<String>,
    pub associations: Vec<Association>,
    pub label: Option<String>,
    pub mention: Option<String>,
    pub assignee: Option<String>,
    pub reviewer: Option<String>,
    /// For a pull request the branch that it would be merged into; else the branch itself.
    pub branch: Option<BranchPattern>,
}

impl When {
    /// Whether someone is named as an author.
    pub fn names(&self, person: &Person) -> bool {
        names(&self.authors, person)
    }
}

/// Whether a list of logins and `id:NUMBER` has an account.
fn names(list: &[String], person: &Person) -> bool {
    list.iter().any(|one| match one.strip_prefix("id:") {
        Some(id) => person.id.is_some_and(|own| id.parse() == Ok(own)),
        None => !person.login.is_empty() && one.eq_ignore_ascii_case(&person.login),
    })
}

stored_enum! {
    /// What is written in the forge about a run.
    Reply, "reply" {
        Nothing = "none",
        /// Eyes when it is accepted.
        Reaction = "reaction",
        /// The same, and one comment that is kept up to date.
        Comment = "comment",
    }
}

stored_enum! {
    /// What happens to a live run when its item is closed by a person.
    OnClose, "on_close" {
        Finish = "finish",
        Stop = "stop",
    }
}

/// Limits for one item.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Caps {
    pub runs_per_hour: Option<u32>,
    pub usd_per_day: Option<f64>,
}

/// What a rule starts.
#[derive(Debug, Clone, PartialEq)]
pub struct Action {
    pub agent: AgentName,
    /// The role of the agent: whose conversation of the item it continues.
    pub role: WorkerRole,
    pub skill: SkillName,
    /// Whether each run begins a conversation, which no later run continues.
    pub fresh: bool,
    /// Arguments of the agent.
    pub args: Vec<String>,
    /// Variables for the agent: `NAME` of the dispatcher's own, or `NAME=VALUE`.
    pub env: Vec<String>,
    /// The command that the agent is run under; empty without one.
    pub wrap: Vec<String>,
    /// Whether the run also claims its item.
    pub exclusive: bool,
    pub timeout: Option<Duration>,
    pub caps: Caps,
    pub reply: Reply,
    pub on_close: OnClose,
    /// What becomes of results.
    pub publishing: Publishing,
    /// The model that a wrapped agent reaches through a socket.
    pub model: Option<ModelSocket>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// Unique: a job keeps it.
    pub name: String,
    pub when: When,
    pub action: Action,
    /// Whether a later rule may match the same event too.
    pub goes_on: bool,
}

/// A repository that events are accepted from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repo {
    /// Canonical.
    pub name: String,
    /// The forge that it is on, by its name in the settings.
    pub forge: String,
    /// Whether an event, or the forge when it is asked, tells what someone is to the repository.
    pub tells_associations: bool,
    /// Events that this forge never sends.
    pub never_sends: Vec<EventKind>,
    /// The account that tenure writes as.
    pub own_account: Option<String>,
    /// Accounts that are programs, where the forge does not tell: logins, or `id:NUMBER`.
    pub bots: Vec<String>,
}

impl Repo {
    /// Whether an account is a program, as far as the forge or the settings tell.
    pub fn is_bot(&self, account: &Person) -> bool {
        account.is_bot || names(&self.bots, account)
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rules {
    pub repos: Vec<Repo>,
    /// In their order.
    pub rules: Vec<Rule>,
}

impl Rules {
    pub fn rule(&self, name: &str) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.name == name)
    }

    pub fn repo(&self, forge: &str, name: &str) -> Option<&Repo> {
        let mut repos = self.repos.iter();
        repos.find(|repo| repo.forge == forge && repo.name == name)
    }
}
