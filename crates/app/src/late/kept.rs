//! Answers that came too late, kept for the next event of their conversation.
//!
//! There is one file per store and conversation, with a line for each thing to say. A process that reads or writes it holds a
//! kernel lock; a hook that does not get the lock at once says nothing, and the event after it does. Lines leave the file
//! only after they were printed, so a hook that is killed meanwhile loses none. Notices are marked as delivered while the
//! lock is held, so no event reads them from both the file and the store, unless the store does not confirm the mark:
//! then they are told twice.
//!
//! A file holds 8 KiB at most; what does not fit is dropped, except notices, which stay pending in the store. A
//! line is said within an hour. The end of its conversation removes a file, and a keeper those that are older.
//!
//! *Full disk*: the answer is dropped. *Clock jump*: a line is dropped early, or kept for longer. *Another version*: a
//! line that cannot be read is dropped.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use fs_err::os::unix::fs::OpenOptionsExt;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use tenure_core::time::Timestamp;
use tenure_host::digest::sha256;
use tenure_host::kernel_lock::{Held, LockDir, LockName, Patience, Sharing};
use tenure_host::{clock, file, read};

/// The folder in the state directory.
const FOLDER: &str = "late";
const ENDING: &str = ".jsonl";
/// How large a file may get.
const MOST: usize = 8 << 10;
/// How long a line is good for.
const GOOD_FOR: Duration = Duration::from_secs(3600);
/// How long one that keeps an answer waits for a hook that says another.
const WAITS: Duration = Duration::from_millis(200);
/// How many lock files there are, whatever the number of conversations.
const LOCKS: u8 = 16;

/// One thing that an answer says to the model.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Line {
    pub text: String,
    /// The notice that it is; none for what is about the event.
    pub notice: Option<u64>,
}

impl Line {
    /// What is about the event.
    pub fn of(text: String) -> Self {
        Self { text, notice: None }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    /// When it was kept, in milliseconds since 1970.
    at: i64,
    text: String,
    notice: Option<u64>,
    /// Whether the person is told, and not the model.
    #[serde(default)]
    person: bool,
}

impl Entry {
    fn is_good(&self, now: Timestamp) -> bool {
        Timestamp(self.at).age_at(now) < GOOD_FOR
    }
}

/// The file of a conversation.
#[derive(Debug, Clone)]
pub struct Kept {
    dir: PathBuf,
    name: String,
}

impl Kept {
    /// The file of a conversation of an agent, in a state directory.
    pub fn of(state: &Path, store: &str, agent: &str, conversation: &str) -> Self {
        let whole = [store, agent, conversation].join("\n");
        Self {
            dir: state.join(FOLDER),
            name: sha256(whole.as_bytes()),
        }
    }

    fn path(&self) -> PathBuf {
        self.dir.join(format!("{}{ENDING}", self.name))
    }

    /// Whether nothing is kept; one look at the file.
    pub fn is_empty(&self) -> bool {
        fs_err::symlink_metadata(self.path()).is_err()
    }

    fn lock(&self, patience: Patience) -> io::Result<Held> {
        let digit = u8::from_str_radix(&self.name[..2], 16).unwrap_or(0);
        let name = LockName::plain(&format!("lock-{}", digit % LOCKS));
        let name = name.map_err(io::Error::other)?;
        let lock = LockDir::open(&self.dir)?.lock(&name, Sharing::Exclusive, patience);
        lock.map_err(io::Error::other)
    }

    fn entries(&self) -> Vec<Entry> {
        let bytes = read::whole(&self.path(), MOST as u64).unwrap_or_default();
        let now = clock::wall();
        let lines = bytes.split(|byte| *byte == b'\n');
        let entries = lines.filter_map(|line| serde_json::from_slice(line).ok());
        entries.filter(|entry: &Entry| entry.is_good(now)).collect()
    }

