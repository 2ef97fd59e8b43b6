//! The agent does not know its conversation: the same run goes on in a fresh one.

use tenure_core::conversation::fitness::Existence;
use tenure_service::{Begin, StartTurn};

use super::{Asked, ITEM, Office, asked, done, native};
use crate::kind;

/// A run that resumes `n1` and holds its item.
fn resumed() -> (Office, Asked) {
    let mut office = Office::new();
    let one = asked(1);
    office.works(&one, "n1");
    office.ends(&one, &done(1, "n1")).unwrap();
    let two = Asked {
        exclusive: true,
        ..asked(2)
    };
    office.begins(&two);
    (office, two)
}

#[test]
fn f_r17_what_the_run_holds_stays_held_when_it_falls_back() {
    let (mut office, two) = resumed();
    let before = office.session(2);
    let claim = office
        .rig
        .guard(&office.rig.here(&[two.agent]), ITEM)
        .unwrap();
    office.rig.world.exit(two.agent);
    let bob = office.rig.here(&[30]);
    office.rig.register(&bob, "bob");
    assert_eq!(
        kind(office.rig.claim(&bob, ITEM)),
        "held",
        "its runner lives"
    );
    let next = Asked {
        agent: 222,
        ..two.clone()
    };
    let run = office.falls_back(&two, "n1", next.agent).unwrap();
    assert!(run.fell_back);
    assert_eq!((run.state.as_str(), run.native_id), ("starting", None));
    assert_eq!(office.history(ITEM), [("n1".to_owned(), Some("unknown"))]);
    let after = office.session(2);
    assert_eq!(after.handle, before.handle);
    assert_eq!(after.process.life, before.process.life + 1);
    let now = office
        .rig
        .guard(&office.rig.here(&[next.agent]), ITEM)
        .unwrap();
    assert_eq!(now.epoch, claim.epoch, "it was never free");
    assert_eq!(kind(office.rig.claim(&bob, ITEM)), "held");
    office.names(&next, "n2").unwrap();
    assert_eq!(office.current(ITEM).as_deref(), Some("n2"));
    assert_eq!(office.count(ITEM, "run.fell_back"), 1);
    office.ends(&next, &done(2, "n2")).unwrap();
    assert_eq!(office.rig.claim(&bob, ITEM).unwrap().epoch, claim.epoch + 1);
}

#[test]
fn a_first_process_that_was_recorded_as_dead_takes_nothing_with_it() {
    let (mut office, two) = resumed();
    let epoch = office
        .rig
        .guard(&office.rig.here(&[two.agent]), ITEM)
        .unwrap()
        .epoch;
    office.rig.world.exit(two.agent);
    // An older version does not know of the runner.
    let session = office.record(2).session.unwrap().id;
    {
        use tenure_core::session::{Closed, ClosedBy, EndKind};
        use tenure_core::store::{Store, TxMode};
        let at = office.rig.clock.now().wall;
        let mut tx = office.rig.store.inner().begin(TxMode::Write).unwrap();
        let mut row = tx.session(session).unwrap().unwrap();
        row.closed = Some(Closed {
            at,
            by: ClosedBy::Death,
            why: "gone".into(),
            kind: EndKind::CutOff,
            dismissed_at: None,
        });
        tx.update_session(&row).unwrap();
        let end = tenure_core::claim::HoldEnd {
            at,
            by: tenure_core::claim::EndedBy::Death,
        };
        tx.end_holds_of(session, end).unwrap();
        tx.commit().unwrap();
    }
    office.falls_back(&two, "n1", 222).unwrap();
    let now = office.rig.guard(&office.rig.here(&[222]), ITEM).unwrap();
    assert_eq!(now.epoch, epoch + 1, "granted again");
}

#[test]
fn f_r16_a_conversation_that_is_absent_is_replaced_before_the_start_and_once() {
    let mut office = Office::new();
    let one = asked(1);
    office.works(&one, "n1");
    office.ends(&one, &done(1, "n1")).unwrap();
    let two = Asked {
        existence: Existence::Absent,
        ..asked(2)
    };
    assert_eq!(
        office.request(&two).unwrap().begin,
        Begin::InPlaceOf(native("n1"))
    );
    let started = office.works(&two, "n2");
    assert!(started.run.fell_back);
    assert_eq!(started.run.before.as_deref(), Some("n1"));
    let history = [("n1".to_owned(), Some("unknown")), ("n2".to_owned(), None)];
    assert_eq!(office.history(ITEM), history);
    office.ends(&two, &done(2, "n2")).unwrap();
    assert_eq!(
        office.request(&asked(3)).unwrap().begin,
        Begin::Resume(native("n2"))
    );
}

#[test]
fn an_ended_run_does_not_fall_back() {
    let (mut office, two) = resumed();
    office.ends(&two, &done(2, "n1")).unwrap();
    assert_eq!(kind(office.falls_back(&two, "n1", 222)), "not_running");
    assert_eq!(kind(office.names(&two, "n2")), "not_running");
    assert_eq!(office.current(ITEM).as_deref(), Some("n1"));
}

/// Whether tenure or the agent finds that the conversation is gone, the run is the next process of its session.
#[test]
fn a_conversation_that_is_absent_is_replaced_in_the_session_that_had_it() {
    let mut office = Office::new();
    let one = asked(1);
    office.works(&one, "n1");
    let before = office.session(1);
    office.ends(&one, &done(1, "n1")).unwrap();
    let two = Asked {
        existence: Existence::Absent,
        exclusive: true,
        ..asked(2)
    };
    office.works(&two, "n2");
    let after = office.session(2);
    assert_eq!(after.handle, before.handle);
    assert_eq!(after.process.life, before.process.life + 1);
    assert_eq!(after.native_id.as_deref(), Some("n2"));
    let here = office.rig.here(&[two.agent]);
    assert_eq!(office.rig.guard(&here, ITEM).unwrap().epoch, 1);
}

/// An agent that has just started has no file of its conversation yet.
#[test]
fn a_conversation_without_a_file_is_not_replaced_while_somebody_is_in_it() {
    let mut office = Office::new();
    let person = office.rig.here(&[20]);
    office.rig.register(&person, "n1");
    office.shell = person;
    office.sets(ITEM, "n1");
    office.shell = office.rig.here(&[10]);
    let one = Asked {
        existence: Existence::Absent,
        ..asked(1)
    };
    let turn = office.turn(&one).unwrap();
    assert!(matches!(turn, StartTurn::Held { .. }), "{turn:?}");
    assert_eq!(office.current(ITEM).as_deref(), Some("n1"));
}
