//! Trampling: one session's write or git command under another's feet.
//!
//! Pure. What is dangerous about a tool's use comes out as a [`Finding`]; whether it is said or blocked
//! follows from the [`Mode`] that the user chose. Nothing is blocked that the user did not ask for.

use std::time::Duration;

use crate::id::SessionId;
use crate::repository::Repository;
use crate::text;
use crate::time::{Span, Timestamp};

/// That a session wrote a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileWrite {
    /// The file, by its whole path.
    pub path: String,
    pub session: SessionId,
    pub at: Timestamp,
    /// What the file was when the session was done with it; none while it is at it.
    pub stamp: Option<FileStamp>,
}

/// By what a file is known to be as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStamp {
    /// How long it is, in bytes.
    pub size: u64,
    /// When it was last changed, in nanoseconds of the wall clock.
    pub modified: i64,
}

/// What a worktree was at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    pub root: String,
    /// The commit that was checked out.
    pub head: Option<String>,
    pub branch: Option<String>,
    pub at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepoFile {
    /// The repository, as a place names it.
    pub repo: String,
    /// The same with all that it is known by.
    pub repository: Repository,
    /// The root of the worktree.
    pub root: String,
    /// The file's path below the root; empty for the root itself.
    pub relative: String,
    /// The commit that is checked out.
    pub head: Option<String>,
    /// The branch that is checked out.
    pub branch: Option<String>,
    /// What the file is; none where there is no such file.
    pub stamp: Option<FileStamp>,
}

/// For how long a write counts as lately.
pub const LATELY: Duration = Duration::from_secs(60 * 60);

/// What is done about a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    Observe,
    /// The model is told as well.
    #[default]
    Warn,
    /// The tool is not run.
    Block,
}

impl Mode {
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "observe" => Some(Mode::Observe),
            "warn" => Some(Mode::Warn),
            "block" => Some(Mode::Block),
            _ => None,
        }
    }
}

/// Something that is dangerous about a tool's use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// Another live session wrote the file since this one last did.
    SecondWriter {
        path: String,
        handle: String,
        dir: String,
        /// How long ago it wrote.
        ago: Duration,
        /// Whether this session's own claim reserves the file.
        reserved: bool,
    },
    /// Another live session reserved the path.
    Reserved {
        path: String,
        key: String,
        handle: String,
    },
    /// A command changes files under other live sessions.
    TreeMoved {
        /// The command, such as `git stash`.
        command: String,
        root: String,
        handles: Vec<String>,
    },
    /// The user wants writes under a claim only, and there is none.
    Unclaimed {
        /// What a claim's key must look like.
        pattern: String,
    },
}

impl Finding {
    /// The sentence for the model: what is the matter, with whom, and the way out.
    pub fn sentence(&self) -> String {
        match self {
            Finding::SecondWriter {
                path,
                handle,
                dir,
                ago,
                reserved: _,
            } => format!(
                "{handle} (in {}) wrote {} {} ago and is still at work. Ask it with \
                 `tenure tell {handle} \"…\"`, or reserve the file with `tenure claim path:…`; read it \
                 again before you write it.",
                text::name(dir),
                text::name(path),
                Span(*ago)
            ),
            Finding::Reserved { path, key, handle } => format!(
                "{} is reserved by {handle} ({}). Work elsewhere or ask it: \
                 `tenure tell {handle} \"…\"`; `tenure why {}` says more.",
                text::name(path),
                text::name(key),
                text::shell(key)
            ),
            Finding::TreeMoved {
                command,
                root,
                handles,
            } => format!(
                "`{command}` changes files under {}, at work in the same worktree {}. Use a worktree of \
                 your own (`git worktree add`) or ask first: `tenure tell {} \"…\"`.",
                some_of(handles),
                text::name(root),
                handles.first().map_or("SESSION", String::as_str)
            ),
            Finding::Unclaimed { pattern } => format!(
                "files are written under a claim only here, and this session holds none that fits {}. \
                 Take one first: `tenure claim KEY`.",
                text::name(pattern)
            ),
        }
    }

    /// Whether it stops the tool in this mode. A required claim was asked for in so many words; whoever
    /// reserved the file may write it, whoever wrote it before.
    pub fn blocks(&self, mode: Mode) -> bool {
        match self {
            Finding::Unclaimed { .. } => true,
            Finding::SecondWriter { reserved: true, .. } => false,
            _ => mode == Mode::Block,
        }
    }

    /// The short name for the log.
    pub fn mechanism(&self) -> &'static str {
        match self {
            Finding::SecondWriter { .. } => "second_writer",
            Finding::Reserved { .. } => "reserved",
            Finding::TreeMoved { .. } => "tree_moved",
            Finding::Unclaimed { .. } => "unclaimed",
        }
    }
}

/// The first few of many names, and how many more there are.
fn some_of(handles: &[String]) -> String {
    const NAMED: usize = 4;
    let named = handles[..handles.len().min(NAMED)].join(", ");
    match handles.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// Whether another's write is news for a session that last wrote the file then.
pub fn is_news(theirs: Timestamp, own: Option<Timestamp>, now: Timestamp) -> bool {
    theirs.age_at(now) < LATELY && own.is_none_or(|own| own < theirs)
}

/// Whether a claim's key fits what the user requires: `*` stands for any text.
pub fn fits(pattern: &str, key: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(first) = parts.next() else {
        return false;
    };
    let Some(mut rest) = key.strip_prefix(first) else {
        return false;
    };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else {
        return rest.is_empty();
    };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.len() >= last.len() && rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_fits_whole_keys() {
        for (pattern, key, expected) in [
            ("issue:*", "issue:acme/web#42", true),
            ("issue:*", "wp:1", false),
            ("issue:acme/*#4*", "issue:acme/web#42", true),
            ("issue:acme/*#4", "issue:acme/web#42", false),
            ("*", "x:y", true),
            ("x:y", "x:y", true),
            ("x:y", "x:yz", false),
            ("a*a", "a", false),
        ] {
            assert_eq!(fits(pattern, key), expected, "{pattern} {key}");
        }
    }

    #[test]
    fn another_write_is_news_until_one_has_written_oneself() {
        let at = |minutes: i64| Timestamp(minutes * 60_000);
        assert!(is_news(at(5), None, at(10)));
        assert!(is_news(at(5), Some(at(4)), at(10)));
        assert!(!is_news(at(5), Some(at(6)), at(10)));
        assert!(!is_news(at(5), None, at(66)));
    }

    #[test]
    fn only_what_was_asked_for_is_blocked() {
        let reserved = Finding::Reserved {
            path: "/f".into(),
            key: "path:r:**".into(),
            handle: "h".into(),
        };
        assert!(!reserved.blocks(Mode::Observe) && !reserved.blocks(Mode::Warn));
        assert!(reserved.blocks(Mode::Block));
        let unclaimed = Finding::Unclaimed {
            pattern: "issue:*".into(),
        };
        assert!(unclaimed.blocks(Mode::Warn));
    }
}
