//! Ending a session together with its process while another event is faster.

use tenure_core::id::{AgentName, NativeId};
use tenure_core::reason::Reason;
use tenure_core::session::{ClosedBy, EndKind, Session};
use tenure_core::store::{Store, TxMode};
use tenure_service::{ActFor, Killable, RegisterRequest};

use crate::{Rig, Who, kind};

const HOW: &str = "pid 20 was ended with SIGTERM";

fn closed() -> Reason {
    Reason::parse("its window was closed").expect("a reason")
}

fn act_for(name: &str) -> ActFor {
    ActFor {
        session: Some(name.to_owned()),
        reason: Some(closed()),
    }
}

/// A gemini session, and a person outside any session.
fn rig() -> (Rig, Who, Who, String) {
    let mut rig = Rig::new();
    let (gemini, person) = (rig.here(&[20]), rig.here(&[30]));
    let request = RegisterRequest {
        agent: Some(AgentName::known("gemini")),
        native_id: NativeId::parse("g-1").ok(),
        ..rig.request(&gemini, "g-1")
    };
    let born = rig.call(&gemini, |service| service.register(&request));
    let handle = born.unwrap().session.handle;
    (rig, gemini, person, handle)
}

fn killable(rig: &mut Rig, who: &Who, name: &str) -> Killable {
    rig.call(who, |service| service.killable(Some(name), &closed()))
        .unwrap()
}

fn record(rig: &mut Rig, who: &Who, name: &str, killed: &Killable) {
    let act_for = act_for(name);
    let ended = rig.call(who, |service| service.end_killed(&act_for, killed, HOW));
    ended.unwrap();
}

fn stored(rig: &mut Rig, handle: &str) -> Session {
    let mut tx = rig.store.begin(TxMode::Read).unwrap();
    tx.session_by_handle(handle).unwrap().unwrap()
}

#[test]
fn the_persons_word_replaces_what_the_dying_process_said() {
    let (mut rig, gemini, person, handle) = rig();
    let killed = killable(&mut rig, &person, &handle);
    // It reported its own end on its way out, and it was found dead as well.
    rig.call(&gemini, |service| service.end(&ActFor::default()))
        .unwrap();
    gemini.dies();
    record(&mut rig, &person, &handle, &killed);
    let closed = stored(&mut rig, &handle).closed.unwrap();
    assert_eq!((closed.by, closed.kind), (ClosedBy::End, EndKind::Left));
    assert!(closed.why.contains("its window was closed"), "{closed:?}");
}

#[test]
fn the_persons_word_replaces_a_death_that_was_proved_first() {
    let (mut rig, gemini, person, handle) = rig();
    let killed = killable(&mut rig, &person, &handle);
    gemini.dies();
    rig.call(&person, |service| service.show(&handle)).unwrap();
    record(&mut rig, &person, &handle, &killed);
    let closed = stored(&mut rig, &handle).closed.unwrap();
    assert_eq!((closed.by, closed.kind), (ClosedBy::End, EndKind::Left));
}

#[test]
fn what_another_process_took_up_meanwhile_is_not_ended() {
    let (mut rig, gemini, person, handle) = rig();
    let killed = killable(&mut rig, &person, &handle);
    gemini.dies();
    let next = rig.here(&[40]);
    let request = RegisterRequest {
        agent: Some(AgentName::known("gemini")),
        ..rig.request(&next, "g-1")
    };
    rig.call(&next, |service| service.register(&request))
        .unwrap();
    record(&mut rig, &person, &handle, &killed);
    let session = stored(&mut rig, &handle);
    assert_eq!((session.life.0, session.closed), (2, None));
}

#[test]
fn only_what_is_seen_to_live_here_can_be_killed() {
    let (mut rig, gemini, person, handle) = rig();
    let far = rig.inside(&[50]);
    let ask = |rig: &mut Rig, who: &Who| {
        kind(rig.call(who, |service| service.killable(Some(&handle), &closed())))
    };
    assert_eq!(ask(&mut rig, &person), "granted");
    assert_eq!(ask(&mut rig, &far), "cannot_tell");
    gemini.dies();
    assert_eq!(ask(&mut rig, &person), "not_live");
}

#[test]
fn an_agent_may_not_kill() {
    let (mut rig, gemini, _person, handle) = rig();
    let agent = rig.here(&[60]);
    rig.register(&agent, "w-1");
    let child = rig.here(&[61, 20]);
    for who in [&agent, &gemini, &child] {
        let asked = rig.call(who, |service| service.killable(Some(&handle), &closed()));
        assert_eq!(kind(asked), "person_only");
    }
}
