//! The store on one machine: an SQLite database in the state directory, no daemon.
//!
//! A store is one connection. Writers are serial (`BEGIN IMMEDIATE`), readers see one state and never wait. The
//! database is created by rename, so it is always complete; anything else under its name is damage, refused and
//! left unchanged.
//!
//! *Crash*: SQLite's log has what was committed; the next opener replays it. *Clock jump*: the caller supplies
//! the clock, and nothing here compares its values. *Older version*: see the migrations.

mod attached;
pub mod backup;
mod connection;
mod creation;
mod files;
pub mod foreign;
mod foreign_log;
pub mod foreign_repair;
mod handle;
mod header;
mod log;
mod lost_log;
mod mark;
mod migrations;
mod moved;
pub mod settled;
mod transfer;
mod wake_files;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fmt, io};

use rusqlite::Connection;
use tenure_core::store::{Checkpoint, Store, StoreError, StoreWatch, Tx, TxMode, WaitTopic};
use tenure_core::time::{Era, Now};

use attached::Attached;
use connection::Durability;
use creation::InitLock;
use handle::SqliteTx;
use header::OpenCount;
use mark::{Mark, MarkFile};
use migrations::{Fit, MIGRATIONS};

use crate::engine::Rows;

pub use handle::StatementCheck;
pub use transfer::SqliteEnd;

/// How often a file may be replaced while it is opened.
const MAX_REPLACED: usize = 3;

/// How long a caller with a deadline waits.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    pub until: Instant,
    /// How to sleep if nothing can wake it.
    pub pause: fn(Duration),
}

/// A database that was just opened, and what was remembered about it before.
struct OpenedDatabase {
    /// The file without links in its path.
    file: PathBuf,
    opened: OpenCount,
    conn: Connection,
    marks: MarkFile,
    mark: Option<Mark>,
}

impl OpenedDatabase {
    /// Opens the file at the path, and creates it if there is none.
    ///
    /// SQLite refuses a path with symbolic links in it. Few have any, and checking costs a call for each
    /// directory, so the path is tried as it is.
    fn or_made(
        path: &Path,
        era: &Era,
        store: &str,
        limit: Option<Patience>,
    ) -> Result<Self, StoreError> {
        if let Some(found) = Self::at(path, path, era, store)? {
            return Ok(found);
        }
        let file = resolve(path).map_err(|error| files::io_error(store, &error))?;
        match fs_err::symlink_metadata(&file) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                creation::create(&file, store, limit)?;
            }
            Err(error) => return Err(files::io_error(store, &error)),
        }
        Self::at(path, &file, era, store)?.ok_or_else(|| replaced(store))
    }

    /// Opens the file at the path; again if it was replaced in between. None if there is no file, or a symbolic
    /// link is on the path.
    fn at(path: &Path, file: &Path, era: &Era, store: &str) -> Result<Option<Self>, StoreError> {
        for _ in 0..MAX_REPLACED {
            let Ok(found) = fs_err::symlink_metadata(file) else {
                return Ok(None);
            };
            let marks = MarkFile::of(file, &found, &era.id);
            // Before the database: a commit after this only puts the database ahead of the mark.
            let mark = marks.read();
            let mark = mark.map_err(|error| files::io_error(store, &error))?;
            let known = mark.as_ref().filter(|mark| marks.is_ours(mark));
            // A boot id that a container may keep forever does not prove that the index is of this boot.
            let index_counts = known.filter(|_| !era.private);
            let event = index_counts.map(|mark| mark.event);
            let opened = OpenCount::check(file, &found, store, event)?;
            let Some(conn) = connection::open(file, store)? else {
                return Ok(None);
            };
            if header::inode_at(path).is_ok_and(|inode| inode == opened.inode()) {
                return Ok(Some(Self {
                    file: file.to_owned(),
                    opened,
                    conn,
                    marks,
                    mark,
                }));
            }
        }
        Err(replaced(store))
    }
}

