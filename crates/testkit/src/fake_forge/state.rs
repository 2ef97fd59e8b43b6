//! The state that all forges share.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use crate::git::git_maybe;

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

/// A pull request that was opened through the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MadePull {
    pub branch: String,
    pub base: String,
    pub title: String,
    pub body: String,
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
pub enum InjectedFault {
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

pub struct ForgeState {
    pub threads: BTreeMap<u64, Thread>,
    /// The heads of pull requests, by number; one that is not here has the made-up commit `a1` of `acme/web`.
    pub heads: BTreeMap<u64, PullHead>,
    /// Pull requests that were opened through the API, by number.
    pub pulls: BTreeMap<u64, MadePull>,
    /// The repository that it has; refs of pull requests are made there.
    pub git_dir: Option<PathBuf>,
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
    pub faults: Vec<(String, usize, InjectedFault)>,
    /// Deliveries to send again.
    pub(super) again: Vec<Sent>,
    last_id: u64,
}

impl Default for ForgeState {
    fn default() -> Self {
        let issue = |state| Thread {
            is_pull: false,
            state,
            author: "alice".to_owned(),
        };
        Self {
            threads: BTreeMap::from([(6, issue("open")), (7, issue("open"))]),
            heads: BTreeMap::new(),
            pulls: BTreeMap::new(),
            git_dir: None,
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

impl ForgeState {
    /// Makes the next `times` requests that begin with this fail.
    pub fn fail(&mut self, beginning: &str, times: usize, fault: InjectedFault) {
        self.faults.push((beginning.to_owned(), times, fault));
    }

    /// The fault that is due for a request.
    pub(super) fn fault(&mut self, request: &str) -> Option<InjectedFault> {
        let due = |(beginning, left, _): &&mut (String, usize, InjectedFault)| {
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

    /// Opens a pull request of the account `bot`; returns its number, or nothing if its branch has one.
    pub(super) fn open_pull(&mut self, pull: MadePull) -> Option<u64> {
        let is_open = |number: &u64| {
            self.threads
                .get(number)
                .is_some_and(|one| one.state == "open")
        };
        let mut known = self.pulls.iter();
        if known.any(|(number, one)| one.branch == pull.branch && is_open(number)) {
            return None;
        }
        let number = self.threads.keys().max().map_or(1, |last| last + 1);
        let thread = Thread {
            is_pull: true,
            state: "open",
            author: "bot".to_owned(),
        };
        self.threads.insert(number, thread);
        self.pulls.insert(number, pull);
        self.update_heads();
        Some(number)
    }

    /// Reads the heads of pull requests from the repository, and makes their refs there, as a forge does after a push.
    pub fn update_heads(&mut self) {
        let Some(dir) = &self.git_dir else { return };
        let git = |arguments: &[&str]| git_maybe(dir, arguments);
        for (number, pull) in &self.pulls {
            let Some(commit) = git(&["rev-parse", &format!("refs/heads/{}", pull.branch)]) else {
                continue;
            };
            for name in ["pull", "merge-requests"] {
                git(&["update-ref", &format!("refs/{name}/{number}/head"), &commit]);
            }
            let repo = "acme/web".to_owned();
            self.heads.insert(*number, PullHead { commit, repo });
        }
    }

    /// Merges a pull request if this is its head; returns the status of the answer.
    pub(super) fn merge(&mut self, number: u64, head: Option<&str>) -> u16 {
        self.update_heads();
        let known = self.heads.get(&number).map(|head| head.commit.clone());
        let Some(thread) = self.threads.get_mut(&number).filter(|one| one.is_pull) else {
            return 404;
        };
        if thread.state != "open" {
            return 405;
        }
        if head != Some(known.as_deref().unwrap_or("a1")) {
            return 409;
        }
        thread.state = "merged";
        200
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
