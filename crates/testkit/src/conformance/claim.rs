//! Claims and holds.

use tenure_core::claim::{ClaimRecord, EndedBy, Hold, HoldEnd, Means, TakenAlong, TakenFrom};
use tenure_core::id::{Epoch, Life, RequestId, SessionToken};
use tenure_core::repository::Home;
use tenure_core::store::{ClaimFilter, Store, Tx};
use tenure_core::time::Timestamp;
use tenure_core::timeline::{TimelineCursor, TimelineFilter};

use super::sample::*;

pub fn a_key_that_was_never_granted_has_no_row(store: &mut dyn Store) {
    let one = key("wp:1");
    write(store, |tx| {
        assert_eq!(tx.claim(&one).unwrap(), None);
        let locked = tx.lock_claim(&one).unwrap();
        assert_eq!(locked, ClaimRecord::unknown(one.clone()));
        assert_eq!(
            tx.lock_claim(&one).unwrap(),
            locked,
            "locking twice is locking once"
        );
    });
    read(store, |tx| {
        assert_eq!(tx.claim(&one).unwrap(), None);
        let everything = ClaimFilter {
            free_too: true,
            ..ClaimFilter::default()
        };
        assert_eq!(tx.list_claims(&everything).unwrap(), []);
    });
}

pub fn a_grant_reads_back_with_every_field(store: &mut dyn Store) {
    with_sessions(store, [1]);
    // Every field is listed, so that a new field does not compile without a value.
    let full = Hold {
        key: key("wp:1"),
        epoch: Epoch(1),
        session: id(1),
        home: None,
        granted_at: Timestamp(EPOCH),
        ended: None,
        life: Life(3),
        request: RequestId::parse("req-1").ok(),
        means: Means::Takeover,
        note: Some("half \"done\" – ü".into()),
        taken_from: Some(TakenFrom {
            session: id(2).to_string(),
            handle: handle(2).to_string(),
            epoch: 8,
            by: "death".into(),
            proof: "pid 7 is gone".into(),
            dir: "/work/2".into(),
            branch: None,
            survivors: Vec::new(),
            survivors_unsure: None,
            also_ended: vec![TakenAlong {
                key: "wp:2".into(),
                epoch: 4,
            }],
        }),
    };
    write(store, |tx| grant(tx, &full));
    read(store, |tx| {
        let record = tx.claim(&key("wp:1")).unwrap().unwrap();
        assert_eq!(
            (record.epoch, record.newest.as_ref()),
            (Epoch(1), Some(&full))
        );
        assert_eq!(
            tx.newest_hold_of(id(1), &key("wp:1")).unwrap(),
            Some(full.clone())
        );
    });
    write(store, |tx| {
        tx.end_hold(&full.key, Epoch(1), end(EndedBy::Lease))
            .unwrap();
    });
    read(store, |tx| {
        let ended = Hold {
            ended: Some(end(EndedBy::Lease)),
            ..full
        };
        assert_eq!(tx.claim(&key("wp:1")).unwrap().unwrap().newest, Some(ended));
    });
}

pub fn an_old_epoch_is_a_conflict(store: &mut dyn Store) {
    with_sessions(store, [1, 2]);
    write(store, |tx| {
        grant(tx, &hold("wp:1", 1, 1));
        tx.end_hold(&key("wp:1"), Epoch(1), end(EndedBy::Release))
            .unwrap();
    });
    conflict(store, |tx| tx.insert_hold(&hold("wp:1", 1, 2), Epoch(0)));
    conflict(store, |tx| tx.insert_hold(&hold("wp:1", 3, 2), Epoch(2)));
    write(store, |tx| {
        tx.insert_hold(&hold("wp:1", 2, 2), Epoch(1)).unwrap();
    });
    read(store, |tx| {
        let record = tx.claim(&key("wp:1")).unwrap().unwrap();
        assert_eq!(
            (record.epoch, record.newest),
            (Epoch(2), Some(hold("wp:1", 2, 2)))
        );
    });
}

