//! Write conflicts: one session's write or git command that conflicts with another session's work.
//!
//! Pure. A danger in a tool call is a [`Finding`]; the user's [`GuardMode`] decides whether it is reported or
//! blocked. Nothing is blocked that the user did not ask for.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::id::SessionId;
use crate::repository::Repository;
use crate::session::Doing;
use crate::text;
use crate::time::{Span, Timestamp};

/// A session's write to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileWrite {
    /// The absolute path of the file.
    pub path: String,
    pub session: SessionId,
    pub at: Timestamp,
    /// The state of the file when the session was done with it; none while it is being written, and
    /// [`FileStamp::ABSENT`] while it is being created.
    pub stamp: Option<FileStamp>,
}

/// Identifies an unchanged file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStamp {
    /// Its length, in bytes.
    pub size: u64,
    /// When it was last changed, in nanoseconds of the wall clock.
    pub modified: i64,
}

impl FileStamp {
    /// A file that is not there yet.
    pub const ABSENT: Self = Self {
        size: 0,
        modified: i64::MIN,
    };
}

impl FileWrite {
    /// Whether the session is not known to be done with the file.
    pub fn is_open(&self) -> bool {
        self.stamp.is_none_or(|stamp| stamp == FileStamp::ABSENT)
    }

    /// Whether the file has not changed since the write was announced: its agent, or a person, refused it.
    pub fn never_happened(&self, now: Option<FileStamp>) -> bool {
        if self.stamp == Some(FileStamp::ABSENT) {
            return now.is_none();
        }
        let began = self
            .at
            .0
            .saturating_sub(CLOCK_LAG_MS)
            .saturating_mul(1_000_000);
        self.stamp.is_none() && now.is_some_and(|stamp| stamp.modified < began)
    }
}

/// How far the clock of a file system may be behind, in milliseconds.
const CLOCK_LAG_MS: i64 = 100;

/// The state of a worktree at a time.
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
    /// The repository, as shown in a session's directory.
    pub repo: String,
    /// The same with everything that identifies it.
    pub repository: Repository,
    /// The root of the worktree.
    pub root: String,
    /// The file's path below the root; empty for the root itself.
    pub relative: String,
    /// The commit that is checked out.
    pub head: Option<String>,
    /// The branch that is checked out.
    pub branch: Option<String>,
    /// The state of the file; none if there is no such file.
    pub stamp: Option<FileStamp>,
}

/// How long before the person sees the same finding again.
pub const TOLD_AGAIN_AFTER: Duration = Duration::from_secs(60 * 60);

/// What to do about a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum GuardMode {
    Observe,
    /// The model is warned as well.
    #[default]
    Warn,
    /// The tool is not run.
    Block,
}

impl GuardMode {
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "observe" => Some(GuardMode::Observe),
            "warn" => Some(GuardMode::Warn),
            "block" => Some(GuardMode::Block),
            _ => None,
        }
    }
}

/// How a session may write a file that another wrote recently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WriteRemedy {
    /// No need to do anything: its own claim reserves the file.
    Reserved,
    /// Claim this key.
    Claim(String),
    /// No claim can reserve the file, for this reason: only the end of the other session helps.
    Wait(&'static str),
}

/// A live session that a command conflicts with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Neighbour {
    pub handle: String,
    pub doing: Option<Doing>,
}

/// A danger in a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// Another live session wrote the file since this one last did.
    SecondWriter {
        path: String,
        handle: String,
        dir: String,
        /// How long ago it wrote.
        ago: Duration,
        doing: Option<Doing>,
        way: WriteRemedy,
    },
    /// Another live session reserved the path.
    Reserved {
        path: String,
        key: String,
        handle: String,
        /// The key to wait for: of this file alone, if there can be one.
        own_key: String,
    },
    /// A command changes files that other live sessions use.
    TreeMoved {
        /// The command, such as `git stash`.
        command: String,
        root: String,
        others: Vec<Neighbour>,
        /// A path for a separate worktree.
        own_tree: String,
    },
    /// The user requires a claim for writes, and there is none.
    Unclaimed {
        /// The pattern that a claim's key must match.
        pattern: String,
    },
}

/// How long a suggested command waits for another session.
const WAIT: &str = "10m";

