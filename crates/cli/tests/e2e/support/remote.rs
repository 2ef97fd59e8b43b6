//! A repository on this machine that a dispatcher fetches from, which can be away and is pushed to.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tenure_testkit::Env;

use super::cloned::pull;
use super::git_host::git;

/// The repository that `webhook::set_up` makes.
pub struct Remote {
    repo: PathBuf,
    /// Where it is while it is away.
    hidden: PathBuf,
    pushes: u64,
}

impl Remote {
    pub fn of(env: &Env) -> Self {
        Self {
            repo: env.dir().join("web"),
            hidden: env.dir().join("web-away"),
            pushes: 0,
        }
    }

    pub fn set_away(&self, is_away: bool) {
        let (from, to) = if is_away {
            (&self.repo, &self.hidden)
        } else {
            (&self.hidden, &self.repo)
        };
        if from.exists() {
            std::fs::rename(from, to).expect("the environment is ours");
        }
    }

    fn dir(&self) -> &Path {
        if self.repo.exists() {
            &self.repo
        } else {
            &self.hidden
        }
    }

    /// The commit of its own branch.
    pub fn main(&self) -> String {
        git(self.dir(), &["rev-parse", "HEAD"])
    }

    /// Puts a new commit in place of a pull request's head; returns it.
    pub fn force_push(&mut self, number: u64) -> String {
        self.pushes += 1;
        let message = format!("change {}", self.pushes);
        let who = ["-c", "user.name=a", "-c", "user.email=a@example.invalid"];
        let words = ["commit-tree", "-p", "HEAD", "-m", &message, "HEAD^{tree}"];
        let commit = git(self.dir(), &[&who[..], &words[..]].concat());
        let name = format!("refs/pull/{number}/head");
        git(self.dir(), &["update-ref", &name, &commit]);
        commit
    }
}

/// A pull request that alice opened with this head; each moment makes another event of it.
pub fn opened(number: u64, head: &str, moment: u64) -> Value {
    let mut payload = pull(number, head);
    let (hour, minute, second) = (moment / 3_600 % 24, moment / 60 % 60, moment % 60);
    let at = format!("2026-11-16T{hour:02}:{minute:02}:{second:02}Z");
    payload["pull_request"]["updated_at"] = at.into();
    payload
}

/// A job in the ledger.
pub struct Row {
    pub id: String,
    pub item: String,
    pub state: String,
    pub outcome: Option<String>,
    pub run: Option<String>,
    /// The commit that was permitted.
    pub head: Option<String>,
}

/// All jobs of the ledger.
pub fn ledger(env: &Env) -> Vec<Row> {
    let store = rusqlite::Connection::open(env.state().join("tenure.db")).expect("it is there");
    let sql = "SELECT id, item, state, outcome, run, json_extract(spec, '$.code.head') FROM jobs";
    let mut query = store.prepare(sql).expect("the tables are as we think");
    let rows = query.query_map([], |row| {
        Ok(Row {
            id: row.get(0)?,
            item: row.get(1)?,
            state: row.get(2)?,
            outcome: row.get(3)?,
            run: row.get(4)?,
            head: row.get(5)?,
        })
    });
    let rows = rows.and_then(Iterator::collect);
    rows.expect("they can be read")
}

/// Checks that each run was at the permitted commit: a pull request's own, else that of the branch. `heads` has a line
/// for each run, with the commit that its agent saw.
#[track_caller]
pub fn each_was_permitted(rows: &[Row], heads: &str, main: &str, seed: u64) {
    let seen: BTreeMap<&str, &str> = heads
        .lines()
        .filter_map(|line| line.split_once(' '))
        .collect();
    for row in rows {
        let run = row.run.as_deref().and_then(|run| seen.get(run));
        let Some(found) = run else {
            assert_ne!(row.state, "ended", "{} was seen by nobody", row.id);
            continue;
        };
        let expected = if row.item.starts_with("pr:") {
            row.head.as_deref().expect("one was permitted")
        } else {
            main
        };
        assert_eq!(*found, expected, "{} {} (seed {seed})", row.item, row.id);
    }
}
