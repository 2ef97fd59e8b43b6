//! Sessions.

use tenure_core::id::{Handle, Life, SessionToken};
use tenure_core::session::{
    Activity, Closed, ClosedBy, Doing, EndKind, Session, Start, Title, TitleBy, Workdir,
};
use tenure_core::store::{SessionFilter, Store};
use tenure_core::time::{Deadline, Era, Timestamp};
use tenure_core::woken::Woken;

use super::sample::*;

/// A session with a value in every field.
///
/// Every field is listed, so that a new field does not compile without a value.
fn full(n: u32) -> Session {
    Session {
        id: id(n),
        handle: handle(n),
        agent: agent(),
        native_id: Some(native("ses_1")),
        fork_of: Some(native("ses_0")),
        parent: Some(SessionToken {
            id: id(90),
            life: Life(4),
        }),
        twin_of: Some(id(91)),
        title: Some(Title {
            text: "fix \"the\" thing; DROP TABLE – ü".into(),
            by: TitleBy::Prompt,
        }),
        workdir: Workdir {
            dir: "/work/a b/ü".into(),
            repo: Some("acme/web".into()),
            branch: Some("feature/x".into()),
        },
        branch_at: Some(Timestamp(EPOCH + 6)),
        hosted: true,
        life: Life(7),
        start: Some(Start {
            headless: true,
            flags: vec!["--model".into(), "a \"b\"".into()],
        }),
        attended_at: Some(Timestamp(EPOCH + 4)),
        activity: Some(Activity {
            doing: Doing::Waiting,
            since: Timestamp(EPOCH + 3),
            asks: Some("permission for rm -rf build".into()),
            why: Some("429 Too Many Requests".into()),
            until: Some(Timestamp(EPOCH + 7)),
        }),
        asked_at: Some(Timestamp(EPOCH + 8)),
        asked_before: Some(Timestamp(EPOCH + 5)),
        woken: Woken {
            is_turn: true,
            at: vec![Timestamp(EPOCH + 3), Timestamp(EPOCH + 4)],
        },
        lease: Deadline {
            era: Era {
                id: "boot-two".into(),
                private: true,
            },
            at: -5,
        },
        process: Some(process(2000 + n, 77)),
        daemon: Some(process(3000 + n, 78)),
        started_at: Timestamp(EPOCH + 1),
        seen_at: Timestamp(EPOCH + 2),
        closed: closed(ClosedBy::Moved),
        revision: 12,
    }
}

pub fn what_is_inserted_reads_back(store: &mut dyn Store) {
    write(store, |tx| tx.insert_session(&full(1)).unwrap());
    read(store, |tx| {
        assert_eq!(tx.session(id(1)).unwrap(), Some(full(1)));
        assert_eq!(
            tx.session_by_handle(handle(1).as_str()).unwrap(),
            Some(full(1))
        );
        assert_eq!(tx.session(id(2)).unwrap(), None);
        assert_eq!(tx.session_by_handle("claude").unwrap(), None);
    });
}

pub fn a_bare_session_reads_back(store: &mut dyn Store) {
    let bare = Session {
        process: None,
        ..session(1)
    };
    let another = Session {
        process: None,
        ..session(2)
    };
    write(store, |tx| {
        tx.insert_session(&bare).unwrap();
        tx.insert_session(&another).unwrap();
    });
    read(store, |tx| {
        assert_eq!(tx.session(id(1)).unwrap(), Some(bare));
    });
}

pub fn a_taken_id_or_handle_is_a_conflict(store: &mut dyn Store) {
    with_sessions(store, [1]);
    let same_id = Session {
        id: id(1),
        ..session(2)
    };
    let same_handle = Session {
        handle: handle(1),
        ..session(2)
    };
    conflict(store, |tx| tx.insert_session(&same_id));
    conflict(store, |tx| tx.insert_session(&same_handle));
    read(store, |tx| {
        assert_eq!(tx.session(id(1)).unwrap(), Some(session(1)));
    });
}

