//! Lives: what a session is in its next process, and what its previous process no longer is.

use tenure_core::id::SessionId;
use tenure_core::policy::Policy;
use tenure_core::store::{Store, TxMode};
use tenure_service::answer::Class;
use tenure_service::{ActFor, Service};

use crate::{LEASE, LOCK_DELAY, Rig, kind, unseen};

#[test]
fn f_i23_from_a_sandbox_nothing_is_taken_until_a_call_outside_proves_the_death() {
    let mut rig = Rig::new();
    let (holder, agent) = (rig.here(&[20]), rig.here(&[30]));
    rig.register(&holder, "holder");
    rig.claim(&holder, "wp:1").unwrap();
    let token = rig.register(&agent, "agent").token.unwrap();
    let tool = rig.sandboxed(&token);
    let refused = rig.claim(&tool, "wp:1").unwrap_err();
    assert_eq!(refused.class(), Class::CannotTell);
    rig.clock.advance(2 * (LEASE + LOCK_DELAY));
    assert_eq!(kind(rig.claim(&tool, "wp:1")), "cannot_tell");
    rig.guard(&agent, "wp:1").unwrap_err();
    assert_eq!(kind(rig.claim(&tool, "wp:1")), "cannot_tell", "it lives");
    holder.dies();
    assert_eq!(kind(rig.claim(&tool, "wp:1")), "cannot_tell");
    let looks = |service: &mut Service<'_>| service.own_session(&ActFor::default());
    rig.call(&agent, looks).unwrap();
    let claim = rig.claim(&tool, "wp:1").unwrap();
    assert_eq!(claim.taken_from.unwrap().by, "death");
    assert_eq!(claim.holder.unwrap().native_id.as_deref(), Some("agent"));
}

/// The call outside answers before the death is recorded; if that fails, the next call records it.
#[test]
fn f_i23_a_death_that_could_not_be_recorded_is_recorded_by_the_next_call_outside() {
    let mut failed = 0;
    for transaction in 1..10 {
        let mut rig = Rig::new();
        let (holder, agent) = (rig.here(&[20]), rig.here(&[30]));
        rig.register(&holder, "holder");
        rig.claim(&holder, "wp:1").unwrap();
        let agents = rig.register(&agent, "agent");
        let tool = rig.sandboxed(&agents.token.unwrap());
        assert_eq!(kind(rig.claim(&tool, "wp:1")), "cannot_tell");
        holder.dies();
        rig.store.busy_at(transaction);
        let (facts, policy) = (agent.facts(), Policy::default());
        let mut service = Service::new(&mut rig.store, &agent.world, &facts, policy);
        let answered = service.own_session(&ActFor::default()).is_ok();
        let was_busy = !rig.store.cancel_pending();
        failed += usize::from(answered && was_busy);
        let looks = |service: &mut Service<'_>| service.own_session(&ActFor::default());
        rig.call(&agent, looks).unwrap();
        assert_eq!(kind(rig.claim(&tool, "wp:1")), "granted", "{transaction}");
        rig.call(&agent, looks).unwrap();
        let asker = SessionId::parse(&agents.session.id).unwrap();
        let mut tx = rig.store.begin(TxMode::Read).unwrap();
        assert_eq!(tx.has_doubts(asker), Ok(false), "what is settled is over");
    }
    assert!(failed > 0, "no answer came before a death that failed");
}

#[test]
fn a_superseded_process_is_told_that_it_lost_and_comes_back_as_a_twin() {
    let (mut rig, far, near) = unseen();
    rig.clock.advance(LEASE + LOCK_DELAY);
    let next = rig.here(&[40]);
    let resumed = rig.register(&next, "far");
    assert_eq!(resumed.session.registered, Some("resumed"));
    assert_eq!(resumed.regranted[0].epoch, 2);
    for refused in [rig.guard(&far, "wp:1"), rig.claim(&far, "wp:2")] {
        let error = refused.unwrap_err();
        assert_eq!((error.kind(), error.class()), ("superseded", Class::Lost));
    }
    let twin = rig.register(&far, "far");
    assert_eq!(twin.session.registered, Some("twin"));
    assert_eq!(twin.session.twin_of, Some(resumed.session.id));
    assert_eq!(kind(rig.guard(&far, "wp:1")), "held");
    assert_eq!(kind(rig.claim(&near, "wp:1")), "held");
    rig.guard(&next, "wp:1").unwrap();
}

#[test]
fn a_process_that_ends_its_session_twice_goes_on_as_the_same_session() {
    let mut rig = Rig::new();
    let ann = rig.here(&[20]);
    let born = rig.register(&ann, "n1");
    rig.claim(&ann, "wp:1").unwrap();
    for life in [2, 3, 4] {
        let ends = |service: &mut Service<'_>| service.end(&ActFor::default());
        rig.call(&ann, ends).unwrap();
        let again = rig.register(&ann, "n1");
        assert_eq!(again.session.registered, Some("resumed"), "life {life}");
        assert_eq!(again.session.id, born.session.id);
        assert_eq!(again.session.process.life, life);
        assert_eq!(again.regranted.len(), 1, "life {life}");
    }
}

#[test]
fn a_session_in_a_dead_ones_conversation_gets_what_it_held() {
    let mut rig = Rig::new();
    let [dead, heir, thief] = [20, 30, 40].map(|pid| rig.here(&[pid]));
    let previous = rig.register(&dead, "old");
    for item in ["wp:left", "wp:taken", "wp:given"] {
        rig.claim(&dead, item).unwrap();
    }
    rig.release(&dead, "wp:given");
    rig.register(&heir, "mine");
    rig.claim(&heir, "wp:own").unwrap();
    rig.register(&thief, "thief");
    dead.dies();
    rig.claim(&thief, "wp:taken").unwrap();
    let entered = rig.register(&heir, "old");
    assert_eq!(entered.session.registered, Some("rotated"));
    let keys: Vec<_> = entered
        .regranted
        .iter()
        .map(|held| held.key.as_str())
        .collect();
    assert_eq!(keys, ["wp:left"]);
    assert_eq!(entered.regranted[0].epoch, 2);
    assert_eq!(entered.taken.len(), 1, "{:?}", entered.taken);
    rig.guard(&heir, "wp:left").unwrap();
    rig.guard(&heir, "wp:own").unwrap();
    let seen = rig.call(&heir, |service| service.show(&previous.session.handle));
    assert_eq!(seen.unwrap().session.state, "ended");
    let late = rig.register(&rig.here(&[50]), "old");
    assert_eq!(late.session.registered, Some("twin"), "it has an owner");
}

#[test]
fn f_c21_cover_by_an_ancestor_ends_with_its_life() {
    let mut rig = Rig::new();
    let [top, parent, child] = [&[10][..], &[20, 10], &[30, 20, 10]].map(|pids| rig.here(pids));
    for (who, name) in [(&top, "top"), (&parent, "parent"), (&child, "child")] {
        rig.register(who, name);
    }
    rig.claim(&top, "wp:top").unwrap();
    rig.claim(&parent, "wp:1").unwrap();
    for item in ["wp:1", "wp:top"] {
        assert!(rig.guard(&child, item).unwrap().via.is_some(), "{item}");
    }
    parent.dies();
    let orphan = rig.here(&[30]);
    assert_eq!(kind(rig.guard(&orphan, "wp:1")), "free");
    let next = rig.here(&[40, 10]);
    assert_eq!(rig.register(&next, "parent").regranted.len(), 1);
    for item in ["wp:1", "wp:top"] {
        assert_eq!(kind(rig.guard(&orphan, item)), "held", "{item}");
    }
}
