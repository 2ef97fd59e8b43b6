//! Notices: kept until they are marked as delivered.

use tenure_core::id::{Epoch, SessionToken};
use tenure_core::notice::{Notice, NoticeId, NoticeKind, Pending};
use tenure_core::store::{Store, Tx, TxMode};
use tenure_core::time::Timestamp;
use tenure_core::woken::WakeSender;

use super::sample::*;

/// The pending notices of the `n`th session without their ids, and the ids.
fn waiting(tx: &mut dyn Tx, n: u32, limit: usize) -> (Pending, Vec<NoticeId>) {
    let mut pending = tx.pending_notices(id(n), limit).unwrap();
    let ids = pending.first.iter_mut().map(|notice| notice.id.take());
    let ids = ids.map(|id| id.expect("a kept notice has a place"));
    let ids = ids.collect();
    (pending, ids)
}

fn all(first: impl Into<Vec<Notice>>) -> Pending {
    Pending {
        first: first.into(),
        more: 0,
    }
}

pub fn notices_are_kept_until_they_are_told(store: &mut dyn Store) {
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
        assert_eq!(waiting(tx, 1, 0).0, all([]));
        tx.add_notice(&full).unwrap();
        tx.add_notice(&notice(1, "second")).unwrap();
        tx.add_notice(&notice(2, "other")).unwrap();
    });
    for _ in 0..2 {
        write(store, |tx| {
            assert!(tx.has_notices(id(1)).unwrap());
            let (found, _) = waiting(tx, 1, 0);
            assert_eq!(found, all([full.clone(), notice(1, "second")]));
        });
    }
    write(store, |tx| {
        let (_, ids) = waiting(tx, 1, 0);
        tx.mark_delivered(id(1), &ids[..1], Timestamp(EPOCH + 1))
            .unwrap();
        let (left, _) = waiting(tx, 1, 0);
        assert_eq!(left, all([notice(1, "second")]));
        let (_, others) = waiting(tx, 2, 0);
        tx.mark_delivered(id(1), &others, Timestamp(EPOCH + 1))
            .unwrap();
        assert!(tx.has_notices(id(2)).unwrap(), "another session's stay");
        tx.mark_delivered(id(1), &ids, Timestamp(EPOCH + 2))
            .unwrap();
        tx.mark_delivered(id(1), &[], Timestamp(EPOCH + 2)).unwrap();
        assert!(!tx.has_notices(id(1)).unwrap());
    });
}

pub fn messages_that_started_turns_stay_pending(store: &mut dyn Store) {
    with_sessions(store, [1, 2]);
    let message = |n, wakes| Notice {
        wakes,
        ..notice(n, "wake")
    };
    let person = message(1, Some(WakeSender::Person));
    write(store, |tx| {
        for told in [
            &person,
            &message(1, None),
            &message(2, Some(WakeSender::Agent)),
        ] {
            tx.add_notice(told).unwrap();
        }
        let (found, ids) = waiting(tx, 1, 0);
        assert_eq!(found, all([person.clone(), message(1, None)]));
        tx.take_to_wake(id(1), &ids, Timestamp(EPOCH + 5)).unwrap();
        let (_, others) = waiting(tx, 2, 0);
        tx.take_to_wake(id(1), &others, Timestamp(EPOCH + 6))
            .unwrap();
    });
    write(store, |tx| {
        let (found, ids) = waiting(tx, 1, 0);
        let woke_at = Some(Timestamp(EPOCH + 5));
        assert!(found.iter().all(|one| one.woke_at == woke_at), "{found:?}");
        let (others, _) = waiting(tx, 2, 0);
        assert_eq!(others[0].woke_at, None, "another session's");
        tx.mark_delivered(id(1), &ids, Timestamp(EPOCH + 7))
            .unwrap();
        assert!(!tx.has_notices(id(1)).unwrap());
    });
}

pub fn losses_come_first_and_what_does_not_fit_is_counted(store: &mut dyn Store) {
    with_sessions(store, [1]);
    let lost = Notice {
        kind: NoticeKind::Lost,
        ..notice(1, "lost")
    };
    write(store, |tx| {
        for text in ["one", "two", "three"] {
            tx.add_notice(&notice(1, text)).unwrap();
        }
        tx.add_notice(&lost).unwrap();
    });
    let mut tx = store.begin(TxMode::Read).unwrap();
    let (found, _) = waiting(tx.as_mut(), 1, 2);
    assert_eq!(found.first, [lost, notice(1, "one")]);
    assert_eq!(found.more, 2);
}

pub fn a_notice_whose_delivery_was_not_committed_comes_again(store: &mut dyn Store) {
    with_sessions(store, [1]);
    write(store, |tx| tx.add_notice(&notice(1, "hear")).unwrap());
    for _ in 0..2 {
        let mut tx = store.begin(TxMode::Write).unwrap();
        let (found, ids) = waiting(tx.as_mut(), 1, 0);
        assert_eq!(found, all([notice(1, "hear")]));
        tx.mark_delivered(id(1), &ids, Timestamp(EPOCH)).unwrap();
    }
}

pub fn a_model_channel_is_of_one_life(store: &mut dyn Store) {
    with_sessions(store, [1, 2]);
    let next = SessionToken {
        life: token(1).life.next(),
        ..token(1)
    };
    write(store, |tx| {
        assert!(!tx.has_model_channel(token(1)).unwrap());
        tx.note_model_channel(token(1)).unwrap();
        tx.note_model_channel(token(1)).unwrap();
        assert!(tx.has_model_channel(token(1)).unwrap());
        assert!(!tx.has_model_channel(token(2)).unwrap());
        assert!(!tx.has_model_channel(next).unwrap());
        tx.note_model_channel(next).unwrap();
        assert!(tx.has_model_channel(next).unwrap());
    });
}
