//! The same transactions, written by hand for SQLite: the baseline for everything that touches the store.
//!
//! It opens the same file with the same settings, writes the same rows with the same durability, and
//! keeps the log short by the same rule. In the manner [`Manner::Same`] it also reads what tenure reads,
//! statement by statement; in the manner [`Manner::Lean`] only what somebody would read who needs nothing
//! but the decision. It looks at no process, parses no name and makes no answer.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags, Params, params};
use tenure_core::id::SessionToken;
use tenure_core::process::{BootId, Process, StartTicks};
use tenure_host::clock;

use crate::Failed;
use crate::seeded::log_pages;
use crate::worker::Contender;

const BUSY: Duration = Duration::from_secs(10);
/// At how many pages a write cuts the log.
const MAX_PAGES: u64 = 128;

const LIVES_AT: &str = "SELECT session, life, host_id, boot_id, boot_private, pid_ns, pid, \
     start_ticks, start_shifted FROM lives WHERE pid = ?1 AND boot_id = ?2 AND pid_ns = ?3 \
     AND host_id = ?4 AND boot_private = ?5 ORDER BY at DESC, session DESC, life DESC";
macro_rules! session_columns {
    ($of:literal) => {
        concat!(
            "SELECT s.id, s.handle, s.agent, s.native_id, s.fork_of, s.parent_id, s.parent_life, \
             s.twin_of, s.title, s.dir, s.repo, s.branch, s.hosted, s.life, s.host_id, s.boot_id, \
             s.boot_private, s.pid_ns, s.pid, s.start_ticks, s.start_shifted, s.activity, \
             s.activity_since, s.started_at, s.seen_at, s.lease_era, s.lease_era_private, \
             s.lease_at, s.closed_at, s.closed_by, s.closed_why, s.revision FROM ",
            $of
        )
    };
}
const SESSION: &str = session_columns!("sessions s WHERE s.id = ?1");
/// Both in one, for code that writes by hand.
const CALLER: &str = session_columns!(
    "lives l CROSS JOIN sessions s ON s.id = l.session AND s.life = l.life \
     WHERE l.pid = ?1 AND l.boot_id = ?2 AND l.pid_ns = ?3 AND l.host_id = ?4 \
     AND l.boot_private = ?5 AND s.closed_at IS NULL"
);
const NOTICES: &str = "SELECT 1 FROM notices WHERE recipient = ?1 AND delivered_at IS NULL LIMIT 1";
const DOUBTS: &str = "SELECT 1 FROM doubts WHERE asker = ?1 LIMIT 1";
const KEY: &str = "SELECT c.key, c.epoch, h.key, h.epoch, h.session, h.life, h.request, h.means, \
     h.note, h.granted_at, h.taken_from, h.ended_at, h.ended_by FROM claims c LEFT JOIN holds h \
     ON h.key = c.key AND h.epoch = (SELECT max(epoch) FROM holds WHERE key = c.key) \
     WHERE c.key = ?1";
const NEWEST_OF: &str = "SELECT h.key, h.epoch, h.session, h.life, h.request, h.means, h.note, \
     h.granted_at, h.taken_from, h.ended_at, h.ended_by FROM holds h INDEXED BY holds_session \
     WHERE h.session = ?1 AND h.key = ?2 ORDER BY h.epoch DESC LIMIT 1";
const LINEAGE: &str = "SELECT native_id, 1 AS owned, at FROM natives WHERE owner = ?1 UNION ALL \
     SELECT native_id, 0 AS owned, at FROM visits WHERE visitor = ?1 \
     AND NOT EXISTS (SELECT 1 FROM natives WHERE natives.agent = visits.agent \
     AND natives.native_id = visits.native_id AND natives.owner = ?1) ORDER BY 3, 1";
