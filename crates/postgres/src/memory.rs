//! What a state directory remembers about stores on servers, in two small private files.
//!
//! `server-seen` has the newest event that was seen in each store. A server cannot detect by itself that its newest
//! changes are lost (a failover, a restored backup, a snapshot); who remembers an event that is not there any more can.
//! An entry only moves forward: to a higher base, or to a later event under the same base. `server-unconfirmed` has the
//! grants whose commit was never confirmed, until a later command has found out about them.
//!
//! Each is replaced by rename under a kernel lock, so a reader sees one state. *Crash*: what was not written proves
//! less, never something wrong. A file that is missing, damaged or not writable counts as empty. *Clock jump*: no clock
//! is read. *Older version*: one that does not know a line leaves it out.

use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fs_err::os::unix::fs::OpenOptionsExt;
use tenure_core::id::{Epoch, SessionId};
use tenure_core::ignore::Ignore;

use super::connection;

const SEEN: &str = "server-seen";
const UNCONFIRMED: &str = "server-unconfirmed";
/// How long another process may take to write a line.
const PATIENCE: Duration = Duration::from_millis(100);
/// How many stores and how many grants are remembered: the newest.
const MAX_COUNT: usize = 64;

/// The newest event that was seen in a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LastEvent {
    /// The store's own id.
    pub(super) store: String,
    /// The event's position, and its name.
    pub(super) cursor: i64,
    pub(super) uid: String,
    /// What was added to epochs then.
    pub(super) base: i64,
    /// The base that people here know of.
    pub(super) told: i64,
}

impl LastEvent {
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let mut word = || words.next().filter(|word| !word.is_empty());
        Some(Self {
            store: word()?.to_owned(),
            cursor: word()?.parse().ok()?,
            uid: word()?.to_owned(),
            base: word()?.parse().ok()?,
            told: word()?.parse().ok()?,
        })
    }
}

impl fmt::Display for LastEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            store,
            cursor,
            uid,
            base,
            told,
        } = self;
        write!(f, "{store} {cursor} {uid} {base} {told}")
    }
}

/// A grant whose commit was not confirmed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unconfirmed {
    pub(super) store: String,
    /// The name of the commit.
    pub(super) request: String,
    pub(super) session: SessionId,
    pub(super) epoch: Epoch,
    pub(super) key: String,
}

impl Unconfirmed {
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.splitn(5, ' ');
        Some(Self {
            store: words.next()?.to_owned(),
            request: words.next()?.to_owned(),
            session: SessionId::parse(words.next()?).ok()?,
            epoch: Epoch(words.next()?.parse().ok()?),
            key: words.next()?.to_owned(),
        })
    }
}

impl fmt::Display for Unconfirmed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            store,
            request,
            session,
            epoch: Epoch(epoch),
            key,
        } = self;
        write!(f, "{store} {request} {session} {epoch} {key}")
    }
}

/// The memory of one state directory.
#[derive(Debug, Clone)]
pub(super) struct StoreMemory {
    dir: PathBuf,
}

impl StoreMemory {
    pub(super) fn of(dir: &Path) -> Self {
        Self {
            dir: dir.to_owned(),
        }
    }

    pub(super) fn seen(&self) -> Vec<LastEvent> {
        self.lines(SEEN, LastEvent::parse)
    }

    /// Remembers an event, unless a later one is remembered.
    pub(super) fn see(&self, new: &LastEvent) {
        self.change(SEEN, LastEvent::parse, |all| {
            let known = all.iter_mut().find(|old| old.store == new.store);
            let Some(old) = known else {
                all.push(new.clone());
                return true;
            };
            let mut next = old.clone();
            if (new.base, new.cursor) > (old.base, old.cursor) {
                next = new.clone();
            }
            next.told = new.told.max(old.told);
            let is_changed = *old != next;
            *old = next;
            is_changed
        });
    }

    pub(super) fn unconfirmed(&self) -> Vec<Unconfirmed> {
        self.lines(UNCONFIRMED, Unconfirmed::parse)
    }

    pub(super) fn doubt(&self, new: &[Unconfirmed]) {
        self.change(UNCONFIRMED, Unconfirmed::parse, |all| {
            all.extend_from_slice(new);
            !new.is_empty()
        });
    }

