//! Many deaths at once: one transaction records a few, and no one waits for the rest.

use std::time::Duration;

use tenure_core::event::EventFilter;
use tenure_core::id::NativeId;
use tenure_core::store::{ClaimFilter, SessionFilter, Store, TxMode};
use tenure_service::{ActFor, ListRequest};

use crate::{Rig, TICK, Who, key, kind};

/// How many deaths one transaction records.
const MAX_COUNT: usize = 100;
const DEAD: u32 = 250;

/// Sessions that all died silently; the first holds a key.
fn many_dead() -> (Rig, Who) {
    let mut rig = Rig::new();
    for n in 0..DEAD {
        let who = rig.here(&[1_000 + n]);
        rig.register(&who, &format!("ses_{n}"));
        rig.claim(&who, &format!("wp:{n}")).unwrap();
        who.dies();
        rig.clock.advance(TICK);
    }
    let alive = rig.here(&[9]);
    rig.register(&alive, "ses_alive");
    (rig, alive)
}

/// How many deaths are recorded.
fn recorded(rig: &mut Rig) -> usize {
    let mut tx = rig.store.begin(TxMode::Read).unwrap();
    let log = tx.events(&EventFilter::default()).unwrap();
    log.iter()
        .filter(|event| event.kind == "session.died")
        .count()
}

#[test]
fn a_look_records_a_few_deaths_and_shows_all() {
    let (mut rig, alive) = many_dead();
    let all = DEAD as usize;
    for look in 1..=3 {
        let before = recorded(&mut rig);
        let shown = rig
            .call(&alive, |service| service.list(&ListRequest::default()))
            .unwrap();
        let dead = shown
            .items
            .iter()
            .filter(|session| session.ended_at.is_some() || session.state == "dead")
            .count();
        assert_eq!(
            dead, all,
            "look {look}: all of them are shown as dead, recorded or not"
        );
        let now = recorded(&mut rig);
        assert!(
            now - before <= MAX_COUNT,
            "look {look} recorded {}",
            now - before
        );
        assert_eq!(now, all.min(look * MAX_COUNT));
    }
}

#[test]
fn a_list_of_claims_records_a_few_deaths_and_no_dead_holder_blocks() {
    let (mut rig, alive) = many_dead();
    let filter = ClaimFilter::default();
    rig.call(&alive, |service| service.claims(None, &filter))
        .unwrap();
    assert_eq!(recorded(&mut rig), MAX_COUNT);
    for n in [0, DEAD / 2, DEAD - 1] {
        let taken = rig.claim(&alive, &format!("wp:{n}")).unwrap();
        assert_eq!(taken.epoch, 2);
    }
}

/// A request for all that can be resumed gets all, however many transactions that takes.
#[test]
fn all_that_died_can_be_resumed_in_one_go() {
    let (mut rig, alive) = many_dead();
    let day = Duration::from_secs(24 * 3600);
    let found = rig
        .call(&alive, |service| service.all_resumable(day))
        .unwrap();
    assert_eq!(found.len(), DEAD as usize);
    assert_eq!(recorded(&mut rig), DEAD as usize);
}

/// One of many died with an unreadable hold.
#[test]
fn a_dead_session_that_cannot_be_read_is_named_and_the_others_are_recorded() {
    let (mut rig, alive) = many_dead();
    rig.store.unreadable = Some(key("wp:240"));
    let (me, here) = (ActFor::default(), ListRequest::default());
    for look in 1..=3 {
        let mut named = None;
        rig.call(&alive, |service| {
            let answer = service.status(&me, &here)?;
            named = answer.damaged.as_ref().map(ToString::to_string);
            Ok(answer)
        })
        .unwrap();
        assert!(named.is_some_and(|why| why.contains("wp:240")));
        let expected = (look * (MAX_COUNT - 1)).min(DEAD as usize - 1);
        assert_eq!(recorded(&mut rig), expected, "look {look}");
    }
    let (filter, day) = (ClaimFilter::default(), Duration::from_secs(24 * 3600));
    let (mut claims, mut resumable) = (None, None);
    rig.call(&alive, |service| {
        claims = service.claims(None, &filter)?.damaged;
        let found = service.all_resumable(day)?;
        resumable = found.damaged.clone();
        assert_eq!(found.value.len(), DEAD as usize - 1);
        Ok(found)
    })
    .unwrap();
    assert!(claims.is_some(), "a list of claims names it");
    assert!(resumable.is_some(), "so does a list of what can be resumed");
    let mut tx = rig.store.begin(TxMode::Read).unwrap();
    let open = tx.list_sessions(&SessionFilter::default()).unwrap();
    drop(tx);
    let native = NativeId::parse("ses_240").ok();
    let theirs = open.iter().find(|one| one.native_id == native);
    let handle = theirs.unwrap().handle.to_string();
    let shown = rig.call(&alive, |service| service.show(&handle));
    assert_eq!(kind(shown), "store_damaged", "asked for alone");
}