impl Finding {
    /// The message for the model: what conflicts, with which session, and what helps. After each suggested
    /// command for a block has succeeded, the same tool call passes.
    pub fn sentence(&self, blocked: bool) -> String {
        match self {
            Finding::SecondWriter {
                path,
                handle,
                dir,
                ago,
                doing,
                way,
            } => {
                let (path, dir) = (text::name(path), text::name(dir));
                let ago = Span(*ago);
                let now = and_now(*doing, "a person");
                let helps = second_writer_helps(handle, way, blocked);
                format!("{handle} (in {dir}) wrote {path} {ago} ago{now}. {helps}")
            }
            Finding::Reserved {
                path,
                key,
                handle,
                own_key,
            } => format!(
                "{} is reserved by {handle} ({}). Work elsewhere, or run `tenure claim {} --wait {WAIT}` to \
                 reserve it once {handle} releases it. To ask, run `tenure tell {handle} \"…\"`. \
                 For details, run `tenure why {}`.",
                text::name(path),
                text::name(key),
                text::shell(own_key),
                text::shell(key)
            ),
            Finding::TreeMoved {
                command,
                root,
                others,
                own_tree,
            } => format!(
                "`{command}` changes files that {}, in the same worktree {}. Run `git worktree add {}` to work in \
                 one of your own{}. To ask, run `tenure tell {} \"…\"`.",
                users(others),
                text::name(root),
                text::shell(own_tree),
                wait_for(others),
                others
                    .first()
                    .map_or("SESSION", |other| other.handle.as_str())
            ),
            Finding::Unclaimed { pattern } => format!(
                "Writing files needs a claim here, and this session holds none that matches {}. Claim the \
                 item that you work on first: {}.",
                text::name(pattern),
                claim_that_fits(pattern)
            ),
        }
    }

    /// The same, short, for the person at the terminal; `near` is the session's directory.
    pub fn headline(&self, near: &str) -> String {
        let short = |path: &str| {
            let below = path
                .strip_prefix(near)
                .and_then(|rest| rest.strip_prefix('/'));
            text::name(below.unwrap_or(path)).into_owned()
        };
        match self {
            Finding::SecondWriter {
                path,
                handle,
                ago,
                doing,
                ..
            } => format!(
                "{handle} wrote {} {} ago{}",
                short(path),
                Span(*ago),
                and_now(*doing, "you")
            ),
            Finding::Reserved {
                path, key, handle, ..
            } => format!(
                "{} is reserved by {handle} ({})",
                short(path),
                text::name(key)
            ),
            Finding::TreeMoved {
                command, others, ..
            } => {
                let users = users(others);
                format!("`{command}` changes files that {users}")
            }
            Finding::Unclaimed { pattern } => format!(
                "writing files needs a claim that matches {}, and this session holds none",
                text::name(pattern)
            ),
        }
    }

    /// The same for the log. It begins with its subject, which identifies a repetition.
    pub fn evidence(&self) -> String {
        let about = self.about();
        let what = match self {
            Finding::SecondWriter {
                handle, dir, ago, ..
            } => format!(
                "{handle} (in {}) wrote it {} ago",
                text::name(dir),
                Span(*ago)
            ),
            Finding::Reserved { key, handle, .. } => {
                format!("reserved by {handle} ({})", text::name(key))
            }
            Finding::TreeMoved {
                command, others, ..
            } => {
                let users = users(others);
                format!("`{command}` changes files that {users}")
            }
            Finding::Unclaimed { .. } => "this session holds no matching claim".to_owned(),
        };
        format!("{about}: {what}")
    }

    /// Whether a log entry is about the same subject.
    pub fn is_in(&self, mechanism: &str, evidence: &str) -> bool {
        let about = self.about();
        let rest = evidence.strip_prefix(about.as_str());
        self.mechanism() == mechanism && rest.is_some_and(|rest| rest.starts_with(": "))
    }

    fn about(&self) -> String {
        let about = match self {
            Finding::SecondWriter { path, .. } | Finding::Reserved { path, .. } => path,
            Finding::TreeMoved { root, .. } => root,
            Finding::Unclaimed { pattern } => pattern,
        };
        text::name(about).into_owned()
    }

