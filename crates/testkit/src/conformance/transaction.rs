//! Transactions: all or nothing.

use tenure_core::id::{HostId, RunId};
use tenure_core::store::{Lock, Store, TxMode};
use tenure_core::time::Timestamp;

use super::sample::*;

pub fn a_dropped_transaction_leaves_nothing(store: &mut dyn Store) {
    with_sessions(store, [1]);
    {
        let mut tx = store.begin(TxMode::Write).unwrap();
        tx.insert_session(&session(2)).unwrap();
        grant(&mut *tx, &hold("wp:1", 1, 1));
        tx.append_event(&event(2, "never"), Timestamp(EPOCH))
            .unwrap();
        tx.add_notice(&notice(1, "never")).unwrap();
        assert!(
            tx.session(id(2)).unwrap().is_some(),
            "it sees its own changes"
        );
    }
    read(store, |tx| {
        assert_eq!(tx.session(id(2)).unwrap(), None);
        assert_eq!(tx.claim(&key("wp:1")).unwrap(), None);
        assert_eq!(tx.events(&Default::default()).unwrap(), []);
        assert!(!tx.has_notices(id(1)).unwrap());
    });
}

pub fn a_commit_lasts(store: &mut dyn Store) {
    with_sessions(store, [1]);
    read(store, |tx| assert!(tx.session(id(1)).unwrap().is_some()));
    write(store, |tx| {
        tx.lock(&Lock::Session(id(1))).unwrap();
        assert!(tx.session(id(1)).unwrap().is_some());
    });
}

pub fn everything_can_be_locked_in_order_before_it_exists_and_again(store: &mut dyn Store) {
    let locks = [
        Lock::Paths("acme/web".into()),
        Lock::Key(key("wp:1")),
        Lock::Conversation(key("wp:1")),
        Lock::Queue,
        Lock::Run(RunId::mint([1; 16])),
        Lock::Park(agent(), HostId::new("host")),
        Lock::Mission("m".into()),
        Lock::Native(agent(), native("ses_1")),
        Lock::Transcript("/t/1.jsonl".into()),
        Lock::Session(id(1)),
        Lock::Ticket(tenure_core::id::Ticket(1)),
    ];
    for _ in 0..2 {
        write(store, |tx| {
            for lock in locks.iter().chain(&locks) {
                tx.lock(lock).unwrap();
            }
            tx.now().unwrap();
        });
    }
    read(store, |tx| {
        assert_eq!(tx.claim(&key("wp:1")).unwrap(), None);
        assert_eq!(tx.session(id(1)).unwrap(), None);
        assert_eq!(tx.mission("m").unwrap(), None);
    });
}

pub fn a_failed_insert_leaves_the_transaction_usable(store: &mut dyn Store) {
    with_sessions(store, [1]);
    conflict(store, |tx| tx.insert_session(&session(1)));
    with_sessions(store, [2]);
    read(store, |tx| {
        assert_eq!(tx.list_sessions(&Default::default()).unwrap().len(), 2);
    });
}

pub fn a_beat_commits_too(store: &mut dyn Store) {
    with_sessions(store, [1]);
    let mut tx = store.begin(TxMode::Beat).unwrap();
    assert!(
        tx.touch_session(token(1), Timestamp(EPOCH + 9), &lease(60_009), None, None)
            .unwrap()
    );
    tx.commit().unwrap();
    with_sessions(store, [2]);
    read(store, |tx| {
        let seen = tx.session(id(1)).unwrap().unwrap();
        assert_eq!(
            (seen.seen_at, seen.lease),
            (Timestamp(EPOCH + 9), lease(60_009))
        );
    });
}

pub fn the_clock_is_the_stores(store: &mut dyn Store) {
    read(store, |tx| {
        let first = tx.now().unwrap();
        let second = tx.now().unwrap();
        assert_eq!(first.era, second.era);
        assert!(
            second.steady >= first.steady,
            "a steady clock never goes back"
        );
    });
}
