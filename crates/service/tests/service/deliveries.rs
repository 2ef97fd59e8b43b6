//! Deliveries that are stored together.

use tenure_core::id::JobId;
use tenure_core::queue::delivery::{Delivery, Verdict};
use tenure_core::time::Timestamp;
use tenure_service::{Accept, Accepted, NewJob, Person};

use crate::jobs::job;
use crate::{Rig, key};

/// The delivery `id` about an issue; its job gets the number `n`.
fn delivery(id: &str, n: u8, issue: &str) -> Accept {
    let item = key(issue);
    Accept {
        delivery: Delivery {
            id: 0,
            endpoint: "home".into(),
            delivery_id: Some(id.into()),
            content_key: None,
            received_at: Timestamp(0),
            event: "issue.comment".into(),
            repo: Some("acme/web".into()),
            item: Some(item.clone()),
            author: Some("alice".into()),
            verdict: Verdict::Queued,
            rule: Some("fix".into()),
            why: "rule fix matches".into(),
            job: None,
        },
        body: b"{}".to_vec(),
        person: Person::Yes,
        jobs: vec![NewJob {
            item,
            ..job(n, "fix")
        }],
    }
}

fn outcome(accepted: &Accepted) -> (i64, String, bool, Option<String>) {
    let delivery = &accepted.delivery;
    let verdict = delivery.verdict.clone();
    (
        delivery.id,
        verdict,
        accepted.duplicate,
        delivery.job.clone(),
    )
}

#[test]
fn deliveries_stored_together_are_decided_as_if_one_came_after_the_other() {
    let batch = [
        delivery("d-1", 1, "issue:acme/web#6"),
        delivery("d-2", 2, "issue:acme/web#7"),
        delivery("d-3", 3, "issue:acme/web#6"),
        delivery("d-1", 4, "issue:acme/web#6"),
    ];
    let mut rig = Rig::new();
    let ann = rig.here(&[10]);
    let together = rig
        .call(&ann, |service| service.accept_all(&batch))
        .unwrap();
    let together: Vec<_> = together.iter().map(outcome).collect();

    let mut rig = Rig::new();
    let ann = rig.here(&[10]);
    let mut alone = Vec::new();
    for request in &batch {
        let accepted = rig.call(&ann, |service| service.accept(request)).unwrap();
        alone.push(outcome(&accepted));
    }
    assert_eq!(together, alone);

    let first = Some(JobId::mint([1; 16]).to_string());
    let second = Some(JobId::mint([2; 16]).to_string());
    let expected = [
        (1, "queued".to_owned(), false, first.clone()),
        (2, "queued".to_owned(), false, second),
        (3, "joined".to_owned(), false, first.clone()),
        (1, "queued".to_owned(), true, first),
    ];
    assert_eq!(together, expected);
}
