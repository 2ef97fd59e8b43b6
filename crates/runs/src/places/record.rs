//! What is known of the places: one file each, below `places` in the state directory.
//!
//! A place belongs to a conversation, at one trust, with a wrap or without. Another trust has another place, with
//! another home, so nothing that code of less trust left reaches a run of more. *Crash*: a file is replaced whole.
//! A record is written before its place is made and says so; the place counts when it says that it was made.
//! *Older version*: an unreadable record is left alone, with its place.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tenure_core::commit::CommitId;
use tenure_core::id::{AgentName, WorkerRole};
use tenure_core::key::Key;
use tenure_core::queue::Trust;
use tenure_core::run::worktree;
use tenure_host::{digest, file, read};

use tenure_app::read_json::read_json;

/// Where they are, in the state directory, with the places of this user.
const FOLDER: &str = "places";
const MAX_LENGTH: u64 = 1 << 20;

/// Whose place it is.
#[derive(Debug, Clone, Copy)]
pub struct PlaceOwner<'a> {
    pub agent: &'a AgentName,
    pub role: &'a WorkerRole,
    /// The item whose conversation it is.
    pub item: &'a Key,
    pub trust: Trust,
    pub is_wrapped: bool,
    /// The directory of another user that it is in.
    pub places: Option<&'a str>,
}

/// What is known of a place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlaceRecord {
    pub agent: String,
    /// The item whose conversation it belongs to.
    pub item: String,
    pub trust: String,
    /// Where its repository is fetched from.
    pub url: String,
    pub dir: PathBuf,
    /// The command that it is reached with, as its rule has it.
    pub wrap: Vec<String>,
    /// Whether its directory belongs to the wrap's user.
    pub is_theirs: bool,
    pub is_made: bool,
    /// The commit that it was made at.
    pub start: CommitId,
    /// The last run in it.
    pub run: Option<String>,
    /// What was last taken from it.
    pub taken: Option<CommitId>,
    /// What was last taken from the place that was here before.
    pub last: Option<CommitId>,
    /// Whether something was taken since the last run began.
    pub is_taken: bool,
    /// Where earlier work that was not committed was moved to.
    pub aside: Vec<PathBuf>,
    /// Why it was not removed.
    #[serde(default)]
    pub kept: Vec<String>,
}

impl PlaceRecord {
    /// The commit that it is known to be at.
    pub fn at(&self) -> &CommitId {
        self.taken.as_ref().unwrap_or(&self.start)
    }
}

impl PlaceOwner<'_> {
    /// The name of its place.
    pub fn name(&self) -> String {
        let places = self.places.unwrap_or_default();
        let trust = self.trust.as_str();
        let (agent, role, item) = (self.agent.as_str(), self.role.as_str(), self.item.as_str());
        let whole = format!(
            "{agent}\n{role}\n{item}\n{trust}\n{}\n{places}",
            self.is_wrapped
        );
        let slug = worktree::slug(self.item, None);
        format!("{slug}-{}", &digest::sha256(whole.as_bytes())[..12])
    }

    /// The directory of its place.
    pub fn dir(&self, state: &Path) -> io::Result<PathBuf> {
        if let Some(places) = self.places {
            return Ok(Path::new(places).join(self.name()));
        }
        let folder = state.join(FOLDER);
        file::make_dirs(&folder)?;
        Ok(fs_err::canonicalize(folder)?.join(self.name()))
    }
}

/// The record with this name.
pub fn load(state: &Path, name: &str) -> io::Result<Option<PlaceRecord>> {
    match read::whole(&file_of(state, name), MAX_LENGTH) {
        Ok(bytes) => read_json(&bytes).map(Some),
        Err(error) if read::is_absent(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

pub fn store(state: &Path, name: &str, record: &PlaceRecord) -> io::Result<()> {
    file::make_dirs(&state.join(FOLDER))?;
    file::write_atomic(&file_of(state, name), &serde_json::to_vec(record)?)
}

pub fn forget(state: &Path, name: &str) -> io::Result<()> {
    file::remove(&file_of(state, name))
}

/// All readable records, with their names.
pub fn all(state: &Path) -> Vec<(String, PlaceRecord)> {
    let Ok(entries) = fs_err::read_dir(state.join(FOLDER)) else {
        return Vec::new();
    };
    let names = entries.flatten().filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        name.strip_suffix(".json").map(str::to_owned)
    });
    let mut all: Vec<_> = names
        .filter_map(|name| Some((name.clone(), load(state, &name).ok()??)))
        .collect();
    all.sort_by(|one, other| one.0.cmp(&other.0));
    all
}

fn file_of(state: &Path, name: &str) -> PathBuf {
    state.join(FOLDER).join(format!("{name}.json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_conversation_and_each_trust_has_a_place_of_its_own() {
        let (claude, codex) = (AgentName::known("claude"), AgentName::known("codex"));
        let item = Key::stored("pr:acme/web#9").unwrap();
        let other = Key::stored("pr:acme/web#8").unwrap();
        let (none, reviewer) = (
            WorkerRole::default(),
            WorkerRole::parse("reviewer").unwrap(),
        );
        let owner = PlaceOwner {
            agent: &claude,
            role: &none,
            item: &item,
            trust: Trust::Trusted,
            is_wrapped: true,
            places: None,
        };
        let mut names = vec![
            owner.name(),
            PlaceOwner {
                agent: &codex,
                ..owner
            }
            .name(),
            PlaceOwner {
                role: &reviewer,
                ..owner
            }
            .name(),
            PlaceOwner {
                item: &other,
                ..owner
            }
            .name(),
            PlaceOwner {
                trust: Trust::Outside,
                ..owner
            }
            .name(),
            PlaceOwner {
                is_wrapped: false,
                ..owner
            }
            .name(),
            PlaceOwner {
                places: Some("/srv/agent"),
                ..owner
            }
            .name(),
        ];
        let state = Path::new("/state");
        let theirs = PlaceOwner {
            places: Some("/srv/agent"),
            ..owner
        };
        assert_eq!(
            theirs.dir(state).unwrap(),
            Path::new("/srv/agent").join(theirs.name())
        );
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 7, "{names:?}");
        assert!(names[0].starts_with("pr-acme-web-"), "{names:?}");
    }
}
