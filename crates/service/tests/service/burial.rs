//! Many who died at once: one transaction records a few, and nobody waits for the rest.

use tenure_core::event::EventFilter;
use tenure_core::store::{ClaimFilter, Mode, Store};
use tenure_service::ListRequest;

use crate::{Rig, Who};

/// How many deaths one transaction records.
const MOST: usize = 100;
const DEAD: u32 = 250;

/// Sessions that all died without a word; the first holds a key.
fn many_dead() -> (Rig, Who) {
    let mut rig = Rig::new();
    for n in 0..DEAD {
        let who = rig.here(&[1_000 + n]);
        rig.register(&who, &format!("ses_{n}"));
        rig.claim(&who, &format!("wp:{n}")).unwrap();
        who.dies();
    }
    let alive = rig.here(&[9]);
    rig.register(&alive, "ses_alive");
    (rig, alive)
}

/// How many deaths are recorded.
fn recorded(rig: &mut Rig) -> usize {
    let mut tx = rig.store.begin(Mode::Read).unwrap();
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
            dead,
            all - before,
            "look {look}: all that were open are shown as dead"
        );
        let now = recorded(&mut rig);
        assert!(
            now - before <= MOST,
            "look {look} recorded {}",
            now - before
        );
        assert_eq!(now, all.min(look * MOST));
    }
}

#[test]
fn a_list_of_claims_records_a_few_deaths_and_no_dead_holder_blocks() {
    let (mut rig, alive) = many_dead();
    let filter = ClaimFilter::default();
    rig.call(&alive, |service| service.claims(None, &filter))
        .unwrap();
    assert_eq!(recorded(&mut rig), MOST);
    for n in [0, DEAD / 2, DEAD - 1] {
        let taken = rig.claim(&alive, &format!("wp:{n}")).unwrap();
        assert_eq!(taken.epoch, 2);
    }
}

/// Whoever wants all that can be resumed gets all, however many transactions that takes.
#[test]
fn all_that_died_can_be_resumed_in_one_go() {
    let (mut rig, alive) = many_dead();
    let day = std::time::Duration::from_secs(24 * 3600);
    let found = rig
        .call(&alive, |service| service.all_resumable(day))
        .unwrap();
    assert_eq!(found.len(), DEAD as usize);
    assert_eq!(recorded(&mut rig), DEAD as usize);
}