    /// Replaces what is kept.
    fn write(&self, entries: &[Entry]) -> io::Result<()> {
        if entries.is_empty() {
            return fs_err::remove_file(self.path());
        }
        let text = text_of(entries)?;
        let mut open = fs_err::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed())
            .open(self.path())?;
        file::give_back(&open)?;
        open.write_all(&text)
    }

    /// Keeps an answer. `mark` gets the notices that are kept, while no other can say them.
    pub fn keep(
        &self,
        lines: &[Line],
        message: Option<&str>,
        mark: impl FnOnce(&[u64]),
    ) -> io::Result<()> {
        if lines.is_empty() && message.is_none() {
            return Ok(());
        }
        let _lock = self.lock(Patience::AtMost(WAITS))?;
        let mut entries = self.entries();
        let at = clock::wall().0;
        let told = lines
            .iter()
            .map(|line| (line.text.as_str(), line.notice, false));
        let shown = message.map(|text| (text, None, true));
        let mut notices = Vec::new();
        for (text, notice, person) in told.chain(shown) {
            let is_kept = |entry: &Entry| notice.is_some() && entry.notice == notice;
            if entries.iter().any(is_kept) {
                continue;
            }
            let text = text.to_owned();
            entries.push(Entry {
                at,
                text,
                notice,
                person,
            });
            if text_of(&entries)?.len() > MOST {
                entries.pop();
            } else {
                notices.extend(notice);
            }
        }
        self.write(&entries)?;
        mark(&notices);
        Ok(())
    }

    /// What is kept and fits into this many bytes, without notices that are said anyway; none if there is nothing, or
    /// another process has the file.
    pub fn take(&self, room: usize, said: &[u64]) -> Option<Taken> {
        if self.is_empty() {
            return None;
        }
        let lock = self.lock(Patience::None).ok()?;
        let mut taken = Taken {
            lines: Vec::new(),
            messages: Vec::new(),
            rest: Vec::new(),
            kept: self.clone(),
            _lock: lock,
        };
        let mut used = 0;
        for entry in self.entries() {
            let is_said = entry.notice.is_some_and(|notice| said.contains(&notice));
            if is_said {
                continue;
            }
            let line = entry_line(&entry);
            if entry.person {
                taken.messages.push(line.text);
            } else if used + line.text.len() < room {
                used += line.text.len() + 1;
                taken.lines.push(line);
            } else {
                taken.rest.push(entry);
            }
        }
        Some(taken)
    }

    /// Removes what is kept, because nothing more is said in the conversation.
    pub fn forget(&self) {
        if fs_err::remove_file(self.path()).is_err() {
            // Almost always there is none.
        }
    }
}

/// The words for the next event: they are not about it.
fn entry_line(entry: &Entry) -> Line {
    let text = match entry.notice {
        Some(_) => entry.text.clone(),
        None => format!("about an earlier tool call: {}", entry.text),
    };
    Line {
        text,
        notice: entry.notice,
    }
}

fn text_of(entries: &[Entry]) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    for entry in entries {
        serde_json::to_writer(&mut text, entry)?;
        text.push(b'\n');
    }
    Ok(text)
}

/// What an event says of earlier ones. It stays in the file until [`Taken::said`].
#[derive(Debug)]
pub struct Taken {
    pub lines: Vec<Line>,
    pub messages: Vec<String>,
    /// What stays for a later event.
    rest: Vec<Entry>,
    kept: Kept,
    _lock: Held,
}

impl Taken {
    /// It was printed.
    pub fn said(self) {
        if self.kept.write(&self.rest).is_err() {
            // It is said again.
        }
    }
}

