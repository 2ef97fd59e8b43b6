//! One linked worktree per item: its name, what is kept about it, and when it may be removed.
//!
//! *Invariant*: a worktree is removed only when everything in it is somewhere else. Each doubt is an
//! [`Objection`], and one is enough. *Record*: written before git makes the worktree and deleted after git
//! removed it, so a crash leaves a record without a worktree, never a worktree without a record.
//! *Older version*: fields that are missing in a record get their default.

use serde::{Deserialize, Serialize};

use crate::key::Key;

/// The longest part of an item that goes into a name.
const MAX_SLUG: usize = 48;

/// The worktree of an item, and why it could not be removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "Worktree")]
pub struct Record {
    pub item: String,
    /// The directory that all worktrees of its repository share.
    pub repository: String,
    pub branch: String,
    pub dir: String,
    /// Whether git may use the programs that its repository's settings name.
    #[serde(default)]
    pub believed: bool,
    /// Why the last attempt to remove it failed.
    #[serde(default)]
    pub kept: Vec<String>,
}

/// The name of an item's worktree, of which its branch and directory are made. `remote` is the name of the
/// repository that the worktree belongs to: its own items are named by scheme and number alone.
pub fn slug(item: &Key, remote: Option<&str>) -> String {
    let rest = item.rest();
    let own = remote.and_then(|remote| {
        let rest = rest.strip_prefix(remote)?;
        rest.strip_prefix(['#', ':'])
    });
    let mut slug = String::from(item.scheme());
    for part in own
        .unwrap_or(rest)
        .split(|c: char| !c.is_ascii_alphanumeric())
    {
        if !part.is_empty() {
            slug.push('-');
            slug.push_str(&part.to_ascii_lowercase());
        }
    }
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let plain: String = slug.chars().map(plain).take(MAX_SLUG).collect();
    plain.trim_end_matches('-').to_owned()
}

/// Names to try for a worktree, one after the other, when earlier ones belong to someone else.
pub fn names(slug: &str) -> impl Iterator<Item = String> {
    let numbered = (2..=99).map(move |n| format!("{slug}-{n}"));
    std::iter::once(slug.to_owned()).chain(numbered)
}

/// The branch of a worktree. A branch called `tenure` leaves no room for branches below that name.
pub fn branch(name: &str, is_tenure_a_branch: bool) -> String {
    let separator = if is_tenure_a_branch { '-' } else { '/' };
    format!("tenure{separator}{name}")
}

/// What was seen of a worktree that should be removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorktreeState {
    /// The commit that is checked out; none if git cannot say.
    pub head: Option<String>,
    /// Whether a branch of the remote had that commit when it was last fetched or pushed.
    pub is_on_remote: bool,
    /// The commit of this branch that the forge merged.
    pub merged: Option<String>,
    /// Changed, staged and untracked files.
    pub changed: Vec<String>,
    /// Files that git ignores. A fresh checkout has none, so all of them came later.
    pub ignored: Vec<String>,
    /// Why git has it locked.
    pub locked: Option<String>,
}

/// Why a worktree stays.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Objection {
    #[error("its HEAD cannot be read")]
    NoHead,
    #[error("commit {} is not on the remote", short(.0))]
    Unpushed(String),
    #[error("uncommitted changes: {}", listed(.0))]
    Changed(Vec<String>),
    #[error("ignored files that were made after the checkout: {}", listed(.0))]
    Ignored(Vec<String>),
    #[error("git has it locked{}", reason(.0))]
    Locked(String),
    #[error("processes work in it: {}", listed(.0))]
    Occupied(Vec<String>),
    /// Something could not be checked.
    #[error("{0}")]
    Unclear(String),
}

