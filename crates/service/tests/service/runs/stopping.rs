//! Asking a run to stop.

use tenure_core::process::{LeftProcess, Survivor, Survivors};
use tenure_core::run::Outcome;
use tenure_service::ActFor;

use super::{ITEM, Office, asked, ended, id};
use crate::kind;

#[test]
fn the_first_request_stays_and_names_who_asked() {
    let mut office = Office::new();
    let one = asked(1);
    office.works(&one, "n1");
    let ann = office.rig.here(&[20]);
    let handle = office.rig.register(&ann, "ann").session.handle;
    let run = id(1);
    let asks = |office: &mut Office, why: &str| {
        office
            .rig
            .call(&ann, |service| service.ask_run_to_stop(run.as_str(), why))
    };
    let stoppable = asks(&mut office, "wrong branch").unwrap();
    assert_eq!(stoppable.runner.unwrap().pid, one.runner);
    assert_eq!(stoppable.agent.unwrap().pid, one.agent);
    asks(&mut office, "again").unwrap();
    let stop = office.show(1).stop_asked.unwrap();
    assert_eq!((stop.why.as_str(), stop.by), ("wrong branch", Some(handle)));
    assert_eq!(office.count(ITEM, "run.stop_asked"), 1);
    let asked_for = office
        .rig
        .call(&ann, |service| service.run_stop_asked(&run))
        .unwrap();
    assert_eq!(asked_for.as_deref(), Some("wrong branch"));
    office.rig.world.exit(one.runner);
    let stoppable = asks(&mut office, "again").unwrap();
    assert!(stoppable.runner.is_none());
    office.ends(&one, &ended(1, Outcome::Stopped)).unwrap();
    assert_eq!(kind(asks(&mut office, "again")), "not_running");
}

#[test]
fn what_is_another_session_is_named_and_the_rest_is_the_runs() {
    let mut office = Office::new();
    let one = asked(1);
    office.works(&one, "n1");
    let other = office.rig.here(&[301]);
    office.rig.register(&other, "other");
    let process = |pid: u32| office.rig.world.process(pid);
    let carrier = |pid: u32, above: &[u32]| LeftProcess {
        process: process(pid),
        shown: Survivor {
            pid,
            command: "sleep".into(),
            since: None,
            can_end: true,
        },
        above: above.iter().map(|pid| process(*pid)).collect(),
    };
    let found = vec![
        carrier(one.agent, &[one.runner]),
        carrier(300, &[1]),
        carrier(301, &[one.agent]),
        carrier(302, &[301, one.agent]),
        carrier(303, &[one.agent, one.runner]),
    ];
    let run = id(1);
    office
        .rig
        .world
        .carry(run.as_str(), Survivors { found, doubt: None });
    let shell = office.shell.clone();
    let seen = office
        .rig
        .call(&shell, |service| service.run_processes(&run))
        .unwrap();
    let ours: Vec<u32> = seen.ours.iter().map(|(process, _)| process.pid).collect();
    let others: Vec<u32> = seen.others.iter().map(|one| one.pid).collect();
    assert_eq!((ours, others), (vec![300, 303], vec![301, 302]));
}

/// A process that names the run may be ended by name of its session, unless it is another session or below one.
#[test]
fn what_the_session_of_a_run_left_is_searched_by_its_run_and_spares_other_sessions() {
    let mut office = Office::new();
    let one = asked(1);
    office.works(&one, "n1");
    office.ends(&one, &ended(1, Outcome::Interrupted)).unwrap();
    office.rig.world.exit(one.agent);
    let other = office.rig.here(&[301]);
    office.rig.register(&other, "other");
    let world = &office.rig.world;
    let below = LeftProcess {
        above: vec![world.process(301)],
        ..world.left(302, "make", true)
    };
    let found = vec![
        world.left(300, "make", true),
        world.left(301, "worker", true),
        below,
        world.left(303, "make", false),
    ];
    world.leave_behind(Survivors { found, doubt: None });
    let act_for = ActFor {
        session: office.show(1).session,
        reason: None,
    };
    let person = office.shell.clone();
    let left = office
        .rig
        .call(&person, |service| service.left_behind(&act_for))
        .unwrap();
    let can_end = left.found.iter().map(|one| one.shown.can_end);
    assert_eq!(can_end.collect::<Vec<_>>(), [true, false, false, false]);
    let signs = office.rig.world.signs().remove(0);
    assert_eq!(signs.run.as_deref(), Some(id(1).as_str()));
}
