//! An event as programs get it, and its one line for people.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tenure_core::notification::Reason;
use tenure_core::text;
use tenure_core::time::Timestamp;
use tenure_core::visible::is_shown;
use tenure_host::clock;
use tenure_service::view::{HeldView, SessionView};

/// Of all that is not a reason: several events in one, and a test of a channel.
pub const DIGEST: &str = "digest";
pub const TEST: &str = "test";

/// The longest line for people, in characters.
const MAX_LENGTH: usize = 200;

/// What happened, once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notification {
    pub v: u32,
    /// The reason, `digest` or `test`.
    pub event: String,
    pub at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Subject>,
    /// What it waits for a person to answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks: Option<String>,
    /// Why it failed or is limited, how it died, what the run ended with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Until when it is limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// The item that was claimed, released, done or lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u64>,
    /// What a session held when it died.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<Held>,
    /// The handles of the sessions that it collides with, or of the one that has the item now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<String>,
    /// The command that resumes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume: Option<String>,
    /// The position in the log, for what comes from there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<u64>,
    /// In a digest: how many events of each reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counts: BTreeMap<String, usize>,
}

/// The session that an event is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    pub id: String,
    pub handle: String,
    pub agent: String,
    pub dir: String,
    pub repo: Option<String>,
    pub branch: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    pub key: String,
    pub epoch: u64,
}

impl From<&HeldView> for Held {
    fn from(held: &HeldView) -> Self {
        Self {
            key: held.key.clone(),
            epoch: held.epoch,
        }
    }
}

impl From<&SessionView> for Subject {
    fn from(session: &SessionView) -> Self {
        Self {
            id: session.id.clone(),
            handle: session.handle.clone(),
            agent: session.agent.clone(),
            dir: session.dir.clone(),
            repo: session.repo.clone(),
            branch: session.branch.clone(),
            title: session.title.clone(),
        }
    }
}

impl Notification {
    pub fn new(event: &str, at: Timestamp, session: Option<Subject>) -> Self {
        Self {
            v: 1,
            event: event.to_owned(),
            at,
            session,
            asks: None,
            why: None,
            until: None,
            key: None,
            epoch: None,
            held: Vec::new(),
            others: Vec::new(),
            resume: None,
            cursor: None,
            counts: BTreeMap::new(),
        }
    }

    /// Several events as one.
    pub fn digest(counts: BTreeMap<String, usize>, at: Timestamp) -> Self {
        Self {
            counts,
            ..Self::new(DIGEST, at, None)
        }
    }

    /// The reason; none for a digest or a test.
    pub fn reason(&self) -> Option<Reason> {
        Reason::parse(&self.event).ok()
    }

    /// The same without the words of prompts and agents.
    #[must_use]
    pub fn without_titles(mut self) -> Self {
        if let Some(session) = &mut self.session {
            session.title = None;
        }
        self.asks = None;
        // The outcome of a run comes before its reason.
        let outcome = |why: String| why.split(" (").next().map(str::to_owned);
        let is_run = self.event == Reason::Run.as_str();
        self.why = self.why.filter(|_| is_run).and_then(outcome);
        self
    }

    /// The event for programs, on one line.
    pub fn json(&self) -> String {
        let whole = serde_json::to_string(self).unwrap_or_default();
        text::json(&whole).into_owned()
    }

