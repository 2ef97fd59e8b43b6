//! Notices: told once.

use tenure_core::id::Epoch;
use tenure_core::notice::{Notice, NoticeKind};
use tenure_core::store::{Mode, Store};
use tenure_core::time::Timestamp;

use super::sample::*;

pub fn notices_are_taken_once_and_in_order(store: &mut dyn Store) {
    with_sessions(store, [1, 2]);
    let full = Notice {
        kind: NoticeKind::Lost,
        key: Some("wp:1".into()),
        epoch: Some(Epoch(1 << 33)),
        from: Some(id(2)),
        at: Timestamp(EPOCH - 9),
        ..notice(1, "first")
    };
    write(store, |tx| {
        assert!(!tx.has_notices(id(1)).unwrap());
        assert_eq!(tx.take_notices(id(1), Timestamp(EPOCH)).unwrap(), []);
        tx.add_notice(&full).unwrap();
        tx.add_notice(&notice(1, "second")).unwrap();
        tx.add_notice(&notice(2, "other")).unwrap();
    });
    write(store, |tx| {
        assert!(tx.has_notices(id(1)).unwrap());
        let taken = tx.take_notices(id(1), Timestamp(EPOCH + 1)).unwrap();
        assert_eq!(taken, [full, notice(1, "second")]);
        assert!(!tx.has_notices(id(1)).unwrap());
        tx.add_notice(&notice(1, "third")).unwrap();
    });
    write(store, |tx| {
        let taken = tx.take_notices(id(1), Timestamp(EPOCH + 2)).unwrap();
        assert_eq!(taken, [notice(1, "third")]);
        assert!(tx.has_notices(id(2)).unwrap(), "another session's stay");
    });
}

pub fn a_notice_that_was_not_committed_as_taken_comes_again(store: &mut dyn Store) {
    with_sessions(store, [1]);
    write(store, |tx| tx.add_notice(&notice(1, "hear")).unwrap());
    for _ in 0..2 {
        let mut tx = store.begin(Mode::Write).unwrap();
        let taken = tx.take_notices(id(1), Timestamp(EPOCH)).unwrap();
        assert_eq!(taken, [notice(1, "hear")]);
    }
}
