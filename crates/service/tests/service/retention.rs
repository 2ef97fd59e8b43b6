//! How long the log is stored, and what a reader finds who comes back later.

use std::time::Duration;

use tenure_core::event::{EventFilter, KEPT_FOR};
use tenure_core::id::Cursor;

use crate::Rig;

const DAY: Duration = Duration::from_secs(24 * 3600);

#[test]
fn events_are_stored_for_90_days_and_a_late_reader_gets_everything_that_there_is() {
    let mut rig = Rig::new();
    let ann = rig.here(&[10]);
    rig.register(&ann, "a");
    rig.claim(&ann, "wp:1").unwrap();
    let all = EventFilter {
        limit: 50,
        ..EventFilter::default()
    };
    let before = rig.call(&ann, |service| service.log(&all, None)).unwrap();
    let newest = Cursor(before.items.last().unwrap().cursor);
    rig.clock.advance(KEPT_FOR - DAY);
    rig.claim(&ann, "wp:2").unwrap();
    let more = rig.call(&ann, |service| service.forget_events()).unwrap();
    let stored = rig.call(&ann, |service| service.log(&all, None)).unwrap();
    assert!(!more && stored.items.len() > before.items.len());
    rig.clock.advance(2 * DAY);
    let more = rig.call(&ann, |service| service.forget_events()).unwrap();
    assert!(!more);
    let stored = rig.call(&ann, |service| service.log(&all, None)).unwrap();
    let oldest = Cursor(stored.items[0].cursor);
    assert!(oldest > newest, "{stored:?}");
    // A reader that stopped before the newest of them missed some, and one that read all of them none.
    let late = Cursor(newest.0 - 1);
    let mut missed = |read: Cursor| {
        let after = EventFilter {
            after: Some(read),
            ..all.clone()
        };
        let start = rig.call(&ann, |service| service.log_start(&after, None));
        start.unwrap().oldest
    };
    assert_eq!(missed(late), Some(oldest));
    for read in [Cursor(0), newest, oldest] {
        assert_eq!(missed(read), None, "{read:?}");
    }
    // So all sessions are written again for a mirror that stopped there, even those without a newer event.
    let bob = rig.here(&[20]);
    let bobs = rig.register(&bob, "b").session.id;
    let changed = rig.call(&ann, |service| service.changed_sessions(newest));
    assert_eq!(changed.unwrap().len(), 2);
    rig.clock.advance(KEPT_FOR * 2);
    rig.claim(&ann, "wp:3").unwrap();
    rig.call(&ann, |service| service.forget_events()).unwrap();
    let changed = rig.call(&ann, |service| service.changed_sessions(newest));
    let changed: Vec<String> = changed.unwrap().iter().map(ToString::to_string).collect();
    assert!(changed.contains(&bobs), "{changed:?}");
}