pub fn a_second_open_hold_is_a_conflict(store: &mut dyn Store) {
    with_sessions(store, [1, 2]);
    write(store, |tx| grant(tx, &hold("wp:1", 1, 1)));
    conflict(store, |tx| tx.insert_hold(&hold("wp:1", 2, 2), Epoch(1)));
    read(store, |tx| {
        let record = tx.claim(&key("wp:1")).unwrap().unwrap();
        assert_eq!(
            (record.epoch, record.newest),
            (Epoch(1), Some(hold("wp:1", 1, 1)))
        );
    });
}

pub fn only_an_open_hold_can_be_ended(store: &mut dyn Store) {
    with_sessions(store, [1]);
    write(store, |tx| grant(tx, &hold("wp:1", 1, 1)));
    conflict(store, |tx| {
        tx.end_hold(&key("wp:1"), Epoch(2), end(EndedBy::Done))
    });
    conflict(store, |tx| {
        tx.end_hold(&key("wp:2"), Epoch(1), end(EndedBy::Done))
    });
    write(store, |tx| {
        tx.end_hold(&key("wp:1"), Epoch(1), end(EndedBy::Done))
            .unwrap();
    });
    conflict(store, |tx| {
        tx.end_hold(&key("wp:1"), Epoch(1), end(EndedBy::Taken))
    });
    read(store, |tx| {
        assert!(tx.claim(&key("wp:1")).unwrap().unwrap().is_done());
    });
}

pub fn large_epochs_keep_their_order(store: &mut dyn Store) {
    with_sessions(store, [1]);
    let far = (1 << 40) + 7;
    write(store, |tx| {
        grant(tx, &hold("wp:1", 9, 1));
        tx.end_hold(&key("wp:1"), Epoch(9), end(EndedBy::Release))
            .unwrap();
        grant(tx, &hold("wp:1", far, 1));
    });
    read(store, |tx| {
        assert_eq!(tx.claim(&key("wp:1")).unwrap().unwrap().epoch, Epoch(far));
        let newest = tx.newest_hold_of(id(1), &key("wp:1")).unwrap();
        assert_eq!(newest, Some(hold("wp:1", far, 1)));
    });
}

pub fn all_holds_of_a_session_end_in_one_go(store: &mut dyn Store) {
    with_sessions(store, [1, 2]);
    write(store, |tx| {
        grant(tx, &hold("wp:b", 1, 1));
        grant(tx, &hold("wp:a", 1, 1));
        grant(tx, &hold("wp:c", 1, 1));
        tx.end_hold(&key("wp:c"), Epoch(1), end(EndedBy::Done))
            .unwrap();
        grant(tx, &hold("wp:d", 1, 2));
    });
    let death = end(EndedBy::Death);
    write(store, |tx| {
        let ended = tx.end_holds_of(id(1), death).unwrap();
        assert_eq!(ended, [(key("wp:a"), Epoch(1)), (key("wp:b"), Epoch(1))]);
        assert_eq!(tx.end_holds_of(id(1), death).unwrap(), []);
    });
    read(store, |tx| {
        let mut ended = |name: &str| {
            let record = tx.claim(&key(name)).unwrap().unwrap();
            record.newest.and_then(|hold| hold.ended)
        };
        assert_eq!(ended("wp:a"), Some(death));
        assert_eq!(ended("wp:c"), Some(end(EndedBy::Done)), "as it ended");
        assert_eq!(ended("wp:d"), None, "another session's");
    });
}

