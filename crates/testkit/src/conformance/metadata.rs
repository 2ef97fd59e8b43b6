//! Metadata values, and doubts.

use tenure_core::id::{Life, SessionToken};
use tenure_core::session::MetaKey;
use tenure_core::store::Store;

use super::sample::*;

pub fn values_are_set_replaced_and_removed(store: &mut dyn Store) {
    with_sessions(store, [1, 2]);
    let name = |text: &str| MetaKey::parse(text).unwrap();
    write(store, |tx| {
        tx.set_metadata(id(1), &name("team"), Some("red")).unwrap();
        tx.set_metadata(id(1), &name("run"), Some("")).unwrap();
        tx.set_metadata(id(2), &name("team"), Some("blue")).unwrap();
    });
    write(store, |tx| {
        tx.set_metadata(id(1), &name("team"), Some("green\nü"))
            .unwrap();
        tx.set_metadata(id(1), &name("absent"), None).unwrap();
    });
    read(store, |tx| {
        let expected = [
            (name("run"), String::new()),
            (name("team"), "green\nü".into()),
        ];
        assert_eq!(tx.metadata(id(1)).unwrap(), expected.into());
    });
    write(store, |tx| {
        tx.set_metadata(id(1), &name("team"), None).unwrap();
    });
    read(store, |tx| {
        assert_eq!(
            tx.metadata(id(1)).unwrap(),
            [(name("run"), String::new())].into()
        );
        assert_eq!(
            tx.metadata(id(2)).unwrap(),
            [(name("team"), "blue".into())].into()
        );
    });
}

pub fn doubts_are_taken_once(store: &mut dyn Store) {
    with_sessions(store, [1, 2, 3]);
    let later = SessionToken {
        id: id(2),
        life: Life(2),
    };
    write(store, |tx| {
        tx.add_doubt(id(1), token(2)).unwrap();
        tx.add_doubt(id(1), token(2)).unwrap();
        tx.add_doubt(id(1), later).unwrap();
        tx.add_doubt(id(3), token(2)).unwrap();
    });
    write(store, |tx| {
        assert!(tx.has_doubts(id(1)).unwrap());
        assert!(!tx.has_doubts(id(2)).unwrap());
        assert_eq!(tx.take_doubts(id(1)).unwrap(), [token(2), later]);
        assert!(!tx.has_doubts(id(1)).unwrap());
        assert_eq!(tx.take_doubts(id(1)).unwrap(), []);
        assert_eq!(tx.take_doubts(id(3)).unwrap(), [token(2)]);
    });
}
