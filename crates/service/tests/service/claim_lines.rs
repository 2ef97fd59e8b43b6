//! Lines: who waits, whose turn it is, and lists of any length.

use std::time::Duration;

use tenure_core::id::{AgentName, RequestId};
use tenure_core::process::{RunState, Sighting};
use tenure_core::session::Workdir;
use tenure_service::{ActFor, ChildRequest, ChildTurn, ClaimRequest, Pick, WaitingCaller};

use crate::{Rig, TICK, Who, asks, key};

/// Three sessions here; the first holds wp:1, the others wait for it in this order.
fn line() -> (Rig, [Who; 3], [WaitingCaller; 2]) {
    let mut rig = Rig::new();
    let all = [20, 30, 40].map(|pid| rig.here(&[pid]));
    for (who, name) in all.iter().zip(["a", "b", "c"]) {
        rig.register(who, name);
    }
    rig.claim(&all[0], "wp:1").unwrap();
    let mut waiting = [rig.waiting(31), rig.waiting(41)];
    for (who, waiting) in all[1..].iter().zip(&mut waiting) {
        assert!(rig.look(who, waiting, "wp:1").is_some());
    }
    (rig, all, waiting)
}

#[test]
fn a_waiter_that_does_not_act_within_a_second_is_passed_over_and_keeps_its_place() {
    let (mut rig, [ann, bob, eve], [mut slow, mut quick]) = line();
    rig.release(&ann, "wp:1");
    let second = Duration::from_secs(1);
    let wait = rig.look(&eve, &mut quick, "wp:1").unwrap();
    assert_eq!(wait.at_most, Some(second));
    rig.clock.advance(second - TICK);
    let wait = rig.look(&eve, &mut quick, "wp:1").unwrap();
    assert_eq!(wait.at_most, Some(TICK), "the turn began when it was noted");
    rig.clock.advance(TICK);
    assert!(rig.look(&eve, &mut quick, "wp:1").is_none());
    assert!(rig.look(&bob, &mut slow, "wp:1").is_some(), "it waits on");
    let mut late = rig.waiting(21);
    assert!(rig.look(&ann, &mut late, "wp:1").is_some());
    rig.release(&eve, "wp:1");
    assert!(rig.look(&ann, &mut late, "wp:1").is_some(), "not its turn");
    assert!(rig.look(&bob, &mut slow, "wp:1").is_none(), "its turn");
}

#[test]
fn f_c22_a_stopped_waiter_is_passed_over_without_a_wait() {
    let (mut rig, [ann, bob, eve], [mut stopped, mut next]) = line();
    rig.release(&ann, "wp:1");
    let (start, threads) = (stopped.process.start, 1);
    let see = |state| Sighting::Present {
        start,
        state,
        threads,
    };
    rig.world.see(31, see(RunState::Stopped));
    assert!(rig.look(&eve, &mut next, "wp:1").is_none());
    rig.world.see(31, see(RunState::Going));
    rig.release(&eve, "wp:1");
    assert!(rig.look(&ann, &mut rig.waiting(21), "wp:1").is_some());
    assert!(rig.look(&bob, &mut stopped, "wp:1").is_none());
}

#[test]
fn any_number_of_dead_holders_can_stand_before_the_item_that_is_taken() {
    let mut rig = Rig::new();
    let keys: Vec<String> = (0..250).map(|number| format!("wp:{number}")).collect();
    for (pid, text) in (1_000..).zip(&keys) {
        let dead = rig.here(&[pid]);
        rig.register(&dead, text);
        rig.claim(&dead, text).unwrap();
        dead.dies();
    }
    let heir = rig.here(&[20]);
    rig.register(&heir, "heir");
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    for pick in [Pick::Any, Pick::All] {
        let request = ClaimRequest {
            pick,
            ..asks(&keys)
        };
        let grants = rig.call(&heir, |service| service.claim(&ActFor::default(), &request));
        let count = if pick == Pick::Any { 1 } else { 250 };
        assert_eq!(grants.unwrap().len(), count);
    }
}

#[test]
fn any_number_of_waiters_can_be_shown() {
    let mut rig = Rig::new();
    let holder = rig.here(&[20]);
    rig.register(&holder, "holder");
    rig.claim(&holder, "wp:1").unwrap();
    for pid in 1_000..1_250 {
        let who = rig.here(&[pid]);
        rig.register(&who, &format!("n{pid}"));
        let mut waiting = rig.waiting(pid + 1_000);
        rig.look(&who, &mut waiting, "wp:1").unwrap();
    }
    let why = rig.call(&holder, |service| service.why(&key("wp:1")));
    assert_eq!(why.unwrap().why.waiters.len(), 250);
    let seen = rig.call(&holder, |service| service.list(&Default::default()));
    assert_eq!(seen.unwrap().items.len(), 251);
}

#[test]
fn a_command_whose_grant_was_not_confirmed_finds_it_when_it_asks_again() {
    let mut rig = Rig::new();
    let [ann, bob] = [20, 30].map(|pid| rig.here(&[pid]));
    rig.register(&ann, "a");
    rig.register(&bob, "b");
    rig.claim(&bob, "wp:1").unwrap();
    let request = ChildRequest {
        claim: ClaimRequest {
            request: RequestId::parse("r1").ok(),
            once: true,
            ..asks(&["wp:1"])
        },
        chain: rig.here(&[50, 20]).facts().chain,
        agent: AgentName::known("command"),
        title: "make".into(),
        workdir: Workdir::default(),
    };
    let mut waiting = rig.waiting(51);
    let turn = |rig: &mut Rig, waiting: &WaitingCaller| {
        let me = ActFor::default();
        rig.call(&ann, |service| {
            service.claim_for_child(&me, &request, Some(waiting))
        })
        .unwrap()
    };
    let ChildTurn::Wait(wait) = turn(&mut rig, &waiting) else {
        panic!("it is held");
    };
    waiting.ticket = Some(wait.ticket);
    rig.release(&bob, "wp:1");
    let ChildTurn::Granted { token, .. } = turn(&mut rig, &waiting) else {
        panic!("it is free");
    };
    // The answer did not arrive.
    waiting.unconfirmed = true;
    let again = turn(&mut rig, &waiting);
    let ChildTurn::Granted {
        token: same,
        grants,
        ..
    } = again
    else {
        panic!("{again:?}");
    };
    assert_eq!(same, token);
    assert_eq!((grants[0].epoch, grants[0].already_held), (2, Some(false)));
}
