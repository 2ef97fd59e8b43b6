//! Counts: what a list leaves out because of its limit.

use tenure_core::event::EventFilter;
use tenure_core::store::{ClaimFilter, SessionFilter, Store, TxMode};
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
    let mut tx = store.begin(TxMode::Read).unwrap();
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
    let some = SessionFilter {
        count_to: 2,
        ..sessions
    };
    assert_eq!(tx.count_sessions(&some).unwrap(), 2, "counting may stop");
    let some = EventFilter {
        count_to: 2,
        ..EventFilter::default()
    };
    assert_eq!(tx.count_events(&some).unwrap(), 2);
}

pub fn the_first_event_of_a_list_is_found_without_the_list(store: &mut dyn Store) {
    with_sessions(store, [1, 2]);
    write(store, |tx| {
        for n in 1..=6 {
            let at = Timestamp(EPOCH + i64::from(n));
            tx.append_event(&event(1 + n % 2, "granted"), at).unwrap();
        }
    });
    let mut tx = store.begin(TxMode::Read).unwrap();
    let all = EventFilter::default();
    let newest = EventFilter {
        limit: 3,
        ..all.clone()
    };
    let of_one = EventFilter {
        session: Some(id(2)),
        limit: 2,
        ..all.clone()
    };
    let lately = EventFilter {
        since: Some(Timestamp(EPOCH + 5)),
        ..all.clone()
    };
    let after = EventFilter {
        after: tx.first_event(&newest).unwrap(),
        limit: 1,
        ..all.clone()
    };
    let nothing = EventFilter {
        since: Some(Timestamp(EPOCH + 100)),
        ..all.clone()
    };
    for filter in [all, newest, of_one, lately, after, nothing] {
        let listed = tx.events(&filter).unwrap();
        let first = listed.first().map(|event| event.cursor);
        assert_eq!(tx.first_event(&filter).unwrap(), first, "{filter:?}");
    }
}
