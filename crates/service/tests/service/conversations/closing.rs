//! Closing with the last item, and coming back.

use std::time::Duration;

use tenure_core::policy::Policy;
use tenure_service::answer::Class;

use super::{ISSUE, PR, class, is, short};
use crate::{Rig, key};

#[test]
fn a_conversation_closes_with_its_last_item_and_comes_back_within_the_grace() {
    let mut rig = Rig::new();
    let ann = rig.here(&[20]);
    let grace = Policy::default().grace;
    rig.set(&ann, ISSUE, "n1").unwrap();
    rig.link(&ann, PR, ISSUE).unwrap();
    let close = |rig: &mut Rig, item: &str| {
        rig.call(&ann, |service| service.close_item(&key(item)))
            .unwrap()
    };
    let first = close(&mut rig, PR);
    assert_eq!(
        (first.closed.len(), first.open_items),
        (0, vec![ISSUE.to_owned()])
    );
    assert_eq!(short(&rig.get(&ann, ISSUE).unwrap()), is("n1", 1));
    assert_eq!(close(&mut rig, ISSUE).closed.len(), 1);
    assert_eq!(class(rig.get(&ann, ISSUE)), Class::NotFound);
    assert_eq!(rig.ids(&ann, ISSUE), [("n1".to_owned(), Some("closed"))]);
    assert_eq!(close(&mut rig, ISSUE).closed.len(), 0, "it is closed");
    // Until the grace is over the id is still its own.
    assert_eq!(
        class(rig.set(&ann, "issue:acme/web#7", "n1")),
        Class::Invalid
    );
    let reopen = |rig: &mut Rig, item: &str| {
        rig.call(&ann, |service| service.reopen_item(&key(item), grace))
            .unwrap()
    };
    rig.clock.advance(grace - Duration::from_secs(60));
    assert_eq!(reopen(&mut rig, PR).back.len(), 1);
    assert_eq!(
        rig.get(&ann, ISSUE).unwrap().native_id.as_deref(),
        Some("n1")
    );
    let ids = [("n1".to_owned(), Some("closed")), ("n1".to_owned(), None)];
    assert_eq!(rig.ids(&ann, ISSUE), ids);
    assert_eq!(close(&mut rig, PR).closed.len(), 1);
    rig.clock.advance(grace + Duration::from_secs(60));
    let late = reopen(&mut rig, ISSUE);
    assert_eq!((late.back.len(), late.too_late.len()), (0, 1));
    assert_eq!(class(rig.get(&ann, ISSUE)), Class::NotFound);
    rig.set(&ann, "issue:acme/web#7", "n1").unwrap();
    rig.set(&ann, ISSUE, "n2").unwrap();
}

#[test]
fn a_conversation_that_a_run_is_in_does_not_close_under_it() {
    let mut rig = Rig::new();
    let ann = rig.here(&[20]);
    rig.set(&ann, ISSUE, "n1").unwrap();
    let run = rig.starts_run(1, ISSUE, 50);
    let closing = rig.call(&ann, |service| service.close_item(&key(ISSUE)));
    let closing = closing.unwrap();
    assert_eq!((closing.closed.len(), closing.running), (0, vec![run]));
    assert_eq!(short(&rig.get(&ann, ISSUE).unwrap()), is("n1", 1));
}

#[test]
fn what_was_kept_for_an_item_can_go_when_the_grace_is_over_and_no_run_works_on_it() {
    let mut rig = Rig::new();
    let ann = rig.here(&[20]);
    rig.set(&ann, ISSUE, "n1").unwrap();
    let over = |rig: &mut Rig| {
        let items = [key(ISSUE), key(PR)];
        rig.call(&ann, |service| service.items_over(&items))
            .unwrap()
    };
    rig.call(&ann, |service| service.close_item(&key(ISSUE)))
        .unwrap();
    let grace = Policy::default().grace;
    rig.clock.advance(grace);
    assert_eq!(over(&mut rig), [], "it can come back");
    rig.clock.advance(Duration::from_millis(1));
    assert_eq!(over(&mut rig), [key(ISSUE)]);
    rig.starts_run(1, ISSUE, 50);
    assert_eq!(over(&mut rig), [], "a run works on it");
    rig.world.exit(50);
    assert_eq!(over(&mut rig), [key(ISSUE)]);
}

#[test]
fn what_several_items_share_stays_until_all_of_them_are_over() {
    let mut rig = Rig::new();
    let ann = rig.here(&[20]);
    rig.set(&ann, ISSUE, "n1").unwrap();
    rig.link(&ann, PR, ISSUE).unwrap();
    let over = |rig: &mut Rig| {
        let items = [key(ISSUE)];
        rig.call(&ann, |service| service.items_over(&items))
            .unwrap()
    };
    let close = |rig: &mut Rig, item: &str| {
        rig.call(&ann, |service| service.close_item(&key(item)))
            .unwrap();
        rig.clock
            .advance(Policy::default().grace + Duration::from_secs(1));
    };
    close(&mut rig, ISSUE);
    assert_eq!(over(&mut rig), [], "the pull request is open");
    close(&mut rig, PR);
    assert_eq!(over(&mut rig), [key(ISSUE)]);
    // A comment on what was closed long ago.
    let late = crate::jobs::job(1, "fix");
    rig.call(&ann, |service| service.enqueue(&late)).unwrap();
    assert_eq!(late.item, key(ISSUE));
    assert_eq!(over(&mut rig), [], "a job is going to use it");
}