    /// Forgets the grants of these commits.
    pub(super) fn settle(&self, requests: &[String]) {
        self.change(UNCONFIRMED, Unconfirmed::parse, |all| {
            let before = all.len();
            all.retain(|one| !requests.contains(&one.request));
            all.len() != before
        });
    }

    fn lines<T>(&self, name: &str, parse: fn(&str) -> Option<T>) -> Vec<T> {
        let text = fs_err::read_to_string(self.dir.join(name)).unwrap_or_default();
        text.lines().filter_map(parse).collect()
    }

    fn change<T: fmt::Display>(
        &self,
        name: &str,
        parse: fn(&str) -> Option<T>,
        change: impl FnOnce(&mut Vec<T>) -> bool,
    ) {
        let changed = || -> io::Result<()> {
            let Some(_lock) = self.lock()? else {
                return Ok(());
            };
            let mut all = self.lines(name, parse);
            if !change(&mut all) {
                return Ok(());
            }
            let surplus = all.len().saturating_sub(MAX_COUNT);
            let text: String = all
                .drain(..)
                .skip(surplus)
                .map(|one| format!("{one}\n"))
                .collect();
            let new = self.dir.join(format!("{name}.new"));
            let mut file = private().truncate(true).open(&new)?;
            file.write_all(text.as_bytes())?;
            fs_err::rename(&new, self.dir.join(name))
        };
        changed().ignore("it proves less then; the command itself is not affected");
    }

    /// The lock of those who write; none if another process has it for longer than a write takes.
    fn lock(&self) -> io::Result<Option<fs_err::File>> {
        let file = private().open(self.dir.join(format!("{SEEN}.lock")))?;
        let until = Instant::now() + PATIENCE;
        loop {
            match file.file().try_lock() {
                Ok(()) => return Ok(Some(file)),
                Err(std::fs::TryLockError::Error(error)) => return Err(error),
                Err(std::fs::TryLockError::WouldBlock) if Instant::now() >= until => {
                    return Ok(None);
                }
                Err(std::fs::TryLockError::WouldBlock) => {
                    connection::sleep(Duration::from_millis(1));
                }
            }
        }
    }
}

fn private() -> fs_err::OpenOptions {
    let mut options = fs_err::OpenOptions::new();
    options.create(true).write(true).mode(0o600);
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(cursor: i64, base: i64) -> LastEvent {
        LastEvent {
            store: "one".into(),
            cursor,
            uid: format!("u{cursor}"),
            base,
            told: base,
        }
    }

    #[test]
    fn what_was_seen_goes_back_only_under_a_higher_base() {
        let dir = tempfile::tempdir().unwrap();
        let memory = StoreMemory::of(dir.path());
        for (seen, newest) in [((7, 0), 7), ((5, 0), 7), ((3, 10), 3), ((9, 0), 3)] {
            memory.see(&event(seen.0, seen.1));
            assert_eq!(memory.seen()[0].cursor, newest, "{seen:?}");
        }
        memory.see(&LastEvent {
            store: "two".into(),
            ..event(1, 0)
        });
        assert_eq!(memory.seen().len(), 2);
    }

    #[test]
    fn the_files_are_private_and_damage_counts_as_nothing() {
        use std::os::unix::fs::MetadataExt;
        let dir = tempfile::tempdir().unwrap();
        let memory = StoreMemory::of(dir.path());
        memory.see(&event(1, 0));
        let mode = fs_err::metadata(dir.path().join(SEEN)).unwrap().mode();
        assert_eq!(mode & 0o777, 0o600);
        fs_err::write(dir.path().join(SEEN), "one x\n\u{1}\n").unwrap();
        assert_eq!(memory.seen(), []);
        memory.see(&event(2, 0));
        assert_eq!(memory.seen(), [event(2, 0)]);
    }

    #[test]
    fn a_grant_in_doubt_is_kept_until_it_is_settled() {
        let dir = tempfile::tempdir().unwrap();
        let memory = StoreMemory::of(dir.path());
        let one = Unconfirmed {
            store: "s".into(),
            request: "r-1".into(),
            session: SessionId::parse("01890a5d-ac96-774b-bcce-b302099a8057").unwrap(),
            epoch: Epoch(7),
            key: "doc:a b c".into(),
        };
        memory.doubt(std::slice::from_ref(&one));
        assert_eq!(memory.unconfirmed(), [one]);
        memory.settle(&["r-1".into()]);
        assert_eq!(memory.unconfirmed(), []);
    }
}
