//! Counts: what a list leaves out because of its limit.

use tenure_core::event::EventFilter;
use tenure_core::store::{ClaimFilter, Mode, SessionFilter, Store};
use tenure_core::time::Timestamp;

use super::sample::*;

pub fn what_a_filter_fits_is_counted_whatever_its_limit(store: &mut dyn Store) {
    with_sessions(store, [1, 2, 3]);
    write(store, |tx| {
        for n in 1..=3 {
            grant(tx, &hold(&format!("wp:{n}"), 1, n));
            tx.append_event(&event(n, "granted"), Timestamp(EPOCH))
                .unwrap();
        }
    });
    let mut tx = store.begin(Mode::Read).unwrap();
    let sessions = SessionFilter {
        limit: 2,
        ..SessionFilter::default()
    };
    assert_eq!(tx.list_sessions(&sessions).unwrap().len(), 2);
    assert_eq!(tx.count_sessions(&sessions).unwrap(), 3);
    let claims = ClaimFilter {
        limit: 1,
        ..ClaimFilter::default()
    };
    assert_eq!(tx.list_claims(&claims).unwrap().len(), 1);
    assert_eq!(tx.count_claims(&claims).unwrap(), 3);
    let own = ClaimFilter {
        session: Some(id(2)),
        ..claims
    };
    assert_eq!(tx.count_claims(&own).unwrap(), 1);
    let events = EventFilter {
        limit: 1,
        ..EventFilter::default()
    };
    let all = EventFilter::default();
    let every = tx.events(&EventFilter { limit: 0, ..all }).unwrap().len();
    assert_eq!(tx.events(&events).unwrap().len(), 1);
    assert_eq!(tx.count_events(&events).unwrap(), every);
    let of_one = EventFilter {
        session: Some(id(2)),
        ..events
    };
    assert_eq!(tx.count_events(&of_one).unwrap(), 1);
}