const OPEN_OF: &str = "SELECT h.key, h.epoch, h.session, h.life, h.request, h.means, h.note, \
     h.granted_at, h.taken_from, h.ended_at, h.ended_by FROM holds h \
     INDEXED BY holds_ended WHERE h.session = ?1 AND h.ended_by IS NULL ORDER BY h.key";
const WAITS: &str = "SELECT key, ticket, session, life, host_id, boot_id, boot_private, pid_ns, \
     pid, start_ticks, start_shifted, since, turn_era, turn_era_private, turn_at FROM waiters \
     WHERE session = ?1 ORDER BY ticket, key";
const METADATA: &str = "SELECT key, value FROM metadata WHERE session = ?1";
const TOUCH: &str = "UPDATE sessions SET seen_at = ?3, lease_era = ?4, lease_era_private = ?5, \
     lease_at = ?6 WHERE id = ?1 AND life = ?2 AND closed_at IS NULL";
const FIRST: &str = "INSERT INTO claims (key, epoch) VALUES (?1, ?2) \
     ON CONFLICT (key) DO UPDATE SET epoch = excluded.epoch WHERE epoch = 0";
const RAISE: &str = "UPDATE claims SET epoch = ?2 WHERE key = ?1 AND epoch = ?3";
const HOLD: &str = "INSERT INTO holds (key, epoch, session, life, request, means, note, \
     granted_at, taken_from, ended_at, ended_by) \
     VALUES (?1, ?2, ?3, ?4, NULL, 'claim', NULL, ?5, NULL, NULL, NULL)";
const END: &str = "UPDATE holds SET ended_at = ?3, ended_by = 'release' \
     WHERE key = ?1 AND epoch = ?2 AND ended_at IS NULL";
const EVENT: &str = "INSERT INTO events (at, kind, session, actor, key, epoch, mechanism, evidence, \
     reason) VALUES (?1, ?2, ?3, NULL, ?4, ?5, ?6, ?7, NULL)";

/// How much is read besides what must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// Every statement that tenure runs.
    Same,
    Lean,
}

/// The session for which the baseline acts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Who {
    /// The session and its life.
    pub token: SessionToken,
    pub process: Process,
}

impl Who {
    /// As arguments of the baseline's program.
    pub fn args(&self) -> Vec<String> {
        let process = &self.process;
        vec![
            self.token.to_string(),
            process.pid.to_string(),
            process.boot.id.clone(),
            u8::from(process.boot.private).to_string(),
            process.pid_ns.to_string(),
            process.host.to_string(),
        ]
    }

    pub fn parse(args: &mut impl Iterator<Item = String>) -> Result<Self, Failed> {
        let mut next = |what: &str| args.next().ok_or_else(|| format!("{what} is missing"));
        let token = SessionToken::parse(&next("the session")?)?;
        let pid = next("the pid")?.parse()?;
        let boot = BootId {
            id: next("the boot")?,
            private: next("its privacy")? == "1",
        };
        let pid_ns = next("the namespace")?.parse()?;
        let host = tenure_core::id::HostId::new(next("the host")?);
        let start = StartTicks {
            ticks: 0,
            shifted: false,
        };
        let process = Process {
            host,
            boot,
            pid_ns,
            pid,
            start,
        };
        Ok(Self { token, process })
    }
}

/// A connection, and for whom it is used.
#[derive(Debug)]
pub struct Bare {
    conn: Connection,
    file: PathBuf,
    id: String,
    who: Who,
    manner: Manner,
    /// How many processes are looked for until the session is found.
    height: usize,
}

impl Bare {
    /// Opens a database as tenure does.
    pub fn open(file: &Path, who: Who, manner: Manner, height: usize) -> Result<Self, Failed> {
        let conn = connect(file)?;
        let bare = Self {
            conn,
            file: file.to_owned(),
            id: who.token.id.to_string(),
            who,
            manner,
            height,
        };
        bare.read("PRAGMA user_version", [])?;
        Ok(bare)
    }

