//! Where the code of a job is from, and which commit of it was permitted.
//!
//! Permission covers the commit that was the head when the event was stored. Another commit is not run, unless it is
//! the conversation's own last result, which was pushed meanwhile. A run works at exactly that commit: a place that is
//! known to be at another one is made anew.

use serde::{Deserialize, Serialize};

use crate::commit::CommitId;
use crate::dispatch::publish::Publishing;

/// What a runner needs to know about the code that its job works on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct JobCode {
    /// The commit that was permitted; none where the item has no code of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// The branch of a pull request in the repository itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Where the repository is fetched from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Its public address, as the agent is shown it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// The forge, where it can be asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forge: Option<JobForge>,
    /// What becomes of its result.
    #[serde(skip_serializing_if = "is_default")]
    pub publishing: Publishing,
    /// What its result is pushed with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub push: Option<Credential>,
    /// The directory of another user that its place and its home are in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub places: Option<String>,
    /// The model that the agent reaches through a socket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelSocket>,
    /// Files of the dispatcher that a wrap must hide, besides those above.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
}

/// A model that an agent without a network reaches through a socket of ours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelSocket {
    pub url: String,
    /// The file with the key that requests get. The key itself is never stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_file: Option<String>,
    /// The header with the key; `Authorization: Bearer KEY` if none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_header: Option<String>,
}

/// A forge that a runner can ask.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobForge {
    pub kind: String,
    pub url: String,
    pub credential: Credential,
    /// The certificates to believe instead of the system's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<String>,
}

/// A token by its file. The token itself is never stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Credential {
    /// The account name that git sends with it.
    pub user: String,
    pub file: String,
}

fn is_default(publishing: &Publishing) -> bool {
    *publishing == Publishing::default()
}

impl JobCode {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A commit that is the head now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadNow {
    pub commit: String,
    /// Whether it is the last result of the conversation.
    pub is_own: bool,
}

/// The head is not the commit that was permitted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the head moved from {} to {} after the run was permitted", short(.permitted), short(.found))]
pub struct HeadMoved {
    pub permitted: String,
    pub found: String,
}

/// Whether a run may start on the head that was found.
pub fn check_head(permitted: Option<&str>, now: &HeadNow) -> Result<(), HeadMoved> {
    let Some(permitted) = permitted else {
        return Ok(());
    };
    if permitted.eq_ignore_ascii_case(&now.commit) || now.is_own {
        return Ok(());
    }
    Err(HeadMoved {
        permitted: permitted.to_owned(),
        found: now.commit.clone(),
    })
}

/// What is known of the place of a conversation.
#[derive(Debug, Clone, Copy)]
pub struct KnownPlace<'a> {
    /// What was last taken from it, or else what it was made with.
    pub at: &'a CommitId,
    /// Whether it still exists.
    pub is_there: bool,
}

/// What a run starts with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartFrom {
    /// The place as the last run left it.
    Place,
    /// A fresh place at this commit.
    Fresh(CommitId),
    /// The repository has no commit.
    Nothing,
}

/// What a run starts with. `head` is the permitted head of an item with code of its own; `base` that of the branch
/// that others build on.
pub fn start_from(
    head: Option<&CommitId>,
    place: Option<KnownPlace<'_>>,
    base: Option<&CommitId>,
) -> StartFrom {
    let known = place.map(|place| place.at);
    let Some(wanted) = head.or(known).or(base) else {
        return StartFrom::Nothing;
    };
    match place {
        Some(place) if place.is_there && place.at == wanted => StartFrom::Place,
        _ => StartFrom::Fresh(wanted.clone()),
    }
}

/// As much of a commit's name as people compare.
fn short(commit: &str) -> String {
    commit.chars().take(12).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now(commit: &str, is_own: bool) -> HeadNow {
        HeadNow {
            commit: commit.to_owned(),
            is_own,
        }
    }

    #[test]
    fn only_the_permitted_head_is_run() {
        assert_eq!(check_head(Some("a1"), &now("A1", false)), Ok(()));
        let moved = check_head(Some("a1"), &now("b2", false)).unwrap_err();
        assert_eq!(
            moved.to_string(),
            "the head moved from a1 to b2 after the run was permitted"
        );
        assert_eq!(check_head(None, &now("b2", false)), Ok(()), "an issue");
    }

    #[test]
    fn the_conversations_own_result_is_run() {
        assert_eq!(check_head(Some("a1"), &now("b2", true)), Ok(()));
    }

    #[test]
    fn a_run_is_at_the_commit_that_was_permitted() {
        let [head, taken, base] =
            ["a", "b", "c"].map(|digit| CommitId::parse(&digit.repeat(40)).unwrap());
        let there = |at| Some(KnownPlace { at, is_there: true });
        let gone = |at| {
            Some(KnownPlace {
                at,
                is_there: false,
            })
        };
        let fresh = |at: &CommitId| StartFrom::Fresh(at.clone());
        let (head, taken, base) = (&head, &taken, &base);
        // An issue.
        assert_eq!(start_from(None, None, Some(base)), fresh(base));
        assert_eq!(start_from(None, there(taken), Some(base)), StartFrom::Place);
        assert_eq!(start_from(None, gone(taken), Some(base)), fresh(taken));
        assert_eq!(start_from(None, None, None), StartFrom::Nothing);
        // A pull request, whatever its place has.
        assert_eq!(start_from(Some(head), None, Some(base)), fresh(head));
        assert_eq!(start_from(Some(head), there(taken), None), fresh(head));
        assert_eq!(start_from(Some(head), there(head), None), StartFrom::Place);
    }

    #[test]
    fn nothing_is_stored_for_a_job_without_code() {
        assert!(JobCode::default().is_empty());
        assert_eq!(serde_json::to_string(&JobCode::default()).unwrap(), "{}");
    }
}