/// Keys are locked in this order, so every backend must have the same one.
pub fn keys_are_ordered_by_their_bytes(store: &mut dyn Store) {
    with_sessions(store, [1]);
    let ordered = [
        "wp:A", "wp:B", "wp:_", "wp:a", "wp:a-b", "wp:a_b", "wp:aa", "wp:b", "wp:z", "wp:é",
        "wp:中",
    ];
    assert!(ordered.map(key).is_sorted(), "as core has them");
    write(store, |tx| {
        for name in ordered.iter().rev() {
            grant(tx, &hold(name, 1, 1));
        }
    });
    assert_eq!(listed(store, &ClaimFilter::default()), ordered);
    let all = ClaimFilter {
        free_too: true,
        ..ClaimFilter::default()
    };
    assert_eq!(listed(store, &all), ordered);
    write(store, |tx| {
        let names = |holds: Vec<Hold>| -> Vec<String> {
            holds.iter().map(|hold| hold.key.to_string()).collect()
        };
        assert_eq!(names(tx.open_holds(id(1)).unwrap()), ordered);
        assert_eq!(names(tx.newest_holds(id(1)).unwrap()), ordered);
        let ended = tx.end_holds_of(id(1), end(EndedBy::End)).unwrap();
        assert_eq!(ended, ordered.map(|name| (key(name), Epoch(1))));
    });
}

pub fn the_newest_hold_of_a_session_is_its_own(store: &mut dyn Store) {
    with_sessions(store, [1, 2, 3]);
    let one = key("wp:1");
    write(store, |tx| {
        for (epoch, n) in [(1, 1), (2, 1), (3, 2)] {
            grant(tx, &hold("wp:1", epoch, n));
            tx.end_hold(&one, Epoch(epoch), end(EndedBy::Taken))
                .unwrap();
        }
    });
    read(store, |tx| {
        let newest = |tx: &mut dyn tenure_core::store::Tx, n| {
            tx.newest_hold_of(id(n), &one)
                .unwrap()
                .map(|hold| hold.epoch)
        };
        assert_eq!(newest(tx, 1), Some(Epoch(2)));
        assert_eq!(newest(tx, 2), Some(Epoch(3)));
        assert_eq!(newest(tx, 3), None);
    });
}

pub fn holds_of_a_session_are_in_order_of_the_keys(store: &mut dyn Store) {
    with_sessions(store, [1, 2]);
    write(store, |tx| {
        grant(tx, &hold("wp:b", 1, 1));
        grant(tx, &hold("wp:a", 1, 1));
        grant(tx, &hold("wp:c", 1, 1));
        tx.end_hold(&key("wp:c"), Epoch(1), end(EndedBy::Death))
            .unwrap();
        grant(tx, &hold("wp:c", 2, 1));
        tx.end_hold(&key("wp:c"), Epoch(2), end(EndedBy::End))
            .unwrap();
        grant(tx, &hold("wp:c", 3, 2));
    });
    read(store, |tx| {
        let open = tx.open_holds(id(1)).unwrap();
        assert_eq!(open, [hold("wp:a", 1, 1), hold("wp:b", 1, 1)]);
        let newest = tx.newest_holds(id(1)).unwrap();
        let last = Hold {
            ended: Some(end(EndedBy::End)),
            ..hold("wp:c", 2, 1)
        };
        assert_eq!(newest, [hold("wp:a", 1, 1), hold("wp:b", 1, 1), last]);
        assert_eq!(tx.open_holds(id(2)).unwrap(), [hold("wp:c", 3, 2)]);
        for who in [&[id(1)][..], &[id(1), id(2)]] {
            let mut open = Vec::new();
            let mut newest = Vec::new();
            for session in who {
                open.extend(tx.open_holds(*session).unwrap());
                newest.extend(tx.newest_holds(*session).unwrap());
            }
            let mut together = tx.open_holds_of(who).unwrap();
            together.sort_by_key(|hold| hold.session);
            assert_eq!(together, open);
            let mut together = tx.newest_holds_of(who).unwrap();
            together.sort_by_key(|hold| hold.session);
            assert_eq!(together, newest);
        }
    });
}

