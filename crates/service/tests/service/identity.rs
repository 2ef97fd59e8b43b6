//! Who a caller is where not everything can be seen.

use tenure_core::policy::Policy;
use tenure_core::process::CallerFacts;
use tenure_service::answer::Class;
use tenure_service::{Naming, RenewRequest, Service};

use crate::{Rig, Who};

/// The class of the refusal of a call by a caller of whom this is seen.
fn call_with(rig: &mut Rig, who: &Who, facts: &CallerFacts) -> Result<(), Class> {
    let mut service = Service::new(&mut rig.store, &who.world, facts, Policy::default());
    match service.renew(&Naming::default(), &RenewRequest::default()) {
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
    // The same from another namespace, where the walk began and did not end.
    let mut boxed = rig.sandboxed(&token);
    let halfway = CallerFacts {
        chain_broken: Some("process 202 cannot be looked at".into()),
        ..boxed.facts()
    };
    assert_eq!(call_with(&mut rig, &boxed, &halfway), Err(Class::NotFound));
    // A session that was met before the walk ended decides all the same.
    let tool = rig.here(&[300, 100]);
    let met = CallerFacts {
        chain_broken: Some("process 202 cannot be looked at".into()),
        ..tool.facts()
    };
    assert_eq!(call_with(&mut rig, &tool, &met), Ok(()));
    // Where /proc is another namespace's, no walk is possible, and the sandbox's variables tell.
    boxed.world.observer.proc_is_own = false;
    let blind = CallerFacts {
        chain: Vec::new(),
        chain_broken: Some("/proc shows another pid namespace than this one".into()),
        ..boxed.facts()
    };
    assert_eq!(call_with(&mut rig, &boxed, &blind), Ok(()));
    assert_eq!(call_with(&mut rig, &helper, &helper.facts()), Ok(()));
}