    /// Commits of this connection survive a power cut from now on.
    pub fn be_durable(&self) -> Result<(), Failed> {
        Ok(self.conn.execute_batch("PRAGMA synchronous = FULL")?)
    }

    fn run(&self, sql: &str, params: impl Params) -> Result<usize, Failed> {
        Ok(self.conn.prepare_cached(sql)?.execute(params)?)
    }

    /// Reads all rows, every column of them.
    fn read(&self, sql: &str, params: impl Params) -> Result<Vec<Vec<Value>>, Failed> {
        let mut statement = self.conn.prepare_cached(sql)?;
        let columns = statement.column_count();
        let mut rows = statement.query(params)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let cells: Result<Vec<Value>, _> = (0..columns).map(|at| row.get(at)).collect();
            found.push(cells?);
        }
        Ok(found)
    }

    fn begin_reading(&self) -> Result<(), Failed> {
        self.run("BEGIN", []).map(|_| ())
    }

    fn begin_writing(&self) -> Result<(), Failed> {
        self.run("BEGIN IMMEDIATE", [])?;
        if self.manner == Manner::Same {
            self.read("PRAGMA user_version", [])?;
        }
        Ok(())
    }

    fn commit(&self) -> Result<(), Failed> {
        self.run("COMMIT", []).map(|_| ())
    }

    /// Commits a change and keeps the log short.
    fn commit_change(&self) -> Result<(), Failed> {
        self.commit()?;
        keep_log_short(&self.conn, &self.file)
    }

    /// Finds the session that calls.
    fn caller(&self) -> Result<(), Failed> {
        let process = &self.who.process;
        let place = |pid: u32| {
            (
                pid,
                process.boot.id.clone(),
                process.pid_ns.cast_signed(),
                process.host.as_str().to_owned(),
                process.boot.private,
            )
        };
        match self.manner {
            Manner::Same => {
                for above in 1..self.height {
                    let nobody = u32::MAX - u32::try_from(above)?;
                    self.read(LIVES_AT, place(nobody))?;
                }
                self.read(LIVES_AT, place(process.pid))?;
                self.read(SESSION, [&self.id])?;
                self.read(NOTICES, [&self.id])?;
                self.read(DOUBTS, [&self.id])?;
            }
            Manner::Lean => {
                if self.read(CALLER, place(process.pid))?.is_empty() {
                    return Err("the session is not there".into());
                }
            }
        }
        Ok(())
    }

    /// Reads what tenure shows of a session.
    fn view(&self) -> Result<(), Failed> {
        if self.manner == Manner::Same {
            self.read(LINEAGE, [&self.id])?;
            self.read(OPEN_OF, [&self.id])?;
            self.read(WAITS, [&self.id])?;
        }
        Ok(())
    }

    fn touch(&self) -> Result<(), Failed> {
        let at = clock::wall().0;
        let boot = &self.who.process.boot;
        let life = self.who.token.life.0;
        let row = params![self.id, life, at, boot.id, boot.private, at + 600_000];
        self.run(TOUCH, row).map(|_| ())
    }

    fn log_event(&self, kind: &str, key: &str, epoch: i64, why: &str) -> Result<(), Failed> {
        let word = kind.rsplit('.').next().unwrap_or(kind);
        let row = params![clock::wall().0, kind, self.id, key, epoch, word, why];
        self.run(EVENT, row).map(|_| ())
    }

    /// What `whoami` reads.
    pub fn whoami(&self) -> Result<(), Failed> {
        self.begin_reading()?;
        self.caller()?;
        self.view()?;
        if self.manner == Manner::Same {
            self.read(METADATA, [&self.id])?;
        }
        self.commit()
    }

    /// What `guard` reads of a key that the session holds.
    pub fn guard(&self, key: &str) -> Result<(), Failed> {
        self.begin_reading()?;
        self.caller()?;
        self.read(KEY, [key])?;
        if self.manner == Manner::Same {
            self.read(SESSION, [&self.id])?;
        }
        self.commit()
    }

    pub fn renew(&self) -> Result<(), Failed> {
        self.begin_writing()?;
        self.caller()?;
        self.touch()?;
        if self.manner == Manner::Same {
            self.read(SESSION, [&self.id])?;
        }
        self.view()?;
        self.commit_change()
    }

    /// Claims a key; false where somebody holds it.
    pub fn claim(&self, key: &str) -> Result<bool, Failed> {
        self.begin_writing()?;
        self.caller()?;
        let found = self.read(KEY, [key])?;
        let row = found.first();
        let epoch = row.and_then(|row| number(row.get(1))).unwrap_or(0);
        let granted = row.is_some_and(|row| matches!(row.get(3), Some(Value::Integer(_))));
        let ended = row.is_some_and(|row| matches!(row.get(11), Some(Value::Integer(_))));
        if granted && !ended {
            self.run("ROLLBACK", [])?;
            return Ok(false);
        }
        if self.manner == Manner::Same {
            self.read(NEWEST_OF, [self.id.as_str(), key])?;
        }
        self.touch()?;
        let next = epoch + 1;
        let raised = match epoch {
            0 => self.run(FIRST, params![key, next])?,
            _ => self.run(RAISE, params![key, next, epoch])?,
        };
        if raised != 1 {
            return Err("the epoch was raised by another".into());
        }
        let life = self.who.token.life.0;
        self.run(HOLD, params![key, next, self.id, life, clock::wall().0])?;
        self.log_event("claim.granted", key, next, "it was free")?;
        self.commit_change()?;
        Ok(true)
    }

    pub fn release(&self, key: &str) -> Result<(), Failed> {
        self.begin_writing()?;
        self.caller()?;
        let found = self.read(KEY, [key])?;
        let epoch = found.first().and_then(|row| number(row.get(1)));
        let epoch = epoch.ok_or("the key has no row")?;
        if self.run(END, params![key, epoch, clock::wall().0])? != 1 {
            return Err("the hold was not open".into());
        }
        self.log_event("claim.released", key, epoch, "released by its holder")?;
        self.commit_change()
    }
}

