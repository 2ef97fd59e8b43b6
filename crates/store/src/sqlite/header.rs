//! The first bytes of a database file, read before SQLite may touch it.
//!
//! SQLite takes an empty file for a new database and deletes the log next to it, and it opens a file in the
//! journal mode that its header names. So the header is compared with ours before SQLite opens anything: a file
//! that is not ours is refused unchanged.
//!
//! A process loses SQLite's kernel locks when it closes *any* descriptor of the file. Therefore the header is
//! read only while this process has no connection to the file, which [`OpenCount`] counts.
//!
//! *Crash*: nothing is written here. *Clock jump*: no clock is read. *Older version*: only what every version
//! writes is compared; the schema number is left to the migrations, since its newest value may still be in the
//! log.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tenure_core::store::StoreError;

use super::log::Log;
use super::lost_log;

/// The application id in the header of our databases: "tenr".
pub(super) const APPLICATION_ID: i32 = 0x7465_6e72;
/// What builds before the first schema wrote there.
const DEVELOPMENT_ID: i32 = 0x7465_6e75;

/// The length of SQLite's header.
const HEADER_BYTES: usize = 100;
/// The log's overhead for each page.
const FRAME_HEADER_BYTES: u64 = 24;

/// A file, whatever its name.
pub(super) type Inode = (u64, u64);

/// How many connections this process has to each file.
static OPEN: Mutex<BTreeMap<Inode, usize>> = Mutex::new(BTreeMap::new());

fn open_files() -> MutexGuard<'static, BTreeMap<Inode, usize>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One connection of this process to a file with a valid header.
#[derive(Debug)]
pub(super) struct OpenCount(Inode);

impl OpenCount {
    /// Checks a file with this metadata (`found`), and counts a connection to it until it is dropped. `event`
    /// is the newest event known to be stored, if the index of the log is of this boot and of this file.
    pub(super) fn check(
        file: &Path,
        found: &Metadata,
        store: &str,
        event: Option<u64>,
    ) -> Result<Self, StoreError> {
        let inode = inode_of_regular(found, store)?;
        let mut open = open_files();
        if !open.contains_key(&inode) {
            if let Some(event) = event {
                lost_log::check(file, store, event)?;
            }
            check_header(file, found.len(), store)?;
        }
        *open.entry(inode).or_insert(0) += 1;
        Ok(Self(inode))
    }

    /// Which file it is.
    pub(super) fn inode(&self) -> Inode {
        self.0
    }
}

/// The file that has this name now.
pub(super) fn inode_at(file: &Path) -> std::io::Result<Inode> {
    fs_err::symlink_metadata(file).map(|found| inode_of(&found))
}

fn inode_of(found: &Metadata) -> Inode {
    (found.dev(), found.ino())
}

impl Drop for OpenCount {
    fn drop(&mut self) {
        let mut open = open_files();
        if let Some(count) = open.get_mut(&self.0) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.0);
            }
        }
    }
}

fn inode_of_regular(found: &Metadata, store: &str) -> Result<Inode, StoreError> {
    let refuse = |why: &str| StoreError::Unavailable {
        store: store.to_owned(),
        why: why.to_owned(),
    };
    if found.is_symlink() {
        return Err(refuse("it is a symbolic link, which is not followed"));
    }
    if !found.is_file() {
        return Err(refuse("it is not a regular file"));
    }
    Ok(inode_of(found))
}

