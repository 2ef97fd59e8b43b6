//! What a year leaves behind: the size of a store whose past is forgotten, day by day, after the 30 days of `tenure gc`.
//!
//! A day has 144 sessions that claim an item, do something, give it back and end; in a year these record a million events.
//! The size is that of the database without its log. What stays is the last 30 days, and the epoch of every key.

use std::time::Duration;

use tenure_core::event::{EventKind, NewEvent};
use tenure_core::store::{Store, TxMode};
use tenure_core::time::Timestamp;
use tenure_store::sqlite::SqliteStore;
use tenure_testkit::seed::{self, Seed};

use super::Bench;
use crate::Failed;
use crate::place::{BenchStore, answered};
use crate::report::{Budget, Measurement, Unit};
use crate::seeded::cut_log;

const DAYS: u32 = 365;
/// How many sessions a day has: one in ten minutes, so every 20th of the seed's.
const SESSIONS: u32 = 144;
const STEP: u32 = 20;
/// How many events a session has besides those of the seed.
const MORE_EVENTS: i64 = 15;
/// What `tenure gc` keeps.
const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);
const KEPT_DAYS: u32 = 30;

/// The last 30 days are 82,000 events and 4,320 sessions.
const BUDGET: Budget = Budget::AtMost(40.0);
/// How much larger the year is than its last 30 days: by the keys, and by what is not filled again yet.
const GROWTH: Budget = Budget::AtMost(1.5);

pub(super) fn rows(bench: &Bench) -> Result<Vec<Measurement>, Failed> {
    let place = BenchStore::open(&bench.dir("year")?)?;
    let observer = place.observer();
    let seed = Seed {
        sessions: DAYS * SESSIONS * STEP,
        open: 0,
        host: observer.host.clone(),
        boot: observer.boot.clone(),
        pid_ns: observer.pid_ns,
    };
    let days = if bench.quick { DAYS / 4 } else { DAYS };
    let mut store = place.store()?;
    let mut events = 0;
    let mut month = 0;
    for day in 0..days {
        if day % 73 == 0 {
            bench.say(&format!("year: day {day}"));
        }
        events += live(&mut store, &seed, day)?;
        forget(
            &place,
            &mut store,
            seed::started((day + 1) * SESSIONS * STEP),
        )?;
        if day + 1 == KEPT_DAYS {
            month = size(&place)?;
        }
    }
    drop(store);
    let year = size(&place)?;
    let mut bytes = Measurement {
        group: "year",
        what: format!("the store after {days} days, {events} events, with 30 days kept"),
        ours: format!("{year} bytes"),
        baseline: String::new(),
        number: mebibytes(year),
        unit: Unit::Mebibytes,
        budget: BUDGET,
        more: serde_json::Map::new(),
    };
    bytes.add("events", events);
    bytes.add("bytes", year);
    let mut growth = Measurement {
        what: format!("the store after {days} days : after {KEPT_DAYS} days"),
        baseline: format!("{month} bytes"),
        number: mebibytes(year) / mebibytes(month),
        unit: Unit::Times,
        budget: GROWTH,
        ..bytes.clone()
    };
    growth.add("month_bytes", month);
    Ok(vec![bytes, growth])
}

/// Writes what happens in a day; returns how many events it has.
fn live(store: &mut SqliteStore, seed: &Seed, day: u32) -> Result<i64, Failed> {
    let mut tx = store.begin(TxMode::Beat)?;
    let before = tx.count_events(&tenure_core::event::EventFilter::default())?;
    for n in (day * SESSIONS..(day + 1) * SESSIONS).map(|n| n * STEP) {
        seed.add(tx.as_mut(), n)?;
        for more in 0..MORE_EVENTS {
            let event = NewEvent {
                kind: EventKind::Changed,
                session: Some(seed::id(n)),
                actor: None,
                key: None,
                epoch: None,
                mechanism: "hook",
                evidence: format!("title: work package {n}, step {more}"),
                reason: None,
            };
            let at = Timestamp(seed::started(n).0 + 1_000 * more);
            tx.append_event(&event, at)?;
        }
    }
    let after = tx.count_events(&tenure_core::event::EventFilter::default())?;
    tx.commit()?;
    Ok(i64::try_from(after - before)?)
}

/// Forgets what `tenure gc` forgets at this time.
fn forget(place: &BenchStore, store: &mut SqliteStore, now: Timestamp) -> Result<(), Failed> {
    let before = now.minus(KEPT);
    let mut service = place.service(store);
    while answered(service.forget_events_before(Some(before)))? {}
    let mut after = None;
    loop {
        after = answered(service.forget_sessions(before, after, true))?.next;
        if after.is_none() {
            return Ok(());
        }
    }
}

fn size(place: &BenchStore) -> Result<u64, Failed> {
    cut_log(place)?;
    Ok(fs_err::metadata(place.database())?.len())
}

#[expect(clippy::cast_precision_loss, reason = "a size that people read")]
fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / (1024.0 * 1024.0)
}
