//! The event log.

use tenure_core::event::{Event, EventFilter, EventKind, NewEvent};
use tenure_core::id::{Cursor, Epoch};
use tenure_core::store::Store;
use tenure_core::time::Timestamp;

use super::sample::*;

/// Appends events with these evidences, one millisecond apart; returns the cursors of the whole log.
fn log(store: &mut dyn Store, evidences: &[&str]) -> Vec<Cursor> {
    write(store, |tx| {
        for (at, text) in (0..).zip(evidences) {
            tx.append_event(&event(1, text), Timestamp(EPOCH + at))
                .unwrap();
        }
    });
    cursors(store)
}

fn cursors(store: &mut dyn Store) -> Vec<Cursor> {
    read(store, |tx| {
        let events = tx.events(&EventFilter::default()).unwrap();
        events.into_iter().map(|event| event.cursor).collect()
    })
}

fn evidences(store: &mut dyn Store, filter: &EventFilter) -> Vec<String> {
    read(store, |tx| {
        let events = tx.events(filter).unwrap();
        events.into_iter().map(|event| event.evidence).collect()
    })
}

pub fn events_are_read_in_the_order_of_the_log(store: &mut dyn Store) {
    let cursors = log(store, &["a", "b", "c"]);
    assert!(cursors.is_sorted_by(|before, after| before < after));
    assert_eq!(evidences(store, &EventFilter::default()), ["a", "b", "c"]);
    // A wall clock that went back does not change the order.
    write(store, |tx| {
        tx.append_event(&event(1, "d"), Timestamp(EPOCH - 999))
            .unwrap();
    });
    assert_eq!(
        evidences(store, &EventFilter::default()),
        ["a", "b", "c", "d"]
    );
}

pub fn an_event_reads_back_with_every_field(store: &mut dyn Store) {
    let full = NewEvent {
        kind: EventKind::Taken,
        actor: Some(id(2)),
        key: Some(key("wp:1")),
        epoch: Some(Epoch(1 << 34)),
        mechanism: "takeover",
        reason: Some("urgent – ü".into()),
        ..event(1, "seen")
    };
    let bare = NewEvent {
        session: None,
        ..event(1, "")
    };
    write(store, |tx| {
        for event in [&full, &bare] {
            tx.append_event(event, Timestamp(EPOCH)).unwrap();
        }
    });
    let cursors = cursors(store);
    let expected = |cursor, event: &NewEvent| Event {
        cursor,
        at: Timestamp(EPOCH),
        kind: event.kind.as_str().into(),
        session: event.session,
        actor: event.actor,
        key: event.key.as_ref().map(ToString::to_string),
        epoch: event.epoch,
        mechanism: event.mechanism.into(),
        evidence: event.evidence.clone(),
        reason: event.reason.clone(),
    };
    read(store, |tx| {
        let events = tx.events(&EventFilter::default()).unwrap();
        assert_eq!(
            events,
            [expected(cursors[0], &full), expected(cursors[1], &bare)]
        );
    });
}

pub fn a_cursor_reads_on_from_its_place(store: &mut dyn Store) {
    let cursors = log(store, &["a", "b", "c", "d"]);
    let mut after = |cursor, limit| {
        let filter = EventFilter {
            after: Some(cursor),
            limit,
            ..EventFilter::default()
        };
        evidences(store, &filter)
    };
    assert_eq!(after(cursors[0], 2), ["b", "c"], "the oldest after it");
    assert_eq!(after(cursors[2], 2), ["d"]);
    assert_eq!(after(cursors[3], 2), [""; 0]);
    assert_eq!(after(Cursor(u64::MAX), 2), [""; 0]);
    assert_eq!(after(Cursor(0), 0), ["a", "b", "c", "d"], "zero means all");
}

