//! The store on one machine: a SQLite database in the state directory, no daemon.
//!
//! A store is one connection. Writers are serial (`BEGIN IMMEDIATE`), readers see one state and never
//! wait. The database is made by rename and so is always complete; anything else under its name is
//! damage, refused and left as it is.
//!
//! *Crash*: SQLite's log has what was committed; the next opener replays it. *Clock jump*: the clock is
//! given by the caller, and nothing here compares its answers. *Older version*: see the migrations.

mod claim;
mod connection;
mod creation;
mod doubt;
mod event;
mod header;
mod log;
mod metadata;
mod migrations;
mod native;
mod notice;
#[cfg(test)]
mod plans;
mod process;
mod row;
mod session;
mod tx;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use tenure_core::store::{Mode, Store, StoreError, Tx};
use tenure_core::time::Now;

use connection::Durability;
use creation::InitLock;
use header::Opened;
use log::Log;
use migrations::{Fit, MIGRATIONS};
use tx::SqliteTx;

/// A SQLite database as a store.
pub struct SqliteStore {
    conn: Connection,
    location: String,
    clock: Box<dyn Fn() -> Now>,
    durability: Option<Durability>,
    log: Option<Log>,
    /// After the connection, so that it is dropped once that is closed.
    _opened: Option<Opened>,
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore")
            .field("location", &self.location)
            .finish_non_exhaustive()
    }
}

impl SqliteStore {
    /// Opens the database at `path`, and makes it if there is none; its directory must exist.
    ///
    /// `clock` says what time it is for every user of the store.
    pub fn open(path: &Path, clock: Box<dyn Fn() -> Now>) -> Result<Self, StoreError> {
        let location = path.display().to_string();
        let file = resolve(path).map_err(|error| creation::io_error(&location, &error))?;
        match fs_err::symlink_metadata(&file) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                creation::create(&file, &location)?;
            }
            Err(error) => return Err(creation::io_error(&location, &error)),
        }
        let opened = Opened::check(&file, &location)?;
        let conn = connection::open(&file, &location)?;
        connection::configure(&conn, &location)?;
        if migrations::fit(&conn, &location, MIGRATIONS)? == Fit::Behind {
            let _lock = InitLock::acquire(&file, &location)?;
            migrations::migrate(&conn, &location, MIGRATIONS)?;
        }
        Ok(Self {
            conn,
            location,
            clock,
            durability: None,
            log: Some(Log::of(&file)),
            _opened: Some(opened),
        })
    }

    /// Makes a store that is gone when it is dropped, for tests.
    pub fn in_memory(clock: Box<dyn Fn() -> Now>) -> Result<Self, StoreError> {
        let location = ":memory:".to_owned();
        let conn = connection::open_in_memory(&location)?;
        connection::configure(&conn, &location)?;
        migrations::build(&conn, &location, MIGRATIONS)?;
        Ok(Self {
            conn,
            location,
            clock,
            durability: None,
            log: None,
            _opened: None,
        })
    }

    fn execute(&self, sql: &str) -> Result<(), StoreError> {
        self.conn
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute([]))
            .map(|_| ())
            .map_err(|error| connection::classify(&self.location, Some(&self.conn), &error))
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
    fn begin(&mut self, mode: Mode) -> Result<Box<dyn Tx + '_>, StoreError> {
        if !self.conn.is_autocommit() {
            self.execute("ROLLBACK")?;
        }
        let durability = match mode {
            Mode::Read => None,
            Mode::Write => Some(Durability::Full),
            Mode::Beat => Some(Durability::Order),
        };
        match durability {
            None => self.execute("BEGIN")?,
            Some(wanted) => {
                self.be_durable(wanted)?;
                self.execute("BEGIN IMMEDIATE")?;
            }
        }
        let log = self.log.as_ref().zip(durability);
        let tx = SqliteTx::begun(&self.conn, &self.location, &*self.clock, log);
        if durability.is_some() {
            migrations::fit(&self.conn, &self.location, MIGRATIONS)?;
        }
        Ok(Box::new(tx))
    }

    fn is_shared(&self) -> bool {
        false
    }

    fn location(&self) -> String {
        self.location.clone()
    }
}

/// The path without symbolic links before its last part, for SQLite refuses them anywhere in it.
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