pub fn a_path_is_found_in_every_repository_that_a_session_held_it_in(store: &mut dyn Store) {
    with_sessions(store, [1, 2]);
    let names = [
        "path:/srv/a:b:src/x.rs",
        "path:/srv/a:src/x.rs",
        "path:acme/web:src/x.rs",
        "path:acme/web:src/y.rs",
        "path:acme/webs:src/x.rs",
    ];
    write(store, |tx| {
        for name in names {
            grant(tx, &hold(name, 1, 1));
        }
        let other = "path:acme/api:src/x.rs";
        grant(tx, &hold(other, 1, 2));
        tx.end_hold(&key(names[2]), Epoch(1), end(EndedBy::Release))
            .unwrap();
        grant(tx, &hold(names[2], 2, 1));
    });
    read(store, |tx| {
        let found = tx.newest_holds_of_path(id(1), "src/x.rs").unwrap();
        let found: Vec<_> = found
            .iter()
            .map(|one| (one.key.as_str(), one.epoch.0))
            .collect();
        let expected = [(names[0], 1), (names[1], 1), (names[2], 2), (names[4], 1)];
        assert_eq!(found, expected);
        assert!(
            tx.newest_holds_of_path(id(1), "src/z.rs")
                .unwrap()
                .is_empty()
        );
    });
}

pub fn what_several_sessions_lost_is_found_in_one_look(store: &mut dyn Store) {
    with_sessions(store, [1, 2, 3]);
    write(store, |tx| {
        let ends = |tx: &mut dyn tenure_core::store::Tx, name, epoch, n, by| {
            grant(tx, &hold(name, epoch, n));
            tx.end_hold(&key(name), Epoch(epoch), end(by)).unwrap();
        };
        ends(tx, "wp:b", 1, 1, EndedBy::Taken);
        ends(tx, "wp:a", 1, 1, EndedBy::Death);
        ends(tx, "wp:c", 1, 2, EndedBy::Lease);
        ends(tx, "wp:d", 1, 3, EndedBy::Taken);
        ends(tx, "wp:e", 1, 1, EndedBy::Release);
        // Granted again.
        ends(tx, "wp:f", 1, 2, EndedBy::Death);
        grant(tx, &hold("wp:f", 2, 2));
    });
    read(store, |tx| {
        let since = end(EndedBy::Taken).at;
        let all = tx.lost_holds_of(&[id(1), id(2)], since).unwrap();
        let names: Vec<_> = all.iter().map(|hold| hold.key.as_str()).collect();
        assert_eq!(names, ["wp:a", "wp:b", "wp:c"]);
        let later = Timestamp(since.0 + 1);
        assert_eq!(tx.lost_holds_of(&[id(1), id(2)], later).unwrap(), []);
        assert_eq!(tx.lost_holds_of(&[], since).unwrap(), []);
    });
}

/// Two keys that session 1 holds, one of session 2, one that is free.
fn four_keys(store: &mut dyn Store) {
    with_sessions(store, [1, 2]);
    write(store, |tx| {
        grant(tx, &hold("wp:b", 1, 1));
        grant(tx, &hold("wp:a", 1, 1));
        grant(tx, &hold("issue:acme/web#1", 1, 2));
        grant(tx, &hold("wp:free", 1, 2));
        tx.end_hold(&key("wp:free"), Epoch(1), end(EndedBy::Release))
            .unwrap();
    });
}

fn listed(store: &mut dyn Store, filter: &ClaimFilter) -> Vec<String> {
    read(store, |tx| {
        let records = tx.list_claims(filter).unwrap();
        records
            .iter()
            .map(|record| record.key.to_string())
            .collect()
    })
}

pub fn listing_shows_what_is_held(store: &mut dyn Store) {
    four_keys(store);
    let held = listed(store, &ClaimFilter::default());
    assert_eq!(held, ["issue:acme/web#1", "wp:a", "wp:b"]);
    let two = ClaimFilter {
        limit: 2,
        ..ClaimFilter::default()
    };
    assert_eq!(listed(store, &two), ["issue:acme/web#1", "wp:a"]);
    read(store, |tx| {
        let whole = tx.list_claims(&ClaimFilter::default()).unwrap();
        assert_eq!(
            (whole[1].epoch, whole[1].newest.clone()),
            (Epoch(1), Some(hold("wp:a", 1, 1)))
        );
    });
}

pub fn listing_shows_what_is_free_on_request(store: &mut dyn Store) {
    four_keys(store);
    let everything = ClaimFilter {
        free_too: true,
        ..ClaimFilter::default()
    };
    let keys = listed(store, &everything);
    assert_eq!(keys, ["issue:acme/web#1", "wp:a", "wp:b", "wp:free"]);
    read(store, |tx| {
        let free = tx.list_claims(&everything).unwrap().remove(3);
        assert_eq!(free.ended_by(), Some(EndedBy::Release));
    });
}

