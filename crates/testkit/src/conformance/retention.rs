//! What can be forgotten, what something needs, and removing it in steps.

use std::time::Duration;

use tenure_core::claim::EndedBy;
use tenure_core::conversation::{
    Author, Conversation, Current, Home, IdEnd, ItemLink, ItemState, PastId, WhyEnded,
};
use tenure_core::event::EventFilter;
use tenure_core::id::{Epoch, HostId, KeeperId, SessionId};
use tenure_core::keeper::{Keeper, KeeperPlace, Terms};
use tenure_core::mission::pointer::PointerScope;
use tenure_core::mission::{Drive, MissionId, Participant, ParticipantId, Role};
use tenure_core::notice::Notice;
use tenure_core::process::BootId;
use tenure_core::retention::Need;
use tenure_core::run::end::Stop;
use tenure_core::run::{Run, StopAsked};
use tenure_core::session::{Closed, ClosedBy, MetaKey, Session};
use tenure_core::store::{LineageEntry, NewWaiter, Store, Tx};
use tenure_core::time::Timestamp;
use tenure_core::transcript::Transcript;
use tenure_core::write_conflict::FileWrite;

use super::sample::*;

fn at(n: i64) -> Timestamp {
    Timestamp(EPOCH + n)
}

/// The `n`th session, which closed at this time.
fn over(n: u32, closed_at: i64) -> Session {
    Session {
        closed: closed(ClosedBy::End).map(|closed| Closed {
            at: at(closed_at),
            ..closed
        }),
        ..session(n)
    }
}

/// Adds these sessions; all are closed.
fn with_closed(store: &mut dyn Store, numbers: impl IntoIterator<Item = u32>) {
    write(store, |tx| {
        for n in numbers {
            tx.insert_session(&over(n, i64::from(n))).unwrap();
        }
    });
}

fn is_there(store: &mut dyn Store, n: u32) -> bool {
    read(store, |tx| tx.session(id(n)).unwrap().is_some())
}

fn needs(store: &mut dyn Store, sessions: &[SessionId], before: i64) -> Vec<(SessionId, Need)> {
    let mut found = read(store, |tx| tx.needs_of(sessions, at(before)).unwrap());
    found.sort();
    found.dedup();
    found
}

fn remove(store: &mut dyn Store, sessions: &[SessionId]) -> usize {
    write(store, |tx| tx.remove_sessions(sessions).unwrap())
}

pub fn closed_sessions_are_listed_in_steps_the_one_that_closed_first_comes_first(
    store: &mut dyn Store,
) {
    write(store, |tx| {
        for (n, closed_at) in [(1, 50), (2, 10), (3, 20), (4, 20), (5, 30)] {
            tx.insert_session(&over(n, closed_at)).unwrap();
        }
        tx.insert_session(&session(6)).unwrap();
    });
    let (mut steps, mut after) = (Vec::new(), None);
    loop {
        let step = read(store, |tx| tx.closed_before(at(50), after, 2).unwrap());
        after = step.last().copied();
        if step.is_empty() {
            break;
        }
        steps.push(step);
    }
    // What closed at the moment itself, and what is open, is not among them.
    let first = vec![(at(10), id(2)), (at(20), id(3))];
    assert_eq!(steps, [first, vec![(at(20), id(4)), (at(30), id(5))]]);
}