/// Reads the header of a file that just had this length.
fn check_header(file: &Path, length: u64, store: &str) -> Result<(), StoreError> {
    let io = |error: std::io::Error| StoreError::Unavailable {
        store: store.to_owned(),
        why: error.to_string(),
    };
    let mut open = fs_err::File::open(file).map_err(io)?;
    let mut header = Vec::with_capacity(HEADER_BYTES);
    (&mut open)
        .take(HEADER_BYTES as u64)
        .read_to_end(&mut header)
        .map_err(io)?;
    if header.get(68..72) == Some(&DEVELOPMENT_ID.to_be_bytes()) {
        return Err(StoreError::Unavailable {
            store: store.to_owned(),
            why: "a development build of tenure wrote it; move the state directory away".to_owned(),
        });
    }
    // A file that has all its pages is complete, whatever is in its log.
    if judge(&header, length, 0).is_ok() {
        return Ok(());
    }
    // The log before the file: a page that the file lacks now was in the log before.
    let log = Log::of(file).bytes();
    let length = open.metadata().map_err(io)?.len();
    judge(&header, length, log).map_err(|why| StoreError::Damaged {
        store: store.to_owned(),
        why,
    })
}

/// Checks a new file that no connection uses.
pub(super) fn check_file(file: &Path, store: &str) -> Result<(), StoreError> {
    let found = fs_err::symlink_metadata(file).map_err(|error| StoreError::Unavailable {
        store: store.to_owned(),
        why: error.to_string(),
    })?;
    check_header(file, found.len(), store)
}

/// Compares a header with ours.
///
/// A database may be shorter than its header claims while a checkpoint runs, or after one was killed. The missing
/// pages are then in the log, so there are never more of them than the log has room for.
fn judge(header: &[u8], length: u64, log: u64) -> Result<(), String> {
    if length == 0 {
        return Err("it is empty".to_owned());
    }
    if header.get(..16) != Some(b"SQLite format 3\0") {
        return Err("it is not a SQLite database".to_owned());
    }
    if header.len() < HEADER_BYTES {
        return Err(format!("it ends within its header, after {length} bytes"));
    }
    let short = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let long = |at: usize| {
        u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    let application = long(68).cast_signed();
    if application != APPLICATION_ID {
        return Err(format!(
            "its application id is {application:#010x}, not {APPLICATION_ID:#010x}: another program wrote it"
        ));
    }
    // Journal modes, reserved bytes per page, and the three fractions that SQLite fixes.
    let fixed = [2, 2, 0, 64, 32, 32];
    let page = u64::from(short(16));
    let well_formed = page.is_power_of_two()
        && page >= 512
        && header[18..24] == fixed
        && long(44) == 4
        && long(56) == 1
        && header[72..92].iter().all(|byte| *byte == 0);
    if !well_formed {
        return Err("its header is not one that tenure writes".to_owned());
    }
    let said = u64::from(long(28)) * page;
    let in_log = log / (page + FRAME_HEADER_BYTES) * page;
    if length.saturating_add(in_log) < said {
        return Err(format!("it is truncated to {length} of {said} bytes"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Vec<u8> {
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[..16].copy_from_slice(b"SQLite format 3\0");
        bytes[16..24].copy_from_slice(&[0x10, 0, 2, 2, 0, 64, 32, 32]);
        bytes[31] = 10;
        bytes[47] = 4;
        bytes[59] = 1;
        bytes[68..72].copy_from_slice(&APPLICATION_ID.to_be_bytes());
        bytes
    }

    #[test]
    fn what_the_log_may_hold_is_not_missing() {
        assert_eq!(judge(&header(), 40_960, 0), Ok(()));
        assert!(
            judge(&header(), 36_864, 0)
                .unwrap_err()
                .contains("truncated")
        );
        assert_eq!(judge(&header(), 36_864, 32 + 4_120), Ok(()));
        assert!(judge(&header(), 32_768, 32 + 4_120).is_err());
    }

    #[test]
    fn every_flip_of_a_fixed_bit_is_seen() {
        let fixed = (0..24).chain(44..48).chain(56..60).chain(68..92);
        for at in fixed {
            for bit in 0..8 {
                let mut flipped = header();
                flipped[at] ^= 1 << bit;
                assert!(judge(&flipped, 40_960, 0).is_err(), "byte {at}, bit {bit}");
            }
        }
    }
}