pub fn what_a_session_holds_goes_with_it_to_a_later_life(store: &mut dyn Store) {
    with_sessions(store, [1, 2]);
    write(store, |tx| {
        for (name, n) in [("wp:over", 1), ("wp:open", 1), ("wp:other", 2)] {
            grant(tx, &hold(name, 1, n));
        }
        tx.end_hold(&key("wp:over"), Epoch(1), end(EndedBy::Release))
            .unwrap();
        let next = SessionToken {
            id: id(1),
            life: Life(5),
        };
        tx.carry_holds(next).unwrap();
    });
    read(store, |tx| {
        let life = |tx: &mut dyn Tx, name: &str| {
            let record = tx.claim(&key(name)).unwrap().unwrap();
            record.newest.unwrap().life
        };
        let before = hold("wp:open", 1, 1).life;
        assert_eq!(life(tx, "wp:open"), Life(5));
        assert_eq!(life(tx, "wp:over"), before);
        assert_eq!(life(tx, "wp:other"), before);
    });
}

pub fn the_homes_of_open_holds_are_listed_each_once(store: &mut dyn Store) {
    with_sessions(store, [1, 2]);
    let home = |dir: &str, mark: Option<&str>| Home {
        dir: dir.into(),
        mark: mark.map(str::to_owned),
    };
    let (one, other) = (home("/a/.git", Some("1:2:3")), home("/a/.git", None));
    let held = |name: &str, n, home: &Home| Hold {
        home: Some(home.clone()),
        ..hold(name, 1, n)
    };
    let ended = held("path:x/n:d", 2, &home("/b/.git", None));
    write(store, |tx| {
        grant(tx, &held("path:x/n:a", 1, &one));
        grant(tx, &held("path:x/n:b", 2, &one));
        grant(tx, &held("path:y/n:a", 1, &other));
        grant(tx, &ended);
        grant(tx, &hold("path:x/n:c", 1, 1));
        tx.end_hold(&ended.key, Epoch(1), end(EndedBy::Release))
            .unwrap();
    });
    read(store, |tx| {
        let mut homes = tx.open_homes().unwrap();
        homes.sort_by(|one, other| one.mark.cmp(&other.mark));
        assert_eq!(homes, [other.clone(), one.clone()]);
    });
    let of = |home: &Home| ClaimFilter {
        home: Some(home.clone()),
        ..ClaimFilter::default()
    };
    assert_eq!(listed(store, &of(&one)), ["path:x/n:a", "path:x/n:b"]);
    assert_eq!(listed(store, &of(&other)), ["path:y/n:a"]);
    read(store, |tx| {
        let found = tx.claim(&key("path:x/n:a")).unwrap().unwrap();
        assert_eq!(found.newest.unwrap().home, Some(one.clone()));
    });
}

pub fn listing_by_session_and_by_prefix(store: &mut dyn Store) {
    four_keys(store);
    let of = |n, prefix: Option<&str>, free_too| ClaimFilter {
        free_too,
        session: Some(id(n)),
        prefix: prefix.map(str::to_owned),
        ..ClaimFilter::default()
    };
    assert_eq!(listed(store, &of(1, None, false)), ["wp:a", "wp:b"]);
    assert_eq!(
        listed(store, &of(2, None, true)),
        ["issue:acme/web#1"],
        "what it holds"
    );
    assert_eq!(listed(store, &of(1, Some("wp:b"), false)), ["wp:b"]);
    let begins = |prefix: &str, free_too| ClaimFilter {
        free_too,
        prefix: Some(prefix.to_owned()),
        ..ClaimFilter::default()
    };
    assert_eq!(
        listed(store, &begins("wp:", true)),
        ["wp:a", "wp:b", "wp:free"]
    );
    assert_eq!(listed(store, &begins("wp:", false)), ["wp:a", "wp:b"]);
    assert_eq!(listed(store, &begins("WP:", false)), [""; 0]);
    assert_eq!(listed(store, &begins("w%", false)), [""; 0]);
}

