//! Stores of a given size: small ones made anew, large ones copied from one that is kept.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags};
use tenure_testkit::seed::{Seed, seed};

use crate::Failed;
use crate::place::{BenchStore, answered};

/// The size that everything is compared with.
pub const SMALL: u32 = 1_000;
/// The size of a store that has been in use for long.
pub const LARGE: u32 = 1_000_000;
/// How many sessions are open, whatever the size.
pub const OPEN: u32 = 200;

/// How long the log is in the middle of a working day: it grows with each write, and a heartbeat cuts it
/// past 16 pages.
pub const DAY_PAGES: u64 = 8;
/// The size of a page in the log.
const FRAME_BYTES: u64 = 4096 + 24;

/// How long it may take to fill a log.
const PATIENCE: Duration = Duration::from_secs(30);

/// Raised when the seeding changes, so that kept stores are made anew.
const VERSION: u32 = 1;

#[derive(Debug)]
pub struct Seeded {
    pub place: BenchStore,
    /// What it was filled with.
    pub seed: Seed,
}

impl Seeded {
    fn at(dir: &Path, size: u32) -> Result<Self, Failed> {
        let place = BenchStore::open(dir)?;
        let observer = place.observer();
        let seed = Seed {
            sessions: size,
            open: OPEN.min(size / 5),
            host: observer.host.clone(),
            boot: observer.boot.clone(),
            pid_ns: observer.pid_ns,
        };
        Ok(Self { place, seed })
    }

    /// Makes a store of this size in a directory that has none.
    pub fn fresh(dir: &Path, size: u32) -> Result<Self, Failed> {
        let seeded = Self::at(dir, size)?;
        let mut store = seeded.place.store()?;
        seed(&mut store, &seeded.seed)?;
        drop(store);
        cut_log(&seeded.place)?;
        Ok(seeded)
    }

    /// Copies the store of this size that is kept in `kept`, which is made first if it is missing.
    pub fn copied(kept: &Path, dir: &Path, size: u32) -> Result<Self, Failed> {
        let source = kept.join(size.to_string());
        let made_of = describe(&kept.join("schema"), size)?;
        let note = source.join("made-of");
        if fs_err::read_to_string(&note).ok().as_ref() != Some(&made_of) {
            let part = kept.join(format!("{size}.part"));
            for old in [&part, &source] {
                if old.exists() {
                    fs_err::remove_dir_all(old)?;
                }
            }
            Self::fresh(&part, size)?;
            fs_err::write(part.join("made-of"), made_of)?;
            fs_err::rename(&part, &source)?;
        }
        let seeded = Self::at(dir, size)?;
        for name in ["tenure.db", "host-id"] {
            fs_err::copy(source.join(name), dir.join(name))?;
            // Or else the first commit waits for all of it.
            fs_err::File::open(dir.join(name))?.sync_all()?;
        }
        // Or else the copy would say that it is one, and raise a million epochs.
        let conn = Connection::open(dir.join("tenure.db"))?;
        conn.execute("DELETE FROM meta WHERE name = 'file'", [])?;
        drop(conn);
        // The host id was read before it was replaced.
        drop(seeded);
        Self::at(dir, size)
    }
}

/// What a kept store must have been made of to be used again.
fn describe(scratch: &Path, size: u32) -> Result<String, Failed> {
    if scratch.exists() {
        fs_err::remove_dir_all(scratch)?;
    }
    let place = BenchStore::open(scratch)?;
    drop(place.store()?);
    let conn = reader(&place)?;
    let mut statement = conn.prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")?;
    let parts: Result<Vec<String>, _> = statement.query_map([], |row| row.get(0))?.collect();
    Ok(format!("{VERSION} {size} {OPEN}\n{}\n", parts?.join("\n")))
}

/// Brings all of a store's log into its database.
pub fn cut_log(place: &BenchStore) -> Result<(), Failed> {
    cut_log_of(&place.database())
}

/// Brings all of a database's log into it.
pub fn cut_log_of(file: &Path) -> Result<(), Failed> {
    let conn = Connection::open_with_flags(
        file,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    Ok(())
}

/// Moves all events to the present: a store in use has no log of a year that is to be removed at once.
pub fn renew_events(place: &BenchStore) -> Result<(), Failed> {
    let conn = Connection::open_with_flags(
        place.database(),
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    conn.execute_batch(
        "UPDATE events SET at = at + (SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER) - max(at) FROM events); \
         PRAGMA wal_checkpoint(TRUNCATE)",
    )?;
    Ok(())
}

/// How many pages the log of a database has room for, which are those in use since it was cut.
pub fn log_pages(file: &Path) -> u64 {
    let mut log = file.as_os_str().to_owned();
    log.push("-wal");
    std::fs::symlink_metadata(log).map_or(0, |meta| meta.len() / FRAME_BYTES)
}

/// Makes the log of a store as long as it is in the middle of a working day; this process must be a session there.
pub fn fill_log(place: &BenchStore) -> Result<(), Failed> {
    fill_log_to(place, DAY_PAGES)
}

/// Fills the log anew if it is shorter, or much longer, than in the middle of a working day.
pub fn keep_log_filled(place: &BenchStore) -> Result<(), Failed> {
    if (DAY_PAGES..DAY_PAGES * 3 / 2).contains(&log_pages(&place.database())) {
        return Ok(());
    }
    fill_log(place)
}

/// Makes the log this long, by renewals of the session that this process is.
pub fn fill_log_to(place: &BenchStore, pages: u64) -> Result<(), Failed> {
    cut_log(place)?;
    let mut store = place.store()?;
    let until = Instant::now() + PATIENCE;
    // Two renewals in one millisecond are one.
    while log_pages(&place.database()) < pages && Instant::now() < until {
        let mut service = place.service(&mut store);
        answered(service.renew(&Default::default(), &Default::default()))?;
    }
    drop(store);
    let filled = log_pages(&place.database());
    if (pages..pages + 10).contains(&filled) {
        return Ok(());
    }
    Err(format!("the log has {filled} pages instead of {pages}").into())
}

/// A plain connection that only reads.
pub fn reader(place: &BenchStore) -> Result<Connection, Failed> {
    Ok(Connection::open_with_flags(
        place.database(),
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?)
}