fn replaced(store: &str) -> StoreError {
    let store = store.to_owned();
    StoreError::Replaced { store }
}

/// A SQLite database as a store.
pub struct SqliteStore {
    conn: Connection,
    location: String,
    clock: Box<dyn Fn() -> Now>,
    durability: Option<Durability>,
    files: Option<Attached>,
    /// What was remembered about it before it was opened, until that was compared.
    mark: Option<Option<Mark>>,
    /// News for a person, shown once.
    news: Option<String>,
    /// Until when it waits for others, if there is a limit.
    limit: Option<Patience>,
    /// Whether the last transaction set a limit.
    bounded: bool,
    /// Looks at every statement, in tests.
    check: Option<StatementCheck>,
    /// Declared after the connection, so that it is dropped once that is closed.
    _opened: Option<OpenCount>,
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore")
            .field("location", &self.location)
            .finish_non_exhaustive()
    }
}

impl SqliteStore {
    /// Opens the database at `path`, and creates it if there is none; its directory must exist.
    ///
    /// `clock` is the time for every user of the store.
    pub fn open(path: &Path, clock: Box<dyn Fn() -> Now>) -> Result<Self, StoreError> {
        Self::open_until(path, clock, None)
    }

    /// The same for a caller with a deadline: whatever is not done by then is reported as busy.
    pub fn open_until(
        path: &Path,
        clock: Box<dyn Fn() -> Now>,
        limit: Option<Patience>,
    ) -> Result<Self, StoreError> {
        Self::open_as(path, clock, limit, false)
    }

    /// The same for a copy of stores, also if it was moved or is an unfinished copy.
    fn open_aside_too(path: &Path, clock: Box<dyn Fn() -> Now>) -> Result<Self, StoreError> {
        Self::open_as(path, clock, None, true)
    }

    fn open_as(
        path: &Path,
        clock: Box<dyn Fn() -> Now>,
        limit: Option<Patience>,
        takes_aside: bool,
    ) -> Result<Self, StoreError> {
        let until = limit.map(|limit| limit.until);
        let location = path.display().to_string();
        let era = clock().era;
        let OpenedDatabase {
            file,
            opened,
            conn,
            marks,
            mark,
        } = OpenedDatabase::or_made(path, &era, &location, limit)?;
        let known = mark.as_ref().is_some_and(|mark| marks.is_ours(mark));
        connection::configure(&conn, &location)?;
        if until.is_some() {
            connection::wait_until(&conn, &location, until)?;
        }
        let mut is_aside = false;
        match migrations::fit(&conn, &location, MIGRATIONS) {
            Err(StoreError::Moved { .. } | StoreError::Unfinished { .. }) if takes_aside => {
                is_aside = true;
            }
            Ok(Fit::Behind) => {
                let _lock = InitLock::acquire(&file, &location, limit)?;
                migrations::migrate(&conn, &location, MIGRATIONS)?;
                marks.note(None);
            }
            other => drop(other?),
        }
        let mut store = Self {
            conn,
            location,
            clock,
            durability: None,
            mark: Some(mark),
            news: None,
            files: Some(Attached::to(path, &file, &opened, marks)),
            limit,
            bounded: until.is_some(),
            check: None,
            _opened: Some(opened),
        };
        // A caller with a deadline compares before it writes, because a heartbeat is not a grant.
        if (!known || until.is_none()) && !is_aside {
            store.settle_or_leave_it()?;
        }
        if until.is_none() {
            store.news = moved::take_unsaid(&store.conn, &store.location)?;
        }
        Ok(store)
    }

    /// Has every statement looked at before it runs, for tests of their plans.
    pub fn check_statements(&mut self, check: StatementCheck) {
        self.check = Some(check);
    }

    /// News about the store for a person, once.
    pub fn take_news(&mut self) -> Option<String> {
        self.news.take()
    }

