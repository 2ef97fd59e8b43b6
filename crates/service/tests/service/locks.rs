//! The order of locks, and what others do between two attempts of a use case.
//!
//! Every use case in these tests runs on a store that panics if it locks out of order, locks after reading the
//! time, or writes what it did not lock. These are the cases that no other test covers.

use tenure_core::agent_event::{Happening, Subagent};
use tenure_core::claim::Hold;
use tenure_core::id::{AgentName, Epoch, HostId, NativeId, SessionId, SessionToken};
use tenure_core::mission::change::MissionChange;
use tenure_core::mission::{MissionId, ParticipantId, Role};
use tenure_core::reason::Reason;
use tenure_core::session::{Doing, Workdir};
use tenure_core::store::{Store, TxMode};
use tenure_service::{
    ActFor, AgentEvent, ChangeRequest, ChildRequest, ChildTurn, ClaimRequest, GuardPolicy,
    HandoffRequest, JoinRequest, ListRequest, MissionPlace, Pick, PointRequest, PointerOwner,
    ReleaseRequest, TakeoverRequest, ToolUse,
};
use tenure_store::SqliteStore;

use super::{LEASE, LOCK_DELAY, Rig, Who, asks, key, kind, unseen};

impl Rig {
    fn ends(&mut self, who: &Who) {
        self.call(who, |service| service.end(&ActFor::default()))
            .unwrap();
    }

    fn handle_event(&mut self, who: &Who, native: &str, what: Happening) {
        let event = event(who, native, what);
        self.call(who, |service| service.handle_event(&event))
            .unwrap();
    }
}

pub(super) fn event(who: &Who, native: &str, what: Happening) -> AgentEvent {
    AgentEvent {
        agent: Some(AgentName::known("worker")),
        process: who.facts().chain.into_iter().next(),
        program: None,
        native_id: NativeId::parse(native).ok(),
        what,
        subagent: None,
        terminal: tenure_core::end::Terminal::Open,
        doing: Some(Doing::Busy),
        asks: None,
        why: None,
        until: None,
        asks_model: false,
        attended: false,
        woken_by: Vec::new(),
        dir: "/work".into(),
        transcript: Some(format!("/t/{native}.jsonl")),
        tool: None,
        prompt: None,
        title: None,
        reaches_model: true,
        speaks: true,
        wants_brief: true,
        briefs_late: false,
        wants_recap: false,
        address: None,
    }
}

/// All of several, given in another order than they are locked in.
fn all_of(keys: &[&str]) -> ClaimRequest {
    ClaimRequest {
        pick: Pick::All,
        ..asks(keys)
    }
}

fn two(rig: &mut Rig) -> [Who; 2] {
    let all = [20, 30].map(|pid| rig.here(&[pid]));
    for (who, name) in all.iter().zip(["a", "b"]) {
        rig.register(who, name);
    }
    all
}

/// The hook's usual event, which must stay cheap.
#[test]
fn a_heartbeat_asks_once_who_speaks() {
    let mut rig = Rig::new();
    let [ann, _] = two(&mut rig);
    rig.handle_event(&ann, "a", Happening::Other);
    rig.store.lookups.set(0);
    rig.handle_event(&ann, "a", Happening::Other);
    assert_eq!(rig.store.lookups.get(), 1);
}

#[test]
fn several_keys_are_locked_in_order_however_they_are_named() {
    let mut rig = Rig::new();
    let [ann, bob] = two(&mut rig);
    let me = ActFor::default();
    let mixed = all_of(&["wp:z", "path:acme/web:b/**", "wp:a", "path:acme/api:a/**"]);
    rig.call(&ann, |service| service.claim(&me, &mixed))
        .unwrap();
    ann.dies();
    let wanted = all_of(&["path:acme/web:b/x", "wp:z", "path:acme/api:**", "wp:a"]);
    let grants = rig
        .call(&bob, |service| service.claim(&me, &wanted))
        .unwrap();
    assert_eq!(grants.len(), 4);
    let any = asks(&["wp:z", "wp:q", "wp:b"]);
    let taken = rig.call(&bob, |service| service.claim(&me, &any)).unwrap();
    assert_eq!(taken[0].key, "wp:q");
}