/// Puts a row of each kind that needs a session: the `n`th is needed by the `n`th kind.
fn need_each(tx: &mut dyn Tx) -> Vec<(u32, Need)> {
    let mut needed = Vec::new();
    let mut session_for = |need| {
        let n = u32::try_from(needed.len()).unwrap() + 1;
        needed.push((n, need));
        n
    };
    let item = key("issue:acme/web#6");

    let holder = session_for(Need::Claim);
    grant(tx, &hold("wp:held", 1, holder));

    let waiting = session_for(Need::Wait);
    let waiter = NewWaiter {
        session: Some(token(waiting)),
        process: &process(77, 1),
        since: at(1),
    };
    tx.join_line(&[key("wp:held")], &waiter).unwrap();

    let finisher = session_for(Need::Done);
    grant(tx, &hold("wp:done", 1, finisher));
    let done = end(EndedBy::Done);
    tx.end_hold(&key("wp:done"), Epoch(1), done).unwrap();

    let owner = session_for(Need::Conversation);
    let setter = session_for(Need::Conversation);
    let one = native("ses_1");
    tx.set_native_owner(&agent(), &one, None, id(owner), at(1))
        .unwrap();
    tx.insert_conversation(&Conversation {
        current: Some(Current {
            native_id: one,
            home: Home {
                host: HostId::new("host-one"),
                user: "alice".into(),
                agent_home: None,
                repo_host: None,
                dir: "/srv/web".into(),
            },
            by: by(setter),
            at: at(1),
        }),
        revision: 1,
        ..Conversation::none(agent(), role(), item.clone())
    })
    .unwrap();

    let first = session_for(Need::Conversation);
    let second = session_for(Need::Conversation);
    let past = PastId {
        native_id: native("ses_0"),
        from: at(1),
        by: by(first),
        ended: None,
    };
    tx.add_past_id(&agent(), &role(), &item, &past).unwrap();
    let ended = IdEnd {
        at: at(2),
        why: WhyEnded::Replaced,
        by: by(second),
    };
    tx.end_past_id(&agent(), &role(), &item, &ended).unwrap();

    let linker = session_for(Need::Conversation);
    tx.set_item_state(&ItemState {
        link: Some(ItemLink {
            root: item,
            at: at(1),
            by: Some(id(linker)),
        }),
        ..ItemState::plain(key("pr:acme/web#9"))
    })
    .unwrap();

    let member = session_for(Need::Mission);
    let mission = MissionId::parse("m").unwrap();
    tx.make_mission(&mission, at(1)).unwrap();
    tx.insert_participant(&Participant {
        mission,
        session: id(member),
        participant: ParticipantId::mint(EPOCH, [1; 10]),
        role: Role::parse("developer").unwrap(),
        joined_at: at(1),
        active_at: at(1),
        drive: Drive::Inactive,
        focus: None,
        run_id: None,
        api_url: None,
        revision: 0,
    })
    .unwrap();

    let runner = session_for(Need::Run);
    let stopper = session_for(Need::Run);
    tx.insert_run(&Run {
        session: Some(token(runner)),
        stop: Some(StopAsked {
            cause: Stop::Asked,
            at: at(1),
            by: Some(id(stopper)),
            why: "wrong branch".into(),
        }),
        ..run(1)
    })
    .unwrap();

    let asker = session_for(Need::Job);
    let mut queued = job(1);
    queued.by = Some(id(asker));
    tx.insert_job(&queued).unwrap();

    let (parent, twin) = (session_for(Need::Kin), session_for(Need::Kin));
    tx.insert_session(&Session {
        parent: Some(token(parent)),
        twin_of: Some(id(twin)),
        ..session(100)
    })
    .unwrap();

    let (about, actor) = (session_for(Need::Event), session_for(Need::Event));
    let mut acted = event(about, "it acted");
    acted.actor = Some(id(actor));
    tx.append_event(&acted, at(1)).unwrap();

    let sender = session_for(Need::Notice);
    tx.add_notice(&Notice {
        from: Some(id(sender)),
        ..notice(100, "read this")
    })
    .unwrap();
    needed
}

fn by(n: u32) -> Author {
    Author {
        session: Some(id(n)),
        run: None,
    }
}

pub fn each_need_keeps_its_session_and_nothing_keeps_the_others(store: &mut dyn Store) {
    with_closed(store, 1..=20);
    let needed = write(store, need_each);
    assert!(needed.len() < 19, "{needed:?}");
    let all: Vec<SessionId> = (1..=20).map(id).collect();
    let expected: Vec<_> = needed.iter().map(|(n, need)| (id(*n), *need)).collect();
    assert_eq!(needs(store, &all, 0), expected);
    assert_eq!(needs(store, &[id(19), id(20)], 0), []);
}

