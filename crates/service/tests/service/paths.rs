//! Paths: who gets one, and what happens to the holds that overlap it.

use tenure_core::claim::Hold;
use tenure_core::event::EventFilter;
use tenure_core::id::{Epoch, SessionId};
use tenure_core::reason::Reason;
use tenure_core::store::{Store, TxMode};
use tenure_service::answer::Class;
use tenure_service::error::Error;
use tenure_service::view::{ClaimView, EventView};
use tenure_service::{ActFor, TakeoverRequest};

use super::{LEASE, LOCK_DELAY, Rig, Who, key, kind, unseen};

const ALL: &str = "path:acme/web:src/**";
const DB: &str = "path:acme/web:src/db/**";
const FILE: &str = "path:acme/web:src/db/a.rs";
const DOCS: &str = "path:acme/web:docs/**";
const ELSEWHERE: &str = "path:acme/api:src/**";

impl Rig {
    fn takeover(
        &mut self,
        who: &Who,
        text: &str,
        (from, epoch): (Option<&str>, Option<u64>),
    ) -> Result<ClaimView, Error> {
        let act_for = ActFor {
            session: None,
            reason: Reason::parse("it is stuck").ok(),
        };
        let request = TakeoverRequest {
            key: key(text),
            from: from.map(str::to_owned),
            epoch: epoch.map(Epoch),
            note: None,
            reason: Reason::parse("it is stuck").expect("a reason"),
        };
        self.call(who, |service| service.takeover(&act_for, &request))
    }

    /// The log entry for a key's end.
    fn freed(&mut self, who: &Who, text: &str) -> Option<EventView> {
        let filter = EventFilter {
            key: Some(key(text)),
            limit: 100,
            ..EventFilter::default()
        };
        let log = self
            .call(who, |service| service.log(&filter, None))
            .unwrap();
        log.items
            .into_iter()
            .find(|event| event.kind == "claim.freed")
    }
}

/// Three sessions; the first holds two overlapping paths and others that do not overlap.
fn overlapping() -> (Rig, [Who; 3]) {
    let mut rig = Rig::new();
    let all = [20, 30, 40].map(|pid| rig.here(&[pid]));
    for (who, name) in all.iter().zip(["a", "b", "c"]) {
        rig.register(who, name);
    }
    for text in [ALL, DB, DOCS, ELSEWHERE] {
        rig.claim(&all[0], text).unwrap();
    }
    (rig, all)
}

fn also_ended(claim: &ClaimView) -> Vec<(&str, u64)> {
    let previous = claim.taken_from.as_ref().unwrap();
    let along = previous.also_ended.iter();
    along.map(|held| (held.key.as_str(), held.epoch)).collect()
}

#[test]
fn a_takeover_takes_along_what_the_same_holder_has_beside_it() {
    for (asked, other) in [(ALL, DB), (DB, ALL)] {
        let (mut rig, [ann, bob, _]) = overlapping();
        let claim = rig.takeover(&bob, asked, (None, None)).unwrap();
        assert_eq!(claim.epoch, 2);
        assert_eq!(also_ended(&claim), [(other, 1)]);
        rig.guard(&bob, asked).unwrap();
        assert_eq!(kind(rig.guard(&ann, FILE)), "lost");
        assert_eq!(rig.lost(), [asked, other], "one notice for each");
        let said = &rig.told[1].message;
        assert!(
            said.contains("it is stuck") && said.contains(asked),
            "{said}"
        );
        for kept in [DOCS, ELSEWHERE] {
            rig.guard(&ann, kept).unwrap();
        }
        assert_eq!(rig.lost(), [""; 0], "and each once");
    }
}

#[test]
fn what_is_taken_along_is_on_record_with_the_reason() {
    let (mut rig, [_, bob, _]) = overlapping();
    rig.takeover(&bob, ALL, (None, None)).unwrap();
    let event = rig.freed(&bob, DB).unwrap();
    assert_eq!((event.mechanism.as_str(), event.epoch), ("taken", Some(1)));
    assert!(event.evidence.contains(ALL), "{}", event.evidence);
    assert_eq!(event.reason.as_deref(), Some("it is stuck"));
    assert!(rig.freed(&bob, DOCS).is_none());
}

/// No act leaves two live sessions with one file; a store that already has that is not made worse.
#[test]
fn a_takeover_is_refused_by_a_third_session_that_lives() {
    let (mut rig, [ann, bob, eve]) = overlapping();
    let third = rig.register(&eve, "c").session;
    let mut tx = rig.store.inner().begin(TxMode::Write).unwrap();
    let record = tx.lock_claim(&key(ALL)).unwrap();
    let hold = Hold {
        key: key(FILE),
        session: SessionId::parse(&third.id).unwrap(),
        ..record.newest.unwrap()
    };
    tx.lock_claim(&hold.key).unwrap();
    tx.insert_hold(&hold, Epoch::NONE).unwrap();
    tx.commit().unwrap();
    let error = rig.takeover(&bob, ALL, (None, None)).unwrap_err();
    assert_eq!((error.kind(), error.class()), ("overlaps", Class::Held));
    let claim = error.claim().unwrap();
    assert_eq!(claim.key, FILE);
    assert_eq!(claim.holder.as_ref().unwrap().handle, third.handle);
    for kept in [ALL, DB] {
        rig.guard(&ann, kept).unwrap();
    }
}

#[test]
fn what_was_expected_of_the_key_is_checked_before_anything_is_taken_along() {
    let (mut rig, [ann, bob, eve]) = overlapping();
    let eve_is = rig.call(&eve, |service| service.own_session(&ActFor::default()));
    let eve_is = eve_is.unwrap().session.handle;
    for expected in [(Some(eve_is.as_str()), None), (None, Some(7))] {
        assert_eq!(kind(rig.takeover(&bob, ALL, expected)), "held");
    }
    for kept in [ALL, DB] {
        rig.guard(&ann, kept).unwrap();
    }
    rig.takeover(&bob, ALL, (None, Some(1))).unwrap();
    assert_eq!(kind(rig.guard(&ann, DB)), "lost");
}

#[test]
fn a_path_that_an_unseen_session_lost_by_overlap_is_told_to_it_once() {
    let (mut rig, far, near) = unseen();
    rig.claim(&far, "path:acme/web:src/**").unwrap();
    rig.clock.advance(LEASE + LOCK_DELAY);
    rig.claim(&near, "path:acme/web:src/a.rs").unwrap();
    assert_eq!(kind(rig.guard(&far, "path:acme/web:src/a.rs")), "lost");
    assert_eq!(rig.lost(), ["path:acme/web:src/**"]);
    rig.guard(&far, "wp:1").unwrap();
    assert_eq!(rig.lost(), [""; 0]);
}