#[test]
fn acts_on_claims_keep_the_order() {
    let mut rig = Rig::new();
    let [ann, bob] = two(&mut rig);
    let gone = rig.here(&[40]);
    rig.register(&gone, "gone");
    for (who, text) in [
        (&gone, "path:acme/web:src/gone/**"),
        (&ann, "path:acme/web:src/a/**"),
        (&ann, "wp:1"),
    ] {
        rig.claim(who, text).unwrap();
    }
    gone.dies();
    let me = ActFor::default();
    let bobs = rig.call(&bob, |service| service.own_session(&me)).unwrap();
    let handed = HandoffRequest {
        key: key("path:acme/web:src/a/**"),
        to: bobs.session.handle,
        epoch: None,
        note: None,
    };
    rig.call(&ann, |service| service.handoff(&me, &handed))
        .unwrap();
    let act_for = ActFor {
        session: None,
        reason: Reason::parse("it is stuck").ok(),
    };
    for text in ["wp:1", "path:acme/web:src/a/**"] {
        let from = [&bob, &ann][usize::from(text != "wp:1")];
        let request = TakeoverRequest {
            key: key(text),
            from: None,
            epoch: None,
            note: None,
            reason: Reason::parse("it is stuck").expect("a reason"),
        };
        rig.call(from, |service| service.takeover(&act_for, &request))
            .unwrap();
    }
    let done = ReleaseRequest {
        key: key("wp:1"),
        epoch: None,
        done: true,
    };
    rig.call(&bob, |service| service.release(&me, &done))
        .unwrap();
    rig.ends(&ann);
    let back = rig.register(&ann, "a");
    assert_eq!(back.regranted.len(), 1, "{:?}", back.regranted);
}

#[test]
fn waiters_and_commands_keep_the_order() {
    let mut rig = Rig::new();
    let [ann, bob] = two(&mut rig);
    rig.claim(&ann, "wp:1").unwrap();
    let mut first = rig.waiting(30);
    let mut second = rig.waiting(31);
    assert!(rig.look(&bob, &mut first, "wp:1").is_some());
    assert!(rig.look(&bob, &mut second, "wp:1").is_some());
    rig.release(&ann, "wp:1");
    assert!(rig.look(&bob, &mut second, "wp:1").is_some(), "its turn");
    assert!(rig.look(&bob, &mut first, "wp:1").is_none());
    let ticket = second.ticket.unwrap();
    rig.call(&bob, |service| service.leave_line(ticket))
        .unwrap();
    let child = rig.here(&[50, 20]);
    let request = ChildRequest {
        claim: asks(&["wp:2"]),
        chain: child.facts().chain,
        agent: AgentName::known("command"),
        title: "make".into(),
        workdir: Workdir::default(),
    };
    let mut waiting = rig.waiting(50);
    rig.claim(&bob, "wp:2").unwrap();
    let me = ActFor::default();
    let turn = rig
        .call(&ann, |service| {
            service.claim_for_child(&me, &request, Some(&waiting))
        })
        .unwrap();
    let ChildTurn::Wait(wait) = turn else {
        panic!("it is held");
    };
    waiting.ticket = Some(wait.ticket);
    rig.release(&bob, "wp:2");
    let turn = rig
        .call(&ann, |service| {
            service.claim_for_child(&me, &request, Some(&waiting))
        })
        .unwrap();
    let ChildTurn::Granted { token, .. } = turn else {
        panic!("it is free");
    };
    rig.call(&ann, |service| service.end_child(token, "it ended"))
        .unwrap();
}

