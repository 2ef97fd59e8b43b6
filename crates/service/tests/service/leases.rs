//! Leases: how long a session whose process can't be checked is presumed alive.

use std::time::Duration;

use tenure_core::process::BootId;
use tenure_core::reason::Reason;
use tenure_core::session::MetaKey;
use tenure_core::time::Timestamp;
use tenure_service::{ActFor, MetaChange};

use crate::{LEASE, LOCK_DELAY, Rig, TICK, asks, kind, unseen};

const DAY: i64 = 24 * 3600 * 1000;

#[test]
fn f_l11_no_jump_of_the_wall_clock_frees_or_holds_anything() {
    let (mut rig, _far, near) = unseen();
    let start = rig.clock.now().wall.0;
    for days in [1, -1, 400, -400] {
        rig.clock.set_wall(Timestamp(start + days * DAY));
        assert_eq!(kind(rig.claim(&near, "wp:1")), "held", "{days} days");
    }
    rig.clock.advance(LEASE);
    rig.clock.set_wall(Timestamp(start - 400 * DAY));
    assert_eq!(kind(rig.claim(&near, "wp:1")), "suspect");
    rig.clock.set_wall(Timestamp(start + 400 * DAY));
    assert_eq!(kind(rig.claim(&near, "wp:1")), "suspect");
    rig.clock.advance(LOCK_DELAY);
    rig.clock.set_wall(Timestamp(start - 400 * DAY));
    assert_eq!(rig.claim(&near, "wp:1").unwrap().epoch, 2);
}

#[test]
fn f_l14_a_night_of_suspend_does_not_count() {
    let (mut rig, far, near) = unseen();
    rig.clock.advance(LEASE / 2);
    let evening = rig.clock.now().wall.0;
    rig.clock.set_wall(Timestamp(evening + DAY / 2));
    assert_eq!(kind(rig.claim(&near, "wp:1")), "held");
    rig.clock.advance(LEASE / 2 - TICK);
    assert_eq!(kind(rig.claim(&near, "wp:1")), "held");
    rig.clock.advance(TICK);
    assert_eq!(kind(rig.claim(&near, "wp:1")), "suspect");
    assert_eq!(rig.guard(&far, "wp:1").unwrap().epoch, 1);
}

#[test]
fn doubt_frees_nothing_before_lease_and_lock_delay_are_over() {
    let (mut rig, far, near) = unseen();
    rig.clock.advance(LEASE + LOCK_DELAY - TICK);
    assert_eq!(kind(rig.claim(&near, "wp:1")), "suspect");
    rig.clock.advance(TICK);
    let claim = rig.claim(&near, "wp:1").unwrap();
    assert_eq!(claim.epoch, 2);
    assert_eq!(claim.taken_from.unwrap().by, "lease");
    assert_eq!(kind(rig.guard(&far, "wp:1")), "lost");
    assert_eq!(rig.lost(), ["wp:1"]);
    assert_eq!(kind(rig.guard(&far, "wp:1")), "lost");
    assert_eq!(rig.lost(), [""; 0]);
}

#[test]
fn a_renewal_within_the_lock_delay_restores() {
    let (mut rig, far, near) = unseen();
    rig.clock.advance(LEASE + LOCK_DELAY - TICK);
    assert_eq!(kind(rig.claim(&near, "wp:1")), "suspect");
    assert_eq!(rig.guard(&far, "wp:1").unwrap().epoch, 1);
    assert_eq!(kind(rig.claim(&near, "wp:1")), "held");
    rig.clock.advance(LEASE - TICK);
    assert_eq!(kind(rig.claim(&near, "wp:1")), "held");
}

#[test]
fn a_call_on_behalf_of_a_session_does_not_renew_it() {
    let (mut rig, _far, near) = unseen();
    let handle = rig.claim(&near, "wp:1").unwrap_err();
    let holder = handle
        .claim()
        .unwrap()
        .holder
        .as_ref()
        .unwrap()
        .handle
        .clone();
    rig.clock.advance(LEASE);
    let act_for = ActFor {
        session: Some(holder),
        reason: Reason::parse("test").ok(),
    };
    let request = asks(&["wp:2"]);
    let claim = rig.call(&near, |service| service.claim(&act_for, &request));
    assert_eq!(kind(claim), "cannot_tell", "it is not seen to live");
    let change = MetaChange::Set(MetaKey::parse("team").unwrap(), "blue".into());
    rig.call(&near, |service| service.change_metadata(&act_for, &change))
        .unwrap();
    assert_eq!(kind(rig.claim(&near, "wp:1")), "suspect");
}

#[test]
fn declared_silence_lasts_as_declared_and_no_renewal_shortens_it() {
    let (mut rig, far, near) = unseen();
    let hour = Duration::from_secs(3600);
    assert_eq!(kind(rig.renew(&far, Some(4 * hour + TICK))), "usage");
    rig.renew(&far, Some(2 * hour)).unwrap();
    rig.renew(&far, None).unwrap();
    rig.clock.advance(hour);
    rig.guard(&far, "wp:1").unwrap();
    rig.clock.advance(hour - TICK);
    assert_eq!(kind(rig.claim(&near, "wp:1")), "held");
    rig.clock.advance(TICK);
    assert_eq!(kind(rig.claim(&near, "wp:1")), "suspect");
    rig.clock.advance(LOCK_DELAY);
    assert_eq!(kind(rig.claim(&near, "wp:1")), "granted");
}