pub fn an_update_compares_the_revision_and_raises_it(store: &mut dyn Store) {
    with_sessions(store, [1]);
    let renamed = Session {
        title: Some(Title::person("one")),
        ..session(1)
    };
    write(store, |tx| tx.update_session(&renamed).unwrap());
    read(store, |tx| {
        let stored = tx.session(id(1)).unwrap().unwrap();
        assert_eq!((stored.revision, stored.title), (1, renamed.title.clone()));
    });
    conflict(store, |tx| tx.update_session(&renamed));
    let ahead = Session {
        revision: 2,
        ..session(1)
    };
    conflict(store, |tx| tx.update_session(&ahead));
    conflict(store, |tx| tx.update_session(&session(2)));
}

pub fn an_update_replaces_every_field(store: &mut dyn Store) {
    with_sessions(store, [1]);
    let wanted = Session {
        revision: 0,
        ..full(1)
    };
    write(store, |tx| tx.update_session(&wanted).unwrap());
    let stored = Session {
        revision: 1,
        ..wanted
    };
    read(store, |tx| {
        assert_eq!(tx.session(id(1)).unwrap(), Some(stored.clone()));
    });
    let bare_again = Session {
        revision: 1,
        ..session(1)
    };
    write(store, |tx| tx.update_session(&bare_again).unwrap());
    let expected = Session {
        revision: 2,
        ..session(1)
    };
    read(store, |tx| {
        assert_eq!(tx.session(id(1)).unwrap(), Some(expected));
    });
}

/// An update that changes no indexed value may use a different statement.
pub fn an_update_beside_the_indexes_replaces_the_rest(store: &mut dyn Store) {
    write(store, |tx| tx.insert_session(&full(1)).unwrap());
    let (full, bare) = (full(1), session(1));
    let keeps_its_end = Closed {
        by: ClosedBy::Death,
        why: "another reason".into(),
        ..full.closed.clone().unwrap()
    };
    let wanted = Session {
        native_id: full.native_id,
        parent: full.parent,
        workdir: Workdir {
            branch: None,
            ..full.workdir
        },
        hosted: full.hosted,
        process: full.process,
        daemon: full.daemon,
        started_at: full.started_at,
        closed: Some(keeps_its_end),
        revision: full.revision,
        ..bare
    };
    write(store, |tx| tx.update_session(&wanted).unwrap());
    let stored = Session {
        revision: wanted.revision + 1,
        ..wanted
    };
    read(store, |tx| {
        assert_eq!(tx.session(id(1)).unwrap(), Some(stored.clone()));
    });
}

pub fn a_touch_needs_the_open_session_and_its_life(store: &mut dyn Store) {
    let over = Session {
        closed: closed(ClosedBy::End),
        ..session(2)
    };
    write(store, |tx| {
        tx.insert_session(&session(1)).unwrap();
        tx.insert_session(&over).unwrap();
    });
    write(store, |tx| {
        let mut touch = |token| {
            tx.touch_session(token, Timestamp(EPOCH + 50), &lease(60_099), None, None)
                .unwrap()
        };
        let next = SessionToken {
            id: id(1),
            life: Life(2),
        };
        assert!(touch(token(1)));
        assert!(!touch(next), "another life");
        assert!(!touch(token(2)), "closed");
        assert!(!touch(token(3)), "unknown");
    });
    read(store, |tx| {
        assert_eq!(tx.session(id(2)).unwrap(), Some(over));
        let touched = tx.session(id(1)).unwrap().unwrap();
        assert_eq!(
            (touched.seen_at, touched.lease),
            (Timestamp(EPOCH + 50), lease(60_099))
        );
    });
}

pub fn a_touch_never_shortens_a_lease(store: &mut dyn Store) {
    with_sessions(store, [1]);
    let mut other_era = lease(1);
    other_era.era.id = "another boot".into();
    let mut private = other_era.clone();
    private.era.private = !private.era.private;
    for (given, kept) in [
        (lease(60_090), lease(60_090)),
        (lease(60_080), lease(60_090)),
        (lease(60_091), lease(60_091)),
        // The time left in another era is unknown.
        (other_era.clone(), other_era),
        (private.clone(), private),
    ] {
        write(store, |tx| {
            assert!(
                tx.touch_session(token(1), Timestamp(EPOCH + 50), &given, None, None)
                    .unwrap()
            );
            assert_eq!(tx.session(id(1)).unwrap().unwrap().lease, kept);
        });
    }
}