    /// Whether it stops the tool in this mode. The user asked explicitly for a required claim. The session that
    /// reserved the file may write it, no matter who wrote it before.
    pub fn blocks(&self, mode: GuardMode) -> bool {
        match self {
            Finding::Unclaimed { .. } => true,
            Finding::SecondWriter {
                way: WriteRemedy::Reserved,
                ..
            } => false,
            _ => mode == GuardMode::Block,
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

/// What the other session is doing now.
fn and_now(doing: Option<Doing>, person: &str) -> String {
    match doing {
        Some(Doing::Busy | Doing::Retrying) => " and is still working".to_owned(),
        Some(doing) if doing.rests() => " and is idle now".to_owned(),
        Some(Doing::Waiting) => format!(" and is waiting for {person}"),
        Some(_) | None => String::new(),
    }
}

fn second_writer_helps(handle: &str, way: &WriteRemedy, blocked: bool) -> String {
    let ask = format!("`tenure tell {handle} \"…\"`");
    match (way, blocked) {
        (WriteRemedy::Reserved, _) => {
            format!("Your claim reserves it; read it again before you write it. To ask, run {ask}.")
        }
        (WriteRemedy::Claim(key), true) => format!(
            "To write it, run `tenure claim {}` first, then read it again. To ask, run {ask}.",
            text::shell(key)
        ),
        (WriteRemedy::Claim(key), false) => format!(
            "Read it again before you write it. Run `tenure claim {}` to reserve it. To ask, run {ask}.",
            text::shell(key)
        ),
        (WriteRemedy::Wait(why), true) => format!(
            "No claim can reserve it ({why}). Write another file, or run \
             `tenure wait {handle} --timeout {WAIT}` to wait until {handle} ends. To ask, run {ask}."
        ),
        (WriteRemedy::Wait(_), false) => {
            format!("Read it again before you write it. To ask, run {ask}.")
        }
    }
}

/// How many sessions are listed before the rest is counted.
const NAMED: usize = 4;

/// The first few sessions with their activity, and how many more there are.
fn named(others: &[Neighbour]) -> String {
    let one = |other: &Neighbour| match other.doing {
        Some(doing) => format!("{} ({})", other.handle, doing.as_str()),
        None => other.handle.clone(),
    };
    let first: Vec<String> = others.iter().take(NAMED).map(one).collect();
    match (others.len().saturating_sub(NAMED), first.as_slice()) {
        (0, [before @ .., last]) if !before.is_empty() => {
            format!("{} and {last}", before.join(", "))
        }
        (0, _) => first.concat(),
        (more, _) => format!("{} and {more} more", first.join(", ")),
    }
}

/// Who else uses a worktree, as a clause.
fn users(others: &[Neighbour]) -> String {
    let verb = match others.len() {
        1 => "uses",
        _ => "use",
    };
    format!("{} also {verb}", named(others))
}

/// The command that waits for the end of all of them, if they are few.
fn wait_for(others: &[Neighbour]) -> String {
    if others.is_empty() || others.len() > NAMED {
        return String::new();
    }
    let wait = |other: &Neighbour| format!("tenure wait {} --timeout {WAIT}", other.handle);
    let waits: Vec<String> = others.iter().map(wait).collect();
    let until = match others.len() {
        1 => "it ends",
        _ => "they end",
    };
    format!(", or run `{}` to wait until {until}", waits.join(" && "))
}

/// A command that claims an item whose key matches a pattern.
fn claim_that_fits(pattern: &str) -> String {
    if !pattern.contains('*') {
        return format!("`tenure claim {}`", text::shell(pattern));
    }
    let example = if pattern.contains(':') {
        pattern.replace('*', "NAME")
    } else {
        format!("wp:{}", pattern.replace('*', "NAME"))
    };
    let fits = fits(pattern, &example);
    let example = if fits { example.as_str() } else { "KEY" };
    format!(
        "`tenure claim {}`, with the item in place of {}",
        text::shell(example),
        if fits { "NAME" } else { "KEY" }
    )
}

/// Whether another session's write is news for a session that last wrote the file then; a write older than
/// `recent` is not.
pub fn is_news(
    theirs: Timestamp,
    own: Option<Timestamp>,
    now: Timestamp,
    recent: Duration,
) -> bool {
    theirs.age_at(now) < recent && own.is_none_or(|own| own < theirs)
}

/// Whether a claim's key matches the user's pattern: `*` stands for any text.
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
    fn a_write_that_left_its_file_as_it_was_never_happened() {
        let mut write = FileWrite {
            path: "/w/f".into(),
            session: SessionId::mint(0, [7; 10]),
            at: Timestamp(10_000),
            stamp: None,
        };
        let changed = |ms: i64| {
            Some(FileStamp {
                size: 1,
                modified: ms * 1_000_000,
            })
        };
        assert!(write.never_happened(changed(9_000)));
        assert!(!write.never_happened(changed(9_990)), "clocks differ");
        assert!(!write.never_happened(changed(11_000)));
        assert!(!write.never_happened(None), "it was removed");
        let creation = FileWrite {
            stamp: Some(FileStamp::ABSENT),
            ..write.clone()
        };
        assert!(creation.never_happened(None));
        assert!(
            !creation.never_happened(changed(9_000)),
            "it was moved there"
        );
        write.stamp = changed(9_000);
        assert!(
            !write.never_happened(changed(9_000)),
            "it was known to be done"
        );
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
        let hour = Duration::from_secs(3600);
        assert!(is_news(at(5), None, at(10), hour));
        assert!(is_news(at(5), Some(at(4)), at(10), hour));
        assert!(!is_news(at(5), Some(at(6)), at(10), hour));
        assert!(!is_news(at(5), None, at(66), hour));
        assert!(is_news(at(5), None, at(66), hour * 2));
        assert!(!is_news(at(5), None, at(10), hour / 20));
    }

    #[test]
    fn only_what_was_asked_for_is_blocked() {
        let reserved = reserved();
        assert!(!reserved.blocks(GuardMode::Observe) && !reserved.blocks(GuardMode::Warn));
        assert!(reserved.blocks(GuardMode::Block));
        assert!(unclaimed("issue:*").blocks(GuardMode::Warn));
        assert!(!written(None, WriteRemedy::Reserved).blocks(GuardMode::Block));
        assert!(written(None, WriteRemedy::Wait("x")).blocks(GuardMode::Block));
    }

    fn reserved() -> Finding {
        Finding::Reserved {
            path: "/w/f".into(),
            key: "path:r:**".into(),
            handle: "claude-k7qd".into(),
            own_key: "path:r:f".into(),
        }
    }

    fn unclaimed(pattern: &str) -> Finding {
        Finding::Unclaimed {
            pattern: pattern.into(),
        }
    }

    fn written(doing: Option<Doing>, way: WriteRemedy) -> Finding {
        Finding::SecondWriter {
            path: "/w/src/db.rs".into(),
            handle: "claude-k7qd".into(),
            dir: "/w".into(),
            ago: Duration::from_secs(180),
            doing,
            way,
        }
    }

    #[test]
    fn only_a_busy_session_is_still_at_work() {
        for (doing, model, person) in [
            (Some(Doing::Busy), "and is still working.", " still working"),
            (Some(Doing::Idle), "and is idle now.", "is idle now"),
            (Some(Doing::Waiting), "for a person.", "waiting for you"),
            (None, "wrote /w/src/db.rs 3m ago.", "3m ago"),
        ] {
            let found = written(doing, WriteRemedy::Reserved);
            assert!(found.sentence(false).contains(model), "{found:?}");
            let said = found.headline("/w");
            assert!(
                said.starts_with("claude-k7qd wrote src/db.rs"),
                "{doing:?}: {said}"
            );
            assert!(said.ends_with(person), "{doing:?}: {said}");
        }
    }

    #[test]
    fn a_required_claim_is_named_by_a_command_that_fits() {
        for (pattern, command) in [
            ("issue:*", "tenure claim issue:NAME`, with"),
            ("issue:acme/*#4*", "tenure claim issue:acme/NAME#4NAME`,"),
            ("wp:041", "tenure claim wp:041`."),
            ("*", "tenure claim wp:NAME`,"),
            ("is*", "tenure claim KEY`, with"),
        ] {
            let said = unclaimed(pattern).sentence(true);
            assert!(said.contains(command), "{pattern}: {said}");
        }
    }

    #[test]
    fn a_repetition_is_known_by_what_it_is_about() {
        let first = written(Some(Doing::Busy), WriteRemedy::Wait("x"));
        let later = written(Some(Doing::Idle), WriteRemedy::Claim("path:r:x".into()));
        assert!(later.is_in(first.mechanism(), &first.evidence()));
        assert!(!later.is_in("reserved", &first.evidence()));
        assert!(!reserved().is_in("reserved", "/w/f2: reserved by x"));
        assert!(reserved().is_in("reserved", &reserved().evidence()));
    }
}