    /// The same for a caller that may only want to read: what cannot be written now is settled before the first
    /// write.
    fn settle_or_leave_it(&mut self) -> Result<(), StoreError> {
        match self.settle() {
            Err(
                StoreError::Busy { .. } | StoreError::Full { .. } | StoreError::Unavailable { .. },
            ) => Ok(()),
            other => other,
        }
    }

    /// Compares the database with what is remembered about it, once, and settles the differences.
    fn settle(&mut self) -> Result<(), StoreError> {
        let (Some(files), Some(mark)) = (&self.files, self.mark.clone()) else {
            return Ok(());
        };
        let newest = connection::newest_event(&self.conn)
            .map_err(|error| connection::classify(&self.location, Some(&self.conn), &error))?;
        let is_sound = |mark: &Mark| files.mark.is_ours(mark) && mark.event <= newest;
        if mark.as_ref().is_some_and(is_sound) {
            self.mark = None;
            return Ok(());
        }
        let wait = || InitLock::acquire(&files.file, &self.location, self.limit);
        let (now, marks) = ((self.clock)(), &files.mark);
        moved::settle(&self.conn, &self.location, &now, marks, mark.as_ref(), wait)?;
        files.log.keep_short(&self.conn, Durability::Full);
        self.mark = None;
        // Settling may have changed how long a statement waits.
        self.bounded = true;
        connection::wait_until(&self.conn, &self.location, self.until())
    }

    fn until(&self) -> Option<Instant> {
        self.limit.map(|limit| limit.until)
    }

    /// Whether there is no store at a path: no database, and no log left by one.
    pub fn is_absent(path: &Path) -> bool {
        let found = fs_err::symlink_metadata(path);
        found.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
            && log::Log::of(path).bytes() == 0
    }

    /// Creates a store that is gone when it is dropped, for tests.
    pub fn in_memory(clock: Box<dyn Fn() -> Now>) -> Result<Self, StoreError> {
        Self::standing_for(Path::new(":memory:"), clock)
    }

    /// An empty in-memory store, for a caller that reads while there is no store at `path` yet.
    pub fn standing_for(path: &Path, clock: Box<dyn Fn() -> Now>) -> Result<Self, StoreError> {
        let location = path.display().to_string();
        let conn = connection::open_in_memory(&location)?;
        connection::configure(&conn, &location)?;
        migrations::build(&conn, &location, MIGRATIONS)?;
        Ok(Self::without_files(conn, location, clock))
    }

    fn without_files(conn: Connection, location: String, clock: Box<dyn Fn() -> Now>) -> Self {
        Self {
            conn,
            location,
            clock,
            durability: None,
            files: None,
            mark: None,
            news: None,
            limit: None,
            bounded: false,
            check: None,
            _opened: None,
        }
    }

    fn execute(&self, sql: &str) -> Result<(), StoreError> {
        self.conn
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute([]))
            .map(|_| ())
            .map_err(|error| connection::classify(&self.location, Some(&self.conn), &error))
    }

    /// Whether the path still means the same file.
    fn check_place(&self) -> Result<(), StoreError> {
        match &self.files {
            Some(files) => files.check(&self.location),
            None => Ok(()),
        }
    }

    /// Begins to write. If another process is writing, waits for it, and says so: nobody copies a short log meanwhile.
    fn begin_write(&self, until: Option<Instant>) -> Result<(), StoreError> {
        let begin = "BEGIN IMMEDIATE";
        let Some(files) = &self.files else {
            return self.execute(begin);
        };
        let failed = |error| connection::classify(&self.location, Some(&self.conn), &error);
        self.conn.busy_timeout(Duration::ZERO).map_err(failed)?;
        let begun = self.execute(begin);
        connection::wait_until(&self.conn, &self.location, until)?;
        match begun {
            Err(StoreError::Busy { .. }) => {
                let _announced = files.log.announce();
                self.execute(begin)
            }
            other => other,
        }
    }

    fn be_durable(&mut self, wanted: Durability) -> Result<(), StoreError> {
        if self.durability != Some(wanted) {
            connection::set_durability(&self.conn, &self.location, wanted)?;
            self.durability = Some(wanted);
        }
        Ok(())
    }
}