pub fn a_touch_leaves_the_revision_alone(store: &mut dyn Store) {
    with_sessions(store, [1]);
    write(store, |tx| {
        tx.touch_session(token(1), Timestamp(EPOCH + 50), &lease(60_099), None, None)
            .unwrap();
        assert_eq!(tx.session(id(1)).unwrap().unwrap().revision, 0);
        tx.update_session(&session(1)).unwrap();
    });
}

pub fn a_touch_keeps_what_it_does_not_name(store: &mut dyn Store) {
    with_sessions(store, [1]);
    let waits = Activity {
        asks: Some("permission for make".into()),
        why: Some("500 Internal server error".into()),
        until: Some(Timestamp(EPOCH + 60)),
        ..Activity::new(Doing::Waiting, Timestamp(EPOCH + 51))
    };
    let busy = Activity::new(Doing::Busy, Timestamp(EPOCH + 53));
    let there = Some(Timestamp(EPOCH + 52));
    let mut touch = |activity: Option<&Activity>, attended_at| {
        write(store, |tx| {
            let at = Timestamp(EPOCH + 50);
            let touched = tx.touch_session(token(1), at, &lease(60_099), activity, attended_at);
            assert!(touched.unwrap());
            let now = tx.session(id(1)).unwrap().unwrap();
            (now.activity, now.attended_at)
        })
    };
    assert_eq!(touch(Some(&waits), None), (Some(waits.clone()), None));
    assert_eq!(touch(None, there), (Some(waits), there));
    assert_eq!(touch(Some(&busy), None), (Some(busy), there));
}

pub fn a_branch_that_was_seen_is_stored_with_its_time(store: &mut dyn Store) {
    with_sessions(store, [1]);
    let mut note = |life: Life, branch: Option<&str>, at: i64| {
        write(store, |tx| {
            let token = SessionToken { id: id(1), life };
            tx.note_branch(token, branch, Timestamp(EPOCH + at))
                .unwrap();
            let now = tx.session(id(1)).unwrap().unwrap();
            (now.workdir.branch, now.branch_at, now.revision)
        })
    };
    let seen = |at: i64| Some(Timestamp(EPOCH + at));
    let topic = || Some("topic".to_owned());
    assert_eq!(note(Life(1), Some("topic"), 70), (topic(), seen(70), 0));
    assert_eq!(note(Life(2), Some("late"), 71), (topic(), seen(70), 0));
    assert_eq!(note(Life(1), None, 72), (None, seen(72), 0));
}

pub fn the_last_two_requests_to_the_model_are_stored(store: &mut dyn Store) {
    with_sessions(store, [1]);
    let mut asks = |at: i64| {
        write(store, |tx| {
            tx.note_request(token(1), Timestamp(EPOCH + at)).unwrap();
            let now = tx.session(id(1)).unwrap().unwrap();
            (now.asked_before, now.asked_at, now.revision)
        })
    };
    let time = |at: i64| Some(Timestamp(EPOCH + at));
    assert_eq!(asks(70), (None, time(70), 0));
    assert_eq!(asks(80), (time(70), time(80), 0));
}

pub fn when_messages_started_turns_is_stored(store: &mut dyn Store) {
    with_sessions(store, [1]);
    let woken = Woken::default().again(Timestamp(EPOCH));
    for next in [woken, Woken::default()] {
        let seen = write(store, |tx| {
            tx.note_woken(token(1), &next).unwrap();
            let now = tx.session(id(1)).unwrap().unwrap();
            (now.woken, now.revision)
        });
        assert_eq!(seen, (next, 0));
    }
}

pub fn those_that_were_cut_off_are_listed_until_they_are_dismissed(store: &mut dyn Store) {
    let ended = |n: u32, at: i64, kind, dismissed_at| Session {
        closed: Some(Closed {
            at: Timestamp(EPOCH + at),
            by: ClosedBy::End,
            why: "it was time".into(),
            kind,
            dismissed_at,
        }),
        ..session(n)
    };
    let sessions = [
        session(1),
        ended(2, 900, EndKind::CutOff, None),
        ended(3, 901, EndKind::Left, None),
        ended(4, 950, EndKind::CutOff, None),
        ended(5, 960, EndKind::CutOff, Some(Timestamp(EPOCH + 970))),
        ended(6, 100, EndKind::CutOff, None),
    ];
    write(store, |tx| {
        for session in &sessions {
            tx.insert_session(session).unwrap();
        }
    });
    let lately = SessionFilter {
        cut_off_since: Some(Timestamp(EPOCH + 500)),
        ..SessionFilter::default()
    };
    assert_eq!(ids(&listed(store, &lately)), [id(4), id(2)]);
    let mut dismissed = sessions[3].clone();
    dismissed.closed.as_mut().unwrap().dismissed_at = Some(Timestamp(EPOCH + 999));
    write(store, |tx| tx.update_session(&dismissed).unwrap());
    assert_eq!(ids(&listed(store, &lately)), [id(2)]);
}

