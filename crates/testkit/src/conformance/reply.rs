//! Replies, duties, and deliveries that wait for a forge.

use tenure_core::id::JobId;
use tenure_core::queue::delivery::UndecidedDelivery;
use tenure_core::queue::duty::Duty;
use tenure_core::queue::reply::{ForgeReply, ReplyKind};
use tenure_core::queue::{JobEnd, JobState};
use tenure_core::run::Outcome;
use tenure_core::store::{Store, StoreError, TxMode};
use tenure_core::time::Timestamp;

use super::sample::*;

fn at(n: i64) -> Timestamp {
    Timestamp(EPOCH + n)
}

fn reply(n: u8, kind: ReplyKind) -> ForgeReply {
    ForgeReply {
        id: 0,
        kind,
        forge: "home".into(),
        item: key(&format!("issue:acme/web#{n}")),
        job: JobId::mint([n; 16]),
        target: Some(format!("comment-{n}")),
        comment: None,
        unsure: false,
        said: None,
        tries: 0,
        next_at: None,
        failure: None,
        created_at: at(n.into()),
        done_at: None,
    }
}

pub fn a_reply_reads_back_and_an_update_replaces_what_changes(store: &mut dyn Store) {
    let id = write(store, |tx| {
        tx.insert_reply(&reply(1, ReplyKind::Status)).unwrap()
    });
    let full = ForgeReply {
        id,
        comment: Some(u64::MAX >> 1),
        unsure: true,
        said: Some("running r-1".into()),
        tries: 3,
        next_at: Some(at(9)),
        failure: Some("away".into()),
        done_at: Some(at(10)),
        ..reply(1, ReplyKind::Status)
    };
    write(store, |tx| tx.update_reply(&full).unwrap());
    let found = read(store, |tx| tx.reply(id).unwrap());
    assert_eq!(found, Some(full.clone()));
    let about = read(store, |tx| {
        tx.reply_about(&full.job, ReplyKind::Status).unwrap()
    });
    assert_eq!(about, Some(full));
}

pub fn one_comment_of_a_kind_is_written_about_a_job(store: &mut dyn Store) {
    write(store, |tx| {
        for kind in [
            ReplyKind::Eyes,
            ReplyKind::Eyes,
            ReplyKind::Status,
            ReplyKind::Parked,
        ] {
            tx.insert_reply(&reply(1, kind)).unwrap();
        }
    });
    let mut tx = store.begin(TxMode::Write).unwrap();
    let second = tx.insert_reply(&reply(1, ReplyKind::Status));
    assert_eq!(second, Err(StoreError::Conflict));
}

pub fn open_replies_of_a_forge_come_in_their_order(store: &mut dyn Store) {
    write(store, |tx| {
        for n in 1..=3 {
            tx.insert_reply(&reply(n, ReplyKind::Status)).unwrap();
        }
        let elsewhere = ForgeReply {
            forge: "other".into(),
            ..reply(4, ReplyKind::Status)
        };
        tx.insert_reply(&elsewhere).unwrap();
        let mut second = tx.open_replies("home", 0, 0).unwrap().remove(1);
        second.done_at = Some(at(9));
        tx.update_reply(&second).unwrap();
    });
    let open = read(store, |tx| tx.open_replies("home", 0, 0).unwrap());
    let jobs: Vec<JobId> = open.into_iter().map(|one| one.job).collect();
    assert_eq!(jobs, [JobId::mint([1; 16]), JobId::mint([3; 16])]);
    assert_eq!(
        read(store, |tx| tx.open_replies("home", 0, 1).unwrap()).len(),
        1
    );
}

pub fn replies_are_forgotten_when_they_were_done_or_left_long_ago(store: &mut dyn Store) {
    let over = |n: u8, ended: Option<i64>| {
        let mut job = job(n);
        if let Some(ended) = ended {
            job.state = JobState::Ended;
            job.end = Some(JobEnd {
                at: at(ended),
                outcome: Some(Outcome::Done),
                why: "so".into(),
            });
        }
        job
    };
    let ids: Vec<i64> = write(store, |tx| {
        let jobs = [
            (1, Some(5)),
            (2, Some(5)),
            (3, Some(5)),
            (4, Some(50)),
            (5, None),
        ];
        for (n, ended) in jobs {
            tx.insert_job(&over(n, ended)).unwrap();
        }
        let done = |n: u8, done_at: Option<i64>| ForgeReply {
            done_at: done_at.map(at),
            ..reply(n, ReplyKind::Status)
        };
        let replies = [
            done(1, Some(6)),
            done(2, Some(60)),
            done(3, None),
            done(4, None),
            done(5, None),
        ];
        replies.map(|one| tx.insert_reply(&one).unwrap()).to_vec()
    });
    let left = |store: &mut dyn Store| -> Vec<i64> {
        let is_there = |id: &i64| read(store, |tx| tx.reply(*id).unwrap()).is_some();
        ids.iter().copied().filter(is_there).collect()
    };
    assert_eq!(write(store, |tx| tx.forget_replies(at(6), 10).unwrap()), 1);
    assert_eq!(
        left(store),
        [ids[0], ids[1], ids[3], ids[4]],
        "its job is over, and its forge never took it"
    );
    assert_eq!(write(store, |tx| tx.forget_replies(at(40), 10).unwrap()), 1);
    assert_eq!(
        left(store),
        ids[1..2]
            .iter()
            .chain(&ids[3..])
            .copied()
            .collect::<Vec<_>>()
    );
    assert_eq!(write(store, |tx| tx.forget_replies(at(100), 1).unwrap()), 2);
    assert_eq!(left(store), ids[4..], "its job is open");
}

