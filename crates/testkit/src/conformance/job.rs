//! The queue: jobs, their events and the count of runs without a person; deliveries.

use tenure_core::conversation::{Author, Conversation, Current, Home};
use tenure_core::dispatch::publish::Publishing;
use tenure_core::id::{HostId, JobId, WorkerRole};
use tenure_core::key::Key;
use tenure_core::queue::breaker::Breaker;
use tenure_core::queue::code::{Credential, JobCode, JobForge, ModelSocket};
use tenure_core::queue::delivery::{Delivery, SAME_BODY_FOR, UndecidedDelivery, Verdict};
use tenure_core::queue::identity::{Doubt, Identity};
use tenure_core::queue::reply::NewReply;
use tenure_core::queue::{
    Caps, Job, JobAsk, JobEnd, JobEvent, JobSpec, JobState, JobTaker, Parked, ParkedFor,
};
use tenure_core::run::Outcome;
use tenure_core::store::{DeliveryFilter, JobFilter, Store, WaitingFilter};
use tenure_core::time::Timestamp;

use super::sample::*;

fn at(n: i64) -> Timestamp {
    Timestamp(EPOCH + n)
}

fn credential(file: &str) -> Credential {
    Credential {
        user: "bot".into(),
        file: file.into(),
    }
}

fn taken(job: Job) -> Job {
    Job {
        state: JobState::Starting,
        taken: Some(JobTaker {
            by: process(77, u64::MAX),
            at: at(50),
        }),
        ..job
    }
}

fn with(store: &mut dyn Store, jobs: &[Job]) {
    write(store, |tx| {
        for job in jobs {
            tx.insert_job(job).unwrap();
        }
    });
}

fn waiting(store: &mut dyn Store, now: i64) -> Vec<JobId> {
    waiting_without(store, now, &[], 0)
}

/// What waits in other repositories than these.
fn waiting_without(store: &mut dyn Store, now: i64, repos: &[&str], limit: usize) -> Vec<JobId> {
    let filter = WaitingFilter {
        now: at(now),
        host: process(77, u64::MAX).host,
        without_repos: repos.iter().map(|repo| (*repo).to_owned()).collect(),
        limit,
    };
    let jobs = read(store, |tx| tx.waiting_jobs(&filter).unwrap());
    jobs.into_iter().map(|job| job.id).collect()
}

pub fn a_job_reads_back_and_an_update_replaces_every_field(store: &mut dyn Store) {
    with(store, &[job(1)]);
    let full = Job {
        root: key("issue:acme/web#99"),
        repo: Some("acme/web".into()),
        spec: JobSpec {
            ask: JobAsk::Skill {
                name: "fix".into(),
                variables: [("a".to_owned(), "b".to_owned())].into(),
            },
            args: vec!["--model".into()],
            env: vec!["TOKEN".into()],
            wrap: vec!["bwrap".into()],
            timeout_ms: Some(7),
            caps: Caps {
                runs_per_hour: Some(3),
                budget_per_day: Some(1.5),
                per_repo: Some(2),
                breaker: Some(10),
            },
            dispatched: false,
            code: JobCode {
                head: Some("a1".into()),
                branch: Some("tenure/issue-6".into()),
                url: Some("https://git.example.org/acme/web.git".into()),
                origin: Some("https://git.example.org/acme/web.git".into()),
                forge: Some(JobForge {
                    kind: "forgejo".into(),
                    url: "https://git.example.org".into(),
                    credential: credential("token"),
                    ca_file: Some("/ca.pem".into()),
                }),
                push: Some(credential("push")),
                publishing: Publishing {
                    push: true,
                    asks: true,
                    workflows: false,
                    open_pr: true,
                    merge: false,
                },
                places: Some("/srv/places".into()),
                model: Some(ModelSocket {
                    url: "https://model.example.org".into(),
                    key_file: Some("/model.key".into()),
                    key_header: Some("x-api-key".into()),
                }),
                secrets: vec!["/home.secret".into()],
            },
            ..job_spec()
        },
        attempt: 3,
        failures: 2,
        failure: Some("no skill".into()),
        run: Some(tenure_core::id::RunId::mint([7; 16])),
        parked: Some(Parked {
            reason: ParkedFor::Limit,
            until: Some(at(900)),
            why: "a usage limit".into(),
        }),
        not_before: Some(at(800)),
        by: Some(id(1)),
        end: Some(JobEnd {
            at: at(700),
            outcome: Some(Outcome::Failed),
            why: "it failed".into(),
        }),
        unpublished: Some("its rule asks".into()),
        published: Some("tenure/issue-6".into()),
        ..taken(job(1))
    };
    write(store, |tx| tx.update_job(&full).unwrap());
    let found = read(store, |tx| tx.job(&full.id).unwrap()).unwrap();
    assert_eq!(
        found,
        Job {
            revision: 2,
            ..full.clone()
        }
    );
    conflict(store, |tx| tx.update_job(&full));
}

