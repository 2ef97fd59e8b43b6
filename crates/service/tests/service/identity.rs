//! Who a caller is when not everything is visible.

use tenure_core::id::{AgentName, NativeId};
use tenure_core::policy::Policy;
use tenure_core::process::CallerFacts;
use tenure_service::answer::{Class, Problem};
use tenure_service::{ActFor, Glancer, RegisterRequest, RenewRequest, Service};

use crate::{Rig, Who, asks, key};

/// The class of the refusal of a call by a caller of whom this is seen.
fn call_with(rig: &mut Rig, who: &Who, facts: &CallerFacts) -> Result<(), Class> {
    let mut service = Service::new(&mut rig.store, &who.world, facts, Policy::default());
    match service.renew(&ActFor::default(), &RenewRequest::default()) {
        Ok(_) => Ok(()),
        Err(failure) => Err(failure.error.class()),
    }
}

#[test]
fn a_walk_that_did_not_reach_the_top_falls_back_to_no_variable() {
    let mut rig = Rig::new();
    let session = rig.here(&[100]);
    let token = rig.register(&session, "n1").token.unwrap();
    let mut helper = rig.here(&[200, 201]);
    helper.token = Some(token.clone());
    let broken = CallerFacts {
        chain_broken: Some("process 202 cannot be looked at".into()),
        ..helper.facts()
    };
    assert_eq!(call_with(&mut rig, &helper, &broken), Err(Class::NotFound));
    // The same from another namespace, where the walk started and broke off.
    let mut boxed = rig.sandboxed(&token);
    let halfway = CallerFacts {
        chain_broken: Some("process 202 cannot be looked at".into()),
        ..boxed.facts()
    };
    assert_eq!(call_with(&mut rig, &boxed, &halfway), Err(Class::NotFound));
    // A session found before the walk broke off still decides.
    let tool = rig.here(&[300, 100]);
    let met = CallerFacts {
        chain_broken: Some("process 202 cannot be looked at".into()),
        ..tool.facts()
    };
    assert_eq!(call_with(&mut rig, &tool, &met), Ok(()));
    // If /proc belongs to another namespace, no walk is possible, and the sandbox's variables decide.
    boxed.world.observer.proc_is_own = false;
    let blind = CallerFacts {
        chain: Vec::new(),
        chain_broken: Some("/proc shows a different pid namespace".into()),
        ..boxed.facts()
    };
    assert_eq!(call_with(&mut rig, &boxed, &blind), Ok(()));
    assert_eq!(call_with(&mut rig, &helper, &helper.facts()), Ok(()));
}

#[test]
fn the_store_is_asked_as_often_for_many_processes_as_for_one() {
    let mut rig = Rig::new();
    let session = rig.here(&[100]);
    rig.register(&session, "n1");
    let mut lookups = |act: &mut dyn FnMut(&mut Rig)| {
        rig.store.lookups.set(0);
        act(&mut rig);
        rig.store.lookups.get()
    };
    let mut whoami = |pids: &[u32]| {
        lookups(&mut |rig| {
            let who = rig.here(pids);
            rig.call(&who, |service| service.own_session(&ActFor::default()))
                .unwrap();
        })
    };
    let near = whoami(&[101, 100]);
    let far = whoami(&[110, 109, 108, 107, 106, 105, 104, 103, 102, 101, 100]);
    assert_eq!(far, near);
    let unknown = lookups(&mut |rig| {
        let processes = [100, 101, 102, 103].map(|pid| rig.world.process(pid));
        let strange = rig.call(&session, |service| service.unmanaged(&processes));
        assert_eq!(strange.unwrap(), [false, true, true, true]);
    });
    assert_eq!(unknown, 1);
}

/// A process that hosts two conversations, with the handles of their sessions.
fn host(rig: &mut Rig) -> (Who, [String; 2]) {
    let gateway = rig.here(&[100]);
    let handles = ["n1", "n2"].map(|native| {
        let request = RegisterRequest {
            hosted: true,
            ..rig.request(&gateway, native)
        };
        let done = rig.call(&gateway, |service| service.register(&request));
        done.unwrap().session.handle
    });
    (gateway, handles)
}

/// Whose status line it is, for a process in a conversation.
fn glanced(rig: &mut Rig, who: &Who, native: Option<&str>) -> Option<String> {
    let glancer = Glancer {
        agent: Some(AgentName::known("worker")),
        process: Some(who.facts().chain.remove(0).process),
        native_id: native.and_then(|text| NativeId::parse(text).ok()),
    };
    let glance = rig.call(who, |service| service.glance(&glancer));
    glance.unwrap().map(|glance| glance.handle)
}

#[test]
fn a_status_line_of_a_host_is_its_conversations() {
    let mut rig = Rig::new();
    let (gateway, [first, second]) = host(&mut rig);
    assert_eq!(glanced(&mut rig, &gateway, Some("n1")), Some(first));
    assert_eq!(glanced(&mut rig, &gateway, Some("n2")), Some(second));
    assert_eq!(glanced(&mut rig, &gateway, Some("n3")), None);
    assert_eq!(glanced(&mut rig, &gateway, None), None);
    let plain = rig.here(&[200]);
    let alone = rig.register(&plain, "n4").session.handle;
    assert_eq!(glanced(&mut rig, &plain, None), Some(alone));
}

/// The verbs that an explanation and then a claim suggest to a caller.
fn suggested(rig: &mut Rig, who: &Who, at_terminal: bool) -> Vec<&'static str> {
    let facts = CallerFacts {
        at_terminal,
        has_terminal: at_terminal,
        ..who.facts()
    };
    let mut service = Service::new(&mut rig.store, &who.world, &facts, Policy::default());
    let why = service.why(&key("wp:1")).unwrap().value.why;
    let claim = service.claim(&ActFor::default(), &asks(&["wp:1"]));
    let problem = Problem::from(claim.expect_err("it is held, or the caller is nobody"));
    let mut all = why.hints;
    all.extend(problem.shown_hints());
    all.iter().filter_map(|hint| hint.verb).collect()
}

#[test]
fn who_calls_decides_whether_a_takeover_is_suggested() {
    let mut rig = Rig::new();
    let holder = rig.here(&[100]);
    rig.register(&holder, "n1");
    rig.claim(&holder, "wp:1").unwrap();
    let takes = |rig: &mut Rig, who: &Who, at_terminal| {
        suggested(rig, who, at_terminal).contains(&"takeover")
    };
    let agent = rig.here(&[200]);
    let named = rig.register(&agent, "n2").token;
    let person = rig.here(&[300]);
    let request = RegisterRequest {
        agent: Some(AgentName::known("human")),
        ..rig.request(&person, "n3")
    };
    rig.call(&person, |service| service.register(&request))
        .unwrap();
    let nobody = rig.here(&[400]);
    rig.world.looks_like(501, "/usr/bin/claude", &["claude"]);
    let below_agent = rig.here(&[500, 501]);
    // A terminal that an agent drives: its process is not an ancestor of the caller, but its variable is set.
    let mut driven = rig.here(&[600]);
    driven.token = named;
    for (who, without, with) in [
        (&driven, false, false),
        (&agent, false, false),
        (&person, true, true),
        (&nobody, false, true),
        (&below_agent, false, false),
    ] {
        assert_eq!(takes(&mut rig, who, false), without, "{:?}", who.pids);
        assert_eq!(takes(&mut rig, who, true), with, "{:?}", who.pids);
    }
    assert_eq!(suggested(&mut rig, &nobody, true)[0], "register");
}