pub fn a_comment_about_a_job_that_waits_hides_no_other(store: &mut dyn Store) {
    write(store, |tx| {
        for n in 1..=2 {
            tx.insert_job(&job(n)).unwrap();
        }
        for kind in [ReplyKind::Status, ReplyKind::Eyes] {
            tx.insert_reply(&reply(1, kind)).unwrap();
        }
        let mut begun = tx.job(&job(2).id).unwrap().unwrap();
        begun.state = JobState::Begun;
        tx.update_job(&begun).unwrap();
        tx.insert_reply(&reply(2, ReplyKind::Status)).unwrap();
    });
    let open = read(store, |tx| tx.open_replies("home", 0, 0).unwrap());
    let seen: Vec<_> = open.iter().map(|one| (one.kind, one.job.clone())).collect();
    let ids = |n: u8| JobId::mint([n; 16]);
    assert_eq!(
        seen,
        [(ReplyKind::Eyes, ids(1)), (ReplyKind::Status, ids(2))]
    );
    let after = read(store, |tx| tx.open_replies("home", open[0].id, 0).unwrap());
    assert_eq!(after, open[1..]);
}

pub fn a_duty_passes_only_from_the_holder_that_was_seen(store: &mut dyn Store) {
    let duty = |pid: u32, n: i64| Duty {
        name: "forge home".into(),
        holder: process(pid, u64::MAX),
        renewed_at: at(n),
        swept_at: (n > 1).then(|| at(n)),
    };
    assert_eq!(read(store, |tx| tx.duty("forge home").unwrap()), None);
    write(store, |tx| tx.set_duty(None, &duty(7, 1)).unwrap());
    write(store, |tx| {
        assert_eq!(tx.set_duty(None, &duty(8, 1)), Err(StoreError::Conflict));
        let stale = tx.set_duty(Some(&duty(9, 1)), &duty(8, 2));
        assert_eq!(stale, Err(StoreError::Conflict));
        tx.set_duty(Some(&duty(7, 1)), &duty(8, 2)).unwrap();
    });
    assert_eq!(
        read(store, |tx| tx.duty("forge home").unwrap()),
        Some(duty(8, 2))
    );
}

pub fn undecided_deliveries_keep_their_order_and_are_removed_once(store: &mut dyn Store) {
    let undecided = |delivery: i64, id: Option<&str>| UndecidedDelivery {
        delivery,
        endpoint: "home".into(),
        delivery_id: id.map(str::to_owned),
        headers: format!("[[\"number\",\"{delivery}\"]]"),
        answers: Some("{}".into()),
        acted: false,
        replayed: delivery == 1,
    };
    let all = [
        undecided(3, Some("d-3")),
        undecided(1, None),
        undecided(2, None),
    ];
    write(store, |tx| {
        all.iter().for_each(|one| tx.insert_undecided(one).unwrap());
    });
    let listed = |store: &mut dyn Store, is_answered, limit| {
        read(store, |tx| {
            tx.undecided_of("home", is_answered, limit).unwrap()
        })
    };
    let of = |store: &mut dyn Store, limit| listed(store, true, limit);
    assert_eq!(
        of(store, 0),
        [all[1].clone(), all[2].clone(), all[0].clone()]
    );
    assert_eq!(of(store, 1), [all[1].clone()]);
    let ids = |store: &mut dyn Store| read(store, |tx| tx.undecided_ids("home").unwrap());
    assert_eq!(ids(store), [("d-3".to_owned(), 3)]);
    let elsewhere = read(store, |tx| tx.undecided_ids("other").unwrap());
    assert_eq!(elsewhere, []);
    let unanswered = UndecidedDelivery {
        answers: None,
        acted: true,
        ..all[2].clone()
    };
    write(store, |tx| {
        tx.update_undecided(&unanswered).unwrap();
        // It may be decided by now.
        tx.update_undecided(&undecided(9, None)).unwrap();
    });
    assert_eq!(of(store, 0), [all[1].clone(), all[0].clone()]);
    assert_eq!(listed(store, false, 0), [unanswered]);
    write(store, |tx| tx.update_undecided(&all[2]).unwrap());
    assert_eq!(
        read(store, |tx| tx.undecided(2).unwrap()),
        Some(all[2].clone())
    );
    let removed = write(store, |tx| {
        [3, 3].map(|number| tx.remove_undecided(number).unwrap())
    });
    assert_eq!(removed, [true, false]);
    assert_eq!((ids(store).len(), of(store, 0).len()), (0, 2));
}