pub fn one_job_of_a_conversation_is_taken_at_a_time(store: &mut dyn Store) {
    let second = Job {
        root: job(1).root,
        ..job(2)
    };
    with(store, &[taken(job(1)), second.clone()]);
    conflict(store, |tx| tx.update_job(&taken(second.clone())));
    let other = read(store, |tx| tx.taken_jobs().unwrap());
    assert_eq!(other.len(), 1);
    let of_another_role = Job {
        role: WorkerRole::default(),
        ..second
    };
    let id = JobId::mint([3; 16]);
    with(
        store,
        &[Job {
            id,
            ..of_another_role.clone()
        }],
    );
    let open = read(store, |tx| {
        let Job {
            agent, role, root, ..
        } = &of_another_role;
        tx.open_jobs_of(agent, role, root).unwrap()
    });
    assert_eq!(
        open.len(),
        1,
        "a job of another role is of another conversation"
    );
    assert_eq!(waiting(store, 50), [open[0].id.clone()]);
    write(store, |tx| tx.update_job(&taken(open[0].clone())).unwrap());
}

pub fn the_oldest_waiting_job_of_each_free_conversation_may_be_taken(store: &mut dyn Store) {
    let later = Job {
        root: job(1).root,
        ..job(4)
    };
    let delayed = Job {
        not_before: Some(at(100)),
        ..job(2)
    };
    let parked = |until| {
        Some(Parked {
            reason: ParkedFor::Cap,
            until,
            why: "enough".into(),
        })
    };
    let until = Job {
        state: JobState::Parked,
        parked: parked(Some(at(200))),
        ..job(3)
    };
    let forever = Job {
        state: JobState::Parked,
        parked: parked(None),
        ..job(5)
    };
    let behind_taken = Job {
        root: job(6).root,
        ..job(7)
    };
    let jobs = [
        later.clone(),
        until.clone(),
        delayed.clone(),
        job(1),
        forever,
        taken(job(6)),
        behind_taken,
    ];
    with(store, &jobs);
    assert_eq!(waiting(store, 50), [job(1).id]);
    assert_eq!(
        read(store, |tx| tx.next_job_at(at(50)).unwrap()),
        Some(at(100))
    );
    assert_eq!(waiting(store, 150), [job(1).id, delayed.id.clone()]);
    assert_eq!(
        read(store, |tx| tx.next_job_at(at(150)).unwrap()),
        Some(at(200))
    );
    assert_eq!(waiting(store, 250), [job(1).id, delayed.id, until.id]);
    let over = Job {
        state: JobState::Cancelled,
        end: Some(JobEnd {
            at: at(60),
            outcome: None,
            why: "no".into(),
        }),
        ..job(1)
    };
    write(store, |tx| tx.update_job(&over).unwrap());
    assert!(
        waiting(store, 50).contains(&later.id),
        "now it is the oldest"
    );
}

