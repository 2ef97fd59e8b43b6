//! Conversations: owners, visitors, lineages.

use tenure_core::id::{AgentName, SessionId};
use tenure_core::store::{LineageEntry, Store, Tx};
use tenure_core::time::Timestamp;

use super::sample::*;

fn entry(text: &str, owned: bool, at: i64) -> LineageEntry {
    LineageEntry {
        native_id: native(text),
        owned,
        at: Timestamp(at),
    }
}

pub fn a_conversation_has_one_owner(store: &mut dyn Store) {
    with_sessions(store, [1, 2]);
    let one = native("ses_1");
    write(store, |tx| {
        assert_eq!(tx.native_owner(&agent(), &one).unwrap(), None);
        tx.set_native_owner(&agent(), &one, None, id(1), Timestamp(1))
            .unwrap();
    });
    read(store, |tx| {
        assert_eq!(tx.native_owner(&agent(), &one).unwrap(), Some(id(1)));
    });
    write(store, |tx| {
        tx.set_native_owner(&agent(), &one, Some(id(1)), id(2), Timestamp(2))
            .unwrap();
    });
    read(store, |tx| {
        assert_eq!(tx.native_owner(&agent(), &one).unwrap(), Some(id(2)));
        assert_eq!(tx.lineage(id(1)).unwrap(), []);
        assert_eq!(tx.lineage(id(2)).unwrap(), [entry("ses_1", true, 2)]);
    });
}

pub fn a_conversation_is_taken_from_the_owner_that_was_seen(store: &mut dyn Store) {
    with_sessions(store, [1, 2, 3]);
    let one = native("ses_1");
    let own = |tx: &mut dyn Tx, before: Option<SessionId>, owner| {
        tx.set_native_owner(&agent(), &one, before, owner, Timestamp(1))
    };
    conflict(store, |tx| own(tx, Some(id(1)), id(2)));
    write(store, |tx| own(tx, None, id(1)).unwrap());
    conflict(store, |tx| own(tx, None, id(2)));
    conflict(store, |tx| own(tx, Some(id(3)), id(2)));
    write(store, |tx| own(tx, Some(id(1)), id(1)).unwrap());
    read(store, |tx| {
        assert_eq!(tx.native_owner(&agent(), &one).unwrap(), Some(id(1)));
    });
}

pub fn visitors_are_listed_once_and_never_the_owner(store: &mut dyn Store) {
    with_sessions(store, [1, 2, 3]);
    let one = native("ses_1");
    write(store, |tx| {
        tx.set_native_owner(&agent(), &one, None, id(1), Timestamp(1))
            .unwrap();
        tx.add_visit(&agent(), &one, id(3), Timestamp(2)).unwrap();
        tx.add_visit(&agent(), &one, id(2), Timestamp(3)).unwrap();
        tx.add_visit(&agent(), &one, id(3), Timestamp(4)).unwrap();
    });
    read(store, |tx| {
        assert_eq!(tx.native_visitors(&agent(), &one).unwrap(), [id(3), id(2)]);
        assert_eq!(tx.lineage(id(3)).unwrap(), [entry("ses_1", false, 2)]);
    });
    write(store, |tx| {
        tx.set_native_owner(&agent(), &one, Some(id(1)), id(3), Timestamp(5))
            .unwrap();
    });
    read(store, |tx| {
        assert_eq!(tx.native_visitors(&agent(), &one).unwrap(), [id(2)]);
        assert_eq!(tx.lineage(id(3)).unwrap(), [entry("ses_1", true, 5)]);
        let several = tx.in_conversations(&agent(), &[one.clone(), native("ses_2")]);
        assert_eq!(
            several.unwrap(),
            [(one.clone(), id(2)), (one.clone(), id(3))]
        );
        assert_eq!(
            tx.in_conversations(&AgentName::known("codex"), &[one])
                .unwrap(),
            []
        );
    });
}

pub fn agents_do_not_share_conversations(store: &mut dyn Store) {
    with_sessions(store, [1, 2]);
    let (claude, codex) = (agent(), AgentName::known("codex"));
    let one = native("ses_1");
    write(store, |tx| {
        tx.set_native_owner(&claude, &one, None, id(1), Timestamp(1))
            .unwrap();
        tx.set_native_owner(&codex, &one, None, id(2), Timestamp(1))
            .unwrap();
        tx.add_visit(&codex, &one, id(1), Timestamp(2)).unwrap();
    });
    read(store, |tx| {
        assert_eq!(tx.native_owner(&claude, &one).unwrap(), Some(id(1)));
        assert_eq!(tx.native_owner(&codex, &one).unwrap(), Some(id(2)));
        assert_eq!(tx.native_visitors(&claude, &one).unwrap(), []);
        assert_eq!(tx.native_visitors(&codex, &one).unwrap(), [id(1)]);
        let upper = native("SES_1");
        assert_eq!(
            tx.native_owner(&claude, &upper).unwrap(),
            None,
            "byte for byte"
        );
    });
}

pub fn the_lineage_is_the_oldest_first(store: &mut dyn Store) {
    with_sessions(store, [1, 2]);
    write(store, |tx| {
        let mut own = |text, at| {
            tx.set_native_owner(&agent(), &native(text), None, id(1), Timestamp(at))
                .unwrap();
        };
        own("ses_a", 30);
        own("ses_b", 10);
        tx.set_native_owner(&agent(), &native("ses_c"), None, id(2), Timestamp(5))
            .unwrap();
        tx.add_visit(&agent(), &native("ses_c"), id(1), Timestamp(20))
            .unwrap();
    });
    read(store, |tx| {
        let expected = [
            entry("ses_b", true, 10),
            entry("ses_c", false, 20),
            entry("ses_a", true, 30),
        ];
        assert_eq!(tx.lineage(id(1)).unwrap(), expected);
        let both = tx.lineages(&[id(1), id(2)]).unwrap();
        let of = |n: u32| both.iter().filter(move |(session, _)| *session == id(n));
        let first: Vec<_> = of(1).map(|(_, entry)| entry.clone()).collect();
        assert_eq!(first, expected);
        let second: Vec<_> = of(2).map(|(_, entry)| entry.clone()).collect();
        assert_eq!(second, [entry("ses_c", true, 5)]);
    });
}
