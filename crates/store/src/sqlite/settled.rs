//! Where hooks leave their notes about plain events ([`tenure_core::settled`]): small files next to the database.
//!
//! A note lies at the number of its event, of which there are 512. Two events with one number replace each other's notes,
//! which only costs time. So nothing has to be cleared away after processes that are gone.
//!
//! *Crash*: a note is written in place by one call; one that was cut off settles nothing. A missing or unreadable note is
//! none. *Clock jump* and *older version*: see core.

use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use fs_err::os::unix::fs::OpenOptionsExt;
use tenure_core::settled::{Generation, PlainEvent};

use super::files::beside;
use super::mark::{MarkFile, open_plain};

const COUNT: u64 = 512;
/// No note is longer.
const LIMIT: usize = 4096;

/// The generation of the database at a path, without opening it; none if that is not known in this boot.
pub fn generation(file: &Path, boot: &str) -> Option<Generation> {
    let found = fs_err::symlink_metadata(file).ok()?;
    MarkFile::of(file, &found, boot).generation()
}

/// The note at the place of an event, whatever it is about.
pub fn read_note(file: &Path, event: &PlainEvent) -> Option<String> {
    let mut bytes = vec![0; LIMIT];
    let mut options = fs_err::OpenOptions::new();
    let mut opened = open_plain(options.read(true), &path(file, event)).ok()?;
    let length = opened.read(&mut bytes).ok()?;
    bytes.truncate(length);
    String::from_utf8(bytes).ok()
}

/// Leaves a note about an event.
pub fn write_note(file: &Path, event: &PlainEvent, note: &str) -> io::Result<()> {
    if note.len() > LIMIT {
        return Ok(());
    }
    let path = path(file, event);
    let mut options = fs_err::OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    let opened = match open_plain(&mut options, &path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs_err::create_dir(dir(file))?;
            open_plain(&mut options, &path)?
        }
        other => other?,
    };
    opened.file().write_all_at(note.as_bytes(), 0)
}

fn dir(file: &Path) -> PathBuf {
    beside(file, ".settled")
}

fn path(file: &Path, event: &PlainEvent) -> PathBuf {
    dir(file).join(format!("{:03}", event.number() % COUNT))
}

#[cfg(test)]
mod tests {
    use tenure_testkit::conformance::sample::{clock, era};

    use super::super::{SqliteEnd, SqliteStore};
    use super::*;
    use crate::copy::CopyEndpoint;

    #[test]
    fn a_store_that_is_set_aside_is_of_another_generation() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("tenure.db");
        drop(SqliteStore::open(&file, clock()).unwrap());
        let before = generation(&file, &era().id);
        assert!(before.is_some());
        let mut end = SqliteEnd::open(&file, clock()).unwrap();
        end.lock().unwrap();
        assert_eq!(generation(&file, &era().id), before);
        end.commit_moved("postgres://db/tenure", "copy").unwrap();
        let after = generation(&file, &era().id);
        assert!(after.is_some() && after != before, "{after:?}");
    }
}