/// Opens a database with the settings that tenure has.
pub fn connect(file: &Path) -> Result<Connection, Failed> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let conn = Connection::open_with_flags(file, flags)?;
    conn.busy_timeout(BUSY)?;
    conn.set_prepared_statement_cache_capacity(64);
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, true)?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    // Or else SQLite parses most statements anew whenever a value is bound.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    conn.execute_batch(
        "PRAGMA cell_size_check = ON; PRAGMA temp_store = MEMORY; \
         PRAGMA wal_autocheckpoint = 0; PRAGMA journal_size_limit = 1048576",
    )?;
    Ok(conn)
}

/// Copies the log of a database into it and truncates the log, once it has `MAX_PAGES` pages.
pub fn keep_log_short(conn: &Connection, file: &Path) -> Result<(), Failed> {
    if log_pages(file) < MAX_PAGES {
        return Ok(());
    }
    let used = conn.query_row("PRAGMA wal_checkpoint(NOOP)", [], |row| {
        row.get::<_, i64>(1)
    })?;
    if used >= i64::try_from(MAX_PAGES)? {
        conn.busy_timeout(Duration::ZERO)?;
        let cut = conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        conn.busy_timeout(BUSY)?;
        // Where another process is in the way, the next commit tries again.
        drop(cut);
    }
    Ok(())
}

fn number(cell: Option<&Value>) -> Option<i64> {
    match cell {
        Some(Value::Integer(number)) => Some(*number),
        _ => None,
    }
}

impl Contender for Bare {
    fn claim(&mut self, key: &str) -> Result<bool, Failed> {
        Bare::claim(self, key)
    }

    fn release(&mut self, key: &str) -> Result<(), Failed> {
        Bare::release(self, key)
    }
}
