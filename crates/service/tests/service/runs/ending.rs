//! Ends: recorded once, by the runner, or by someone else if all of its processes are proved dead.

use tenure_core::conversation::fitness::Left;
use tenure_core::run::Outcome;
use tenure_service::{ActFor, DropRequest, Dropped, EndRun, StartTurn};

use super::{Asked, ITEM, Office, asked, done, ended, held, id, key};
use crate::kind;

#[test]
fn f_r01_an_end_is_recorded_once_and_a_later_one_changes_nothing() {
    let mut office = Office::new();
    let one = asked(1);
    office.works(&one, "n1");
    // Someone saw both of its processes die and judged it by its log; meanwhile its runner's own end landed.
    office.ends(&one, &done(1, "n1")).unwrap();
    let late = ended(1, Outcome::Interrupted);
    let shell = office.shell.clone();
    let kept = office
        .rig
        .call(&shell, |service| service.end_dead_run(&late))
        .unwrap();
    assert_eq!(kept.outcome.as_deref(), Some("done"));
    let twice = office
        .rig
        .call(&shell, |service| service.end_run(&late))
        .unwrap();
    assert_eq!(twice.outcome.as_deref(), Some("done"));
    assert_eq!(office.count(ITEM, "run.ended"), 1);
    assert_eq!(office.current(ITEM).as_deref(), Some("n1"));
}

#[test]
fn f_r01_an_end_that_lands_between_the_look_and_the_write_stays() {
    let mut office = Office::new();
    let one = asked(1);
    office.works(&one, "n1");
    office.rig.world.exit(one.agent);
    office.rig.world.exit(one.runner);
    let mut row = office.record(1);
    row.end = Some(tenure_core::run::RunEnd {
        at: office.rig.clock.now().wall,
        outcome: Outcome::Done,
        why: "the agent reported success".into(),
        exit_code: Some(0),
        left: Left::Sound,
        parked_until: None,
    });
    // After it was looked at, and before it is written.
    office.rig.store.do_before(3, move |store| {
        use tenure_core::store::{Store, TxMode};
        let mut tx = store.begin(TxMode::Write).unwrap();
        tx.update_run(&row).unwrap();
        tx.commit().unwrap();
    });
    let late = ended(1, Outcome::Interrupted);
    let shell = office.shell.clone();
    let kept = office
        .rig
        .call(&shell, |service| service.end_dead_run(&late))
        .unwrap();
    assert!(!office.rig.store.cancel_pending(), "it came in between");
    assert_eq!(kept.outcome.as_deref(), Some("done"));
}

#[test]
fn nobody_but_its_runner_ends_a_run_of_which_something_lives() {
    let mut office = Office::new();
    let one = asked(1);
    office.works(&one, "n1");
    let shell = office.shell.clone();
    let end = ended(1, Outcome::Interrupted);
    let tries = |office: &mut Office| {
        kind(
            office
                .rig
                .call(&shell, |service| service.end_dead_run(&end)),
        )
    };
    assert_eq!(tries(&mut office), "not_running");
    office.rig.world.exit(one.runner);
    assert_eq!(tries(&mut office), "not_running", "its agent works on");
    let left = office
        .rig
        .call(&office.shell, |service| service.left_runs())
        .unwrap();
    assert_eq!((left.len(), left[0].is_over), (1, false));
    assert_eq!(left[0].run.shown_state(), "running, no runner");
    assert_eq!(held(office.turn(&asked(2))).0, "held");
    office.rig.world.exit(one.agent);
    let over = office.turn(&asked(2)).unwrap();
    assert!(matches!(over, StartTurn::Settle(run) if run == id(1)));
    assert_eq!(tries(&mut office), "granted");
    assert_eq!(office.session(1).state, "dead");
    office.starts(&asked(2));
}

#[test]
fn f_r18_a_run_that_failed_or_was_stopped_keeps_its_conversation_and_an_unusable_one_does_not() {
    let mut office = Office::new();
    let mut n = 0;
    for outcome in [
        Outcome::Done,
        Outcome::Failed,
        Outcome::Stopped,
        Outcome::Timeout,
        Outcome::Interrupted,
    ] {
        n += 1;
        let one = asked(n);
        office.works(&one, "n1");
        office.ends(&one, &ended(n, outcome)).unwrap();
        assert_eq!(office.current(ITEM).as_deref(), Some("n1"), "{outcome:?}");
    }
    let last = asked(n + 1);
    office.works(&last, "n1");
    let refused = EndRun {
        outcome: Outcome::Unusable,
        left: Left::Unusable,
        ..done(n + 1, "n1")
    };
    office.ends(&last, &refused).unwrap();
    assert_eq!(kind(office.turn(&asked(9))), "unusable");
    office.starts(&Asked {
        fresh: true,
        ..asked(9)
    });
}

