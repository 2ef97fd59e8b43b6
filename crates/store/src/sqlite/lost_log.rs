//! Whether a log is lost that still held changes, checked before SQLite opens anything.
//!
//! SQLite takes a missing log for an empty one: everything that was committed and not yet copied into the
//! database is then silently lost, and granted numbers are granted again. The index of the log, `NAME-shm`,
//! still has the facts. It is shared memory in a file: it stays after a kill -9 and after the last close (we
//! never let SQLite delete it), and the next first opener recreates it. So it is read here, while this process
//! has no connection. (Closing any descriptor of it would release SQLite's locks.)
//!
//! Its header is proof, because of the order in which SQLite works. Frames are written to the log before the
//! header counts them. A log is truncated only after the header was reset to none. A process that deletes a log
//! (a plain SQLite that closes last) deletes the index before it. So while the header stays the same, the log
//! has every frame that it counts, with its salts; frames that are already copied into the database
//! (`nBackfill`) are not needed. A header that changes while it is read, is incomplete, or was not finished
//! proves nothing.
//!
//! *Crash*: kill -9 leaves all files as they are, and the order above holds at every instruction. *Power
//! failure, reboot*: the index is never flushed, so the one on disk may be older than the log next to it and
//! disagree without harm; it counts only if the mark shows that the store was used in this boot. What was lost
//! in an earlier boot shows in the mark's event number instead. *Copy*: files that were copied one after the
//! other may disagree too; the mark then names another file, and the index does not count. *No index, no mark*:
//! nothing is known. *Clock jump*: no clock is read. *Older version*: the layout is that of every SQLite since
//! 3.7.0; another version number in it proves nothing.

use std::io::Read;
use std::path::Path;

use tenure_core::store::StoreError;

use super::connection;
use super::files::beside;
use super::log::Log;

/// The two copies of the header, and how much was copied into the database.
const INDEX_BYTES: usize = 100;
const HEADER_BYTES: usize = 48;
/// The version of the layout.
const VERSION: u32 = 3_007_000;
const LOG_HEADER_BYTES: u64 = 32;
const FRAME_HEADER_BYTES: u64 = 24;

/// What the index records about the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Index {
    /// Grows with every change of the header.
    change: u32,
    page: u64,
    frames: u32,
    copied: u32,
    salts: [u8; 8],
}

impl Index {
    fn read(path: &Path) -> Option<Self> {
        let mut bytes = [0; INDEX_BYTES];
        fs_err::File::open(path)
            .and_then(|mut file| file.read_exact(&mut bytes))
            .ok()?;
        Self::parse(&bytes)
    }

    fn parse(bytes: &[u8; INDEX_BYTES]) -> Option<Self> {
        let (first, rest) = bytes.split_at(HEADER_BYTES);
        let (second, rest) = rest.split_at(HEADER_BYTES);
        let long = |from: &[u8], at: usize| {
            let four = from.get(at..at + 4)?.try_into().ok()?;
            Some(u32::from_ne_bytes(four))
        };
        let is_sound = first == second
            && long(first, 0)? == VERSION
            && first[12] == 1
            && checksum(&first[..40]) == (long(first, 40)?, long(first, 44)?);
        if !is_sound {
            return None;
        }
        let page = u64::from(u16::from_ne_bytes([first[14], first[15]]));
        Some(Self {
            change: long(first, 8)?,
            page: (page & 0xfe00) + ((page & 1) << 16),
            frames: long(first, 16)?,
            copied: long(rest, 0)?,
            salts: first[32..40].try_into().ok()?,
        })
    }

    /// Frames that are only in the log.
    fn only_there(&self) -> u32 {
        self.frames.saturating_sub(self.copied)
    }

    /// The minimum length of the log.
    fn least(&self) -> u64 {
        LOG_HEADER_BYTES + u64::from(self.frames) * (self.page + FRAME_HEADER_BYTES)
    }
}

/// SQLite's checksum over words in native byte order.
fn checksum(bytes: &[u8]) -> (u32, u32) {
    let words = bytes.chunks_exact(4).map(|four| {
        let four = four.try_into().unwrap_or_default();
        u32::from_ne_bytes(four)
    });
    let words: Vec<u32> = words.collect();
    words
        .chunks_exact(2)
        .fold((0u32, 0u32), |(one, two), pair| {
            let one = one.wrapping_add(pair[0]).wrapping_add(two);
            (one, two.wrapping_add(pair[1]).wrapping_add(one))
        })
}

/// What is wrong with a log, if anything.
fn fault(log: &Path, index: &Index) -> Option<&'static str> {
    let mut header = [0; LOG_HEADER_BYTES as usize];
    let mut file = match fs_err::File::open(log) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Some("is missing"),
        // SQLite reports any other error.
        Err(_) => return None,
    };
    let length = file.metadata().ok()?.len();
    if length < index.least() || file.read_exact(&mut header).is_err() {
        return Some("was truncated");
    }
    (header[16..24] != index.salts).then_some("was replaced")
}

/// Whether the database has this event and is intact without any log. Nothing is locked or written; an
/// unreadable one is not intact.
fn is_whole_without(file: &Path, event: u64) -> bool {
    let is_whole = || -> rusqlite::Result<bool> {
        let conn = connection::open_alone(file)?;
        let sound: String = conn.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
        Ok(sound == "ok" && connection::newest_event(&conn)? >= event)
    };
    is_whole().unwrap_or(false)
}

/// Refuses a database whose log is lost, or was replaced, while it still held changes.
///
/// Only for a process without a connection to it, if the mark shows that the index is of this boot.
///
/// `event` is the newest event known to be stored. If the database has it without its log, a plain SQLite with
/// exclusive access copied the log into it, which needs no index and leaves an old one behind.
pub(super) fn check(file: &Path, store: &str, event: u64) -> Result<(), StoreError> {
    let index_path = beside(file, "-shm");
    let log = Log::of(file);
    // Others may change both during the check, but not again and again within microseconds.
    for _ in 0..8 {
        let Some(index) = Index::read(&index_path) else {
            return Ok(());
        };
        if index.only_there() == 0 {
            return Ok(());
        }
        let Some(how) = fault(log.path(), &index) else {
            return Ok(());
        };
        if Index::read(&index_path) != Some(index) {
            continue;
        }
        if is_whole_without(file, event) {
            return Ok(());
        }
        return Err(StoreError::LogLost {
            store: store.to_owned(),
            log: log.path().display().to_string(),
            how: how.to_owned(),
        });
    }
    Ok(())
}