#[test]
fn f_l20_a_boot_id_of_a_containers_own_proves_no_death_and_its_lease_never_ends() {
    let mut rig = Rig::new();
    let private = |id: &str| BootId {
        id: id.to_owned(),
        private: true,
    };
    let (mut far, mut near) = (rig.here(&[20]), rig.here(&[30]));
    far.world.observer.boot = private("container");
    rig.clock.new_era("container", true);
    rig.register(&far, "far");
    rig.claim(&far, "wp:1").unwrap();
    for boot in [private("another"), rig.world.observer.boot.clone()] {
        near.world.observer.boot = boot.clone();
        rig.clock.new_era(&boot.id, boot.private);
        rig.register(&near, "near");
        rig.clock.advance(100 * LEASE);
        assert_eq!(kind(rig.claim(&near, "wp:1")), "held", "{boot:?}");
        near = rig.here(&[31]);
    }
}

#[test]
fn f_c06_nothing_that_a_loser_does_renews_its_successor() {
    let (mut rig, far, _near) = unseen();
    let mut heir = rig.here(&[50]);
    heir.world.observer.pid_ns = 4;
    let third = rig.here(&[60]);
    rig.register(&heir, "heir");
    rig.register(&third, "third");
    rig.clock.advance(LEASE + LOCK_DELAY);
    assert_eq!(rig.claim(&heir, "wp:1").unwrap().epoch, 2);
    rig.clock.advance(LEASE - TICK);
    // The loser is alive and keeps calling.
    assert_eq!(kind(rig.guard(&far, "wp:1")), "lost");
    assert_eq!(kind(rig.claim(&far, "wp:1")), "held");
    rig.renew(&far, None).unwrap();
    assert_eq!(kind(rig.claim(&third, "wp:1")), "held");
    rig.clock.advance(TICK);
    assert_eq!(kind(rig.claim(&third, "wp:1")), "suspect");
}

/// However long the holder was silent before, its claim begins a new lease.
#[test]
fn f_c04_a_fresh_claim_does_not_inherit_an_old_heartbeat() {
    // A heartbeat nine seconds ago is recent enough for every other call.
    for silent in [Duration::from_secs(9), LEASE - TICK] {
        let mut rig = Rig::new();
        let (first, far, near) = (rig.inside(&[10]), rig.inside(&[20]), rig.here(&[30]));
        for (who, name) in [(&first, "first"), (&far, "far"), (&near, "near")] {
            rig.register(who, name);
        }
        rig.claim(&first, "wp:1").unwrap();
        rig.clock.advance(silent);
        rig.world.exit(10);
        assert_eq!(rig.claim(&far, "wp:1").unwrap().epoch, 2);
        for part in [LEASE / 2, LEASE / 2 - TICK] {
            rig.clock.advance(part);
            assert_eq!(kind(rig.claim(&near, "wp:1")), "held", "{silent:?}");
        }
        rig.clock.advance(TICK);
        assert_eq!(kind(rig.claim(&near, "wp:1")), "suspect", "{silent:?}");
    }
}

/// Nothing is collected yet; what is dropped by age are notes about written files, of the writer alone.
#[test]
fn f_d06_age_and_number_drop_nothing_of_a_session_that_lives() {
    let mut rig = Rig::new();
    let old = rig.here(&[20]);
    let born = rig.register(&old, "old").session;
    rig.claim(&old, "wp:1").unwrap();
    let year = Duration::from_secs(365 * 24 * 3600);
    for pid in 1_000..1_600 {
        let brief = rig.here(&[pid]);
        rig.register(&brief, &format!("n{pid}"));
        rig.claim(&brief, &format!("wp:{pid}")).unwrap();
        rig.call(&brief, |service| service.end(&ActFor::default()))
            .unwrap();
        rig.clock.advance(year / 600);
    }
    let watcher = rig.here(&[30]);
    rig.register(&watcher, "watcher");
    let seen = rig.call(&watcher, |service| service.list(&Default::default()));
    let seen: Vec<_> = seen.unwrap().items.into_iter().map(|one| one.id).collect();
    assert!(seen.contains(&born.id), "{seen:?}");
    assert_eq!(kind(rig.claim(&watcher, "wp:1")), "held");
    let kept = rig.guard(&old, "wp:1").unwrap();
    assert_eq!(kept.epoch, 1);
}

#[test]
fn a_waiter_for_an_unseen_holder_looks_again_when_its_lease_and_lock_delay_end() {
    let (mut rig, _far, near) = unseen();
    rig.clock.advance(LEASE / 2);
    let mut waiting = rig.waiting(31);
    let wait = rig.look(&near, &mut waiting, "wp:1").unwrap();
    assert_eq!(wait.at_most, Some(LEASE / 2));
    rig.clock.advance(LEASE / 2);
    let wait = rig.look(&near, &mut waiting, "wp:1").unwrap();
    assert_eq!(wait.at_most, Some(LOCK_DELAY));
    rig.clock.advance(LOCK_DELAY);
    assert!(rig.look(&near, &mut waiting, "wp:1").is_none());
}