pub fn an_event_needs_its_session_until_it_is_old_unless_it_is_the_newest(store: &mut dyn Store) {
    with_closed(store, 1..=3);
    write(store, |tx| {
        for n in 1..=3 {
            let recorded = at(10 * i64::from(n));
            tx.append_event(&event(n, "recorded"), recorded).unwrap();
        }
    });
    let all = [id(1), id(2), id(3)];
    let by_events =
        |numbers: &[u32]| -> Vec<_> { numbers.iter().map(|n| (id(*n), Need::Event)).collect() };
    assert_eq!(needs(store, &all, 20), by_events(&[2, 3]));
    assert_eq!(needs(store, &all, 100), by_events(&[3]));
    assert_eq!(needs(store, &[], 0), []);
}

/// Puts a row of each kind that is a session's own.
fn own_each(tx: &mut dyn Tx, n: u32) {
    let own = native(&format!("own-{n}"));
    tx.insert_life(token(n), &process(500 + n, 1), at(1))
        .unwrap();
    tx.set_native_owner(&agent(), &own, None, id(n), at(1))
        .unwrap();
    tx.add_visit(&agent(), &native("ses_9"), id(n), at(1))
        .unwrap();
    let name = format!("wp:{n}");
    grant(tx, &hold(&name, 1, n));
    tx.end_hold(&key(&name), Epoch(1), end(EndedBy::Release))
        .unwrap();
    tx.add_notice(&notice(n, "never read")).unwrap();
    let team = MetaKey::parse("team").unwrap();
    tx.set_metadata(id(n), &team, Some("red")).unwrap();
    tx.add_doubt(id(n), token(100)).unwrap();
    tx.add_doubt(id(100), token(n)).unwrap();
    let transcript = Transcript {
        path: format!("/t/{n}.jsonl"),
        session: id(n),
        native_id: own,
        at: at(1),
    };
    tx.set_transcript(&transcript).unwrap();
    let wrong = Transcript {
        path: format!("/t/wrong-{n}.jsonl"),
        native_id: native("wrong"),
        ..transcript
    };
    tx.set_transcript(&wrong).unwrap();
    tx.quarantine_transcript(&wrong, "it is not its own", at(2))
        .unwrap();
    tx.note_write(&FileWrite {
        path: "/w/a".into(),
        session: id(n),
        at: at(1),
        stamp: None,
    })
    .unwrap();
    let mission = MissionId::parse("m").unwrap();
    tx.make_mission(&mission, at(1)).unwrap();
    tx.set_pointer(&PointerScope::Session(id(n)), Some(&mission), at(1))
        .unwrap();
    // On a store that several machines use; elsewhere these do nothing.
    tx.renew_keeper(&keeper(1, 1)).unwrap();
    tx.watch_sessions(&keeper(1, 1).id, &[token(n)]).unwrap();
}

/// The `n`th keeper, which renewed its row last at this time.
fn keeper(n: u8, seen_at: i64) -> Keeper {
    Keeper {
        id: KeeperId::mint([n; 16]),
        place: KeeperPlace {
            host: HostId::new("host-one"),
            pid_ns: 4_026_531_836,
        },
        boot: BootId {
            id: "boot-one".into(),
            private: false,
        },
        uid: 1000,
        pid: 99,
        version: "1".into(),
        host_name: "here".into(),
        started_at: at(0),
        seen_at: at(seen_at),
        renewed: lease(seen_at),
        acknowledged: None,
        terms: Terms {
            host_lease: Duration::from_secs(300),
            lock_delay: Duration::from_secs(30),
        },
    }
}

