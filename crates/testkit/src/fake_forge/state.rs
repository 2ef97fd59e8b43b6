//! The state that all forges share.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// An issue or a pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thread {
    pub is_pull: bool,
    /// `open`, `closed` or `merged`.
    pub state: &'static str,
    pub author: String,
}

/// The head of a pull request, and the repository that it is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullHead {
    pub commit: String,
    pub repo: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comment {
    pub id: u64,
    pub number: u64,
    pub login: String,
    pub body: String,
    /// How many times it was edited.
    pub edits: u32,
}

/// A delivery that the forge has stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    pub id: u64,
    pub guid: String,
    pub status: u16,
    pub event: String,
    pub at: String,
}

/// What happens to a request instead of its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// This status with these headers and this message; the request has no effect.
    Status(u16, Vec<(&'static str, String)>, &'static str),
    /// The connection stays open without an answer.
    Hang,
    /// The request takes effect, and the connection closes without an answer.
    DoneUnanswered,
    /// The request takes effect, and the connection stays open without an answer.
    DoneHang,
    /// The connection closes at once; the request has no effect.
    Dropped,
}

/// Redelivers a delivery by its id; returns the status of the answer.
pub type Redeliver = Arc<dyn Fn(&str) -> u16 + Send + Sync>;

pub struct State {
    pub threads: BTreeMap<u64, Thread>,
    /// The heads of pull requests, by number; one that is not here has the made-up commit `a1` of `acme/web`.
    pub heads: BTreeMap<u64, PullHead>,
    pub comments: Vec<Comment>,
    /// Where there is an "eyes" reaction: `item 6`, `comment 7`, `review 8`.
    pub eyes: Vec<String>,
    pub branches: BTreeSet<String>,
    /// `admin`, `write` or `read`, by login.
    pub permissions: BTreeMap<String, &'static str>,
    pub deliveries: Vec<Sent>,
    pub redeliver: Option<Redeliver>,
    /// The path of the repository's webhook.
    pub hook: String,
    /// Method and path of every request, without the API's prefix.
    pub requests: Vec<String>,
    /// How many requests hang now.
    pub hanging: usize,
    /// The tokens that clients sent.
    pub tokens: BTreeSet<String>,
    /// The beginning of a request, how many times it fails, and how.
    pub faults: Vec<(String, usize, Fault)>,
    /// Deliveries to send again.
    pub(super) again: Vec<Sent>,
    last_id: u64,
}

impl Default for State {
    fn default() -> Self {
        let issue = |state| Thread {
            is_pull: false,
            state,
            author: "alice".to_owned(),
        };
        Self {
            threads: BTreeMap::from([(6, issue("open")), (7, issue("open"))]),
            heads: BTreeMap::new(),
            comments: Vec::new(),
            eyes: Vec::new(),
            branches: BTreeSet::from(["main".to_owned()]),
            permissions: ["alice", "bob"]
                .map(|login| (login.to_owned(), "write"))
                .into(),
            deliveries: Vec::new(),
            redeliver: None,
            hook: "https://me.example.org/hooks/home".to_owned(),
            requests: Vec::new(),
            hanging: 0,
            tokens: BTreeSet::new(),
            faults: Vec::new(),
            again: Vec::new(),
            last_id: 500,
        }
    }
}

impl State {
    /// Makes the next `times` requests that begin with this fail.
    pub fn fail(&mut self, beginning: &str, times: usize, fault: Fault) {
        self.faults.push((beginning.to_owned(), times, fault));
    }

    /// The fault that is due for a request.
    pub(super) fn fault(&mut self, request: &str) -> Option<Fault> {
        let due = |(beginning, left, _): &&mut (String, usize, Fault)| {
            *left > 0 && request.starts_with(beginning.as_str())
        };
        let found = self.faults.iter_mut().find(due)?;
        found.1 -= 1;
        Some(found.2.clone())
    }

    pub(super) fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    pub(super) fn write_comment(&mut self, number: u64, body: &str) -> u64 {
        let id = self.next_id();
        self.comments.push(Comment {
            id,
            number,
            login: "bot".to_owned(),
            body: body.to_owned(),
            edits: 0,
        });
        id
    }

    /// Changes the text of a comment; returns whether the comment exists.
    pub(super) fn edit_comment(&mut self, id: u64, body: &str) -> bool {
        let found = self.comments.iter_mut().find(|one| one.id == id);
        let Some(comment) = found else {
            return false;
        };
        comment.body = body.to_owned();
        comment.edits += 1;
        true
    }

    pub(super) fn thread(&self, number: u64, is_pull: bool) -> Option<&Thread> {
        let found = self.threads.get(&number);
        found.filter(|thread| thread.is_pull == is_pull)
    }
}

/// The number of an account.
pub(super) fn account(login: &str) -> u64 {
    match login {
        "alice" => 3,
        "bob" => 4,
        "bot" => 9,
        _ => 77,
    }
}
