//! Starting: session, conversation, directory and claim in one transaction.

use tenure_core::process::{LeftProcess, Survivor, Survivors};
use tenure_core::run::{Outcome, RunState};
use tenure_service::{ActFor, Begin, LinkRequest, StartTurn};

use super::{Asked, ITEM, Office, asked, done, ended, held, id, key, native};
use crate::kind;

#[test]
fn a_run_is_recorded_from_its_start_to_its_end() {
    let mut office = Office::new();
    let one = asked(1);
    let started = office.starts(&one);
    assert_eq!(started.run.state, "starting");
    assert_eq!(office.record(1).state(), RunState::Starting);
    assert_eq!(office.current(ITEM), None, "the agent has named nothing");
    let session = office.session(1);
    assert_eq!((session.state, session.native_id), ("live", None));
    assert_eq!(session.process.pid, Some(one.agent));
    let begun = office
        .rig
        .call(&office.shell, |service| service.run_begins(&id(1)));
    let begun = begun.unwrap();
    assert_eq!(begun.state, "running");
    let again = office
        .rig
        .call(&office.shell, |service| service.run_begins(&id(1)));
    assert_eq!(again.unwrap().begun_at, begun.begun_at);
    office.names(&one, "n1").unwrap();
    office.names(&one, "n1").unwrap();
    assert_eq!(office.current(ITEM).as_deref(), Some("n1"));
    assert_eq!(office.session(1).native_id.as_deref(), Some("n1"));
    assert_eq!(
        office
            .ends(&one, &done(1, "n1"))
            .unwrap()
            .outcome
            .as_deref(),
        Some("done")
    );
    let session = office.session(1);
    assert_eq!((session.state, session.end_kind), ("ended", Some("left")));
    for event in ["run.starting", "run.begun", "run.ended"] {
        assert_eq!(office.count(ITEM, event), 1, "{event}");
    }
}

#[test]
fn the_next_run_is_the_next_life_of_the_session_that_owns_the_conversation() {
    let mut office = Office::new();
    let one = asked(1);
    office.works(&one, "n1");
    office.ends(&one, &done(1, "n1")).unwrap();
    let first = office.session(1);
    let two = asked(2);
    let request = office.request(&two).unwrap();
    assert_eq!(request.begin, Begin::Resume(native("n1")));
    office.works(&two, "n1");
    let next = office.session(2);
    assert_eq!(next.handle, first.handle);
    assert_eq!(next.process.life, first.process.life + 1);
    let run = office.show(2);
    assert_eq!(
        (run.before.as_deref(), run.native_id.as_deref()),
        (Some("n1"), Some("n1"))
    );
}

#[test]
fn a_conversation_that_no_session_owns_becomes_the_runs() {
    let mut office = Office::new();
    office.sets(ITEM, "n1");
    let one = asked(1);
    office.begins(&one);
    let session = office.session(1);
    assert_eq!(session.native_id.as_deref(), Some("n1"));
    office.ends(&one, &done(1, "n1")).unwrap();
    office.begins(&asked(2));
    assert_eq!(office.session(2).handle, session.handle);
}

#[test]
fn what_a_person_held_is_named_and_only_an_exclusive_item_is_granted_again() {
    let mut office = Office::new();
    let person = office.rig.here(&[20]);
    office.rig.register(&person, "n1");
    office.rig.claim(&person, ITEM).unwrap();
    office.rig.claim(&person, "wp:7").unwrap();
    office.shell = person.clone();
    office.sets(ITEM, "n1");
    office.shell = office.rig.here(&[10]);
    assert_eq!(
        held(office.turn(&asked(1))),
        ("held", vec![20]),
        "the person is in it"
    );
    person.dies();
    let one = asked(1);
    let started = office.begins(&one);
    let keys: Vec<&str> = started
        .released
        .iter()
        .map(|held| held.key.as_str())
        .collect();
    assert_eq!(keys, [ITEM, "wp:7"]);
    let agent = office.rig.here(&[one.agent]);
    assert_eq!(kind(office.rig.guard(&agent, "wp:7")), "free");
    office.ends(&one, &done(1, "n1")).unwrap();
    let two = Asked {
        exclusive: true,
        ..asked(2)
    };
    let started = office.begins(&two);
    assert!(started.run.exclusive);
    let agent = office.rig.here(&[two.agent]);
    assert_eq!(office.rig.guard(&agent, ITEM).unwrap().epoch, 2);
    assert_eq!(kind(office.rig.guard(&agent, "wp:7")), "free");
}