pub fn a_session_goes_with_all_that_is_its_own_and_epochs_stay(store: &mut dyn Store) {
    with_closed(store, 1..=3);
    with_sessions(store, [100]);
    write(store, |tx| {
        own_each(tx, 1);
        own_each(tx, 2);
    });
    assert_eq!(needs(store, &[id(1)], 0), []);
    assert_eq!(remove(store, &[id(1)]), 1);
    assert!(!is_there(store, 1) && is_there(store, 2) && is_there(store, 3));
    let own = |store: &mut dyn Store, n: u32| {
        read(store, |tx| {
            let wrote = tx.writers("/w/a").unwrap();
            let visitors = tx.native_visitors(&agent(), &native("ses_9")).unwrap();
            let pointer = tx.pointer(&PointerScope::Session(id(n))).unwrap();
            [
                tx.lives_up_to(token(n), 9).unwrap().len(),
                tx.lineage(id(n)).unwrap().len(),
                visitors.iter().filter(|one| **one == id(n)).count(),
                tx.newest_holds(id(n)).unwrap().len(),
                usize::from(tx.has_notices(id(n)).unwrap()),
                tx.metadata(id(n)).unwrap().len(),
                usize::from(tx.has_doubts(id(n)).unwrap()),
                usize::from(tx.transcript_owner(&format!("/t/{n}.jsonl")).unwrap() == Some(id(n))),
                tx.quarantined_transcripts(id(n)).unwrap().len(),
                wrote.iter().filter(|one| one.session == id(n)).count(),
                usize::from(pointer.is_some()),
            ]
        })
    };
    assert_eq!(own(store, 1), [0; 11]);
    assert_eq!(own(store, 2), [1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
    // A doubt about it would be looked up.
    write(store, |tx| {
        assert_eq!(tx.take_doubts(id(100)).unwrap(), [token(2)]);
    });
    let watched = read(store, |tx| tx.watchers_of(&[id(1), id(2)]).unwrap());
    let watched: Vec<_> = watched.into_iter().map(|(token, _)| token).collect();
    let expected = if store.is_shared() {
        vec![token(2)]
    } else {
        vec![]
    };
    assert_eq!(watched, expected);
    // The key goes on from its epoch, and what was the session's own may be another's.
    write(store, |tx| {
        assert_eq!(tx.lock_claim(&key("wp:1")).unwrap().epoch, Epoch(1));
        grant(tx, &hold("wp:1", 2, 100));
        tx.set_native_owner(&agent(), &native("own-1"), None, id(100), at(3))
            .unwrap();
    });
    let lineage = read(store, |tx| tx.lineage(id(100)).unwrap());
    let entry = LineageEntry {
        native_id: native("own-1"),
        owned: true,
        at: at(3),
    };
    assert_eq!(lineage, [entry]);
}

pub fn what_is_removed_twice_is_gone_once(store: &mut dyn Store) {
    with_closed(store, 1..=4);
    write(store, |tx| {
        tx.append_event(&event(1, "it was there"), at(1)).unwrap();
    });
    assert_eq!(remove(store, &[id(2), id(3)]), 2);
    assert_eq!(remove(store, &[id(2), id(3)]), 0);
    assert_eq!(remove(store, &[]), 0);
    let left = read(store, |tx| tx.closed_before(at(100), None, 9).unwrap());
    assert_eq!(left, [(at(1), id(1)), (at(4), id(4))]);
    // A part that was not committed never happened.
    let dropped = read(store, |tx| tx.events(&EventFilter::default()).unwrap());
    assert_eq!(dropped.len(), 1);
}

pub fn keepers_go_when_they_were_long_silent_and_no_open_session_names_them(store: &mut dyn Store) {
    with_sessions(store, [1]);
    with_closed(store, [2]);
    write(store, |tx| {
        for (n, seen_at) in [(1, 10), (2, 20), (3, 30), (4, 40), (5, 500)] {
            tx.renew_keeper(&keeper(n, seen_at)).unwrap();
        }
        tx.watch_sessions(&keeper(2, 0).id, &[token(1)]).unwrap();
        tx.watch_sessions(&keeper(3, 0).id, &[token(2)]).unwrap();
    });
    let forget =
        |store: &mut dyn Store, most| write(store, |tx| tx.forget_keepers(at(100), most).unwrap());
    let left = |store: &mut dyn Store| -> Vec<KeeperId> {
        let all = read(store, |tx| tx.keepers().unwrap());
        all.into_iter().map(|one| one.id).collect()
    };
    if !store.is_shared() {
        // Only a store that several machines use has keepers.
        assert_eq!((forget(store, 9), left(store)), (0, vec![]));
        return;
    }
    let ids =
        |numbers: &[u8]| -> Vec<KeeperId> { numbers.iter().map(|n| keeper(*n, 0).id).collect() };
    assert_eq!(forget(store, 1), 1, "at most so many at once");
    assert_eq!(left(store), ids(&[5, 4, 3, 2]));
    assert_eq!(forget(store, 9), 2);
    assert_eq!(left(store), ids(&[5, 2]));
    assert!(is_there(store, 2), "a session does not go with its keeper");
}