pub fn jobs_of_other_repositories_are_found_behind_those_of_full_ones(store: &mut dyn Store) {
    let in_repo = |n: u8, repo: &str| Job {
        repo: Some(repo.into()),
        ..job(n)
    };
    let mut jobs: Vec<Job> = (1..=9).map(|n| in_repo(n, "acme/web")).collect();
    let delayed = Job {
        not_before: Some(at(100)),
        ..in_repo(11, "acme/docs")
    };
    let parked = Job {
        state: JobState::Parked,
        // Left from before it was parked.
        not_before: Some(at(20)),
        parked: Some(Parked {
            reason: ParkedFor::Cap,
            until: Some(at(200)),
            why: "enough".into(),
        }),
        ..in_repo(12, "acme/docs")
    };
    jobs.extend([job(10), delayed, parked]);
    jobs.extend((13..=15).map(|n| in_repo(n, "acme/docs")));
    jobs.push(taken(in_repo(16, "zoo/web")));
    with(store, &jobs);
    let ids =
        |numbers: &[u8]| -> Vec<JobId> { numbers.iter().map(|n| JobId::mint([*n; 16])).collect() };
    let full = ["acme/web"];
    assert_eq!(waiting_without(store, 50, &full, 0), ids(&[10, 13, 14, 15]));
    assert_eq!(
        waiting_without(store, 150, &full, 3),
        ids(&[10, 11, 13]),
        "the oldest first"
    );
    assert_eq!(
        waiting_without(store, 250, &full, 0),
        ids(&[10, 11, 12, 13, 14, 15])
    );
    let both = ["acme/web", "acme/docs", "none/such"];
    assert_eq!(waiting_without(store, 250, &both, 2), ids(&[10]));
}

pub fn jobs_whose_conversation_is_on_another_host_are_left_out(store: &mut dyn Store) {
    let of = |n: u8, host: &str| Conversation {
        current: Some(Current {
            native_id: native(&format!("n{n}")),
            home: Home {
                host: HostId::new(host),
                user: "1000".into(),
                agent_home: None,
                repo_host: None,
                dir: "/work".into(),
            },
            by: Author::default(),
            at: at(1),
        }),
        revision: 1,
        ..Conversation::none(agent(), role(), job(n).root)
    };
    let here = process(77, u64::MAX).host.to_string();
    let mut fresh = job(3);
    fresh.spec.fresh = true;
    with(store, &[job(1), job(2), fresh, job(4)]);
    write(store, |tx| {
        for conversation in [of(1, "other"), of(2, &here), of(3, "other")] {
            tx.insert_conversation(&conversation).unwrap();
        }
    });
    let left = [job(2).id, job(3).id, job(4).id];
    assert_eq!(waiting(store, 50), left);
    assert_eq!(waiting_without(store, 50, &["acme/web"], 0), left);
}

pub fn jobs_are_listed_by_item_and_counted(store: &mut dyn Store) {
    let over = Job {
        state: JobState::Cancelled,
        end: Some(JobEnd {
            at: at(60),
            outcome: None,
            why: "no".into(),
        }),
        item: job(1).item,
        ..job(3)
    };
    with(store, &[job(1), job(2), over.clone()]);
    let list = |store: &mut dyn Store, filter: &JobFilter| {
        let jobs = read(store, |tx| tx.list_jobs(filter).unwrap());
        jobs.into_iter().map(|job| job.id).collect::<Vec<_>>()
    };
    let open = JobFilter {
        open: true,
        ..JobFilter::default()
    };
    assert_eq!(list(store, &open), [job(1).id, job(2).id], "oldest first");
    let behind = |store: &mut dyn Store, filter: &JobFilter, one: &Job| {
        let behind = Some((one.created_at, one.id.clone()));
        let filter = JobFilter {
            behind,
            ..filter.clone()
        };
        list(store, &filter)
    };
    assert_eq!(behind(store, &open, &job(1)), [job(2).id]);
    assert!(behind(store, &open, &job(2)).is_empty());
    let all = JobFilter::default();
    let newest_first = list(store, &all);
    assert_eq!(behind(store, &all, &over), newest_first[1..]);
    let with_results = JobFilter {
        unpublished: true,
        ..open.clone()
    };
    assert_eq!(list(store, &with_results), [job(1).id, job(2).id]);
    write(store, |tx| {
        let waits = Job {
            unpublished: Some("its rule asks".into()),
            ..over.clone()
        };
        tx.update_job(&waits).unwrap();
    });
    assert_eq!(
        list(store, &with_results),
        [job(1).id, job(2).id, over.id.clone()]
    );
    assert_eq!(list(store, &open), [job(1).id, job(2).id]);
    let of = read(store, |tx| {
        tx.unpublished_jobs_of(&agent(), &role(), &job(3).root)
            .unwrap()
    });
    assert_eq!(of.len(), 1);
    let of_item = JobFilter {
        item: Some(job(1).item),
        limit: 1,
        ..JobFilter::default()
    };
    assert_eq!(list(store, &of_item), [over.id], "newest first");
    assert_eq!(read(store, |tx| tx.count_jobs(&of_item).unwrap()), 2);
    let of = read(store, |tx| tx.open_jobs_for(&job(1).item).unwrap());
    assert_eq!(of.len(), 1);
    let matched = read(store, |tx| tx.match_jobs("j-", 9).unwrap());
    assert_eq!(matched.len(), 3);
}