#[test]
fn f_r06_f_r23_a_conversation_and_a_directory_have_one_run_at_every_instant() {
    let mut office = Office::new();
    let one = asked(1);
    office.works(&one, "n1");
    assert_eq!(held(office.turn(&asked(2))), ("held", vec![101, 201]));
    let elsewhere = Asked {
        dir: "/work/other",
        ..asked(2)
    };
    assert_eq!(
        held(office.turn(&elsewhere)).0,
        "held",
        "the same conversation"
    );
    let other = Asked {
        item: "wp:2",
        ..asked(2)
    };
    assert_eq!(held(office.turn(&other)).0, "held", "the same directory");
    office.starts(&Asked {
        shares_dir: true,
        ..other
    });
    // A run that starts between the look and the write is found by the store itself.
    let racing = Asked {
        item: "wp:3",
        dir: "/work/third",
        ..asked(3)
    };
    let request = office.request(&racing).unwrap();
    let rival = Asked {
        item: "wp:4",
        ..racing.clone()
    };
    let rival = office
        .request(&Asked {
            n: 4,
            agent: 204,
            runner: 104,
            ..rival
        })
        .unwrap();
    let mut row = office.record(1);
    row.id = rival.id.clone();
    (row.item, row.root) = (key("wp:4"), key("wp:4"));
    row.dir = "/work/third".into();
    row.runner = Some(rival.runner);
    (row.session, row.revision) = (None, 0);
    office.rig.store.do_before(2, move |store| {
        use tenure_core::store::{Store, TxMode};
        let mut tx = store.begin(TxMode::Write).unwrap();
        tx.insert_run(&row).unwrap();
        tx.commit().unwrap();
    });
    let runner = office.rig.here(&[racing.runner]);
    let turn = office
        .rig
        .call(&runner, |service| service.start_run(&request, None));
    assert!(!office.rig.store.cancel_pending(), "it came in between");
    assert_eq!(held(turn).0, "held");
}

#[test]
fn a_conversation_that_moved_meanwhile_is_planned_again() {
    let mut office = Office::new();
    let one = asked(1);
    office.works(&one, "n1");
    office.ends(&one, &done(1, "n1")).unwrap();
    let two = asked(2);
    let request = office.request(&two).unwrap();
    let act_for = ActFor::default();
    let link = LinkRequest {
        item: key(ITEM),
        target: key("issue:acme/web#7"),
    };
    let shell = office.shell.clone();
    office
        .rig
        .call(&shell, |service| service.link_item(&act_for, &link))
        .unwrap();
    let runner = office.rig.here(&[two.runner]);
    let turn = office
        .rig
        .call(&runner, |service| service.start_run(&request, None))
        .unwrap();
    assert!(matches!(turn, StartTurn::Replan), "{turn:?}");
    office.works(&two, "n2");
    let live = office
        .rig
        .call(&shell, |service| service.unlink_item(&act_for, &key(ITEM)));
    assert_eq!(kind(live), "held", "a run is in it");
    assert_eq!(office.current("issue:acme/web#7").as_deref(), Some("n2"));
}

#[test]
fn a_run_that_was_cut_off_is_replaced_only_when_nothing_of_it_is_left() {
    let mut office = Office::new();
    let one = asked(1);
    office.works(&one, "n1");
    office.ends(&one, &ended(1, Outcome::Interrupted)).unwrap();
    let left = LeftProcess {
        process: office.rig.world.process(300),
        shown: Survivor {
            pid: 300,
            command: "make".into(),
            since: None,
            can_end: true,
        },
        above: Vec::new(),
    };
    let run = id(1);
    let found = Survivors {
        found: vec![left],
        doubt: None,
    };
    office.rig.world.carry(run.as_str(), found);
    assert_eq!(kind(office.turn(&asked(2))), "survivors");
    let unread = Survivors {
        found: Vec::new(),
        doubt: Some("hidden".into()),
    };
    office.rig.world.carry(run.as_str(), unread);
    assert_eq!(kind(office.turn(&asked(2))), "survivors_unknown");
    office.rig.world.carry(run.as_str(), Survivors::default());
    office.starts(&asked(2));
}

#[test]
fn an_id_that_belongs_elsewhere_is_refused_and_the_run_keeps_what_it_had() {
    let mut office = Office::new();
    let (one, two) = (
        asked(1),
        Asked {
            item: "wp:2",
            dir: "/work/2",
            ..asked(2)
        },
    );
    office.works(&one, "n1");
    office.works(&two, "n2");
    assert_eq!(kind(office.names(&two, "n1")), "invalid");
    assert_eq!(office.current("wp:2").as_deref(), Some("n2"));
    assert_eq!(office.show(2).native_id.as_deref(), Some("n2"));
    assert_eq!(office.count("wp:2", "contamination"), 1);
    assert_eq!(
        office.count(ITEM, "contamination"),
        1,
        "both sides are in the log"
    );
    let person = office.rig.here(&[20]);
    office.rig.register(&person, "n3");
    assert_eq!(kind(office.names(&two, "n3")), "invalid");
}
