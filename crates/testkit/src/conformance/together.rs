//! What several users of one store may rely on. Each case gets a function that opens the same store
//! again.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use tenure_core::event::EventFilter;
use tenure_core::id::Cursor;
use tenure_core::store::{Lock, Store, StoreError, Tx, TxMode};
use tenure_core::time::Timestamp;

use super::sample::*;

/// How many events each writer appends.
const EVENTS: u32 = 40;

/// Cursors are in commit order: a reader that continues from the last cursor misses nothing,
/// however its reads fall between the writers' transactions.
pub fn a_reader_that_goes_on_from_its_cursor_misses_no_event(
    open: &(dyn Fn() -> Box<dyn Store> + Sync),
) {
    let writers = [1, 2];
    with_sessions(&mut *open(), writers);
    let mut read = Vec::new();
    std::thread::scope(|scope| {
        let running: Vec<_> = writers
            .map(|n| {
                scope.spawn(move || {
                    let mut store = open();
                    for turn in 0..EVENTS {
                        write(&mut *store, |tx| {
                            for part in ["first", "second"] {
                                let said = event(n, &format!("{turn} {part}"));
                                tx.append_event(&said, Timestamp(EPOCH)).unwrap();
                            }
                        });
                    }
                })
            })
            .into_iter()
            .collect();
        let mut store = open();
        let mut cursor = Cursor(0);
        loop {
            let done = running
                .iter()
                .all(std::thread::ScopedJoinHandle::is_finished);
            let after = EventFilter {
                after: Some(cursor),
                ..EventFilter::default()
            };
            let found = super::sample::read(&mut *store, |tx| tx.events(&after).unwrap());
            cursor = found.last().map_or(cursor, |event| event.cursor);
            read.extend(found);
            if done {
                break;
            }
        }
    });
    assert!(read.is_sorted_by(|one, other| one.cursor < other.cursor));
    for n in writers {
        let said = read.iter().filter(|event| event.session == Some(id(n)));
        let said: Vec<&str> = said.map(|event| event.evidence.as_str()).collect();
        let all: Vec<String> = (0..EVENTS)
            .flat_map(|turn| ["first", "second"].map(|part| format!("{turn} {part}")))
            .collect();
        assert_eq!(said, all, "writer {n}");
    }
}

/// A caller with a deadline gets the error that the store is busy; the next caller without one
/// waits as usual.
pub fn a_transaction_is_begun_by_its_deadline_or_not_at_all(
    open: &(dyn Fn() -> Box<dyn Store> + Sync),
) {
    /// Less than any store waits without a deadline.
    const BRIEF: Duration = Duration::from_secs(1);
    let (mut one, mut other) = (open(), open());
    with_sessions(&mut *one, [1]);
    // Both lock the same session, so that every store has to wait.
    let locks = |tx: &mut dyn Tx| {
        tx.lock(&Lock::Session(id(1)))?;
        tx.now().map(|_| ())
    };
    // A busy machine may be late for any deadline, but not every time.
    let is_in_time = (0..10).any(|_| {
        let mut tx = one.begin(TxMode::Write).unwrap();
        locks(&mut *tx).unwrap();
        let begun = Instant::now();
        let limit = Some(begun + Duration::from_millis(50));
        let waited = other.begin_until(TxMode::Write, limit);
        match waited.and_then(|mut tx| locks(&mut *tx)) {
            Err(StoreError::Busy { .. }) => begun.elapsed() < BRIEF,
            // A server ends a transaction that does nothing for long.
            Ok(()) => false,
            Err(error) => panic!("{error:?}"),
        }
    });
    assert!(is_in_time, "it waits for longer than its deadline");
    // The next transaction without a limit waits for the one before it.
    let (begun, has_begun) = mpsc::channel::<()>();
    let (_kept, never) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut first = open();
            let mut tx = first.begin(TxMode::Write).unwrap();
            tx.insert_session(&session(3)).unwrap();
            begun.send(()).unwrap();
            assert!(never.recv_timeout(Duration::from_millis(200)).is_err());
            tx.commit().unwrap();
        });
        has_begun.recv().unwrap();
        with_sessions(&mut *other, [4]);
    });
}
