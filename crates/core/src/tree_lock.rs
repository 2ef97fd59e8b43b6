//! The lock that keeps git from removing a worktree while a session works in it.
//!
//! Git checks only the file `locked` of a linked worktree, whose text is the reason. Ours names the session
//! that started there last; when that one ends, the lock names another one that is still there, or is removed.
//! A lock with any other text belongs to someone else and is never touched.
//!
//! *Crash*: the lock changes after the commit. A process killed in between leaves a lock that names an ended
//! session; every command in that repository looks for such locks and repairs them.

/// A lock of ours on a linked worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeLock {
    pub file: String,
    /// The worktree, which may no longer exist.
    pub root: String,
    /// The session that it names.
    pub handle: String,
}

/// What the start or end of a session means for the lock of its worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeChange {
    /// The directory that the session works in.
    pub dir: String,
    pub handle: String,
    /// Whether it starts working there; otherwise it stops.
    pub begins: bool,
}

/// The text of the lock.
pub fn reason(handle: &str) -> String {
    format!("tenure: {handle} works here")
}

/// The session that a lock names; none if the lock is not ours.
pub fn named(text: &str) -> Option<&str> {
    let handle = text
        .trim_end()
        .strip_prefix("tenure: ")?
        .strip_suffix(" works here")?;
    (!handle.is_empty() && !handle.contains(char::is_whitespace)).then_some(handle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_text_is_ours() {
        assert_eq!(named(&reason("claude-k7qd")), Some("claude-k7qd"));
        assert_eq!(
            named("tenure: claude-k7qd works here\n"),
            Some("claude-k7qd")
        );
        for other in [
            "",
            "on a usb stick",
            "tenure:  works here",
            "tenure: two words works here",
            "mine; tenure: x works here",
        ] {
            assert_eq!(named(other), None, "{other}");
        }
    }
}