pub fn sessions_are_listed_by_what_they_do(store: &mut dyn Store) {
    let doing = |n, doing| Session {
        activity: Some(Activity::new(doing, Timestamp(EPOCH + 40))),
        ..session(n)
    };
    write(store, |tx| {
        for session in [session(1), doing(2, Doing::Waiting), doing(3, Doing::Idle)] {
            tx.insert_session(&session).unwrap();
        }
    });
    let waiting = SessionFilter {
        doing: Some(Doing::Waiting),
        ..SessionFilter::default()
    };
    assert_eq!(ids(&listed(store, &waiting)), [id(2)]);
}

fn listed(store: &mut dyn Store, filter: &SessionFilter) -> Vec<Session> {
    read(store, |tx| tx.list_sessions(filter).unwrap())
}

fn ids(sessions: &[Session]) -> Vec<tenure_core::id::SessionId> {
    sessions.iter().map(|session| session.id).collect()
}

pub fn the_newest_are_listed_first(store: &mut dyn Store) {
    let same_moment = Session {
        started_at: session(3).started_at,
        ..session(4)
    };
    with_sessions(store, [2, 1, 3]);
    write(store, |tx| tx.insert_session(&same_moment).unwrap());
    let all = listed(store, &SessionFilter::default());
    assert_eq!(ids(&all), [id(4), id(3), id(2), id(1)]);
    assert_eq!(all[3], session(1), "whole records are listed");
}

pub fn closed_ones_are_listed_on_request(store: &mut dyn Store) {
    let over = Session {
        closed: closed(ClosedBy::Death),
        ..session(2)
    };
    with_sessions(store, [1, 3]);
    write(store, |tx| tx.insert_session(&over).unwrap());
    assert_eq!(
        ids(&listed(store, &SessionFilter::default())),
        [id(3), id(1)]
    );
    let everything = SessionFilter {
        closed_too: true,
        ..SessionFilter::default()
    };
    assert_eq!(ids(&listed(store, &everything)), [id(3), id(2), id(1)]);
}

pub fn listing_by_directory_takes_it_and_what_is_below(store: &mut dyn Store) {
    let dirs = ["/w/a", "/w/a/b/c", "/w/ab", "/w", "/w/a.b", "/w/A", "/w/a%"];
    write(store, |tx| {
        for (n, dir) in (1..).zip(dirs) {
            let mut there = session(n);
            there.workdir.dir = dir.into();
            tx.insert_session(&there).unwrap();
        }
    });
    let mut under = |dir: &str| {
        let filter = SessionFilter {
            under: Some(dir.into()),
            ..SessionFilter::default()
        };
        ids(&listed(store, &filter))
    };
    assert_eq!(under("/w/a"), [id(2), id(1)]);
    assert_eq!(under("/w").len(), dirs.len());
    assert_eq!(under("/").len(), dirs.len());
    assert_eq!(under("/w/a/"), [id(2), id(1)]);
    assert_eq!(under("/w/a%"), [id(7)]);
    assert_eq!(under("/x"), []);
}

pub fn listing_by_repository_and_by_parent(store: &mut dyn Store) {
    let parent = SessionToken {
        id: id(1),
        life: Life(2),
    };
    let mut child = Session {
        parent: Some(parent),
        ..session(2)
    };
    child.workdir.repo = Some("acme/web".into());
    let elsewhere = Session {
        parent: Some(token(1)),
        ..session(3)
    };
    with_sessions(store, [1]);
    write(store, |tx| {
        tx.insert_session(&child).unwrap();
        tx.insert_session(&elsewhere).unwrap();
    });
    let by_repo = SessionFilter {
        repo: Some("acme/web".into()),
        ..SessionFilter::default()
    };
    assert_eq!(ids(&listed(store, &by_repo)), [id(2)]);
    let part_of_a_repo = SessionFilter {
        repo: Some("acme".into()),
        ..SessionFilter::default()
    };
    assert_eq!(listed(store, &part_of_a_repo), []);
    let by_parent = SessionFilter {
        parent: Some(parent),
        ..SessionFilter::default()
    };
    assert_eq!(ids(&listed(store, &by_parent)), [id(2)], "that life's only");
}

