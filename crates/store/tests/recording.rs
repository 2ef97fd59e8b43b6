//! The recording store fails on a wrong order, which makes it useful for testing use cases.

#![allow(clippy::disallowed_methods)]

use tenure_core::claim::EndedBy;
use tenure_core::conversation::{Author, Conversation, Current, Home};
use tenure_core::id::HostId;
use tenure_core::store::{Lock, Store, Tx, TxMode};
use tenure_core::time::Timestamp;
use tenure_store::SqliteStore;
use tenure_testkit::RecordingStore;
use tenure_testkit::conformance::sample::{
    agent, clock, end, grant, hold, id, key, lease, native, role, session, token,
};

fn recording() -> RecordingStore<SqliteStore> {
    let mut store = SqliteStore::in_memory(clock()).expect("a store");
    let mut tx = store.begin(TxMode::Write).expect("a transaction");
    for n in [1, 2] {
        tx.insert_session(&session(n)).expect("a session");
    }
    grant(&mut *tx, &hold("wp:held", 1, 1));
    tx.commit().expect("a commit");
    RecordingStore::new(store)
}

/// The verdict on a transaction that takes these locks, reads the time and runs this.
fn verdict(locks: &[Lock], run: impl FnOnce(&mut dyn Tx)) -> String {
    let mut store = recording();
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let mut tx = store.begin(TxMode::Write).expect("a transaction");
        for lock in locks {
            tx.lock(lock).expect("a lock");
        }
        run(&mut *tx);
    }));
    match outcome {
        Ok(()) => "fine".to_owned(),
        Err(panic) => {
            let said = panic.downcast_ref::<String>().expect("a message");
            said.lines().next().unwrap_or_default().to_owned()
        }
    }
}

fn one(name: &str) -> Lock {
    Lock::Key(key(name))
}

#[test]
fn locks_are_taken_in_order_and_before_the_time_is_asked_for() {
    let own = Lock::Session(id(1));
    let nothing = |_: &mut dyn Tx| {};
    let (a, b) = (one("wp:a"), one("wp:b"));
    assert_eq!(
        verdict(&[a.clone(), b.clone(), own.clone()], nothing),
        "fine"
    );
    let again = [a.clone(), own.clone(), a.clone()];
    assert_eq!(verdict(&again, nothing), "fine", "it is locked already");
    let said = verdict(&[b.clone(), a.clone()], nothing);
    assert!(said.contains("comes before"), "{said}");
    let said = verdict(&[own, a.clone()], nothing);
    assert!(said.contains("comes before"), "{said}");
    let said = verdict(&[a], |tx| {
        tx.now().expect("the time");
        tx.lock(&b).expect("a lock");
    });
    assert!(said.contains("after the time"), "{said}");
}

#[test]
fn what_others_decide_by_is_locked_before_it_is_written() {
    let held = hold("path:acme/web:src/**", 1, 1);
    let space = Lock::Paths("acme/web".into());
    let (path, own) = (Lock::Key(held.key.clone()), Lock::Session(id(1)));
    let granted = |tx: &mut dyn Tx| grant(tx, &held);
    let all = [space.clone(), path.clone(), own.clone()];
    assert_eq!(verdict(&all, granted), "fine");
    for (missing, locks) in [
        ("Paths", vec![path.clone(), own.clone()]),
        ("Session", vec![space, path]),
    ] {
        let said = verdict(&locks, granted);
        assert!(said.starts_with("insert_hold without"), "{said}");
        assert!(said.contains(missing), "{said}");
    }
    let by = |by| {
        move |tx: &mut dyn Tx| {
            let held = key("wp:held");
            tx.end_hold(&held, tenure_core::id::Epoch(1), end(by))
                .expect("it is open");
        }
    };
    let held = one("wp:held");
    let locks = std::slice::from_ref(&held);
    assert_eq!(verdict(locks, by(EndedBy::Taken)), "fine");
    let said = verdict(locks, by(EndedBy::Lease));
    assert!(
        said.starts_with("end_hold by lease without Session"),
        "{said}"
    );
    assert_eq!(verdict(&[held, own], by(EndedBy::Lease)), "fine");
    let said = verdict(&[], |tx| tx.update_session(&session(1)).expect("an update"));
    assert!(said.starts_with("update_session without"), "{said}");
    let born = |tx: &mut dyn Tx| {
        tx.insert_session(&session(3)).expect("an insert");
        tx.update_session(&session(3)).expect("nobody else sees it");
    };
    assert_eq!(verdict(&[], born), "fine");
}

#[test]
fn a_heartbeat_needs_no_lock_where_it_is_alone() {
    let touch = |tx: &mut dyn Tx| {
        let seen = Timestamp(1);
        tx.touch_session(token(1), seen, &lease(9), None, None)
            .expect("it is open");
    };
    let said = verdict(&[], touch);
    assert!(said.starts_with("touch_session without"), "{said}");
    assert_eq!(verdict(&[Lock::Session(id(1))], touch), "fine");
    let mut store = recording();
    touch(&mut *store.begin(TxMode::Beat).expect("a transaction"));
}

#[test]
fn a_conversation_and_a_run_are_locked_before_they_are_written() {
    let record = Conversation::none(agent(), role(), key("issue:acme/web#6"));
    let set = Conversation {
        current: Some(Current {
            native_id: native("ses_1"),
            home: Home {
                host: HostId::new("host-one"),
                user: "1000".into(),
                agent_home: None,
                repo_host: None,
                dir: "/work".into(),
            },
            by: Author::default(),
            at: Timestamp(1),
        }),
        ..record.clone()
    };
    let item = Lock::Conversation(record.item.clone());
    let id = Lock::Native(agent(), native("ses_1"));
    let insert = |tx: &mut dyn Tx| tx.insert_conversation(&set).expect("an insert");
    assert_eq!(verdict(&[item.clone(), id.clone()], insert), "fine");
    let said = verdict(std::slice::from_ref(&id), insert);
    assert!(
        said.starts_with("insert_conversation without Conversation"),
        "{said}"
    );
    let said = verdict(std::slice::from_ref(&item), insert);
    assert!(
        said.starts_with("insert_conversation without Native"),
        "{said}"
    );
    let bare = |tx: &mut dyn Tx| tx.insert_conversation(&record).expect("an insert");
    assert_eq!(verdict(std::slice::from_ref(&item), bare), "fine");
    let said = verdict(&[id, item], |_| {});
    assert!(said.contains("comes before"), "{said}");
}

#[test]
fn a_write_that_needs_no_lock_needs_a_transaction_for_writing() {
    let mut store = recording();
    let mut said = |mode: TxMode| {
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut tx = store.begin(mode).expect("a transaction");
            tx.forget_replies(Timestamp(1), 9).expect("none is old");
        }));
        outcome.err().map(|panic| {
            let said = panic.downcast_ref::<String>().expect("a message");
            said.lines().next().unwrap_or_default().to_owned()
        })
    };
    assert_eq!(said(TxMode::Write), None);
    let said = [said(TxMode::Read), said(TxMode::Beat)].map(Option::unwrap_or_default);
    assert_eq!(
        said,
        [
            "it writes in a transaction for reading",
            "it writes more than a heartbeat"
        ]
    );
}
