//! What cannot be read of the queue is left out and named; all others are found.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "a test may touch the machine")]

use std::collections::BTreeSet;
use std::path::Path;

use rusqlite::Connection;
use tenure_core::id::JobId;
use tenure_core::queue::delivery::{Delivery, UndecidedDelivery, Verdict};
use tenure_core::queue::reply::NewReply;
use tenure_core::queue::{Job, JobState, JobTaker};
use tenure_core::store::{DeliveryFilter, JobFilter, Store, Tx, TxMode, WaitingFilter};
use tenure_core::time::Timestamp;
use tenure_store::SqliteStore;
use tenure_testkit::conformance::sample::job as waiting_job;
use tenure_testkit::conformance::sample::{EPOCH, clock, key, process};

/// Six jobs, of which the first three cannot be read.
fn half_damaged(path: &Path) -> SqliteStore {
    let mut store = SqliteStore::open(path, clock()).unwrap();
    let mut tx = store.begin(TxMode::Write).unwrap();
    for n in 1..=6 {
        tx.insert_job(&waiting_job(n)).unwrap();
    }
    tx.commit().unwrap();
    let plain = Connection::open(path).unwrap();
    for n in 1..=3 {
        let id = waiting_job(n).id.to_string();
        let sql = "UPDATE jobs SET spec = 'not JSON' WHERE id = ?1";
        assert_eq!(plain.execute(sql, [id]).unwrap(), 1);
    }
    store
}

fn filter(limit: usize, without_repos: &[&str]) -> WaitingFilter {
    WaitingFilter {
        now: Timestamp(EPOCH + 1_000),
        host: process(77, 1).host,
        without_repos: without_repos.iter().map(ToString::to_string).collect(),
        limit,
    }
}

#[track_caller]
fn assert_named(tx: &mut dyn Tx, numbers: &[u8]) {
    let damage = tx.take_damage();
    let named: BTreeSet<&str> = damage
        .iter()
        .filter_map(|why| why.split([':', ',']).next())
        .collect();
    let expected: Vec<String> = numbers.iter().map(|n| id(*n).to_string()).collect();
    assert_eq!(named, expected.iter().map(String::as_str).collect());
}

fn id(n: u8) -> JobId {
    waiting_job(n).id
}

fn ids(jobs: Vec<Job>) -> Vec<JobId> {
    jobs.into_iter().map(|job| job.id).collect()
}

#[test]
fn jobs_behind_unreadable_ones_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = half_damaged(&dir.path().join("tenure.db"));
    for without in [&[][..], &["acme/other"]] {
        let mut tx = store.begin(TxMode::Read).unwrap();
        let found = tx.waiting_jobs(&filter(2, without)).unwrap();
        assert_eq!(ids(found), [id(4), id(5)]);
        assert_named(tx.as_mut(), &[1, 2, 3]);
        let found = tx.waiting_jobs(&filter(0, without)).unwrap();
        assert_eq!(ids(found), [id(4), id(5), id(6)]);
    }
}

/// Whether a job starts a new conversation is in what cannot be read.
#[test]
fn an_unreadable_job_whose_conversation_is_elsewhere_hides_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tenure.db");
    let mut store = half_damaged(&path);
    let job = waiting_job(1);
    let plain = Connection::open(&path).unwrap();
    plain
        .execute(
            "INSERT INTO conversations (item, agent, role, native_id, host_id, revision) \
             VALUES (?1, ?2, ?3, 'c-1', 'another', 1)",
            [job.root.as_str(), job.agent.as_str(), job.role.as_str()],
        )
        .unwrap();
    let mut tx = store.begin(TxMode::Read).unwrap();
    let found = tx.waiting_jobs(&filter(0, &[])).unwrap();
    assert_eq!(ids(found), [id(4), id(5), id(6)]);
}

#[test]
fn an_unreadable_job_hides_no_other_that_runs_or_is_of_its_conversation() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tenure.db");
    let mut store = half_damaged(&path);
    let taken = Job {
        state: JobState::Starting,
        taken: Some(JobTaker {
            by: process(77, 1),
            at: Timestamp(EPOCH),
        }),
        ..waiting_job(4)
    };
    let mut tx = store.begin(TxMode::Write).unwrap();
    tx.update_job(&taken).unwrap();
    tx.commit().unwrap();
    let plain = Connection::open(&path).unwrap();
    plain
        .execute_batch("UPDATE jobs SET state = 'starting' WHERE spec = 'not JSON'")
        .unwrap();
    let mut tx = store.begin(TxMode::Read).unwrap();
    assert_eq!(ids(tx.taken_jobs().unwrap()), [id(4)]);
    assert_named(tx.as_mut(), &[1, 2, 3]);
    drop(tx);
    let (root, of) = (waiting_job(5).root, waiting_job(5).agent);
    let sql = "UPDATE jobs SET root = ?1, item = ?1, state = 'queued' WHERE id = ?2";
    plain.execute(sql, [root.as_str(), id(1).as_str()]).unwrap();
    let mut tx = store.begin(TxMode::Read).unwrap();
    assert_eq!(
        ids(tx.open_jobs_of(&of, &waiting_job(5).role, &root).unwrap()),
        [id(5)]
    );
    assert_named(tx.as_mut(), &[1]);
    assert_eq!(ids(tx.open_jobs_for(&root).unwrap()), [id(5)]);
    assert_named(tx.as_mut(), &[1]);
    let listed = JobFilter {
        item: Some(key(root.as_str())),
        readable_only: true,
        ..JobFilter::default()
    };
    assert_eq!(ids(tx.list_jobs(&listed).unwrap()), [id(5)]);
    assert_named(tx.as_mut(), &[1]);
}

