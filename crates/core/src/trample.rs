//! Trampling: one session's write or git command under another's feet.
//!
//! Pure. What is dangerous about a tool's use comes out as a [`Finding`]; whether it is said or blocked
//! follows from the [`Mode`] that the user chose. Nothing is blocked that the user did not ask for.

use std::time::Duration;

use crate::id::SessionId;
use crate::time::{Span, Timestamp};

/// That a session wrote a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileWrite {
    /// The file, by its whole path.
    pub path: String,
    /// Who.
    pub session: SessionId,
    /// When last.
    pub at: Timestamp,
}

/// What a worktree was at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// Its root.
    pub root: String,
    /// The commit that was checked out.
    pub head: Option<String>,
    /// The branch.
    pub branch: Option<String>,
    /// When.
    pub at: Timestamp,
}

/// Where a file is in its repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepoFile {
    /// The repository, as a place names it.
    pub repo: String,
    /// The root of the worktree.
    pub root: String,
    /// The file's path below the root; empty for the root itself.
    pub relative: String,
    /// The commit that is checked out.
    pub head: Option<String>,
    /// The branch that is checked out.
    pub branch: Option<String>,
}

/// For how long a write counts as lately.
pub const LATELY: Duration = Duration::from_secs(60 * 60);

/// What is done about a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// It is recorded.
    Observe,
    /// The model is told as well.
    #[default]
    Warn,
    /// The tool is not run.
    Block,
}

impl Mode {
    /// Reads a mode's name.
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
        /// The file.
        path: String,
        /// The other.
        handle: String,
        /// Where it works.
        dir: String,
        /// How long ago it wrote.
        ago: Duration,
    },
    /// Another live session reserved the path.
    Reserved {
        /// The file.
        path: String,
        /// The claim's key.
        key: String,
        /// Who holds it.
        handle: String,
    },
    /// A command changes files under other live sessions.
    TreeMoved {
        /// The command, such as `git stash`.
        command: String,
        /// The worktree.
        root: String,
        /// Who works there.
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
            } => format!(
                "{handle} (in {dir}) wrote {path} {} ago and is still at work. Read the file again before \
                 you write it; `tenure tell {handle} \"…\"` reaches it, `tenure claim path:…` reserves a path.",
                Span(*ago)
            ),
            Finding::Reserved { path, key, handle } => format!(
                "{path} is reserved by {handle} ({key}). Work elsewhere or ask it: \
                 `tenure tell {handle} \"…\"`; `tenure why '{key}'` says more."
            ),
            Finding::TreeMoved {
                command,
                root,
                handles,
            } => format!(
                "`{command}` changes files under {}, at work in the same worktree {root}. Use a worktree of \
                 your own (`git worktree add`) or ask first: `tenure tell {} \"…\"`.",
                handles.join(", "),
                handles.first().map_or("SESSION", String::as_str)
            ),
            Finding::Unclaimed { pattern } => format!(
                "files are written under a claim only here, and this session holds none that fits {pattern}. \
                 Take one first: `tenure claim KEY`."
            ),
        }
    }

    /// Whether it stops the tool in this mode. A required claim was asked for in so many words.
    pub fn blocks(&self, mode: Mode) -> bool {
        mode == Mode::Block || matches!(self, Finding::Unclaimed { .. })
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

/// Whether another's write is news for a session that last wrote the file then.
pub fn is_news(theirs: Timestamp, own: Option<Timestamp>, now: Timestamp) -> bool {
    theirs.age_at(now) < LATELY && own.is_none_or(|own| own < theirs)
}

/// A git command that changes the files of a worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitMove {
    /// How it was called, such as `git stash`.
    pub command: String,
    /// The directory that it names, where it names one.
    pub dir: Option<String>,
}

/// Finds a command in a shell line that moves a worktree's files.
///
/// Words in quotes may hide one, and a script always can: this warns of what is plain to see.
pub fn git_move(line: &str) -> Option<GitMove> {
    let commands = line.split(['\n', ';', '|', '&', '(', ')']);
    commands.into_iter().find_map(|command| {
        let words: Vec<&str> = command.split_whitespace().collect();
        let at = words
            .iter()
            .position(|word| *word == "git" || word.ends_with("/git"))?;
        let is_prefix = |word: &&str| {
            word.contains('=')
                || matches!(
                    *word,
                    "sudo" | "env" | "command" | "time" | "exec" | "then" | "do" | "else"
                )
        };
        if !words[..at].iter().all(is_prefix) {
            return None;
        }
        moved_by(&words[at + 1..])
    })
}

fn moved_by(words: &[&str]) -> Option<GitMove> {
    let mut dir = None;
    let mut rest = words.iter();
    let verb = loop {
        match *rest.next()? {
            "-C" => {
                let named = rest.next();
                dir = named.map(|dir| dir.trim_matches(['"', '\'']).to_owned());
            }
            "-c" | "--git-dir" | "--work-tree" => {
                rest.next();
            }
            flag if flag.starts_with('-') => {}
            verb => break verb,
        }
    };
    let arguments: Vec<&str> = rest.copied().collect();
    let first = arguments.first().copied().unwrap_or_default();
    let moves = match verb {
        "stash" => !matches!(
            first,
            "list" | "show" | "create" | "store" | "drop" | "branch"
        ),
        "checkout" | "switch" | "restore" | "merge" | "rebase" | "pull" => true,
        "reset" => !arguments.contains(&"--soft"),
        "clean" => !arguments
            .iter()
            .any(|word| *word == "-n" || *word == "--dry-run"),
        _ => false,
    };
    moves.then(|| GitMove {
        command: format!("git {verb}"),
        dir,
    })
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
    fn commands_that_move_files_are_seen() {
        for (line, command, dir) in [
            ("git stash", "git stash", None),
            ("cd x && git checkout -- .", "git checkout", None),
            (
                "git -C ../web reset --hard HEAD~1",
                "git reset",
                Some("../web"),
            ),
            ("make; /usr/bin/git clean -fd", "git clean", None),
            ("GIT_PAGER=cat git switch main", "git switch", None),
            ("git -c core.x=1 stash pop", "git stash", None),
            ("if true; then git restore a; fi", "git restore", None),
        ] {
            let found = git_move(line).unwrap_or_else(|| panic!("{line}"));
            assert_eq!(
                (found.command.as_str(), found.dir.as_deref()),
                (command, dir),
                "{line}"
            );
        }
        for line in [
            "git status",
            "git stash list",
            "git reset --soft HEAD~1",
            "git clean -n",
            "echo git stash",
            "git log --grep 'git stash'",
            "git commit -m checkout",
            "legit stash",
            "",
        ] {
            assert_eq!(git_move(line), None, "{line}");
        }
    }

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