/// Grants and ends that are listed as a timeline: two that are held, and four that ended, two at once.
fn six_holds(store: &mut dyn Store) {
    with_sessions(store, [1, 2]);
    write(store, |tx| {
        let ended = |tx: &mut dyn Tx, name, epoch, n, at, by| {
            grant(tx, &hold(name, epoch, n));
            let at = Timestamp(EPOCH + at);
            tx.end_hold(&key(name), Epoch(epoch), HoldEnd { at, by })
                .unwrap();
        };
        ended(tx, "wp:b", 1, 1, 10, EndedBy::Taken);
        ended(tx, "wp:b", 2, 2, 30, EndedBy::Release);
        grant(tx, &hold("wp:b", 3, 1));
        ended(tx, "wp:c", 1, 1, 30, EndedBy::Death);
        ended(tx, "wp:d", 1, 2, 20, EndedBy::Done);
        grant(tx, &hold("wp:a", 1, 2));
    });
}

/// The holds of a timeline, each with the epoch of the next.
fn timeline(store: &mut dyn Store, filter: &TimelineFilter) -> Vec<(String, u64, Option<u64>)> {
    read(store, |tx| {
        let found = tx.timeline(filter).unwrap();
        let of = |hold: &Hold| (hold.key.to_string(), hold.epoch.0);
        let row = found.iter().map(|one| {
            let (key, epoch) = of(&one.hold);
            (key, epoch, one.next.as_ref().map(|next| next.epoch.0))
        });
        row.collect()
    })
}

pub fn the_timeline_has_what_is_held_and_then_what_ended_last(store: &mut dyn Store) {
    six_holds(store);
    let row = |name: &str, epoch, next| (name.to_owned(), epoch, next);
    let all = [
        row("wp:a", 1, None),
        row("wp:b", 3, None),
        row("wp:c", 1, None),
        row("wp:b", 2, None),
        row("wp:d", 1, None),
        row("wp:b", 1, Some(2)),
    ];
    let filter = TimelineFilter::default();
    assert_eq!(timeline(store, &filter), all);
    let since = |at| TimelineFilter {
        since: Some(Timestamp(EPOCH + at)),
        ..TimelineFilter::default()
    };
    assert_eq!(timeline(store, &since(20)), all[..5]);
    assert_eq!(timeline(store, &since(21)), all[..4]);
    assert_eq!(timeline(store, &since(31)), all[..2]);
    let of_key = TimelineFilter {
        key: Some(key("wp:b")),
        ..since(20)
    };
    assert_eq!(timeline(store, &of_key), [all[1].clone(), all[3].clone()]);
    let of_session = TimelineFilter {
        session: Some(id(2)),
        ..since(20)
    };
    let theirs = [all[0].clone(), all[3].clone(), all[4].clone()];
    assert_eq!(timeline(store, &of_session), theirs);
}

pub fn the_timeline_goes_on_behind_any_of_its_holds(store: &mut dyn Store) {
    six_holds(store);
    for (key_of, session) in [
        (None, None),
        (Some(key("wp:b")), None),
        (None, Some(id(1))),
        (Some(key("wp:b")), Some(id(1))),
    ] {
        let mut filter = TimelineFilter {
            key: key_of,
            session,
            ..TimelineFilter::default()
        };
        let all = timeline(store, &filter);
        assert!(!all.is_empty());
        filter.limit = 1;
        let mut paged = Vec::new();
        loop {
            let found = read(store, |tx| tx.timeline(&filter).unwrap());
            let Some(last) = found.last() else { break };
            filter.after = Some(TimelineCursor::of(&last.hold));
            filter.limit = 0;
            let rest = timeline(store, &filter);
            filter.limit = 1;
            assert_eq!(rest, all[paged.len() + 1..], "{filter:?}");
            paged.push(last.hold.epoch);
        }
        assert_eq!(paged.len(), all.len());
    }
}
