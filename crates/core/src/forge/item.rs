//! The claim keys of what a forge has.

use crate::id::Malformed;
use crate::key::Key;
use crate::spelling;

pub fn issue_item(repo: &str, number: u64) -> Result<Key, Malformed> {
    Key::parse(&format!("issue:{repo}#{number}"))
}

pub fn pull_item(repo: &str, number: u64) -> Result<Key, Malformed> {
    Key::parse(&format!("pr:{repo}#{number}"))
}

pub fn branch_item(repo: &str, branch: &str) -> Result<Key, Malformed> {
    if branch.is_empty() {
        return Err(Malformed::new("branch", branch, "it is empty"));
    }
    Key::parse(&format!("branch:{repo}:{branch}"))
}

/// The issue of a branch that tenure made for its worktree: `tenure/issue-6`, `tenure/issue-6-2`.
pub fn worktree_issue(branch: &str, repo: &str) -> Option<Key> {
    let rest = branch.strip_prefix("tenure")?.strip_prefix(['/', '-'])?;
    let mut parts = rest.strip_prefix("issue-")?.split('-');
    let number = spelling::number(parts.next()?)?.parse().ok()?;
    let is_suffix = |part: &str| spelling::number(part).is_some();
    if parts.next().is_none_or(is_suffix) && parts.next().is_none() {
        issue_item(repo, number).ok()
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_has_the_name_of_its_claim() {
        assert_eq!(
            issue_item("Acme/Web", 6).unwrap().as_str(),
            "issue:acme/web#6"
        );
        assert_eq!(pull_item("acme/web", 9).unwrap().as_str(), "pr:acme/web#9");
        let branch = branch_item("acme/web", "fix-6").unwrap();
        assert_eq!(branch.as_str(), "branch:acme/web:fix-6");
        assert!(branch_item("acme/web", "a\u{202e}b").is_err());
        assert!(branch_item("acme/web", "").is_err());
    }

    #[test]
    fn a_branch_of_a_worktree_names_its_issue() {
        let issue = |branch: &str| worktree_issue(branch, "acme/web").map(|key| key.to_string());
        for branch in ["tenure/issue-6", "tenure-issue-6", "tenure/issue-6-2"] {
            assert_eq!(
                issue(branch).as_deref(),
                Some("issue:acme/web#6"),
                "{branch}"
            );
        }
        for branch in [
            "issue-6",
            "tenure/pr-6",
            "tenure/issue-x",
            "tenure/issue-6-x",
            "tenure/issue-6-2-3",
            "tenure/issue-",
        ] {
            assert_eq!(issue(branch), None, "{branch}");
        }
    }
}
