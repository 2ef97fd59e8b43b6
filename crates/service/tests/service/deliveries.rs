//! Deliveries that are stored together.

use std::time::Duration;

use tenure_core::conversation::Home;
use tenure_core::conversation::fitness::Left;
use tenure_core::id::{AgentName, HostId, JobId, NativeId, WorkerRole};
use tenure_core::queue::Trust;
use tenure_core::queue::breaker::Breaker;
use tenure_core::queue::choose::Limits;
use tenure_core::queue::delivery::{Delivery, Verdict};
use tenure_core::queue::identity::SeenRepository;
use tenure_core::queue::reply::{NewReply, Notice, RunNow};
use tenure_core::store::{DeliveryFilter, Lock, Store, TxMode};
use tenure_core::time::Timestamp;
use tenure_service::{
    Accept, Accepted, ActFor, Arrival, Decided, LinkRequest, LookForJobs, NewJob, Person,
    SetRequest, TakeJob, TakenJob, Undecided, WhichJobs,
};

use crate::jobs::job;
use crate::{Rig, Who, key};

/// The delivery `id` about an issue; its job gets the number `n`.
fn delivery(id: &str, n: u8, issue: &str) -> Accept {
    let item = key(issue);
    Accept {
        delivery: Delivery {
            id: 0,
            endpoint: "home".into(),
            delivery_id: Some(id.into()),
            content_key: None,
            body_hash: None,
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
        person: Person::Yes,
        repository: None,
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

/// The same, stored before it is decided.
fn undecided(request: &Accept) -> Arrival {
    with_body(request, b"{}".to_vec())
}

fn with_body(request: &Accept, body: Vec<u8>) -> Arrival {
    Arrival::New(Box::new(Undecided {
        delivery: Delivery {
            verdict: Verdict::Waits,
            rule: None,
            why: "later".into(),
            ..request.delivery.clone()
        },
        body,
        headers: "[]".into(),
        answers: Some("{}".into()),
        replayed: false,
    }))
}

/// Decides the undecided ones, each as its request says.
fn decide(rig: &mut Rig, who: &Who, requests: &[Accept]) -> Vec<i64> {
    let found = rig
        .call(who, |service| service.undecided(&["home"], 10))
        .unwrap()
        .found;
    let decisions: Vec<Decided> = found
        .iter()
        .map(|one| {
            let one = &one.row;
            let is_its = |request: &&Accept| request.delivery.delivery_id == one.delivery_id;
            let mut request = requests.iter().find(is_its).unwrap().clone();
            request.delivery.id = one.delivery;
            Decided::Now(Box::new(request))
        })
        .collect();
    rig.call(who, |service| service.decide_all(&decisions))
        .unwrap();
    // A second dispatcher that decides the same changes nothing.
    rig.call(who, |service| service.decide_all(&decisions))
        .unwrap();
    found.iter().map(|one| one.row.delivery).collect()
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
    let arrivals: Vec<_> = batch.iter().map(undecided).collect();
    let stored = rig
        .call(&ann, |service| service.store_all(&arrivals))
        .unwrap();
    let waits = "waits".to_owned();
    let expected = [
        (1, waits.clone(), false, None),
        (2, waits.clone(), false, None),
        (3, waits.clone(), false, None),
        (1, waits, true, None),
    ];
    assert_eq!(stored.iter().map(outcome).collect::<Vec<_>>(), expected);
    assert_eq!(decide(&mut rig, &ann, &batch), [1, 2, 3]);
    assert_eq!(decide(&mut rig, &ann, &batch), [0; 0]);
    let together = listed(&mut rig, &ann);

    let mut rig = Rig::new();
    let ann = rig.here(&[10]);
    for request in &batch {
        rig.accepts(&ann, request);
    }
    assert_eq!(together, listed(&mut rig, &ann));

    let first = Some(JobId::mint([1; 16]).to_string());
    let second = Some(JobId::mint([2; 16]).to_string());
    let expected = [
        (3, "joined".to_owned(), first.clone(), 0),
        (2, "queued".to_owned(), second, 1),
        (1, "queued".to_owned(), first, 2),
    ];
    assert_eq!(together, expected);
}

#[test]
fn large_bodies_are_decided_in_several_groups_and_none_is_left() {
    let mut rig = Rig::new();
    let ann = rig.here(&[10]);
    let ids = ["d1", "d2", "d3", "d4", "d5"];
    let batch: Vec<Accept> = ids
        .iter()
        .zip(1..)
        .map(|(id, n)| delivery(id, n, "issue:acme/web#7"))
        .collect();
    let arrivals: Vec<_> = batch
        .iter()
        .map(|request| with_body(request, vec![b' '; 3 << 20]))
        .collect();
    rig.call(&ann, |service| service.store_all(&arrivals))
        .unwrap();
    let oldest = rig
        .call(&ann, |service| service.undecided(&["home"], 10))
        .unwrap();
    assert_eq!(
        (oldest.found.len(), oldest.more),
        (3, true),
        "nine of fifteen MiB"
    );
    assert_eq!(decide(&mut rig, &ann, &batch), [1, 2, 3]);
    let oldest = rig
        .call(&ann, |service| service.undecided(&["home"], 10))
        .unwrap();
    assert_eq!((oldest.found.len(), oldest.more), (2, false));
    assert_eq!(decide(&mut rig, &ann, &batch), [4, 5]);
    let left = rig.call(&ann, |service| service.undecided(&["home"], 10));
    assert_eq!(left.unwrap().found, []);
}

/// The deliveries, the newest first, each with the number of events of the job that it made.
fn listed(rig: &mut Rig, who: &Who) -> Vec<(i64, String, Option<String>, usize)> {
    let filter = DeliveryFilter::default();
    let found = rig
        .call(who, |service| service.list_deliveries(&filter))
        .unwrap();
    let mut listed = Vec::new();
    for one in found {
        let made = one.job.clone().filter(|_| one.verdict == "queued");
        let events = made.map_or(0, |job| {
            let job = rig.call(who, |service| service.show_job(&job)).unwrap();
            job.events.len()
        });
        listed.push((one.id, one.verdict, one.job, events));
    }
    listed
}

#[test]
fn one_whose_forge_did_not_answer_is_shown_and_decided_when_it_has_answered() {
    let mut rig = Rig::new();
    let ann = rig.here(&[10]);
    let request = delivery("d-1", 1, ISSUE);
    let Arrival::New(mut one) = undecided(&request) else {
        panic!("it is new");
    };
    one.answers = None;
    rig.call(&ann, |service| service.store_all(&[Arrival::New(one)]))
        .unwrap();
    assert_eq!(decide(&mut rig, &ann, &[]), [0; 0], "nothing is decided");
    let why = "forge home did not answer";
    rig.call(&ann, |service| {
        service.keep_undecided(1, Some(&key(ISSUE)), why)
    })
    .unwrap();
    let waiting = rig.call(&ann, |service| service.waiting_deliveries());
    let waiting = waiting.unwrap();
    let [shown] = waiting.as_slice() else {
        panic!("{waiting:?}");
    };
    let seen = (shown.id, shown.verdict.as_str(), shown.why.as_str());
    assert_eq!(seen, (1, "waits", why));
    assert_eq!(shown.item.as_deref(), Some(ISSUE));
    // However old, it does not expire.
    let forgotten = rig.call(&ann, |service| {
        service.forget_deliveries(Timestamp(i64::MAX), 0)
    });
    assert_eq!(forgotten.unwrap(), 0);
    rig.call(&ann, |service| {
        service.store_answers(&[(1, "{}".to_owned())])
    })
    .unwrap();
    assert_eq!(decide(&mut rig, &ann, &[request]), [1]);
    let waiting = rig.call(&ann, |service| service.waiting_deliveries());
    assert_eq!(waiting.unwrap(), []);
}

#[test]
fn the_sweep_asks_about_a_conversation_that_a_comment_after_the_close_left_open() {
    let mut rig = Rig::new();
    let ann = rig.here(&[10]);
    let item = key(ISSUE);
    let open_items = |rig: &mut Rig| rig.call(&ann, |service| service.open_items(&[])).unwrap();
    rig.call(&ann, |service| service.close_item(&item)).unwrap();
    assert_eq!(open_items(&mut rig), []);
    let set = SetRequest {
        role: Default::default(),
        agent: AgentName::known("worker"),
        item: item.clone(),
        native_id: NativeId::parse("n1").unwrap(),
        home: Home {
            host: HostId::new("here"),
            user: "1000".into(),
            agent_home: None,
            repo_host: None,
            dir: "/srv/web".into(),
        },
        revision: None,
    };
    rig.call(&ann, |service| {
        service.set_conversation(&ActFor::default(), &set)
    })
    .unwrap();
    assert_eq!(open_items(&mut rig), std::slice::from_ref(&item));
    rig.call(&ann, |service| service.close_item(&item)).unwrap();
    assert_eq!(open_items(&mut rig), []);
}

/// A delivery that closes or reopens an issue.
fn changes_state(id: &str, event: &str, hash: &str) -> Accept {
    let mut request = delivery(id, 1, ISSUE);
    request.jobs.clear();
    request.person = Person::No;
    request.delivery.event = event.into();
    request.delivery.verdict = Verdict::Acted;
    request.delivery.body_hash = Some(hash.into());
    request
}

#[test]
fn the_same_body_under_a_new_id_is_a_duplicate_unless_its_effect_was_undone_at_once() {
    let mut rig = Rig::new();
    let ann = rig.here(&[10]);
    let mut accepts = |id: &str, event: &str, hash: &str| {
        let accepted = rig.accepts(&ann, &changes_state(id, event, hash));
        (accepted.delivery.id, accepted.duplicate)
    };
    assert_eq!(accepts("d-1", "issue.closed", "ab"), (1, false));
    assert_eq!(accepts("d-2", "issue.closed", "ab"), (1, true));
    assert_eq!(accepts("d-3", "issue.reopened", "cd"), (2, false));
    assert_eq!(accepts("d-1", "issue.closed", "ab"), (1, true), "its id");
    assert_eq!(accepts("d-4", "issue.closed", "ab"), (3, false));
    assert_eq!(accepts("d-5", "issue.closed", "ab"), (3, true));
}

const ISSUE: &str = "issue:acme/web#6";
const PULL: &str = "pr:acme/web#9";
const LIMITS: Limits = Limits { concurrency: 4 };

/// A pull request that continues its issue's conversation.
fn linked(rig: &mut Rig, who: &Who) {
    let request = LinkRequest {
        item: key(PULL),
        target: key(ISSUE),
    };
    rig.call(who, |service| {
        service.link_item(&ActFor::default(), &request)
    })
    .unwrap();
}

/// A delivery about the pull request, whose code is at this commit.
fn of_pull(id: &str, n: u8, head: &str) -> Accept {
    let mut request = delivery(id, n, PULL);
    request.jobs[0].spec.code.head = Some(head.into());
    request
}

impl Rig {
    fn accepts(&mut self, who: &Who, request: &Accept) -> Accepted {
        let arrivals = [undecided(request)];
        let stored = self.call(who, |service| service.store_all(&arrivals));
        let stored = stored.unwrap().remove(0);
        if stored.duplicate {
            return stored;
        }
        let mut request = request.clone();
        request.delivery.id = stored.delivery.id;
        let decided = self.call(who, |service| {
            service.decide_all(&[Decided::Now(Box::new(request))])
        });
        decided.unwrap().remove(0).expect("it is undecided")
    }

    fn takes_job(&mut self, who: &Who, n: u8) -> TakenJob {
        let request = TakeJob {
            job: JobId::mint([n; 16]),
            runner: self.world.process(20),
            limits: LIMITS,
        };
        self.call(who, |service| service.take_job(&request))
            .unwrap()
    }
}

#[test]
fn an_event_of_a_linked_item_joins_the_waiting_job_of_its_conversation() {
    let mut rig = Rig::new();
    let ann = rig.here(&[10]);
    linked(&mut rig, &ann);
    rig.accepts(&ann, &delivery("d-1", 1, ISSUE));
    let second = rig.accepts(&ann, &of_pull("d-2", 2, "cafe"));
    let first = JobId::mint([1; 16]).to_string();
    assert_eq!(second.delivery.verdict, "joined");
    assert_eq!(second.delivery.job.as_ref(), Some(&first));
    let job = &second.jobs[0].job;
    assert_eq!((&job.id, job.item.as_str()), (&first, ISSUE));
    let taken = rig.takes_job(&ann, 1);
    assert_eq!(taken.events.len(), 2);
    assert_eq!(taken.job.spec.code.head, None, "it works on the issue");
}

/// The permission was given for the commit that was the head then.
#[test]
fn an_event_of_another_item_does_not_change_which_commit_was_permitted() {
    let mut rig = Rig::new();
    let ann = rig.here(&[10]);
    linked(&mut rig, &ann);
    rig.accepts(&ann, &of_pull("d-1", 1, "cafe"));
    let joined = rig.accepts(&ann, &delivery("d-2", 2, ISSUE));
    assert!(joined.jobs[0].joined);
    let newer = rig.accepts(&ann, &of_pull("d-3", 3, "beef"));
    assert!(newer.jobs[0].joined);
    let joined = rig.accepts(&ann, &delivery("d-4", 4, ISSUE));
    assert!(joined.jobs[0].joined);
    let taken = rig.takes_job(&ann, 1);
    assert_eq!(taken.job.spec.code.head.as_deref(), Some("beef"));
}

#[test]
fn events_of_another_rule_trust_or_repository_do_not_join_across_items() {
    let others: [fn(&mut NewJob); 3] = [
        |new| new.rule = Some("review".into()),
        |new| new.trust = Trust::Outside,
        |new| new.repo = Some("acme/docs".into()),
    ];
    for change in others {
        let mut rig = Rig::new();
        let ann = rig.here(&[10]);
        linked(&mut rig, &ann);
        rig.accepts(&ann, &delivery("d-1", 1, ISSUE));
        let mut other = of_pull("d-2", 2, "cafe");
        change(&mut other.jobs[0]);
        let accepted = rig.accepts(&ann, &other);
        assert_eq!(accepted.delivery.verdict, "queued");
    }
}

#[test]
fn the_eyes_of_an_event_are_put_on_its_own_item() {
    let mut rig = Rig::new();
    let ann = rig.here(&[10]);
    linked(&mut rig, &ann);
    let eyes = |request: &mut Accept| {
        request.jobs[0].reply = Some(NewReply {
            forge: "home".into(),
            eyes: true,
            comment: true,
            target: Some("comment-7".into()),
            pull: false,
            merge: false,
        });
    };
    let (mut first, mut second) = (delivery("d-1", 1, ISSUE), of_pull("d-2", 2, "cafe"));
    eyes(&mut first);
    eyes(&mut second);
    rig.accepts(&ann, &first);
    rig.accepts(&ann, &second);
    let mut tx = rig.store.begin(TxMode::Read).unwrap();
    let replies = tx.open_replies("home", 0, 0).unwrap();
    let told: Vec<(&str, &str)> = replies
        .iter()
        .map(|reply| (reply.kind.as_str(), reply.item.as_str()))
        .collect();
    assert_eq!(told, [("eyes", ISSUE), ("eyes", PULL)]);
}

#[test]
fn a_job_is_not_cancelled_while_another_open_item_asks_for_it() {
    let mut rig = Rig::new();
    let ann = rig.here(&[10]);
    linked(&mut rig, &ann);
    rig.accepts(&ann, &delivery("d-1", 1, ISSUE));
    rig.accepts(&ann, &of_pull("d-2", 2, "cafe"));
    let cancels = |rig: &mut Rig, item: &str| {
        let item = key(item);
        rig.call(&ann, |service| service.close_item(&item)).unwrap();
        rig.call(&ann, |service| {
            service.cancel_jobs_of(&item, "it was closed")
        })
        .unwrap()
        .len()
    };
    assert_eq!(cancels(&mut rig, ISSUE), 0, "the pull request is open");
    assert_eq!(cancels(&mut rig, PULL), 0);
    assert_eq!(cancels(&mut rig, ISSUE), 1);
}

#[test]
fn a_person_lifts_the_breaker_of_the_job_that_an_event_of_another_item_joins() {
    let mut rig = Rig::new();
    let ann = rig.here(&[10]);
    linked(&mut rig, &ann);
    let mut first = delivery("d-1", 1, ISSUE);
    first.person = Person::No;
    first.jobs[0].spec.caps.breaker = Some(1);
    rig.accepts(&ann, &first);
    let mut tx = rig.store.begin(TxMode::Write).unwrap();
    tx.lock(&Lock::Conversation(key(ISSUE))).unwrap();
    tx.set_breaker(&Breaker {
        runs: 1,
        ..Breaker::of(key(ISSUE))
    })
    .unwrap();
    tx.commit().unwrap();
    let look = LookForJobs::within(LIMITS);
    let parked = rig.call(&ann, |service| service.waiting_jobs(&look));
    assert_eq!(parked.unwrap().parked.len(), 1);
    let mut second = of_pull("d-2", 2, "cafe");
    second.jobs[0].spec.caps.breaker = Some(1);
    let joined = rig.accepts(&ann, &second);
    assert!(joined.jobs[0].joined);
    assert_eq!(joined.jobs[0].job.state, "queued");
}

/// An agent may write with its user's token, and a forge that was away makes the decision late.
#[test]
fn an_account_that_wrote_during_a_run_lifts_no_breaker_however_late_and_whichever_role_it_was() {
    let mut rig = Rig::new();
    let ann = rig.here(&[10]);
    let by_account = |id: &str, n: u8| Accept {
        person: Person::Account,
        ..delivery(id, n, ISSUE)
    };
    let counts = |rig: &mut Rig| {
        let mut tx = rig.store.begin(TxMode::Write).unwrap();
        tx.lock(&Lock::Conversation(key(ISSUE))).unwrap();
        let count = Breaker {
            runs: 5,
            ..Breaker::of(key(ISSUE))
        };
        tx.set_breaker(&count).unwrap();
        tx.commit().unwrap();
    };
    let count = |rig: &mut Rig| {
        let mut tx = rig.store.begin(TxMode::Read).unwrap();
        tx.breaker(&key(ISSUE)).unwrap().unwrap().runs
    };
    let minutes = |rig: &mut Rig, n: u64| rig.clock.advance(Duration::from_secs(60 * n));
    counts(&mut rig);
    // Another role's run is on, and the newest one ended long ago.
    let reviewer = WorkerRole::parse("reviewer").unwrap();
    let review = rig.starts_run_as(1, ISSUE, 51, reviewer);
    minutes(&mut rig, 1);
    let newest = rig.starts_run(2, ISSUE, 52);
    rig.ends_run(&newest, "n1", Left::Sound);
    minutes(&mut rig, 10);
    rig.accepts(&ann, &by_account("d-1", 1));
    assert_eq!(count(&mut rig), 5);
    // It arrived during a run and is decided an hour later.
    let late = [by_account("d-2", 2)];
    let arrivals = [undecided(&late[0])];
    rig.call(&ann, |service| service.store_all(&arrivals))
        .unwrap();
    minutes(&mut rig, 1);
    rig.ends_run(&review, "n2", Left::Sound);
    minutes(&mut rig, 60);
    decide(&mut rig, &ann, &late);
    assert_eq!(count(&mut rig), 5);
    // It arrived while none was on, and one is when it is decided.
    let early = [by_account("d-3", 3)];
    let arrivals = [undecided(&early[0])];
    rig.call(&ann, |service| service.store_all(&arrivals))
        .unwrap();
    minutes(&mut rig, 1);
    rig.starts_run(3, ISSUE, 53);
    decide(&mut rig, &ann, &early);
    assert_eq!(count(&mut rig), 0, "a person's word");
}

/// The commit that was permitted is not known any more.
#[test]
fn a_refused_delivery_leaves_a_job_that_says_so_in_its_forge() {
    let mut rig = Rig::new();
    let ann = rig.here(&[10]);
    let mut refused = of_pull("d-1", 1, "cafe");
    refused.delivery.verdict = Verdict::Refused;
    refused.delivery.why = "the commit is unknown".into();
    refused.jobs[0].reply = Some(NewReply {
        forge: "home".into(),
        eyes: false,
        comment: false,
        target: None,
        pull: false,
        merge: false,
    });
    let told = rig.accepts(&ann, &refused);
    assert_eq!(told.delivery.verdict, "refused");
    assert_eq!(told.jobs[0].job.state, "cancelled");
    let look = LookForJobs::within(LIMITS);
    let waiting = rig.call(&ann, |service| service.waiting_jobs(&look));
    assert_eq!(waiting.unwrap().jobs, []);
    let due = rig.call(&ann, |service| service.due_replies("home"));
    let due = due.unwrap().remove(0);
    assert!(due.job.is_refused());
    let notice = Notice::of(due.reply.kind, &due.job, &RunNow::default()).unwrap();
    assert!(notice.starts, "{notice:?}");
}

fn of_repository(id: &str, n: u8, repository: u64, is_deleted: bool) -> Accept {
    let mut request = delivery(id, n, &format!("issue:acme/web#{n}"));
    request.jobs[0].repo = Some("acme/web".into());
    request.repository = Some(SeenRepository {
        name: "acme/web".into(),
        id: repository,
        is_deleted,
    });
    request
}

/// The jobs that may be taken, and why others were parked.
fn look(rig: &mut Rig, who: &Who) -> (usize, Vec<String>) {
    let look = LookForJobs::within(LIMITS);
    let found = rig
        .call(who, |service| service.waiting_jobs(&look))
        .unwrap();
    let whys = found.parked.iter().map(|job| {
        let parked = job.parked.as_ref().unwrap();
        assert_eq!((parked.reason.as_str(), parked.until), ("repository", None));
        parked.why.clone()
    });
    let whys = whys.collect();
    (found.jobs.len(), whys)
}

#[test]
fn another_repository_under_the_same_name_parks_its_jobs_until_a_person_retries_one() {
    let mut rig = Rig::new();
    let ann = rig.here(&[10]);
    rig.accepts(&ann, &of_repository("d-1", 1, 3, false));
    assert_eq!(look(&mut rig, &ann), (1, vec![]));
    rig.accepts(&ann, &of_repository("d-2", 2, 9, false));
    let (ready, parked) = look(&mut rig, &ann);
    assert_eq!((ready, parked.len()), (0, 2));
    assert!(parked[0].contains("has the id 9"), "{parked:?}");
    assert!(parked[0].contains("a person retries"), "{parked:?}");
    // An event of the first one may be late.
    rig.accepts(&ann, &of_repository("d-3", 3, 3, false));
    let (ready, parked) = look(&mut rig, &ann);
    assert_eq!((ready, parked.len()), (0, 1));
    let first = WhichJobs::one(&JobId::mint([1; 16]).to_string());
    rig.call(&ann, |service| service.retry_jobs(&first))
        .unwrap();
    assert_eq!(look(&mut rig, &ann), (3, vec![]), "all of the repository");
    rig.accepts(&ann, &of_repository("d-4", 4, 9, false));
    assert_eq!(look(&mut rig, &ann), (4, vec![]), "it is believed");
}

#[test]
fn a_deleted_repository_parks_its_jobs() {
    let mut rig = Rig::new();
    let ann = rig.here(&[10]);
    rig.accepts(&ann, &of_repository("d-1", 1, 3, false));
    let mut deleted = of_repository("d-2", 2, 3, true);
    deleted.jobs.clear();
    deleted.delivery.verdict = Verdict::Ignored;
    rig.accepts(&ann, &deleted);
    let (ready, parked) = look(&mut rig, &ann);
    assert_eq!((ready, parked.len()), (0, 1));
    assert!(parked[0].contains("was deleted"), "{parked:?}");
    let parked = WhichJobs {
        all_parked: true,
        ..WhichJobs::default()
    };
    rig.call(&ann, |service| service.retry_jobs(&parked))
        .unwrap();
    // Its successor is learnt.
    rig.accepts(&ann, &of_repository("d-3", 3, 9, false));
    assert_eq!(look(&mut rig, &ann), (2, vec![]));
}