pub fn a_limit_counts_after_the_filter(store: &mut dyn Store) {
    write(store, |tx| {
        for n in 1..=6 {
            let mut one = session(n);
            if n % 2 == 0 {
                one.closed = closed(ClosedBy::End);
            }
            tx.insert_session(&one).unwrap();
        }
    });
    let two = SessionFilter {
        limit: 2,
        ..SessionFilter::default()
    };
    assert_eq!(ids(&listed(store, &two)), [id(5), id(3)]);
}

fn matched(store: &mut dyn Store, part: &str, limit: usize) -> Vec<Handle> {
    read(store, |tx| {
        let found = tx.match_sessions(part, limit).unwrap();
        found.into_iter().map(|(_, handle)| handle).collect()
    })
}

fn named(n: u32, name: &str) -> Session {
    Session {
        handle: Handle::parse(name).unwrap(),
        ..session(n)
    }
}

pub fn a_part_names_a_session(store: &mut dyn Store) {
    write(store, |tx| {
        tx.insert_session(&named(1, "claude-kzqd")).unwrap();
        tx.insert_session(&named(2, "codex-mnpq")).unwrap();
    });
    for part in ["claude-kzqd", "claude", "kzqd", "zq", "kz", "e-k"] {
        assert_eq!(
            matched(store, part, 9),
            [Handle::parse("claude-kzqd").unwrap()],
            "{part}"
        );
    }
    let whole = id(2).to_string();
    for part in [whole.as_str(), &whole[30..], &whole[9..]] {
        assert_eq!(
            matched(store, part, 9),
            [Handle::parse("codex-mnpq").unwrap()],
            "{part}"
        );
    }
    assert_eq!(matched(store, "q", 9).len(), 2, "ambiguous");
    assert_eq!(matched(store, &whole[..8], 9).len(), 2, "ambiguous");
    for nobody in ["zzz", "Kzqd", "kzqd ", "kzqd%", "ü", "abcdef"] {
        assert_eq!(matched(store, nobody, 9), [], "{nobody}");
    }
    write(store, |tx| {
        let mut ended = named(3, "my_own-agent-bbcc");
        ended.closed = closed(ClosedBy::End);
        tx.insert_session(&ended).unwrap();
    });
    let ended = id(3).to_string();
    for part in ["y_own", "_", "n-agent-b", "bcc", &ended[9..]] {
        let found = matched(store, part, 9);
        assert_eq!(
            found,
            [Handle::parse("my_own-agent-bbcc").unwrap()],
            "{part}"
        );
    }
}

pub fn a_part_at_the_beginning_goes_before_one_inside(store: &mut dyn Store) {
    write(store, |tx| {
        tx.insert_session(&named(1, "kz-mmmm")).unwrap();
        tx.insert_session(&named(2, "claude-mkzm")).unwrap();
        tx.insert_session(&named(3, "claude-kzmm")).unwrap();
    });
    let names = matched(store, "kz", 9);
    assert_eq!(
        names,
        ["claude-kzmm", "kz-mmmm"].map(|name| Handle::parse(name).unwrap())
    );
}

pub fn open_matches_come_first_and_the_limit_holds(store: &mut dyn Store) {
    write(store, |tx| {
        for n in 1..=4 {
            let mut one = session(n);
            if n > 2 {
                one.closed = closed(ClosedBy::End);
            }
            tx.insert_session(&one).unwrap();
        }
    });
    let by_prefix = matched(store, "claude", 3);
    let by_inside = matched(store, "aude", 3);
    for found in [by_prefix, by_inside] {
        assert_eq!(found, [handle(2), handle(1), handle(4)]);
    }
    assert_eq!(matched(store, "claude", 1), [handle(2)]);
}

pub fn matching_is_byte_for_byte(store: &mut dyn Store) {
    with_sessions(store, [1]);
    for part in ["Claude", "CLAUDE", "cl%", "cl_ude", "*", "?", "'", "ü"] {
        assert_eq!(matched(store, part, 9), [], "{part}");
    }
}