#[test]
fn events_of_agents_keep_the_order() {
    let mut rig = Rig::new();
    let [ann, bob] = two(&mut rig);
    rig.claim(&ann, "wp:1").unwrap();
    rig.clock.advance(LEASE / 2);
    rig.handle_event(&ann, "a", Happening::Other);
    rig.handle_event(&ann, "a2", Happening::Start);
    rig.handle_event(&ann, "a3", Happening::Fork);
    let writes = AgentEvent {
        tool: Some(ToolUse {
            writes: vec!["/home/ann/a.rs".into()],
            policy: GuardPolicy::default(),
            ..ToolUse::default()
        }),
        subagent: Some(Subagent {
            id: "sub".into(),
            kind: None,
        }),
        ..event(&ann, "a3", Happening::SubagentStart)
    };
    rig.call(&ann, |service| service.handle_event(&writes))
        .unwrap();
    let again = AgentEvent {
        process: bob.facts().chain.into_iter().next(),
        ..writes
    };
    rig.call(&bob, |service| service.handle_event(&again))
        .unwrap();
    let end = Happening::End {
        ends_worker: true,
        reason: String::new(),
    };
    rig.handle_event(&ann, "a3", end);
    bob.dies();
    let heir = rig.here(&[60]);
    rig.handle_event(&heir, "b", Happening::Start);
    let listed = rig
        .call(&heir, |service| service.list(&ListRequest::default()))
        .unwrap();
    assert_eq!(listed.items.len(), 1);
}

#[test]
fn missions_keep_the_order() {
    let mut rig = Rig::new();
    let [ann, bob] = two(&mut rig);
    let here = MissionPlace {
        repo: None,
        user: "user".into(),
        roles: Vec::new(),
    };
    let mission = MissionId::parse("launch").unwrap();
    let me = ActFor::default();
    let participant = {
        let join = JoinRequest {
            mission: mission.clone(),
            role: Role::parse("developer").unwrap(),
            participant: None,
        };
        let joined = rig.call(&ann, |service| service.join_mission(&me, &here, &join));
        joined.unwrap().participant.participant_id
    };
    ann.dies();
    let join = JoinRequest {
        mission: mission.clone(),
        role: Role::parse("reviewer").unwrap(),
        participant: Some(ParticipantId::parse(&participant).unwrap()),
    };
    for _ in 0..2 {
        rig.call(&bob, |service| service.join_mission(&me, &here, &join))
            .unwrap();
    }
    let far = rig.inside(&[70]);
    rig.register(&far, "far");
    let third = JoinRequest {
        participant: None,
        ..join
    };
    let fars = rig
        .call(&far, |service| service.join_mission(&me, &here, &third))
        .unwrap();
    let fars = fars.participant.participant_id;
    for (who, field, value) in [
        (&far, "focus", "wp:db"),
        (&far, "drive", "active"),
        (&bob, "focus", "wp:db"),
    ] {
        let change = ChangeRequest {
            mission: None,
            change: MissionChange::named(field, value).unwrap(),
            strict: false,
        };
        rig.call(who, |service| {
            service.change_participant(&me, &here, &change)
        })
        .unwrap();
    }
    rig.clock.advance(LEASE + LOCK_DELAY);
    let strict = ChangeRequest {
        mission: None,
        change: MissionChange::named("drive", "active").unwrap(),
        strict: true,
    };
    rig.call(&bob, |service| {
        service.change_participant(&me, &here, &strict)
    })
    .unwrap();
    let point = PointRequest {
        whose: PointerOwner::User,
        mission: Some(mission),
    };
    rig.call(&bob, |service| service.point_to_mission(&me, &here, &point))
        .unwrap();
    // A session whose lease expired is judged again under its lock.
    let heir = rig.here(&[80]);
    rig.register(&heir, "heir");
    let join = JoinRequest {
        participant: Some(ParticipantId::parse(&fars).unwrap()),
        ..third
    };
    rig.call(&heir, |service| service.join_mission(&me, &here, &join))
        .unwrap();
    rig.call(&bob, |service| service.leave_mission(&me, &here, None))
        .unwrap();
}

/// The open hold of a key.
fn holder(store: &mut SqliteStore, text: &str) -> Hold {
    let mut tx = store.begin(TxMode::Read).unwrap();
    let record = tx.claim(&key(text)).unwrap().unwrap();
    record.newest.unwrap()
}