pub fn events_are_filtered_by_key_session_and_time(store: &mut dyn Store) {
    let about = |n, name: Option<&str>, by: Option<u32>, text: &str| NewEvent {
        key: name.map(key),
        actor: by.map(id),
        ..event(n, text)
    };
    write(store, |tx| {
        let log = [
            about(1, Some("wp:1"), None, "a"),
            about(2, Some("wp:1"), Some(1), "b"),
            about(2, Some("wp:2"), None, "c"),
            about(1, None, Some(1), "d"),
            about(3, None, None, "e"),
        ];
        for (at, event) in (0..).zip(&log) {
            tx.append_event(event, Timestamp(EPOCH + at)).unwrap();
        }
    });
    let by_key = EventFilter {
        key: Some(key("wp:1")),
        ..EventFilter::default()
    };
    assert_eq!(evidences(store, &by_key), ["a", "b"]);
    let by_session = EventFilter {
        session: Some(id(1)),
        ..EventFilter::default()
    };
    assert_eq!(
        evidences(store, &by_session),
        ["a", "b", "d"],
        "about or by it, once"
    );
    let both = EventFilter {
        session: Some(id(2)),
        ..by_key.clone()
    };
    assert_eq!(evidences(store, &both), ["b"]);
    let since = |filter| EventFilter {
        since: Some(Timestamp(EPOCH + 1)),
        ..filter
    };
    assert_eq!(evidences(store, &since(by_key)), ["b"]);
    assert_eq!(evidences(store, &since(by_session)), ["b", "d"]);
    assert_eq!(
        evidences(store, &since(EventFilter::default())),
        ["b", "c", "d", "e"]
    );
    let of_kind = |kind| EventFilter {
        kind: Some(kind),
        ..EventFilter::default()
    };
    let same = event(1, "").kind;
    let all = evidences(store, &EventFilter::default());
    assert_eq!(evidences(store, &of_kind(same)), all);
    assert_eq!(evidences(store, &of_kind(EventKind::Twin)), [""; 0]);
    read(store, |tx| {
        assert_eq!(tx.count_events(&of_kind(same)).unwrap(), all.len());
        assert_eq!(tx.count_events(&of_kind(EventKind::Twin)).unwrap(), 0);
    });
    let onward = EventFilter {
        after: Some(Cursor(0)),
        ..since(EventFilter::default())
    };
    assert_eq!(evidences(store, &onward), ["b", "c", "d", "e"]);
}

pub fn the_newest_are_kept_when_there_is_a_limit(store: &mut dyn Store) {
    log(store, &["a", "b", "c", "d"]);
    let two = EventFilter {
        limit: 2,
        ..EventFilter::default()
    };
    assert_eq!(evidences(store, &two), ["c", "d"]);
    let of_a_session = EventFilter {
        session: Some(id(1)),
        ..two.clone()
    };
    assert_eq!(evidences(store, &of_a_session), ["c", "d"]);
    let since = EventFilter {
        since: Some(Timestamp(EPOCH + 1)),
        ..two
    };
    assert_eq!(evidences(store, &since), ["c", "d"]);
}

pub fn old_events_are_removed_from_the_start_and_the_newest_stays(store: &mut dyn Store) {
    let forget = |store: &mut dyn Store, before: i64, limit: usize| {
        write(store, |tx| {
            tx.forget_events(Timestamp(EPOCH + before), limit).unwrap()
        })
    };
    let oldest = |store: &mut dyn Store| read(store, |tx| tx.oldest_event().unwrap());
    assert_eq!((forget(store, 100, 10), oldest(store)), (0, None));
    let cursors = log(store, &["a", "b", "c", "d", "e"]);
    assert_eq!(oldest(store), Some(cursors[0]));
    // One that is as old as the limit says stays.
    assert_eq!(forget(store, 0, 10), 0);
    assert_eq!(forget(store, 3, 2), 2);
    assert_eq!(evidences(store, &EventFilter::default()), ["c", "d", "e"]);
    assert_eq!(oldest(store), Some(cursors[2]));
    assert_eq!(forget(store, 3, 2), 1);
    // What follows an event that stays is not removed, so that the log has no holes.
    write(store, |tx| {
        tx.append_event(&event(1, "f"), Timestamp(EPOCH - 999))
            .unwrap();
        tx.append_event(&event(1, "g"), Timestamp(EPOCH + 9))
            .unwrap();
    });
    assert_eq!(forget(store, 3, 10), 0);
    assert_eq!(forget(store, 100, 10), 3);
    assert_eq!(evidences(store, &EventFilter::default()), ["g"]);
    // A reader of the first event goes on behind what was removed, and positions are never used again.
    let later = EventFilter {
        after: Some(cursors[0]),
        ..EventFilter::default()
    };
    let newest = log(store, &["h"])[1];
    assert_eq!(evidences(store, &later), ["g", "h"]);
    assert!(newest > cursors[4]);
}