pub fn events_stay_in_their_order_and_breakers_are_kept(store: &mut dyn Store) {
    with(store, &[job(1)]);
    let event = |n: i64| JobEvent {
        delivery: (n == 2).then_some(n),
        at: at(n),
        summary: format!("event {n}"),
        data: "{}".into(),
    };
    let breaker = Breaker {
        item: job(1).item,
        runs: 3,
        person_at: Some(at(5)),
        told_at: None,
    };
    write(store, |tx| {
        tx.add_job_event(&job(1).id, &event(2)).unwrap();
        tx.add_job_event(&job(1).id, &event(1)).unwrap();
        tx.set_breaker(&Breaker::of(job(1).item)).unwrap();
        tx.set_breaker(&breaker).unwrap();
    });
    let events = read(store, |tx| tx.job_events(&job(1).id).unwrap());
    assert_eq!(events, [event(2), event(1)]);
    let kept = read(store, |tx| tx.breaker(&job(1).item).unwrap());
    assert_eq!(kept, Some(breaker));
    assert_eq!(read(store, |tx| tx.breaker(&job(2).item).unwrap()), None);
}

pub fn repositories_are_known_by_their_ids(store: &mut dyn Store) {
    let known = |id, doubt| Identity {
        name: "acme/web".to_owned(),
        id,
        doubt,
    };
    let largest = u64::MAX;
    for identity in [
        known(Some(largest), None),
        known(Some(largest), Some(Doubt::Other(largest - 1))),
        known(Some(3), Some(Doubt::Deleted)),
        known(None, None),
    ] {
        write(store, |tx| tx.set_identity(&identity).unwrap());
        let kept = read(store, |tx| tx.identity("acme/web").unwrap());
        assert_eq!(kept, Some(identity));
    }
    assert_eq!(read(store, |tx| tx.identity("acme/api").unwrap()), None);
}

fn delivery(id: &str, content: &str, verdict: Verdict) -> Delivery {
    Delivery {
        id: 0,
        endpoint: "home".into(),
        delivery_id: Some(id.into()),
        content_key: Some(content.into()),
        body_hash: None,
        received_at: at(1),
        event: "issue.opened".into(),
        repo: Some("acme/web".into()),
        item: Some(Key::parse("issue:acme/web#6").unwrap()),
        author: Some("alice".into()),
        verdict,
        rule: Some("fix".into()),
        why: "rule fix matches".into(),
        job: Some(job(1).id),
    }
}

