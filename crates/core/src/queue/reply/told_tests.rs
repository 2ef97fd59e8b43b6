//! The person who asked is told what became of it.

use super::tests::{ended, job, said};
use super::*;
use crate::queue::JobEnd;

#[test]
fn what_is_not_permitted_is_told_however_little_the_rule_writes() {
    let why = "pr:acme/web#9 is not run: the head moved";
    let refused = Job {
        failure: Some(why.to_owned()),
        end: Some(JobEnd {
            at: Timestamp(0),
            outcome: None,
            why: why.to_owned(),
        }),
        ..job(JobState::Cancelled)
    };
    for kind in [ReplyKind::Status, ReplyKind::Parked] {
        let notice = Notice::of(kind, &refused, &RunNow::default()).unwrap();
        assert!(notice.is_last && notice.starts, "{kind:?}");
        let told = notice.comment(kind, &refused.id);
        assert!(told.contains("the head moved") && told.contains("Ask again"));
    }
}

#[test]
fn a_reset_is_confirmed_when_the_run_is_over() {
    let of = |job: &Job| Notice::of(ReplyKind::Reset, job, &RunNow::default());
    for state in [JobState::Starting, JobState::Begun] {
        assert_eq!(of(&job(state)), None);
    }
    let over = of(&ended(Outcome::Stopped, "so")).unwrap();
    assert!(over.starts && over.is_last && over.text.contains("**claude** was reset"));
}

#[test]
fn a_job_that_was_tried_often_and_waits_for_what_is_away_is_told_once() {
    let waits = Job {
        failures: MAX_FAILURES,
        failure: Some("/home/alice: no route".to_owned()),
        ..job(JobState::Queued)
    };
    let told = said(&waits, &RunNow::default());
    assert!(told.contains("could not be started yet"), "{told}");
    assert!(!told.contains("alice"), "{told}");
    let again = Job {
        failures: MAX_FAILURES + 1,
        ..waits.clone()
    };
    let label = |job: &Job| {
        let notice = Notice::of(ReplyKind::Status, job, &RunNow::default());
        notice.unwrap().label
    };
    assert_eq!(label(&waits), label(&again));
}