/// What speaks against the removal.
pub fn objections(seen: &WorktreeState) -> Vec<Objection> {
    let mut found = Vec::new();
    match &seen.head {
        None => found.push(Objection::NoHead),
        Some(head) if seen.is_on_remote || seen.merged.as_ref() == Some(head) => {}
        Some(head) => found.push(Objection::Unpushed(head.clone())),
    }
    if !seen.changed.is_empty() {
        found.push(Objection::Changed(seen.changed.clone()));
    }
    if !seen.ignored.is_empty() {
        found.push(Objection::Ignored(seen.ignored.clone()));
    }
    if let Some(why) = &seen.locked {
        found.push(Objection::Locked(why.clone()));
    }
    found
}

fn short(commit: &str) -> &str {
    commit.get(..12).unwrap_or(commit)
}

fn reason(why: &str) -> String {
    match why {
        "" => String::new(),
        why => format!(" ({why})"),
    }
}

/// The first few, and how many more there are.
fn listed(all: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown = all[..all.len().min(SHOWN)].join(", ");
    match all.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_of_the_repository_is_named_by_scheme_and_number() {
        let of = |item: &str| slug(&Key::parse(item).unwrap(), Some("acme/web"));
        assert_eq!(of("issue:acme/web#6"), "issue-6");
        assert_eq!(of("pr:acme/web#9"), "pr-9");
        assert_eq!(of("branch:acme/web:fix-6"), "branch-fix-6");
        assert_eq!(of("issue:acme/webs#6"), "issue-acme-webs-6");
        assert_eq!(of("issue:acme/api#6"), "issue-acme-api-6");
        assert_eq!(of("wp:041/WP03"), "wp-041-wp03");
        let local = slug(&Key::parse("wp:x").unwrap(), None);
        assert_eq!(local, "wp-x");
    }

    #[test]
    fn a_name_is_safe_for_branches_and_directories_whatever_the_item() {
        for item in [
            "x:../../etc/passwd",
            "x:..",
            "x:a..b~^:?*[\\@{.lock",
            "x:-rf /",
            "x.+-y:日本語",
            &format!("x:{}", "ab/".repeat(150)),
        ] {
            let name = slug(&Key::parse(item).unwrap(), Some("acme/web"));
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(name.chars().all(plain), "{item}: {name}");
            assert!(name.starts_with('x') && !name.ends_with('-'), "{name}");
            assert!(name.len() <= MAX_SLUG, "{name}");
        }
    }

    #[test]
    fn a_clash_gets_a_suffix() {
        let first: Vec<String> = names("issue-6").take(3).collect();
        assert_eq!(first, ["issue-6", "issue-6-2", "issue-6-3"]);
        assert_eq!(branch("issue-6", false), "tenure/issue-6");
        assert_eq!(branch("issue-6", true), "tenure-issue-6");
    }

    #[test]
    fn only_a_worktree_whose_work_is_elsewhere_may_go() {
        let safe = WorktreeState {
            head: Some("a".repeat(40)),
            is_on_remote: true,
            ..WorktreeState::default()
        };
        assert_eq!(objections(&safe), []);
        let merged = WorktreeState {
            is_on_remote: false,
            merged: safe.head.clone(),
            ..safe.clone()
        };
        assert_eq!(objections(&merged), []);
        let newer = WorktreeState {
            merged: Some("b".repeat(40)),
            ..merged
        };
        assert_eq!(objections(&newer), [Objection::Unpushed("a".repeat(40))]);
        let all = WorktreeState {
            head: None,
            changed: vec!["a".into()],
            ignored: (0..7).map(|n| n.to_string()).collect(),
            locked: Some("tenure: claude-k7qd works here".into()),
            ..safe
        };
        let said: Vec<String> = objections(&all).iter().map(ToString::to_string).collect();
        assert_eq!(
            said,
            [
                "its HEAD cannot be read",
                "uncommitted changes: a",
                "ignored files that were made after the checkout: 0, 1, 2, 3, 4 and 2 more",
                "git has it locked (tenure: claude-k7qd works here)",
            ]
        );
    }
}