pub fn only_a_delivery_that_led_to_something_has_duplicates(store: &mut dyn Store) {
    let refused = delivery("d-1", "c-1", Verdict::Refused);
    let queued = delivery("d-1", "c-1", Verdict::Queued);
    let id = write(store, |tx| {
        tx.insert_delivery(&refused, b"one").unwrap();
        assert_eq!(tx.delivery_like(&queued).unwrap(), None);
        tx.insert_delivery(&queued, b"two").unwrap()
    });
    let stored = Delivery {
        id,
        ..queued.clone()
    };
    for same in [
        delivery("d-1", "other", Verdict::Queued),
        delivery("other", "c-1", Verdict::Acted),
    ] {
        let found = read(store, |tx| tx.delivery_like(&same).unwrap());
        assert_eq!(found, Some(stored.clone()));
        conflict(store, |tx| tx.insert_delivery(&same, b"three"));
    }
    let elsewhere = Delivery {
        endpoint: "other".into(),
        ..queued.clone()
    };
    assert_eq!(
        read(store, |tx| tx.delivery_like(&elsewhere).unwrap()),
        None
    );
    assert_eq!(read(store, |tx| tx.delivery(id).unwrap()), Some(stored));
    let body = read(store, |tx| tx.delivery_body(id).unwrap());
    assert_eq!(body.as_deref(), Some(&b"two"[..]));
}

pub fn the_same_body_is_a_duplicate_for_seven_days(store: &mut dyn Store) {
    let hashed = |id: &str, hash: &str, received: i64| Delivery {
        body_hash: Some(hash.into()),
        received_at: at(received),
        ..delivery(id, id, Verdict::Queued)
    };
    let first = hashed("d-1", "ab", 1);
    let id = write(store, |tx| tx.insert_delivery(&first, b"one").unwrap());
    let number = |store: &mut dyn Store, like: Delivery| {
        let found = read(store, |tx| tx.delivery_like(&like).unwrap());
        found.map(|one| one.id)
    };
    let week = i64::try_from(SAME_BODY_FOR.as_millis()).unwrap();
    assert_eq!(number(store, hashed("d-2", "ab", week)), Some(id));
    assert_eq!(number(store, hashed("d-2", "ab", week + 1)), None);
    assert_eq!(number(store, hashed("d-2", "cd", 2)), None);
    let elsewhere = Delivery {
        endpoint: "other".into(),
        ..hashed("d-2", "ab", 2)
    };
    assert_eq!(number(store, elsewhere), None);
    // It may be stored all the same: an item can be closed twice with one body.
    write(store, |tx| {
        tx.insert_delivery(&hashed("d-3", "ab", 3), b"one").unwrap()
    });
}

pub fn what_was_decided_about_a_delivery_is_replaced(store: &mut dyn Store) {
    let waits = delivery("d-1", "c-1", Verdict::Waits);
    let id = write(store, |tx| tx.insert_delivery(&waits, b"one").unwrap());
    let decided = Delivery {
        id,
        verdict: Verdict::Queued,
        rule: Some("fix".into()),
        why: "rule fix matches".into(),
        job: Some(JobId::mint([9; 16])),
        ..waits
    };
    write(store, |tx| tx.update_delivery(&decided).unwrap());
    assert_eq!(
        read(store, |tx| tx.delivery(id).unwrap()),
        Some(decided.clone())
    );
    // From now on, the same delivery again is a duplicate.
    conflict(store, |tx| {
        tx.insert_delivery(&delivery("d-1", "c-2", Verdict::Queued), b"two")
    });
}

pub fn an_undecided_delivery_stays_with_its_body(store: &mut dyn Store) {
    let one = delivery("d-1", "c-1", Verdict::Waits);
    let id = write(store, |tx| {
        let id = tx.insert_delivery(&one, &[7; 100]).unwrap();
        tx.insert_undecided(&UndecidedDelivery {
            delivery: id,
            endpoint: one.endpoint.clone(),
            delivery_id: one.delivery_id.clone(),
            headers: "[]".into(),
            answers: None,
            acted: false,
            replayed: false,
        })
        .unwrap();
        id
    });
    let forget =
        |store: &mut dyn Store| write(store, |tx| tx.forget_deliveries(at(100), 10, 10).unwrap());
    assert_eq!(forget(store), 0);
    let kept = read(store, |tx| tx.delivery_body(id).unwrap());
    assert_eq!(kept.as_deref(), Some(&[7; 100][..]));
    assert!(write(store, |tx| tx.remove_undecided(id).unwrap()));
    assert_eq!(forget(store), 2, "its body, and itself");
    assert_eq!(read(store, |tx| tx.delivery(id).unwrap()), None);
}