/// A page with fewer than were asked for is the last one, so those that cannot be read must not count.
#[test]
fn comments_and_deliveries_behind_unreadable_ones_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tenure.db");
    let mut store = SqliteStore::open(&path, clock()).unwrap();
    let wanted = NewReply {
        forge: "home".into(),
        eyes: true,
        comment: false,
        target: None,
        pull: false,
        merge: false,
    };
    let now = Timestamp(EPOCH);
    let mut tx = store.begin(TxMode::Write).unwrap();
    for n in 1..=6 {
        let job = waiting_job(n);
        tx.insert_job(&job).unwrap();
        for reply in wanted.replies(&job, &job.item, false, now) {
            tx.insert_reply(&reply).unwrap();
        }
        let undecided = UndecidedDelivery {
            delivery: n.into(),
            endpoint: "home".into(),
            delivery_id: None,
            headers: "[]".into(),
            answers: Some("{}".into()),
            acted: false,
            replayed: false,
        };
        tx.insert_undecided(&undecided).unwrap();
    }
    tx.commit().unwrap();
    let plain = Connection::open(&path).unwrap();
    for sql in [
        "UPDATE replies SET tries = -1 WHERE id <= 3",
        "UPDATE undecided_deliveries SET acted = 7 WHERE delivery <= 3",
    ] {
        assert_eq!(plain.execute(sql, []).unwrap(), 3);
    }
    let mut tx = store.begin(TxMode::Read).unwrap();
    let found = tx.open_replies("home", 0, 2).unwrap();
    let jobs: Vec<JobId> = found.into_iter().map(|reply| reply.job).collect();
    assert_eq!(jobs, [id(4), id(5)]);
    assert_eq!(tx.take_damage().len(), 3);
    let found = tx.undecided_of("home", true, 2).unwrap();
    let numbers: Vec<i64> = found.iter().map(|undecided| undecided.delivery).collect();
    assert_eq!(numbers, [4, 5]);
    assert_eq!(tx.take_damage().len(), 3);
}

/// A list of the jobs behind a place, at most this many.
fn page(open: bool, behind: u8, limit: usize) -> JobFilter {
    JobFilter {
        open,
        readable_only: true,
        behind: Some((waiting_job(behind).created_at, id(behind))),
        limit,
        ..JobFilter::default()
    }
}

#[test]
fn a_page_of_jobs_leads_to_what_is_behind_unreadable_ones() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tenure.db");
    let mut store = half_damaged(&path);
    let plain = Connection::open(&path).unwrap();
    let sql = "UPDATE jobs SET spec = 'not JSON' WHERE id = ?1";
    plain.execute(sql, [id(5).as_str()]).unwrap();
    let mut tx = store.begin(TxMode::Read).unwrap();
    let oldest_first = tx.list_jobs(&page(true, 1, 2)).unwrap();
    assert_eq!(ids(oldest_first), [id(4), id(6)]);
    assert_named(tx.as_mut(), &[2, 3, 5]);
    let newest_first = tx.list_jobs(&page(false, 6, 1)).unwrap();
    assert_eq!(ids(newest_first), [id(4)]);
    assert_named(tx.as_mut(), &[5]);
    let rest = tx.list_jobs(&page(false, 4, 1)).unwrap();
    assert!(rest.is_empty());
    assert_named(tx.as_mut(), &[1, 2, 3]);
    assert_eq!(tx.count_jobs(&page(true, 1, 2)).unwrap(), 5);
}

/// A delivery about an item, which led to nothing.
fn refused() -> Delivery {
    Delivery {
        id: 0,
        endpoint: "home".into(),
        delivery_id: None,
        content_key: None,
        body_hash: None,
        received_at: Timestamp(EPOCH),
        event: "issue.opened".into(),
        repo: None,
        item: Some(key("issue:acme/web#6")),
        author: None,
        verdict: Verdict::Refused,
        rule: None,
        why: "no rule matches".into(),
        job: None,
    }
}

#[test]
fn a_page_of_deliveries_leads_to_what_is_behind_unreadable_ones() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tenure.db");
    let mut store = SqliteStore::open(&path, clock()).unwrap();
    let mut tx = store.begin(TxMode::Write).unwrap();
    for n in 1..=6 {
        assert_eq!(tx.insert_delivery(&refused(), b"{}").unwrap(), n);
    }
    tx.commit().unwrap();
    let plain = Connection::open(&path).unwrap();
    let sql = "UPDATE deliveries SET verdict = 'of a later version' WHERE id IN (3, 4, 6)";
    assert_eq!(plain.execute(sql, []).unwrap(), 3);
    let mut tx = store.begin(TxMode::Read).unwrap();
    for item in [None, refused().item] {
        for (before, limit, expected, damaged) in [
            (None, 1, &[5][..], 1),
            (Some(5), 2, &[2, 1], 2),
            (Some(2), 2, &[1], 0),
            (None, 0, &[5, 2, 1], 3),
        ] {
            let filter = DeliveryFilter {
                item: item.clone(),
                before,
                limit,
            };
            let found = tx.list_deliveries(&filter).unwrap();
            let numbers: Vec<i64> = found.iter().map(|one| one.id).collect();
            assert_eq!(numbers, expected, "{filter:?}");
            assert_eq!(tx.take_damage().len(), damaged, "{filter:?}");
        }
    }
}