impl Store for SqliteStore {
    fn begin_until(
        &mut self,
        mode: TxMode,
        until: Option<Instant>,
    ) -> Result<Box<dyn Tx + '_>, StoreError> {
        let until = until.into_iter().chain(self.until()).min();
        if !self.conn.is_autocommit() {
            self.execute("ROLLBACK")?;
        }
        self.check_place()?;
        if let Some(files) = &self.files {
            files.check_log(&self.location)?;
        }
        if until.is_some() || self.bounded {
            connection::wait_until(&self.conn, &self.location, until)?;
            self.bounded = until.is_some();
        }
        let durability = match mode {
            TxMode::Read => None,
            TxMode::Write => Some(Durability::Full),
            TxMode::Beat => Some(Durability::Order),
        };
        match durability {
            None => self.execute("BEGIN")?,
            Some(wanted) => {
                if wanted == Durability::Full {
                    self.settle()?;
                }
                self.be_durable(wanted)?;
                self.begin_write(until)?;
            }
        }
        let files = self.files.as_ref().zip(durability);
        let tx = SqliteTx::begun(&self.conn, &self.location, &*self.clock, files, self.check);
        // Another process may have migrated or moved it.
        migrations::fit(&self.conn, &self.location, MIGRATIONS)?;
        Ok(Box::new(Rows::new(tx)))
    }

    fn locks_rows(&self) -> bool {
        false
    }

    fn changes(&mut self) -> Result<u64, StoreError> {
        self.check_place()?;
        let asked = self
            .conn
            .prepare_cached("PRAGMA data_version")
            .and_then(|mut statement| statement.query_row([], |row| row.get::<_, i64>(0)));
        asked
            .map(i64::cast_unsigned)
            .map_err(|error| connection::classify(&self.location, Some(&self.conn), &error))
    }

    fn watch(&mut self, about: Option<&[WaitTopic]>) -> StoreWatch {
        let Some(files) = &self.files else {
            // An in-memory store has one connection: no one else commits.
            return StoreWatch::Poll {
                every: Duration::MAX,
            };
        };
        StoreWatch::Files {
            dir: files.file.parent().unwrap_or(Path::new("/")).to_owned(),
            only: match about {
                Some(about) => files.wake_files.create(about).ok(),
                None => files.mark.is_written().then(|| vec![files.mark.path()]),
            },
        }
    }

    fn is_shared(&self) -> bool {
        false
    }

    fn location(&self) -> String {
        self.location.clone()
    }

    fn checkpoint(&mut self, at: Checkpoint) {
        if let Some(files) = &mut self.files {
            files.log.checkpoint(&self.conn, at);
        }
    }
}

/// The path without symbolic links before its last part, because SQLite refuses them anywhere in it.
fn resolve(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or_else(|| {
        let why = format!("{} does not name a file", path.display());
        io::Error::new(io::ErrorKind::InvalidInput, why)
    })?;
    let dir = match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    };
    Ok(fs_err::canonicalize(dir)?.join(name))
}

#[cfg(test)]
mod tests {
    use tenure_core::session::Title;
    use tenure_core::store::SessionRows;
    use tenure_core::time::Timestamp;
    use tenure_testkit::conformance::sample::{EPOCH, clock, event, id, session};

    use super::*;
    use crate::rows::{claim, notice, session};