pub fn old_deliveries_and_large_bodies_are_forgotten(store: &mut dyn Store) {
    let ids: Vec<i64> = (0..4)
        .map(|n| {
            let one = Delivery {
                received_at: at(n),
                ..delivery(&format!("d-{n}"), &format!("c-{n}"), Verdict::Queued)
            };
            write(store, |tx| tx.insert_delivery(&one, &[0; 100]).unwrap())
        })
        .collect();
    let count = write(store, |tx| tx.forget_deliveries(at(1), 250, 10).unwrap());
    assert!(count > 0);
    let listed = read(store, |tx| {
        tx.list_deliveries(&DeliveryFilter::default()).unwrap()
    });
    let left: Vec<i64> = listed.iter().map(|one| one.id).collect();
    assert_eq!(left, [ids[3], ids[2], ids[1]], "newest first");
    for item in [None, listed[0].item.clone()] {
        let older = DeliveryFilter {
            item,
            before: Some(ids[3]),
            limit: 1,
        };
        let older = read(store, |tx| tx.list_deliveries(&older).unwrap());
        assert_eq!(older.iter().map(|one| one.id).collect::<Vec<_>>(), [ids[2]]);
    }
    let body = |store: &mut dyn Store, id| read(store, |tx| tx.delivery_body(id).unwrap());
    assert_eq!(body(store, ids[1]), None);
    assert!(body(store, ids[2]).is_some() && body(store, ids[3]).is_some());
}

/// A job that ended at this time.
fn over(n: u8, ended: i64) -> Job {
    Job {
        state: JobState::Ended,
        end: Some(JobEnd {
            at: at(ended),
            outcome: Some(Outcome::Done),
            why: "done".into(),
        }),
        ..job(n)
    }
}

pub fn jobs_that_are_over_are_forgotten_unless_something_names_them(store: &mut dyn Store) {
    let old = [over(1, 20), over(2, 20), over(3, 20), over(4, 200), job(5)];
    with(store, &old);
    let event = |delivery| JobEvent {
        delivery,
        at: at(1),
        summary: "issue.comment by alice".into(),
        data: "{}".into(),
    };
    let named = write(store, |tx| {
        let named = delivery("d-1", "c-1", Verdict::Queued);
        let id = tx.insert_delivery(&named, b"{}").unwrap();
        tx.add_job_event(&old[0].id, &event(None)).unwrap();
        tx.add_job_event(&old[1].id, &event(Some(id))).unwrap();
        let reply = NewReply {
            forge: "home".into(),
            eyes: false,
            comment: true,
            target: None,
            pull: false,
            merge: false,
        };
        for reply in reply.replies(&old[2], &old[2].item, true, at(1)) {
            tx.insert_reply(&reply).unwrap();
        }
        id
    });
    let left = |store: &mut dyn Store| -> Vec<bool> {
        let is_left = |job: &Job| read(store, |tx| tx.job(&job.id).unwrap().is_some());
        old.iter().map(is_left).collect()
    };
    let count = write(store, |tx| tx.forget_jobs(at(100), 10).unwrap());
    assert_eq!(count, 1);
    assert_eq!(left(store), [false, true, true, true, true]);
    let events = read(store, |tx| tx.job_events(&old[0].id).unwrap());
    assert_eq!(events, [], "its events are gone with it");
    write(store, |tx| {
        tx.forget_deliveries(at(100), u64::MAX, 10).unwrap();
        assert!(tx.delivery(named).unwrap().is_none());
        tx.forget_replies(at(100), 10).unwrap();
    });
    let count = write(store, |tx| tx.forget_jobs(at(100), 1).unwrap());
    assert_eq!(count, 1, "at most so many at once");
    write(store, |tx| tx.forget_jobs(at(100), 10).unwrap());
    assert_eq!(left(store), [false, false, false, true, true]);
}