#[test]
fn a_conversation_whose_last_item_was_closed_meanwhile_closes_with_the_run() {
    let mut office = Office::new();
    let one = asked(1);
    office.works(&one, "n1");
    office.rig.clock.advance(std::time::Duration::from_secs(1));
    let shell = office.shell.clone();
    let closing = office
        .rig
        .call(&shell, |service| service.close_item(&key(ITEM)))
        .unwrap();
    assert_eq!((closing.closed.len(), closing.running), (0, vec![id(1)]));
    assert_eq!(office.current(ITEM).as_deref(), Some("n1"));
    office.ends(&one, &done(1, "n1")).unwrap();
    assert_eq!(office.current(ITEM), None);
    assert_eq!(office.history(ITEM), [("n1".to_owned(), Some("closed"))]);
    // One that is started for an item that is closed keeps its conversation.
    office.rig.clock.advance(std::time::Duration::from_secs(1));
    let two = asked(2);
    office.works(&two, "n2");
    office.ends(&two, &done(2, "n2")).unwrap();
    assert_eq!(office.current(ITEM).as_deref(), Some("n2"));
}

#[test]
fn a_drop_asks_the_run_to_stop_and_drops_when_it_has() {
    let mut office = Office::new();
    let one = asked(1);
    office.works(&one, "n1");
    let shell = office.shell.clone();
    let drops = |office: &mut Office, stop: bool| {
        let request = DropRequest {
            role: None,
            item: key(ITEM),
            agent: None,
            stop,
        };
        office.rig.call(&shell, |service| {
            service.drop_conversations(&ActFor::default(), &request)
        })
    };
    assert_eq!(kind(drops(&mut office, false)), "held");
    let Dropped::Stopping { runs, processes } = drops(&mut office, true).unwrap() else {
        panic!("it runs");
    };
    assert_eq!(runs, [id(1)]);
    let pids: Vec<u32> = processes.iter().map(|one| one.pid).collect();
    assert_eq!(pids, [one.runner, one.agent]);
    let why = office.show(1).stop_asked.unwrap().why;
    assert_eq!(why, "its conversation is dropped");
    office.ends(&one, &ended(1, Outcome::Stopped)).unwrap();
    assert!(matches!(
        drops(&mut office, true).unwrap(),
        Dropped::Done(_)
    ));
    assert_eq!(office.current(ITEM), None);
}

#[test]
fn a_reset_during_a_run_happens_when_the_run_ends() {
    let mut office = Office::new();
    let one = asked(1);
    office.works(&one, "n1");
    office.rig.clock.advance(std::time::Duration::from_secs(1));
    let shell = office.shell.clone();
    let reset = |office: &mut Office| {
        office
            .rig
            .call(&shell, |service| service.reset_item(&key(ITEM), None))
            .unwrap()
    };
    let asked_for = reset(&mut office);
    assert_eq!(
        (asked_for.dropped.len(), asked_for.running),
        (0, vec![id(1)])
    );
    assert_eq!(office.current(ITEM).as_deref(), Some("n1"), "not yet");
    office.ends(&one, &done(1, "n1")).unwrap();
    assert_eq!(office.current(ITEM), None);
    assert_eq!(office.history(ITEM), [("n1".to_owned(), Some("dropped"))]);
    // The next run begins a conversation of its own, which stays.
    office.rig.clock.advance(std::time::Duration::from_secs(1));
    let two = asked(2);
    office.works(&two, "n2");
    office.ends(&two, &done(2, "n2")).unwrap();
    assert_eq!(office.current(ITEM).as_deref(), Some("n2"));
    let done = reset(&mut office);
    assert_eq!((done.dropped.len(), done.running.len()), (1, 0));
    assert_eq!(office.current(ITEM), None);
}

#[test]
fn a_run_without_a_runner_is_past_its_timeout() {
    let mut office = Office::new();
    let one = asked(1);
    office.works(&one, "n1");
    let timeout = std::time::Duration::from_secs(60);
    office.rig.clock.advance(timeout * 2);
    assert!(!office.show(1).past_timeout, "its runner ends it");
    office.rig.world.exit(one.runner);
    let shown = office.show(1);
    assert!(shown.past_timeout);
    assert_eq!(shown.shown_state(), "running, no runner, past its timeout");
}