    fn in_a_file() -> (tempfile::TempDir, SqliteStore) {
        let dir = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&dir.path().join("tenure.db"), clock()).unwrap();
        (dir, store)
    }

    #[test]
    fn only_heartbeats_may_be_lost_in_a_power_cut() {
        let (_dir, mut store) = in_a_file();
        let (full, normal) = (2, 1);
        let modes = [
            (TxMode::Beat, normal),
            (TxMode::Write, full),
            (TxMode::Read, full),
            (TxMode::Beat, normal),
            (TxMode::Write, full),
        ];
        for (mode, expected) in modes {
            drop(store.begin(mode).unwrap());
            let synchronous: i64 = store
                .conn
                .pragma_query_value(None, "synchronous", |row| row.get(0))
                .unwrap();
            assert_eq!(synchronous, expected, "{mode:?}");
        }
    }

    #[test]
    fn statements_are_planned_once_whatever_is_bound() {
        let (_dir, mut store) = in_a_file();
        for n in 1..=3 {
            let mut tx = store.begin(TxMode::Write).unwrap();
            let mut one = session(n);
            tx.insert_session(&one).unwrap();
            one.title = Some(Title::person(format!("work {n}")));
            tx.update_session(&one).unwrap();
            let (token, lease) = (one.token(), one.lease);
            let touched = tx.touch_session(token, Timestamp(EPOCH), &lease, None, None);
            assert!(touched.unwrap());
            assert!(tx.session(id(n)).unwrap().is_some());
            assert_eq!(tx.open_holds(id(n)).unwrap(), []);
            assert!(!tx.has_notices(id(n)).unwrap());
            tx.commit().unwrap();
        }
        let used = [
            session::BY_ID,
            session::TOUCH,
            session::SessionRow::UPDATE,
            claim::OPEN_OF,
            notice::ANY,
        ];
        for sql in used {
            let statement = store.conn.prepare_cached(sql).unwrap();
            let again = statement.get_status(rusqlite::StatementStatus::RePrepare);
            let runs = statement.get_status(rusqlite::StatementStatus::Run);
            assert_eq!((again, runs), (0, 3), "{sql}");
        }
    }

    #[test]
    fn a_full_disk_undoes_the_whole_transaction() {
        let (_dir, mut store) = in_a_file();
        store
            .conn
            .execute_batch("PRAGMA max_page_count = 1")
            .unwrap();
        let mut tx = store.begin(TxMode::Write).unwrap();
        tx.insert_session(&session(1)).unwrap();
        let answer = (0..10_000).try_for_each(|n| {
            let long = event(n, &"evidence ".repeat(100));
            tx.append_event(&long, Timestamp(EPOCH)).map(|_| ())
        });
        assert!(matches!(answer, Err(StoreError::Full { .. })), "{answer:?}");
        drop(tx);
        store
            .conn
            .execute_batch("PRAGMA max_page_count = 1000000")
            .unwrap();
        let mut tx = store.begin(TxMode::Write).unwrap();
        assert_eq!(tx.session(id(1)).unwrap(), None);
        assert_eq!(tx.events(&Default::default()).unwrap(), []);
        tx.insert_session(&session(1)).unwrap();
        tx.commit().unwrap();
    }

    #[test]
    fn nothing_is_written_after_sqlite_undid_the_transaction() {
        let (_dir, mut store) = in_a_file();
        store.conn.execute_batch("BEGIN").unwrap();
        let tx = handle::SqliteTx::begun(&store.conn, "s", &*store.clock, None, None);
        let mut tx = Rows::new(tx);
        store.conn.execute_batch("ROLLBACK").unwrap();
        let answer = tx.insert_session(&session(1));
        assert!(matches!(answer, Err(StoreError::Unavailable { .. })));
        assert!(Box::new(tx).commit().is_err());
        assert_eq!(
            store.begin(TxMode::Read).unwrap().session(id(1)).unwrap(),
            None
        );
    }

    #[test]
    fn a_transaction_that_was_left_open_is_undone_by_the_next() {
        let (_dir, mut store) = in_a_file();
        let mut tx = store.begin(TxMode::Write).unwrap();
        tx.insert_session(&session(1)).unwrap();
        std::mem::forget(tx);
        assert_eq!(
            store.begin(TxMode::Write).unwrap().session(id(1)).unwrap(),
            None
        );
    }
}
