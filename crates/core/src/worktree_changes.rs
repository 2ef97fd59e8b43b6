//! What changed in a session's worktree while it was away.
//!
//! Pure. The worktree when the session last worked there is compared with its current state: the commit, the
//! branch, and the files that the session wrote.

use crate::write_conflict::{FileStamp, RepoFile, Tree};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WorktreeChanges {
    /// The worktree, if it no longer exists.
    pub gone: Option<String>,
    /// The commits that were and are checked out, if they differ.
    pub head: Option<(Option<String>, Option<String>)>,
    /// The branches that were and are checked out, if they differ.
    pub branch: Option<(Option<String>, Option<String>)>,
    /// Files that the session wrote and that have changed since, by their paths below the root.
    pub files: Vec<(String, Fate)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// This session wrote it since.
    WrittenBy(String),
    /// It was changed by an unknown writer.
    Changed,
    Gone,
}

/// Compares a worktree with its earlier state; without the files.
pub fn of_tree(before: &Tree, now: Option<&RepoFile>) -> WorktreeChanges {
    let Some(now) = now.filter(|now| now.root == before.root) else {
        return WorktreeChanges {
            gone: Some(before.root.clone()),
            ..WorktreeChanges::default()
        };
    };
    let differs =
        |was: &Option<String>, is: &Option<String>| (was != is).then(|| (was.clone(), is.clone()));
    WorktreeChanges {
        head: differs(&before.head, &now.head),
        branch: differs(&before.branch, &now.branch),
        ..WorktreeChanges::default()
    }
}

/// What happened to a file since the session was done with it, if anything.
pub fn of_file(
    was: Option<FileStamp>,
    is: Option<FileStamp>,
    writer: Option<String>,
) -> Option<Fate> {
    if let Some(writer) = writer {
        return Some(Fate::WrittenBy(writer));
    }
    match (was.filter(|was| *was != FileStamp::ABSENT)?, is) {
        (_, None) => Some(Fate::Gone),
        (was, Some(is)) => (was != is).then_some(Fate::Changed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::{Home, Repository};
    use crate::time::Timestamp;

    fn tree(head: &str, branch: Option<&str>) -> Tree {
        Tree {
            root: "/w".into(),
            head: Some(head.into()),
            branch: branch.map(str::to_owned),
            at: Timestamp(0),
        }
    }

    fn now(root: &str, head: &str, branch: Option<&str>) -> RepoFile {
        RepoFile {
            repo: "acme/web".into(),
            repository: Repository {
                home: Home {
                    dir: format!("{root}/.git"),
                    mark: None,
                },
                remote: Some("acme/web".into()),
            },
            root: root.into(),
            relative: String::new(),
            head: Some(head.into()),
            branch: branch.map(str::to_owned),
            stamp: None,
        }
    }

    #[test]
    fn a_worktree_that_stayed_as_it_was_is_no_news() {
        let same = now("/w", "a", Some("main"));
        assert_eq!(
            of_tree(&tree("a", Some("main")), Some(&same)),
            WorktreeChanges::default()
        );
    }

    #[test]
    fn commit_branch_and_loss_are_told_apart() {
        let before = tree("a", Some("main"));
        let moved = of_tree(&before, Some(&now("/w", "b", None)));
        assert_eq!(moved.head, Some((Some("a".into()), Some("b".into()))));
        assert_eq!(moved.branch, Some((Some("main".into()), None)));
        for gone in [None, Some(&now("/", "a", Some("main")))] {
            let gone = of_tree(&before, gone);
            assert_eq!(gone.gone.as_deref(), Some("/w"));
            assert_eq!((gone.head, gone.branch), (None, None));
        }
    }

    #[test]
    fn a_file_is_as_it_was_only_if_size_and_time_are() {
        let stamp = |size, modified| Some(FileStamp { size, modified });
        assert_eq!(of_file(stamp(1, 2), stamp(1, 2), None), None);
        assert_eq!(of_file(stamp(1, 2), stamp(3, 2), None), Some(Fate::Changed));
        assert_eq!(of_file(stamp(1, 2), stamp(1, 3), None), Some(Fate::Changed));
        assert_eq!(of_file(stamp(1, 2), None, None), Some(Fate::Gone));
        assert_eq!(
            of_file(None, stamp(1, 2), None),
            None,
            "it was never seen done"
        );
        assert_eq!(of_file(Some(FileStamp::ABSENT), None, None), None);
        let by = Some(Fate::WrittenBy("h".into()));
        assert_eq!(of_file(None, None, Some("h".into())), by);
    }
}