/// The judge read that the lease had expired; then the holder renewed it; the judge must not take the key.
#[test]
fn a_holder_that_speaks_between_two_attempts_keeps_its_key() {
    let mut kept = 0;
    for before in 1..8 {
        let (mut rig, _far, near) = unseen();
        rig.clock.advance(LEASE + LOCK_DELAY);
        let now = rig.clock.now();
        let hold = holder(rig.store.inner(), "wp:1");
        let token = SessionToken {
            id: hold.session,
            life: hold.life,
        };
        rig.store.do_before(before, move |store| {
            let mut tx = store.begin(TxMode::Beat).unwrap();
            assert!(
                tx.touch_session(token, now.wall, &now.after(LEASE), None, None)
                    .unwrap()
            );
            tx.commit().unwrap();
        });
        let claim = kind(rig.claim(&near, "wp:1"));
        let granted_first = holder(rig.store.inner(), "wp:1").epoch == Epoch(2);
        match claim {
            "granted" => assert!(granted_first),
            refused => {
                assert_eq!((refused, granted_first), ("held", false), "before {before}");
                kept += usize::from(before > 1);
            }
        }
        // What is done after the grant changes nothing.
        rig.store.cancel_pending();
    }
    assert!(kept > 0, "it never came between");
}

/// A takeover that commits between two reads must not make its key an answer to who lost it: on a server every statement
/// reads another moment.
#[test]
fn a_claim_of_ones_own_key_is_answered_from_one_read() {
    let mut rig = Rig::new();
    let [ann, _bob] = two(&mut rig);
    rig.claim(&ann, "wp:1").unwrap();
    rig.store.rereads.set(0);
    let request = ClaimRequest {
        pick: Pick::All,
        ..asks(&["wp:1"])
    };
    let again = rig.call(&ann, |service| service.claim(&ActFor::default(), &request));
    assert_eq!(again.unwrap()[0].already_held, Some(true));
    assert_eq!(rig.store.rereads.get(), 0);
}

/// Another takes the key, or takes what overlaps it, between two attempts.
#[test]
fn a_key_granted_between_two_attempts_stays_with_its_holder() {
    for wanted in ["wp:1", "path:acme/web:src/**"] {
        let mut between = 0;
        for before in 1..8 {
            let mut rig = Rig::new();
            let [ann, bob] = two(&mut rig);
            let bobs = rig
                .call(&bob, |service| service.own_session(&ActFor::default()))
                .unwrap();
            let bobs = SessionId::parse(&bobs.session.id).unwrap();
            let taken = match wanted {
                "wp:1" => "wp:1",
                _ => "path:acme/web:src/db/**",
            };
            rig.claim(&bob, taken).unwrap();
            rig.release(&bob, taken);
            rig.store.do_before(before, move |store| {
                let previous = holder(store, taken);
                let mut tx = store.begin(TxMode::Write).unwrap();
                let next = Hold {
                    epoch: previous.epoch.next(),
                    session: bobs,
                    ended: None,
                    ..previous
                };
                // A caller that comes after the grant is refused.
                let record = tx.claim(&key(wanted)).unwrap();
                if record.is_none_or(|record| record.current().is_none()) {
                    tx.insert_hold(&next, previous.epoch).unwrap();
                    tx.commit().unwrap();
                }
            });
            let mine = kind(rig.claim(&ann, wanted)) == "granted";
            let theirs = holder(rig.store.inner(), taken);
            let theirs = theirs.session == bobs && theirs.ended.is_none();
            assert_ne!(
                mine,
                theirs && !rig.store.cancel_pending(),
                "before {before}"
            );
            between += usize::from(before > 1 && theirs);
        }
        assert!(between > 0, "it never came between");
    }
}

/// The store decides whether several machines use it.
#[test]
fn on_a_shared_store_another_host_proves_no_death() {
    for (is_shared, expected) in [(false, "granted"), (true, "held")] {
        let mut rig = Rig::new();
        rig.store.is_shared = is_shared;
        let (mut far, near) = (rig.here(&[20]), rig.here(&[30]));
        far.world.observer.host = HostId::new("another");
        far.world.observer.boot.id = "another boot".into();
        rig.register(&far, "far");
        rig.claim(&far, "wp:1").unwrap();
        rig.register(&near, "near");
        assert_eq!(kind(rig.claim(&near, "wp:1")), expected);
    }
}