    /// What happened, in a few words, without hidden characters.
    pub fn headline(&self) -> String {
        let who = self
            .session
            .as_ref()
            .map_or("a session", |session| session.handle.as_str());
        let key = self.key.as_deref().unwrap_or("an item");
        let Some(reason) = self.reason() else {
            return plain(&self.headline_of_many());
        };
        plain(&match reason {
            Reason::Asks => format!("{who} waits for you"),
            Reason::Failed => format!("the turn of {who} failed"),
            Reason::Limited => match self.until {
                Some(until) => {
                    let until = clock::zone().short(until, self.at);
                    format!("{who} is limited until {until}")
                }
                None => format!("{who} is limited"),
            },
            Reason::Died if self.held.is_empty() => format!("{who} died"),
            Reason::Died => {
                let held: Vec<&str> = self.held.iter().map(|held| held.key.as_str()).collect();
                format!("{who} died holding {}", held.join(", "))
            }
            Reason::Lost => match self.others.first() {
                Some(other) => format!("{who} lost {key} to {other}"),
                None => format!("{who} lost {key}"),
            },
            Reason::Collides => format!("{who} collides with {}", self.others.join(", ")),
            Reason::Run => match &self.why {
                Some(why) => format!("a run of {who} ended: {why}"),
                None => format!("a run of {who} ended"),
            },
            Reason::Store => "the store of tenure does not answer".to_owned(),
            Reason::Keeper => "the keeper of this machine does not run".to_owned(),
            Reason::Claimed => format!("{who} claimed {key}"),
            Reason::Released => format!("{who} released {key}"),
            Reason::Done => format!("{who} marked {key} done"),
        })
    }

    fn headline_of_many(&self) -> String {
        if self.event == TEST {
            return "a test notification of tenure".to_owned();
        }
        let each = self.counts.iter();
        let each: Vec<String> = each
            .map(|(reason, count)| format!("{count} {reason}"))
            .collect();
        let all: usize = self.counts.values().sum();
        format!("{all} more events: {}", each.join(", "))
    }

    /// Where it happened, and what it is about if that may be said.
    pub fn details(&self) -> String {
        let session = self.session.as_ref();
        let place = session.map(|session| match (&session.repo, &session.branch) {
            (Some(repo), Some(branch)) => format!("{repo} ({branch})"),
            (Some(repo), None) => repo.clone(),
            (None, _) => session.dir.clone(),
        });
        let title = session.and_then(|session| session.title.clone());
        let why = self
            .why
            .clone()
            .filter(|_| self.event != Reason::Run.as_str());
        let parts = [title, self.asks.clone(), why, place];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        plain(&parts.join(" · "))
    }
}

/// A text on one line without control characters or others that steer the text around them.
pub fn plain(words: &str) -> String {
    let shown: String = words
        .chars()
        .map(|c| if c == '\n' || c == '\t' { ' ' } else { c })
        .filter(|c| is_shown(*c))
        .collect();
    text::clipped(&shown, MAX_LENGTH)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asks() -> Notification {
        Notification {
            asks: Some("permission for rm -rf build".to_owned()),
            ..Notification::new(
                "asks",
                Timestamp(0),
                Some(Subject {
                    id: "1".to_owned(),
                    handle: "claude-k7qd".to_owned(),
                    agent: "claude".to_owned(),
                    dir: "/web".to_owned(),
                    repo: Some("acme/web".to_owned()),
                    branch: Some("main".to_owned()),
                    title: Some("a\u{1b}]0;x\u{7}\n\u{202e}b".to_owned()),
                }),
            )
        }
    }

    #[test]
    fn f_v18_a_title_is_one_plain_line() {
        assert_eq!(asks().headline(), "claude-k7qd waits for you");
        assert_eq!(
            asks().details(),
            "a]0;x b · permission for rm -rf build · acme/web (main)"
        );
        let read: Notification = serde_json::from_str(&asks().json()).unwrap();
        assert_eq!(read, asks());
        assert!(asks().json().is_ascii());
    }

    #[test]
    fn without_titles_no_word_of_a_prompt_or_an_agent_is_left() {
        let event = asks().without_titles();
        assert_eq!(event.details(), "acme/web (main)");
        let mut run = Notification::new("run", Timestamp(0), None);
        run.why = Some("r-1: failed (the agent said so)".to_owned());
        assert_eq!(
            run.without_titles().headline(),
            "a run of a session ended: r-1: failed"
        );
    }
}
