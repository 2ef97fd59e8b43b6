//! The directory of a conversation's waiter: what was announced to it, and who waits there.
//!
//! `wake/HASH` in the state directory, for the user alone. A message that was announced is an empty file, named after the
//! message's number. `waiter` names the process that waits; a newer one replaces it, and the older one ends when it sees
//! that. The directory exists as long as somebody may wait: from the first waiter to the end of the conversation or of its
//! agent's process.
//!
//! *Crash*: an announcement that is left behind costs the next waiter one look at the store. A directory that is left
//! behind is small, and the next waiter of the conversation uses it.

use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use tenure_core::id::NativeId;
use tenure_core::ignore::Ignore;
use tenure_core::notice::NoticeId;
use tenure_host::digest::sha256;
use tenure_host::file::{make_dirs, write_beside};
use tenure_host::read;

/// The directory of all of them in the state directory.
const DIR: &str = "wake";
const WAITER: &str = "waiter";
/// Written to wake the waiter up.
const REST: &str = "rest";
/// Longer than the name of any waiter.
const MAX_NAME: u64 = 64;

#[derive(Debug)]
pub struct Bell {
    dir: PathBuf,
}

impl Bell {
    pub fn of(state_dir: &Path, agent: &str, native_id: &NativeId) -> Self {
        let mut name = sha256(format!("{agent}\0{}", native_id.as_str()).as_bytes());
        name.truncate(32);
        Self {
            dir: state_dir.join(DIR).join(name),
        }
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Makes the directory, for the first waiter.
    pub fn make(&self) -> io::Result<()> {
        make_dirs(&self.dir)
    }

    /// Makes this process, by a name that no other has, the one that waits.
    pub fn take_over(&self, name: &str) -> io::Result<()> {
        let path = self.dir.join(WAITER);
        let written = write_beside(&path, name.as_bytes())?;
        fs_err::rename(written, path)
    }

    /// Whether the process with this name is still the one that waits.
    pub fn is_held_by(&self, name: &str) -> bool {
        read::text(&self.dir.join(WAITER), MAX_NAME).is_ok_and(|held| held == name)
    }

    /// Announces a message. Without the directory nobody waits for it.
    pub fn announce(&self, message: NoticeId) -> io::Result<()> {
        let path = self.dir.join(message.0.to_string());
        let mut options = fs_err::OpenOptions::new();
        match options.write(true).create(true).truncate(false).open(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// The messages that were announced.
    pub fn announced(&self) -> Vec<NoticeId> {
        let Ok(entries) = fs_err::read_dir(&self.dir) else {
            return Vec::new();
        };
        let number = |entry: io::Result<fs_err::DirEntry>| {
            let name = entry.ok()?.file_name();
            name.to_str()?.parse().ok().map(NoticeId)
        };
        entries.filter_map(number).collect()
    }

    pub fn forget(&self, messages: &[NoticeId]) {
        for message in messages {
            fs_err::remove_file(self.dir.join(message.0.to_string()))
                .ignore("it is forgotten with the directory");
        }
    }

    /// Tells the waiter that its session is at its prompt now.
    pub fn rest(&self) {
        if self.announced().is_empty() {
            return;
        }
        let mut options = fs_err::OpenOptions::new();
        let opened = options.append(true).create(true).open(self.dir.join(REST));
        opened
            .and_then(|mut file| file.write_all(b"."))
            .ignore("the message waits for the next event");
    }

    /// Removes the directory, which ends the waiter.
    pub fn end(&self) {
        if self.dir.is_dir() {
            fs_err::remove_dir_all(&self.dir).ignore("it is small, and the next waiter uses it");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_is_announced_is_seen_until_it_is_forgotten() {
        let state = tempfile::tempdir().unwrap();
        let id = NativeId::parse("c-1").unwrap();
        let bell = Bell::of(state.path(), "x", &id);
        bell.announce(NoticeId(1)).unwrap();
        assert!(!bell.dir().exists(), "nobody ever waited");
        bell.make().unwrap();
        for _ in 0..2 {
            bell.announce(NoticeId(1)).unwrap();
        }
        bell.announce(NoticeId(2)).unwrap();
        bell.take_over("one").unwrap();
        bell.rest();
        let mut seen = bell.announced();
        seen.sort();
        assert_eq!(seen, [NoticeId(1), NoticeId(2)]);
        bell.forget(&[NoticeId(1)]);
        assert_eq!(bell.announced(), [NoticeId(2)]);
        bell.end();
        assert!(!bell.dir().exists());
        bell.rest();
        bell.end();
        assert!(!bell.dir().exists());
    }

    #[test]
    fn the_newest_waiter_holds_it_and_nobody_else_can_look() {
        let state = tempfile::tempdir().unwrap();
        let id = NativeId::parse("c-1").unwrap();
        let bell = Bell::of(state.path(), "x", &id);
        bell.make().unwrap();
        let mode = fs_err::metadata(bell.dir()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        bell.take_over("one").unwrap();
        assert!(bell.is_held_by("one"));
        bell.take_over("two").unwrap();
        assert!(!bell.is_held_by("one"));
        assert!(bell.is_held_by("two"));
        let other = Bell::of(state.path(), "y", &id);
        assert_ne!(other.dir(), bell.dir());
    }
}