/// Removes the files of a state directory that no event will read.
pub fn sweep(state: &Path) {
    let files = fs_err::read_dir(state.join(FOLDER)).into_iter().flatten();
    for file in files.flatten() {
        let is_one = file.file_name().to_string_lossy().ends_with(ENDING);
        let written = file.metadata().and_then(|found| found.modified());
        let age = written.ok().and_then(|written| written.elapsed().ok());
        if is_one
            && age.is_some_and(|age| age >= GOOD_FOR)
            && fs_err::remove_file(file.path()).is_err()
        {
            // Another one removed it.
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warning(text: &str) -> Line {
        Line::of(text.to_owned())
    }

    fn notice(text: &str, id: u64) -> Line {
        Line {
            text: text.to_owned(),
            notice: Some(id),
        }
    }

    fn texts(taken: &Taken) -> Vec<&str> {
        taken.lines.iter().map(|line| line.text.as_str()).collect()
    }

    #[test]
    fn what_is_kept_is_said_once_and_by_its_own_conversation() {
        let dir = tempfile::tempdir().unwrap();
        let kept = Kept::of(dir.path(), "s", "claude", "1");
        let other = Kept::of(dir.path(), "s", "claude", "2");
        assert!(kept.take(1000, &[]).is_none());
        let mut marked = Vec::new();
        let lines = [warning("a"), notice("b", 7)];
        kept.keep(&lines, Some("m"), |ids| marked = ids.to_vec())
            .unwrap();
        assert_eq!(marked, [7]);
        assert!(other.take(1000, &[]).is_none());
        // Not printed, so not gone.
        drop(kept.take(1000, &[]).unwrap());
        let taken = kept.take(1000, &[]).unwrap();
        assert_eq!(texts(&taken), ["about an earlier tool call: a", "b"]);
        assert_eq!(taken.messages, ["about an earlier tool call: m"]);
        assert!(kept.lock(Patience::None).is_err(), "another may say it too");
        taken.said();
        assert!(kept.is_empty() && kept.take(1000, &[]).is_none());
    }

    #[test]
    fn a_notice_is_kept_once_and_not_said_beside_itself() {
        let dir = tempfile::tempdir().unwrap();
        let kept = Kept::of(dir.path(), "s", "claude", "1");
        for _ in 0..2 {
            kept.keep(&[notice("b", 7)], None, |_| ()).unwrap();
        }
        assert_eq!(texts(&kept.take(1000, &[]).unwrap()), ["b"]);
        let taken = kept.take(1000, &[7]).unwrap();
        assert!(taken.lines.is_empty());
        taken.said();
        assert!(kept.is_empty());
    }

    #[test]
    fn what_does_not_fit_waits_and_a_file_stays_small() {
        let dir = tempfile::tempdir().unwrap();
        let kept = Kept::of(dir.path(), "s", "claude", "1");
        let long = "x".repeat(3000);
        for id in 0..9 {
            let mut marked = Vec::new();
            let keep = kept.keep(&[notice(&long, id)], None, |ids| marked = ids.to_vec());
            keep.unwrap();
            assert_eq!(marked.len(), usize::from(id < 2), "only what is kept");
        }
        let taken = kept.take(4000, &[]).unwrap();
        assert_eq!(taken.lines.len(), 1);
        taken.said();
        let taken = kept.take(4000, &[]).unwrap();
        assert_eq!(taken.lines[0].notice, Some(1));
    }

    #[test]
    fn what_is_old_is_neither_said_nor_left() {
        let dir = tempfile::tempdir().unwrap();
        let kept = Kept::of(dir.path(), "s", "claude", "1");
        let entry = |at| Entry {
            at,
            text: "a".to_owned(),
            notice: None,
            person: false,
        };
        kept.keep(&[warning("b")], None, |_| ()).unwrap();
        kept.write(&[entry(0), entry(clock::wall().0)]).unwrap();
        assert_eq!(kept.take(1000, &[]).unwrap().lines.len(), 1);
        sweep(dir.path());
        assert!(!kept.is_empty());
        let old = fs_err::OpenOptions::new().write(true).open(kept.path());
        let long_ago = std::time::SystemTime::UNIX_EPOCH;
        old.unwrap().file().set_modified(long_ago).unwrap();
        sweep(dir.path());
        assert!(kept.is_empty());
    }
}
