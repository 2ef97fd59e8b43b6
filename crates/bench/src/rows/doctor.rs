//! `tenure doctor` where nothing is wrong, in a store of a hundred thousand sessions, all of them over.
//!
//! Most of it is SQLite, which reads the whole database: so it is compared with SQLite doing that alone.

use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags};
use tenure_testkit::seed::{Seed, seed};

use super::Bench;
use crate::Failed;
use crate::place::BenchStore;
use crate::program::Surroundings;
use crate::report::{Budget, Measurement};
use crate::sample::Sample;
use crate::seeded::cut_log;

const SESSIONS: u32 = 100_000;
const BUDGET: Budget = Budget::AtMost(1.5);

pub(super) fn rows(bench: &Bench) -> Result<Vec<Measurement>, Failed> {
    let dir = bench.dir("doctor")?;
    let place = BenchStore::open(&dir.join("state"))?;
    let observer = place.observer();
    let all = Seed {
        sessions: SESSIONS,
        open: 0,
        host: observer.host.clone(),
        boot: observer.boot.clone(),
        pid_ns: observer.pid_ns,
    };
    let mut store = place.store()?;
    seed(&mut store, &all)?;
    drop(store);
    cut_log(&place)?;
    let around = Surroundings::make(&dir, place.dir())?;
    // The first one removes what is older than the log is kept.
    let call = around.call(&bench.programs.tenure, ["doctor"]);
    call.run()?;
    cut_log(&place)?;
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..bench.times(10) {
        ours.push(call.timed()?);
        bare.push(checked(&place)?);
    }
    let what = "tenure doctor, 100,000 healthy sessions : SQLite's own checks of the same store";
    let (ours, bare) = (Sample::of(ours), Sample::of(bare));
    Ok(vec![Measurement::ratio(
        "doctor", what, &ours, &bare, BUDGET,
    )])
}

/// How long SQLite takes to check the store, on a connection of its own.
fn checked(place: &BenchStore) -> Result<Duration, Failed> {
    let began = Instant::now();
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(place.database(), flags)?;
    let whole: String = conn.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
    let orphans = "SELECT count(*) FROM pragma_foreign_key_check";
    let orphans: i64 = conn.query_row(orphans, [], |row| row.get(0))?;
    if (whole.as_str(), orphans) != ("ok", 0) {
        return Err(format!("the store is damaged: {whole}, {orphans} orphans").into());
    }
    Ok(began.elapsed())
}
